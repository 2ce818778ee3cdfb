"""Tell how to install an extra, by a command that fits the way longtable itself was installed."""

import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]

EDITABLE = (CHECKOUT / "pyproject.toml").is_file()
"""Whether longtable runs from the sources of a checkout. If not, it was built and installed."""


def pip_install(what: str, *, checkout: Path = CHECKOUT, python: str = sys.executable) -> str:
    """Return the command, run in the checkout, that installs a package for the Python that runs
    longtable.
    """
    own = Path(python)
    program = str(own.relative_to(checkout)) if own.is_relative_to(checkout) else "python"
    return f"{program} -m pip install {what}"


def extra_command(
    extra: str,
    *,
    editable: bool = EDITABLE,
    checkout: Path = CHECKOUT,
    python: str = sys.executable,
) -> str:
    """Return the command, run in the checkout, that installs an extra. It names no package:
    longtable is on no index.
    """
    return pip_install(f"{'-e ' if editable else ''}'.[{extra}]'", checkout=checkout, python=python)


def install_extra(extra: str) -> str:
    """Return `extra_command` as part of a sentence."""
    return f"run `{extra_command(extra)}` in the checkout of longtable"
