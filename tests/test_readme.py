"""What the README shows runs."""

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import forked

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    lines = [line for block in blocks("console") for line in block.splitlines()]
    return [line.removeprefix("$ ").partition("  #")[0].strip() for line in lines if line.startswith("$ ")]


def test_the_python_blocks_run_one_after_the_other(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "shop.db")
    with connection:
        connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id))")
        connection.executemany("INSERT INTO customers VALUES (?, ?)", [(n, f"name {n}") for n in range(7)])
        connection.executemany("INSERT INTO orders VALUES (?, ?)", [(n, n % 7) for n in range(23)])
    connection.close()
    outputs = []
    for number, block in enumerate(blocks("python")):
        # Each block in a process of its own: the second says "close the process, open it again". It shares the names.
        script = "\n".join([*(_imports(blocks("python")[0]) if number else []), block])
        done = forked.run(_block, script, folder=tmp_path, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
        outputs.append(done.stdout.decode())
    assert "query_finished" in outputs[0].split()
    assert outputs[0].split()[-1] == "answer"
    assert "7" in outputs[1]


def _block(script: str) -> None:
    exec(compile(script, "README.md", "exec"), {"__name__": "__main__"})


def _imports(block: str) -> list[str]:
    return [line for line in block.splitlines() if line.startswith(("from ", "import ", "database = "))]


def test_every_make_target_shown_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = {target for command in commands() for target in re.findall(r"\bmake (\w+)", command)}
    assert {"chat", "test", "lint", "eval", "bench"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("command", sorted({name for line in commands() for name in re.findall(r"longtable (ask|chat|threads)\b", line)}))
def test_every_command_shown_takes_the_options_shown(command: str) -> None:
    line = [sys.executable, "-m", "longtable.app.cli", command, "--help"]
    shown = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False, env={"COLUMNS": "200", "PATH": "/usr/bin:/bin"})
    assert shown.returncode == 0, shown.stderr
    for option in ("--database", "--model", "--base-url", "--thread", "--store", "--model-limit", "--json"):
        assert option in shown.stdout, f"{command} does not take {option}"


def test_the_files_named_are_there() -> None:
    for name in re.findall(r"`([\w./]+\.(?:ipynb|py|json|png|example))`|\((\w[\w/]*\.png)\)", README):
        path = name[0] or name[1]
        assert (ROOT / path).exists(), path
