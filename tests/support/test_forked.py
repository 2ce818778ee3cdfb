"""A forked process is one of its own, with everything imported."""

import os
import sys
from pathlib import Path

from tests.support import forked


def tell(*names: str) -> None:
    print(
        sys.stdin.read(),
        os.environ.get("SAID"),
        Path.cwd(),
        *("tests.support.preloaded" in sys.modules, *names),
        sep="|",
    )
    print("大", file=sys.stderr)
    sys.exit(3)


def test_it_has_its_own_streams_environment_folder_and_exit_code_and_all_modules_ready(
    tmp_path: Path,
) -> None:
    done = forked.run(tell, "x", stdin=b"given", environment={"SAID": "so"}, folder=tmp_path)
    assert (done.returncode, done.stderr.decode()) == (3, "大\n")
    # A module that cannot be imported is passed over by the server, and every process would import
    # for itself again.
    assert done.stdout.decode() == f"given|so|{tmp_path}|True|x\n"
