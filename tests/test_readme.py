"""What the README and the pages of docs/ show runs, with what its command installs and nothing
else.
"""

import asyncio
import json
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp import Client, StdioServerParameters
from mcp.types import TextContent
from openpyxl import Workbook, load_workbook

from longtable.app.demo import ensure_demo
from longtable.app.pages.page_server import guard_rules
from longtable.app.settings.row_settings import row_function
from longtable.app.settings.run_settings import load_settings
from longtable.evaluation.formats.question_files import read_questions
from longtable.graph import CompactionPolicy
from longtable.tools.sql.table_policy import load_policy
from tests.support.installed import Installed, Server, closure, declared
from tests.support.model_server import call, open_model_server, say
from tests.support.postgres import postgres_server

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = {
    "README.md": README,
    **{page.name: page.read_text() for page in sorted((ROOT / "docs").glob("*.md"))},
}
ALL = "\n".join(PAGES.values())
SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id));
"""
CUSTOMERS, ORDERS = [(n, f"name {n}") for n in range(7)], [(n, n % 7) for n in range(23)]
FILE = "sqlite:///shop.db"
PHRASE = "a passphrase of some length"

Python = Callable[..., Installed]


def blocks(language: str, text: str = ALL) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    lines = [line for block in blocks("console") for line in block.splitlines()]
    shown = [
        line.removeprefix("$ ").partition("  #")[0].strip()
        for line in lines
        if line.startswith("$ ")
    ]
    return list(dict.fromkeys(shown))


def extras_of(installs: str) -> list[str]:
    """Return the extras of a line that installs the checkout."""
    [names] = re.findall(r"(?:-e|--editable) '\.\[([\w,]+)\]'", installs)
    return list(names.split(","))


MAKE_CHAT = re.findall(r"^BASIC := ([\w,]+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[
    0
].split(",")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache with the real demo database: every Python that brings its data would build the
    same one, in 4 s.
    """
    cache = tmp_path_factory.mktemp("cache")
    ensure_demo(cache / "longtable")
    return cache


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Python]:
    """Return what makes a Python with some extras, in a home of its own with a shop in it."""
    made: dict[tuple[str, ...], Installed] = {}
    server = Server(tmp_path_factory.mktemp("server"))

    def python(*extras: str) -> Installed:
        if extras not in made:
            folder = tmp_path_factory.mktemp("home")
            with closing(sqlite3.connect(folder / "shop.db")) as connection, connection:
                connection.executescript(SHOP)
                connection.executemany("INSERT INTO customers VALUES (?, ?)", CUSTOMERS)
                connection.executemany("INSERT INTO orders VALUES (?, ?)", ORDERS)
            made[extras] = Installed(server, folder, extras)
        return made[extras]

    yield python
    server.stop()


@pytest.mark.parametrize("page", [name for name, text in PAGES.items() if blocks("python", text)])
def test_the_python_blocks_of_a_page_run_and_print_what_it_shows(python: Python, page: str) -> None:
    """Each block runs in a process of its own, with the names of docs/embed.md under "Ask and
    stream" and of those above it.
    """
    names = _names(blocks("python", PAGES["embed.md"])[1])
    shown = re.findall(
        r"^```python\n(.*?)^```(?:\n+```text\n(.*?)^```)?", PAGES[page], re.MULTILINE | re.DOTALL
    )
    for block, output in shown:
        extras = ["studio"] if "fastapi" in block else ["dev"] if "langgraph_s" in block else []
        done = python(*extras).run("\n".join([*names, block]))
        assert done.returncode == 0, done.stderr
        assert done.stdout == output
        names += _names(block)


def _names(block: str) -> list[str]:
    return [
        line for line in block.splitlines() if line.startswith(("from ", "import ", "database = "))
    ]


def test_no_block_is_shown_that_no_test_runs() -> None:
    languages = re.findall(r"^```(.*)\n(?:.*\n)*?```$", ALL, re.MULTILINE)
    assert set(languages) <= {"python", "console", "toml", "text", "yaml"}
    followed = re.findall(r"^```python\n(?:(?!```).*\n)*```\n+```text$", ALL, re.MULTILINE)
    assert languages.count("text") == len(followed)
    # The tests below read them.
    assert (languages.count("toml"), languages.count("yaml")) == (8, 1)


def test_the_questions_shown_are_read_as_their_comments_say() -> None:
    [text] = [block for block in blocks("toml") if "[[question]]" in block]
    found = read_questions(text, "questions.toml", Path("/data"))
    assert not found.problems
    assert [dialogue.id for dialogue in found.dialogues][:1] == ["orders-2024"]
    assert [len(dialogue.turns) for dialogue in found.dialogues] == [1, 1, 1, 2]
    assert found.bar.interactions == 0.7


def test_the_recipe_for_ci_asks_compares_and_leaves_a_report(python: Python) -> None:
    here = python()
    [recipe] = map(yaml.safe_load, blocks("yaml"))
    steps = [step["run"] for step in recipe["jobs"]["evaluate"]["steps"] if "run" in step]
    [line] = [shlex.split(step)[1:] for step in steps if step.startswith("longtable eval")]
    gold = "SELECT count(*) FROM orders"
    (here.folder / "questions.toml").write_text(
        f'database = "shop.db"\n[[question]]\nask = "How many orders?"\nsql = "{gold}"\n'
    )
    with open_model_server() as server:
        server.script(call("run_sql", sql=gold), say("23."), say("23."))
        variables = {"OPENAI_API_KEY": "sk-none", "OPENAI_BASE_URL": server.base_url}
        first = here.longtable(*line[:-2], "--out", "before", **variables)
        assert first.returncode == 0, first.stderr
        (here.folder / "main.json").write_text((here.folder / "before/report.json").read_text())
        second = here.longtable(*line, **variables)
        assert second.returncode == 0, second.stderr
    assert "Paid models are asked: 1 turn," in second.stdout
    [shown] = [step for step in steps if "report.md" in step]
    report = (here.folder / shown.split()[1]).read_text()
    assert "- worse: How many orders?, turn 1: How many orders? (right → wrong no query)" in report


POLICY = """
import sqlite3
from pathlib import Path
from longtable.graph import Database
with sqlite3.connect("people.db") as connection:
    connection.execute("CREATE TABLE customers (id, name, ssn)")
    connection.execute("CREATE TABLE audit_log (id)")
with Database.open("sqlite:///people.db", policy=Path("policy.toml")) as people:
    print([column.name for column in people.catalogue().find("customers").columns], people.catalogue().find("audit_log"))
"""


def test_the_policy_shown_hides_what_it_denies(python: Python) -> None:
    [policy] = [block for block in blocks("toml") if "denied" in block]
    (python().folder / "policy.toml").write_text(policy)
    done = python().run(POLICY.replace("catalogue", "catalog"))
    assert done.stdout.split() == ["['id',", "'name']", "None"], done.stderr


def test_the_settings_file_shown_holds_what_it_says(tmp_path: Path) -> None:
    [file] = [block for block in blocks("toml") if "preset" in block]
    (tmp_path / "longtable.toml").write_text(file)
    settings = load_settings({"config": str(tmp_path / "longtable.toml")}, environment={})
    assert (settings.model.limit, settings.database.url) == (32_000, str(tmp_path / "shop.db"))
    assert settings.compaction.policy() == CompactionPolicy(keep_rounds=4)


def test_the_databases_shown_are_read_as_they_say(tmp_path: Path) -> None:
    [file] = [block for block in blocks("toml") if "[databases.web]" in block]
    (tmp_path / "longtable.toml").write_text(file)
    settings = load_settings({"config": str(tmp_path / "longtable.toml")}, environment={})
    assert list(settings.databases) == ["shop", "web"]
    assert settings.databases["web"].query_rows == 5_000


# -- what each command installs is enough ----------------------------------------------------------


def test_make_chat_installs_what_its_examples_need(python: Python, demo: Path) -> None:
    [piped] = [line for line in commands() if line.startswith("printf")]
    questions = re.findall(r"“(plot [^”]*|画成[^”]*)”", ALL)
    assert questions == ["plot the average delay per month", "画成饼图"]
    lines = piped.split("'")[1].replace("\\n", "\n") + "\n".join(questions)
    # No line is broken.
    variables = {
        "XDG_CACHE_HOME": str(demo),
        "LONGTABLE_STORE": "sqlite:///chart.db",
        "COLUMNS": "200",
    }
    done = python(*MAKE_CHAT).longtable("chat", stdin=lines, **variables)
    assert done.returncode == 0, done.stderr
    [shown] = [block for block in blocks("console", README) if piped in block]
    said = _steady(done.stdout).splitlines()
    expected = _steady(shown.partition("\n")[2]).splitlines()
    assert said[: len(expected)] == expected
    assert re.search(r"^7 +█{20,} 21\.7278$", done.stdout, re.MULTILINE)
    drawn = sorted((python(*MAKE_CHAT).folder / "chart.db.results").glob("*/r3/chart-*.png"))
    assert [file.name for file in drawn] == ["chart-1.png", "chart-2.png"]
    assert "already" not in done.stderr
    assert "Error" not in done.stderr


def _steady(output: str) -> str:
    """Return what a chat prints without what differs from run to run: times, the thread's id,
    tokens.
    """
    output = re.sub(r"\d+ ms|new thread \w+", "", output)
    return re.sub(
        r"^context .*", lambda line: re.sub(r"[\d,.█░│]+", "0", line[0]), output, flags=re.MULTILINE
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_without_the_extra_a_chart_is_text_and_says_how_to_get_a_picture(
    python: Python, demo: Path, language: str
) -> None:
    lines = "plot the average delay per month\n" + (
        "画成饼图\n" if language == "zh" else "plot it as a bar chart\n"
    )
    variables = {"XDG_CACHE_HOME": str(demo), "LONGTABLE_STORE": f"sqlite:///{language}.db"}
    done = python("demo").longtable("chat", stdin=lines, **variables)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^7 +█{20,} 21\.7278$", done.stdout, re.MULTILINE)) == 2
    last = done.stdout.rpartition("show_chart")[2].replace("\n", " ")
    assert re.search(
        (
            r"r1 的图片.*-m pip install -e '\.\[charts\]'"
            if language == "zh"
            else r"picture of r1.*-m pip install -e '\.\[charts\]'"
        ),
        last,
    )


def test_the_commands_of_the_readme_run_on_a_thread(python: Python) -> None:
    here = python(*MAKE_CHAT)
    [ask] = [line for line in commands() if " ask " in line]
    assert ask == f'.venv/bin/longtable ask "Which tables are there?" --database {FILE}'
    variables = {"LONGTABLE_DATABASE": FILE, "LONGTABLE_STORE": "sqlite:///talk.db"}

    def run(*line: str, stdin: str = "") -> str:
        done = here.longtable(*line, stdin=stdin, **variables)
        assert done.returncode == 0, (line, done.stderr)
        return done.stdout

    assert "orders" in run("ask", "Which tables are there?", "--database", FILE)
    assert "23" in run("ask", "How many orders are there?", "--thread", "t")
    assert "23" in run(
        "chat",
        "--thread",
        "t",
        stdin="/view\n/pins\n/result r1\n/table\n/compact\n/undo\n/help\n/reasoning\n",
    )
    assert "t" in run("threads")
    (here.folder / "t.jsonl").write_text(run("threads", "export", "t"))
    for line in (
        "list",
        "show t --reasoning",
        "search orders",
        "rename t numbers",
        "fork t --turn 1 --as f",
        "archive t",
    ):
        run("threads", *line.split())
    run("threads", "delete", "f", "--yes")
    run("threads", "import", "t.jsonl", "--as", "again")
    run("threads", "prune", "--older-than", "90d", "--keep-archive", "--yes")
    [prices] = [block for block in blocks("toml") if "input" in block]
    (here.folder / "prices.toml").write_text(prices.replace("gpt-4o-mini*", "built-in*"))
    assert "built-in" in run("usage", "--by", "day", "--by", "model", "--prices", "prices.toml")
    assert "orders" in run("audit", "--thread", "t")
    assert "orders" in run("audit", "--csv")
    run("result", "r1", "--thread", "t", "--csv", "-o", "r1.csv")
    run("result", "r1", "--thread", "t", "--parquet")
    assert (here.folder / "r1.csv").read_text().split()[1] == "23"


def test_a_model_behind_a_key_or_an_address_needs_no_extra(python: Python) -> None:
    lines = [line.split() for line in commands() if " chat --model " in line]
    assert len(lines) == 2
    for line in lines:
        with open_model_server() as server:
            server.script(call("run_sql", sql="SELECT count(*) FROM orders"), say("There are 23."))
            options = [server.base_url if part.startswith("https:") else part for part in line[2:]]
            variables = {
                "OPENAI_API_KEY": "a-key",
                "OPENAI_BASE_URL": server.base_url,
                "LONGTABLE_DATABASE": FILE,
            }
            done = python().longtable("chat", *options, stdin="How many orders?\n", **variables)
            assert done.returncode == 0, done.stderr
            assert "There are 23." in done.stdout
            assert ("pip install -e '.[tokenizers]'" in done.stderr) == ("qwen-plus" in line)


def test_the_extra_tokenizers_counts_the_model_of_the_readme(python: Python) -> None:
    with open_model_server() as server:
        server.script(say("Hello."))
        options = (
            "--model",
            "qwen-plus",
            "--base-url",
            server.base_url,
            "--model-limit",
            "128000",
            "--database",
            FILE,
        )
        events = python("tokenizers").events("ask", "Hello", *options)
    usage = [event for event in events if event["type"] == "context_usage"]
    assert usage
    assert not any(event["estimated"] for event in usage)


def test_the_extra_postgres_opens_database_and_threads(python: Python) -> None:
    url = postgres_server().create(f"{SHOP} INSERT INTO orders VALUES (1), (2), (3)")
    done = python("postgres").longtable(
        "ask",
        "How many orders are there?",
        "--database",
        url,
        "--store",
        postgres_server().create(),
    )
    assert done.returncode == 0, done.stderr
    assert "3" in done.stdout


def test_the_extra_excel_reads_and_writes_workbooks(python: Python) -> None:
    here = python("excel")
    _workbook(here.folder / "sales.xlsx")
    variables = {"LONGTABLE_DATABASE": "sales.xlsx", "LONGTABLE_STORE": "sqlite:///talk.db"}
    assert (
        here.longtable("ask", "How many sales are there?", "--thread", "t", **variables).returncode
        == 0
    )
    done = here.longtable("result", "r1", "--thread", "t", "--xlsx", "-o", "out.xlsx", **variables)
    assert done.returncode == 0, done.stderr
    assert load_workbook(here.folder / "out.xlsx").worksheets[0]["A2"].value == 2


def _workbook(file: Path) -> None:
    book = Workbook()
    sheet = book.worksheets[0]
    for row in (["city", "price"], ["Nice", 1.5], ["Lille", 2.5]):
        sheet.append(row)
    book.save(file)


def test_the_extra_encryption_seals_a_store(python: Python) -> None:
    variables = {
        "LONGTABLE_DATABASE": FILE,
        "LONGTABLE_STORE": "sqlite:///sealed.db",
        "LONGTABLE_STORE_KEY": PHRASE,
    }
    done = python("encryption").longtable("ask", "How many orders are there?", **variables)
    assert done.returncode == 0, done.stderr
    assert b"How many orders" not in (python("encryption").folder / "sealed.db").read_bytes()


RESULT = """
from datetime import UTC, datetime
from pathlib import Path
from longtable.graph import ResultStore
results = ResultStore(Path("kept"))
results.put("t", columns=["day", "n"], types=["DATE", "BIGINT"], rows=[("2024-01-02", 1), ("2024-02-03", 2)], sql="SELECT 1")
"""
CHART = """
from longtable.tools.charts.chart_tool import chart_of
chart = chart_of("r1", results.get("t", "r1"), wish="line by month")
"""


def test_the_extra_frames_gives_frames_and_arrow_tables(python: Python) -> None:
    done = python("frames").run(
        f"{RESULT}print(len(results.frame('t', 'r1')), results.arrow('t', 'r1').num_rows)"
    )
    assert done.stdout.split() == ["2", "2"], done.stderr


def test_the_extra_charts_draws_every_form(python: Python) -> None:
    script = (
        f"{RESULT}{CHART}print(chart.png()[1:4], chart.svg()[:4], chart.html()[:9], '█' in"
        " chart.text(), *chart._repr_mimebundle_())"
    )
    done = python("charts").run(script)
    assert done.stdout.split() == [
        "b'PNG'",
        "<svg",
        "<!DOCTYPE",
        "True",
        "image/svg+xml",
        "text/plain",
    ], done.stderr


def test_without_the_extra_charts_a_model_draws_by_wish_alone(python: Python) -> None:
    """A client may draw what the event `chart` says: it holds no spec that Vega-Lite's schema has
    not checked.
    """
    bar = {"mark": "bar", "encoding": {"x": {"field": "name"}, "y": {"field": "n"}}}
    with open_model_server() as server:
        server.script(
            call("run_sql", sql="SELECT name, 3 AS n FROM customers"),
            call("show_chart", handle="r1", spec=bar),
            call("show_chart", handle="r1", wish="bar chart"),
            say("There."),
        )
        options = (
            "--model",
            "gpt-4o-mini",
            "--base-url",
            server.base_url,
            "--database",
            FILE,
            "--store",
            "memory://",
        )
        events = python().events("ask", "plot it", *options)
        said = [
            message["content"]
            for message in server.requests[-1].messages
            if message["role"] == "tool"
        ]
    assert len([event for event in events if event["type"] == "chart"]) == 1
    assert "say in `wish`" in said[1]
    assert json.loads(said[2])["shown"]


def test_the_extra_mcp_serves_its_command(python: Python) -> None:
    [line] = [line for line in commands() if "longtable mcp" in line]
    [extras] = [extras_of(line) for line in commands() if "[mcp]" in line]
    here = python(*extras)

    async def run() -> list[dict[str, Any]]:
        arguments = ["-m", "longtable.app.cli", *line.split()[1:]]
        async with Client(
            StdioServerParameters(
                command=sys.executable, args=arguments, env=here.environment, cwd=str(here.folder)
            )
        ) as client:
            said = []
            for question in (
                "How many orders are there?",
                "plot the number of orders per customer",
            ):
                [content] = (await client.call_tool("ask", {"question": question})).content
                assert isinstance(content, TextContent)
                said.append(json.loads(content.text))
            return said

    first, second = asyncio.run(run())
    assert "23" in first["answer"]
    assert "charts" not in first
    [chart] = second["charts"]
    assert chart.count("█") > 6


PAGES_OPEN = """
import asyncio, contextlib
from longtable.app.pages.page_guard import GuardRules
from longtable.app.pages.page_site import Site
from longtable.app.pages.web_app import web_app
from longtable.app.session import open_session
from longtable.app.settings.run_settings import load_settings

async def main():
    settings = load_settings({"database": "sqlite:///shop.db"})
    async with open_session(settings, lambda: contextlib.nullcontext(print)) as session:
        app = web_app(Site(session), GuardRules())
        print(type(app).__name__, session.database.name)

asyncio.run(main())
"""


def test_the_extra_web_makes_its_pages(python: Python) -> None:
    done = python("web").run(PAGES_OPEN)
    assert done.stdout == "Starlette shop\n", done.stderr


def test_the_rules_shown_for_the_web_chat_hold(tmp_path: Path) -> None:
    [rules] = [block for block in blocks("toml") if "owner_header" in block]
    (tmp_path / "longtable.toml").write_text(rules)
    settings = load_settings({"config": str(tmp_path / "longtable.toml")}, environment={})
    assert guard_rules(settings).knows_people


def test_the_row_filters_and_parameters_shown_are_read(tmp_path: Path) -> None:
    [filters] = [block for block in blocks("toml") if "[row_filters]" in block]
    (tmp_path / "policy.toml").write_text(filters)
    assert load_policy(tmp_path / "policy.toml").row_filters == {
        "orders": "customer_id = :customer",
        "sales.items": "region = :region AND NOT deleted",
    }
    [values] = [block for block in blocks("toml") if "[row_parameters]" in block]
    (tmp_path / "longtable.toml").write_text(values)
    read = row_function(load_settings({"config": str(tmp_path / "longtable.toml")}, environment={}))
    assert read is not None
    assert [read("ann"), read("eve"), read(None)] == [{"customer": 1}, {}, {}]


STUDIO = """
from longtable.app.demo import package_data
from longtable.app.studio import graph
from longtable.app.web import app
from longtable.tools.charts.chart_tool import draws_pictures
assert draws_pictures()
package_data()  # the demo database is there already: see the fixture
config = {"configurable": {"thread_id": "s"}}
for mode, event in graph.stream({"messages": [("user", "plot the average delay per month")]}, config, stream_mode=["custom", "values"]):
    if mode == "custom" and event["type"] == "chart":
        print(event["spec"]["mark"], event["handle"])
"""


def test_the_extra_studio_loads_the_graph_and_draws_the_first_chart(
    python: Python, demo: Path
) -> None:
    [extras] = [extras_of(line) for line in commands() if "[studio]" in line]
    here = python(*extras)
    done = here.run(
        STUDIO,
        variables={"XDG_CACHE_HOME": str(demo), "LONGTABLE_RESULTS": str(here.folder / "kept")},
    )
    assert done.stdout.split()[-1:] == ["r1"], done.stderr


def test_aegra_is_installed_with_what_its_chart_needs() -> None:
    [extras] = [extras_of(line) for line in commands() if "aegra-cli" in line]
    # It brings fastapi itself; Aegra's own Python is another one.
    assert set(extras) == {"demo", "frames", "charts"}


# -- what is missing says so -----------------------------------------------------------------------


MISSING: dict[str, tuple[str, list[str], dict[str, str]]] = {
    "database in PostgreSQL": (
        "postgres",
        ["ask", "hello", "--database", "postgresql://nobody@127.0.0.1:1/x"],
        {},
    ),
    "threads in PostgreSQL": (
        "postgres",
        ["threads", "--store", "postgresql://nobody@127.0.0.1:1/x"],
        {},
    ),
    "workbook written": (
        "excel",
        ["result", "r1", "--thread", "t", "--xlsx"],
        {"LONGTABLE_STORE": "sqlite:///missing.db"},
    ),
    "sealed store": (
        "encryption",
        ["ask", "hello", "--database", FILE],
        {"LONGTABLE_STORE_KEY": PHRASE, "LONGTABLE_STORE": "sqlite:///new.db"},
    ),
    "MCP": ("mcp", ["mcp", "--database", FILE], {}),
    "pages": ("web", ["web", "--port", "0", "--database", FILE], {}),
    "demo": ("demo", ["ask", "hello"], {}),
}


@pytest.mark.parametrize("what", MISSING)
def test_a_command_without_its_extra_names_it_and_how_to_install_it(
    python: Python, what: str
) -> None:
    extra, line, variables = MISSING[what]
    here = python()
    _workbook(here.folder / "sales.xlsx")
    if what == "workbook written":
        here.longtable(
            "ask", "How many orders are there?", "--thread", "t", "--database", FILE, **variables
        )
    done = here.longtable(*line, **variables)
    assert done.returncode != 0
    assert f"extra `{extra}`" in done.stderr
    assert _command(extra) in done.stderr.replace("\n", " ")


FAILING: dict[str, tuple[str, str]] = {
    "a DataFrame": ("frames", f"{RESULT}results.frame('t', 'r1')"),
    "an Arrow table": ("frames", f"{RESULT}results.arrow('t', 'r1')"),
    "a picture": ("charts", f"{RESULT}{CHART}chart.png()"),
    "SVG": ("charts", f"{RESULT}{CHART}chart.svg()"),
    "HTML": ("charts", f"{RESULT}{CHART}chart.html()"),
}


@pytest.mark.parametrize("what", FAILING)
def test_a_call_without_its_extra_raises_an_error_that_names_it(python: Python, what: str) -> None:
    extra, script = FAILING[what]
    done = python().run(script)
    last = done.stderr.strip().splitlines()[-1]
    assert "MissingExtraError" in last
    assert f"extra `{extra}`" in last
    assert _command(extra) in last


def test_a_notebook_without_the_extra_shows_the_chart_as_text(python: Python) -> None:
    done = python().run(
        f"{RESULT}{CHART}[(kind, text)] = chart._repr_mimebundle_().items(); print(kind, text)"
    )
    assert done.stdout.startswith("text/plain"), done.stderr
    assert "█" in done.stdout
    assert _command("charts") in done.stdout


def _command(extra: str) -> str:
    """Return what installs an extra into the Python of this test, as somebody in the checkout types
    it.
    """
    own = Path(sys.executable)
    return (
        f"{own.relative_to(ROOT) if own.is_relative_to(ROOT) else 'python'} -m pip install -e"
        f" '.[{extra}]'"
    )


# -- the pages themselves --------------------------------------------------------------------------


def test_every_extra_is_documented_and_every_documented_one_exists() -> None:
    table = PAGES["quickstart.md"].partition("| extra | brings |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == set(declared()) - {
        "",
        "dev",
        "bench",
        "notebook",
        "clickhouse-test",
    }
    named = set(re.findall(r"extras? `(\w+)`", ALL)) | {
        name for each in re.findall(r"-e '\.\[([\w,]+)\]'", ALL) for name in each.split(",")
    }
    assert named <= set(declared())


RUN_HERE = (
    "printf",
    ".venv/bin/longtable ",
    ".venv/bin/pip install -e '.[",
    "make ",
    "export OPENAI_API_KEY",
)
WITHOUT_MAKE = (
    "python3 -m venv .venv",
    f".venv/bin/python -m pip install -e '.[{','.join(MAKE_CHAT)}]'",
    ".venv/bin/longtable chat",
)
RUN_ELSEWHERE = (
    ".venv/bin/langgraph dev",  # tests/app/test_studio.py
    "longtable knowledge add ",  # tests/app/commands/test_knowledge_cli.py
    "longtable chat --knowledge ",  # likewise
    "longtable eval questions.toml --",  # tests/app/commands/test_eval_cli.py
)
# Wants another Python, and Redis.
NOT_RUN = ("python3.12 -m venv aegra ", "export DATABASE_URL=", "aegra/bin/aegra serve")


def test_no_command_is_shown_that_no_test_knows() -> None:
    assert not [
        line
        for line in commands()
        if not line.startswith((*RUN_HERE, *WITHOUT_MAKE, *RUN_ELSEWHERE, *NOT_RUN))
    ]


@pytest.mark.parametrize("page", ["README.md", "quickstart.md"])
def test_three_commands_do_what_make_chat_does(page: str) -> None:
    shown = (
        PAGES[page]
        .partition("Without `make`, three commands")[2]
        .partition("```console\n")[2]
        .partition("```")[0]
    )
    assert tuple(line.removeprefix("$ ") for line in shown.splitlines()) == WITHOUT_MAKE


def test_what_development_installs_holds_what_make_chat_installs() -> None:
    """The Makefile takes the one for the other."""
    [ours] = [line for line in declared()["dev"] if line.startswith("longtable[")]
    assert closure(MAKE_CHAT) <= closure(re.findall(r"\w+", ours)[1:])


def test_every_make_target_shown_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = {target for command in commands() for target in re.findall(r"\bmake (\w+)", command)}
    assert {"chat", "test", "lint", "docs", "eval", "bench"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize(
    "command",
    sorted(
        {
            name
            for line in commands()
            for name in re.findall(r"longtable (ask|chat|threads)\b", line)
        }
    ),
)
def test_every_command_shown_takes_the_options_shown(command: str) -> None:
    line = [sys.executable, "-m", "longtable.app.cli", command, "--help"]
    shown = subprocess.run(
        line,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"COLUMNS": "200", "PATH": "/usr/bin:/bin"},
    )
    assert shown.returncode == 0, shown.stderr
    for option in (
        "--database",
        "--model",
        "--base-url",
        "--thread",
        "--store",
        "--model-limit",
        "--json",
    ):
        assert option in shown.stdout, f"{command} does not take {option}"


def test_the_files_named_are_there() -> None:
    for name in re.findall(r"`([\w./]+\.(?:ipynb|py|json|md|example))`", ALL):
        assert (ROOT / name).exists(), name
