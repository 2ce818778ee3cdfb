"""Guards on the repository itself: packaging, import arrows, the front door."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.rooms import ROOMS
from longtable import graph
from longtable.base import errors

ROOT = Path(__file__).parents[1]
BASE = {"base"}
MEMORY = BASE | {"memory"}
PARSING = "tools.sql.parsing"
"""The parsing door: the one module of tools/ that a guest may use to write SQL."""
CELLS = "tools.cells"
"""The JSON form of cells, which events have too: a guest compares rows with theirs."""
ARROWS = {
    "base": BASE,
    "memory": MEMORY,
    "store": MEMORY | {"store"},
    "tools": BASE | {"tools"},
    "knowledge": BASE | {PARSING, "knowledge"},
    "nodes": MEMORY | {"store", "tools", "knowledge", "nodes"},
    "graph": MEMORY | {"store", "tools", "knowledge", "nodes", "graph"},
    "app": set(ROOMS),
    "analyst": MEMORY | {PARSING, "knowledge.material", "analyst"},
    "checks": MEMORY | {"tools", "checks"},
    "modes": {"graph", "base.errors", "modes"},
    "evaluation": {"graph", "knowledge", "base.errors", PARSING, CELLS, "evaluation"},
}
"""The rooms, and the modules of other rooms, that each room may import. Guests are found by name:
only app/ imports them.
"""
MOST_ASYNC = 96
"""Hand-written async functions of the product: where a turn streams, waits or is cancelled."""


def sources() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in {path}"
            names.add(node.module or "")
    return names


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout: there is no list of tracked files")
    return [ROOT / name for name in listed.stdout.split("\0") if name]


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downwards_only(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    ours = [name for name in imports(path) if name.startswith("longtable.")]
    for name in ours:
        inside = name.removeprefix("longtable.")
        assert {inside, inside.split(".")[0]} & ARROWS[room], f"{path} must not import {name}"


@pytest.mark.parametrize("path", sorted((ROOT / "modes").glob("*.py")), ids=lambda path: path.name)
def test_games_use_nothing_but_public_names(path: Path) -> None:
    ours = {name for name in imports(path) if name.startswith("longtable.")}
    own = {name for name in ours if name.startswith("longtable.modes")}
    assert ours - own <= {"longtable.graph", "longtable.base.errors"}


@pytest.mark.parametrize("name", ["Quiz", "Werewolf"])
def test_a_name_that_moved_says_where_it_is(name: str) -> None:
    with pytest.raises(errors.ConfigError, match=f"from longtable.modes import {name}"):
        getattr(graph, name)


def modules() -> dict[str, Path]:
    """Return every source file of the house by its import name."""
    return {
        ".".join(("longtable", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path
        for path in sources()
    }


def imported_modules(path: Path, known: Mapping[str, Path]) -> set[str]:
    """Return our modules that a file imports, in functions and under TYPE_CHECKING too."""
    reached: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            reached |= {
                module
                for module in (name, name.rpartition(".")[0])
                if module in known and known[module].name != "__init__.py"
            }
    return reached


def test_no_files_import_each_other_in_a_circle() -> None:
    known = modules()
    imports_of = {module: imported_modules(path, known) for module, path in known.items()}
    cycles: set[tuple[str, ...]] = set()
    reached_from: dict[str, set[str]] = {}
    for module in known:
        reached: set[str] = set()
        waiting = [module]
        while waiting:
            new = imports_of[waiting.pop()] - reached
            reached |= new
            waiting += new
        reached_from[module] = reached
    for module, reached in reached_from.items():
        if module in reached:
            cycles.add(tuple(sorted(other for other in reached if module in reached_from[other])))
    assert not cycles, "\n".join(" <-> ".join(cycle) for cycle in sorted(cycles))


_ENGINE = re.compile("sqlite|duckdb|postgres|mysql|mariadb|clickhouse", re.IGNORECASE)
NAMES_ENGINES = {
    "tools/engines/": "the engines",
    "store/": "threads live in files or servers of our own",
    "base/url.py": "splits a URL",
    "tools/files/": "people's files are loaded into a database file of ours",
    "tools/results/": "results are kept in files that one engine writes and reads",
    "tools/workers/process.py": "opens that engine over kept results",
    "tools/fetch.py": "tells a model the dialect of queries over kept results",
    "tools/sql/verdict.py": "`postgres_cost` is a public name",
    "knowledge/query_search.py": "an index of its own, in memory",
    "evaluation/mutations.py": "changes copies of files of one engine",
    "evaluation/formats/benchmark_files.py": "the endings of benchmarks' database files",
    "app/commands/eval_": "those files and copies",
    "app/demo": "builds the demo's database, and loads it into others",
    "app/program.py": "the demo's URL",
    "app/settings/run_settings.py": "the demo's URL",
    "app/pages/uploads.py": "endings of uploads",
    "app/settings/": "URLs in settings",
}
"""The files and folders outside engines/ that may name an engine, with the reason. None of them
asks which engine a database has.
"""


def engines_in(path: Path) -> set[str]:
    """Return the texts and identifiers of a source file that name an engine. Docstrings and
    comments may give an engine's behaviour as a reason.
    """
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            found.add(str(node.value))
        for name in ("id", "attr", "name", "arg", "asname", "module"):
            found.add(str(getattr(node, name, "")))
    return {text for text in found if _ENGINE.search(text)}


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_room_names_an_engine(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    if not name.startswith(tuple(NAMES_ENGINES)):
        assert not engines_in(path), f"ask a field of the Dialect instead, or say why in {name}"


def test_each_place_that_may_name_an_engine_does() -> None:
    for place in NAMES_ENGINES:
        files = [path for path in sources() if str(path.relative_to(ROOT)).startswith(place)]
        assert any(engines_in(path) for path in files), f"{place} names no engine any more"


def test_a_file_name_stands_once_in_the_house() -> None:
    names = Counter(path.name for path in sources() if path.name != "__init__.py")
    assert not [name for name, count in names.items() if count > 1]


@pytest.mark.parametrize("room", ["memory", "tools"])
def test_memory_and_tools_know_no_graph_classes(room: str) -> None:
    for path in (ROOT / room).rglob("*.py"):
        assert not any(name.split(".")[0] == "langgraph" for name in imports(path)), path


def test_sql_is_parsed_and_written_in_one_place_only() -> None:
    parsers = {
        "parse",
        "parse_one",
        "tokenize",
        "transpile",
        "maybe_parse",
        "condition",
        "from_str",
        "Dialect",
        "Parser",
        "Tokenizer",
    }
    parsers |= {
        "sqlglot.dialects",
        "sqlglot.parser",
        "sqlglot.tokens",
        "sqlglot.optimizer",
        "sqlglot.lineage",
    }
    for path in sources():
        if path == ROOT / "tools" / "sql" / "parsing.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names: set[str] = set()
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sqlglot":
                names = {node.module or "", *(alias.name for alias in node.names)}
            elif isinstance(node, ast.Import) and any(
                alias.name.split(".")[0] == "sqlglot" for alias in node.names
            ):
                names = {"parse"}  # the whole package: its parser, too
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in ("exp", "sqlglot")
            ):
                names = {node.attr}
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "sql"
            ):
                # A tree writes itself by `.sql()`; the store of results has a method of that name.
                names = (
                    set()
                    if isinstance(node.func.value, ast.Attribute)
                    and node.func.value.attr == "store"
                    else {"parse"}
                )
            assert not names & parsers, (
                f"{path} parses or writes SQL by itself: it must call longtable.tools.sql.parsing"
            )


def test_the_front_door_loads_no_engine_and_no_data_frame() -> None:
    # Its files are DuckDB's.
    names = (
        "[getattr(longtable.graph, name) for name in longtable.graph.__all__ if name !="
        " 'ResultStore']"
    )
    heavy = "{'duckdb', 'pandas', 'pyarrow', 'psycopg', 'altair'} & set(sys.modules)"
    script = f"import sys, longtable.graph; {names}; print({heavy} or 'none')"
    assert (
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "none"
    )


PRIVATE_KEYS = {
    ROOT / "graph" / "embedding.py": [("__pregel_resuming", "")],
    ROOT / "graph" / "thread_state.py": [("__return__", "")],
    ROOT / "store" / "saver_guard.py": [("branch:to:", "")],
}
"""Each is compared with LangGraph's own by a test."""


def test_no_private_part_of_langgraph_is_used_but_three_keys() -> None:
    for path in [*sources(), *(ROOT / "benchmarks").rglob("*.py")]:
        private = [
            name
            for name in imports(path)
            if name.startswith("lang") and any(part.startswith("_") for part in name.split("."))
        ]
        assert not private, path
        keys = re.findall(
            r"""["'](__pregel_\w+|__return__|branch:to:|__class__)|(\.__class__ =)|_last_v6_timestamp""",
            path.read_text(),
        )
        assert keys == PRIVATE_KEYS.get(path, []), path


def test_only_the_app_reads_the_environment() -> None:
    for path in sources():
        # A worker is handed a few variables on; none is read.
        if (
            path.relative_to(ROOT).parts[0] != "app"
            and path != ROOT / "tools" / "workers" / "worker_handle.py"
        ):
            assert "os.environ" not in path.read_text(), path
            assert "getenv(" not in path.read_text(), path


def test_packaging_lists_every_package_and_each_is_typed() -> None:
    listed = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    )
    found = {
        f"longtable.{'.'.join(init.parent.relative_to(ROOT).parts)}"
        for room in ROOMS
        for init in (ROOT / room).rglob("__init__.py")
    }
    assert listed == found
    for package in listed:
        assert (ROOT / Path(*package.split(".")[1:]) / "py.typed").exists(), package


def test_the_links_for_type_checkers_are_there() -> None:
    for room in ROOMS:
        assert (ROOT / "typings" / "longtable" / room).resolve() == ROOT / room


def test_the_front_door_lists_what_it_holds() -> None:
    assert graph.__all__ == sorted(graph.__all__)
    for name in graph.__all__:
        assert getattr(graph, name).__doc__, name
    typed = set(re.findall(r"(\w+) as \1\b", (ROOT / "graph" / "__init__.py").read_text()))
    assert typed == set(graph.__all__)


@pytest.mark.parametrize("name", [name for name in vars(errors) if name.endswith("Error")])
def test_every_error_is_at_the_front_door(name: str) -> None:
    assert getattr(graph, name) is getattr(errors, name)


def test_a_conversation_has_few_methods_and_each_has_an_awaited_twin() -> None:
    assert graph.Conversation.__bases__ == (object,)
    methods = {
        name
        for name, value in vars(graph.Conversation).items()
        if callable(value) and not name.startswith("_")
    }
    twins = {f"a{name}" for name in methods} & methods
    assert methods - twins == {name.removeprefix("a") for name in twins}
    assert len(twins) <= 35


def test_little_is_written_twice_for_those_who_await() -> None:
    awaited = sum(
        len(re.findall(r"^ *async def ", path.read_text(), re.MULTILINE)) for path in sources()
    )
    assert awaited <= MOST_ASYNC, (
        f"{awaited} hand-written async functions: make the awaited twin with"
        " longtable.base.concurrency.a_from"
    )


def test_every_dependency_says_why_it_is_there() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    wanted = [line for line in lines if re.match(r'^    "[a-z][\w\[\]-]*[><=]', line)]
    assert len(wanted) >= 15
    assert all("#" in line for line in wanted), [line for line in wanted if "#" not in line]


def test_no_hint_installs_longtable_by_its_name() -> None:
    """It is on no index: whoever runs `pip install` with its name gets nothing, or a stranger's
    package.
    """
    for path in tracked():
        if (
            path.suffix in {".py", ".md", ".ipynb", ".toml", ".example", ""}
            and path.is_file()
            and path != Path(__file__)
        ):
            for line in path.read_text(errors="replace").splitlines():
                assert not re.search(r"pip install [^#`]*(?<![\w/.-])longtable", line), (
                    f"{path}: {line}"
                )


def test_every_missing_extra_that_the_code_names_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    calls = [
        node
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
    ]
    named = [
        node.args
        for node in calls
        if isinstance(node.func, ast.Name)
        and node.func.id in ("MissingExtraError", "install_extra")
    ]
    literal = {args[-1].value for args in named if isinstance(args[-1], ast.Constant)}
    assert len(literal) >= 8
    assert literal <= set(extras)


def test_no_path_of_one_machine_and_no_secret_is_tracked() -> None:
    machine = re.compile(r"/(?:work|root|home/\w+|Users/\w+)/|/opt/pypi")
    secret = re.compile(r"\bsk-[A-Za-z0-9]{20,}|BEGIN (?:RSA |EC )?PRIVATE KEY")
    for path in tracked():
        if (
            path.is_file()
            and not path.is_symlink()
            and path.suffix not in {".png", ".svg"}
            and path != Path(__file__)
        ):
            text = path.read_text(errors="replace")
            assert not machine.search(text), f"a machine's path in {path}: {machine.search(text)}"
            assert not secret.search(text), f"a secret in {path}"


def test_a_source_file_has_a_test_of_its_name_or_a_reason() -> None:
    tests = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    reasons = tomllib.loads((ROOT / "tests" / "covered_elsewhere.toml").read_text("utf-8"))
    untested: set[str] = set()
    for path in sources():
        room = path.relative_to(ROOT).parts[0]
        if room != "analyst" and path.name != "__init__.py" and f"test_{path.name}" not in tests:
            untested.add(path.relative_to(ROOT).as_posix())
    listed = {f"{room}/{name}": text for room, of in reasons.items() for name, text in of.items()}
    assert untested == set(listed)
    for name, text in listed.items():
        named = re.findall(r"tests/[\w/]+\.py", text)
        assert named, name
        assert all((ROOT / each).is_file() for each in named), name
