"""The command for an extra fits how longtable is installed."""

from pathlib import Path

import pytest

from longtable.base.extras import extra_command


@pytest.mark.parametrize(
    ("editable", "python", "command"),
    [
        (True, "/srv/longtable/.venv/bin/python", ".venv/bin/python -m pip install -e '.[excel]'"),
        (True, "/usr/bin/python3", "python -m pip install -e '.[excel]'"),
        (False, "/usr/bin/python3", "python -m pip install '.[excel]'"),
        (False, "", "python -m pip install '.[excel]'"),
    ],
)
def test_the_command_for_an_extra_fits_how_longtable_is_installed(
    editable: bool, python: str, command: str
) -> None:
    assert (
        extra_command("excel", editable=editable, checkout=Path("/srv/longtable"), python=python)
        == command
    )
