"""Return commands that install an extra. They fit the way in which longtable itself was
installed.
"""

import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]

EDITABLE = (CHECKOUT / "pyproject.toml").is_file()
"""True if longtable runs from the sources of a checkout; False if it was built and installed."""


def pip_install(what: str, *, checkout: Path = CHECKOUT, python: str = sys.executable) -> str:
    """Return the command that installs a package for the Python that runs longtable. The command
    must be run in the checkout.
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
    """Return the command that installs an extra. The command must be run in the checkout. It names
    a path instead of a package, because longtable is on no package index.
    """
    return pip_install(f"{'-e ' if editable else ''}'.[{extra}]'", checkout=checkout, python=python)


def install_extra(extra: str) -> str:
    """Return `extra_command` as part of a sentence."""
    return f"run `{extra_command(extra)}` in the checkout of longtable"
