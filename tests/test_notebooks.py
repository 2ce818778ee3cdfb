"""The notebooks run, offline, and the last cell of each asserts its claim."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
RUN = """
import sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
print("".join(output.get("text", "") for output in notebook.cells[-1].outputs))
"""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs_and_its_claim_holds(path: Path, tmp_path: Path) -> None:
    # A process of its own: the kernel's sockets are on loopback, and its libraries' warnings are
    # not ours.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN, str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert done.stdout.strip() == "holds"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_is_short_says_its_idea_first_and_saves_no_output(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert len(cells) < 15
    assert cells[0]["cell_type"] == "markdown"
    assert cells[0]["source"][0].startswith("# ")
    assert "assert " in "".join(cells[-1]["source"])
    assert all(not cell.get("outputs") for cell in cells)
