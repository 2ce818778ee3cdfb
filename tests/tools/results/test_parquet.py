"""No engine writes to standard output, in an interactive Python neither."""

import subprocess
import sys
from pathlib import Path

INTERACTIVE = """
import __main__
del __main__.__file__
from longtable.tools.results import parquet
from longtable.tools.engines.duckdb import empty_instance
for connection in (empty_instance(memory_bytes=10**8), parquet._connect()):
    print(connection.execute("SELECT current_setting('enable_progress_bar')").fetchone())
"""


def test_duckdb_draws_no_bar_where_python_is_interactive(tmp_path: Path) -> None:
    script = tmp_path / "interactive.py"
    script.write_text(INTERACTIVE)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split("\n") == ["(False,)", "(False,)", ""]
