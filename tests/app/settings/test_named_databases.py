"""Several databases in the settings: what is read and refused, and that all programs ask them."""

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from longtable.app.mcp_server import instructions_of, server_of
from longtable.app.pages.part_html import Part, TurnPlace, query_part
from longtable.app.session import (
    check_catalogs,
    open_databases,
    open_with_settings,
)
from longtable.app.settings.row_settings import row_source_of
from longtable.app.settings.run_settings import (
    Settings,
    database_urls,
    load_settings,
    setting_rows,
)
from longtable.app.settings.settings_tables import FIRST_FILE
from longtable.base.errors import ConfigError, DatabaseUnavailableError
from longtable.graph import Conversation, build_graph
from longtable.tools.sql.verdict import MASK
from tests.app.pages.served_pages import serving
from tests.app.runner import Home, make_home
from tests.support.model_server import ModelServer, Reply, call, open_model_server, say
from tests.support.models import script

TWO = """
[databases.shop]
url = "shop.db"
policy = "shop_policy.toml"
query_rows = 20
[databases.web]
url = "web.db"
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = make_home(tmp_path)
    with closing(sqlite3.connect(tmp_path / "web.db")) as connection, connection:
        connection.execute("CREATE TABLE visits (day TEXT, pages INTEGER)")
        connection.execute("INSERT INTO visits VALUES ('2026-01-01', 7)")
    (tmp_path / "shop_policy.toml").write_text('[columns]\nmasked = ["orders.customer"]\n')
    (tmp_path / "longtable.toml").write_text(TWO)
    return Home(home.folder, at=tmp_path)


def load(home: Home, text: str = TWO, **options: Any) -> Settings:
    file = home.folder / "named.toml"
    file.write_text(text)
    return load_settings({"config": str(file), **options}, environment={})


def test_each_database_has_its_own_policy_and_limits(home: Home) -> None:
    settings = load(home, TWO + "[limits]\nquery_rows = 50\nquery_seconds = 7\n")
    with open_databases(settings) as databases:
        assert list(databases) == ["shop", "web"]
        assert databases.title == "shop, web"
        assert databases["shop"].run("SELECT customer FROM orders LIMIT 1").masked == {0}
        limits = {name: each.limits for name, each in databases.items()}
    assert (limits["shop"].rows, limits["shop"].seconds) == (20, 7)
    assert (limits["web"].rows, limits["web"].seconds) == (50, 7)
    assert database_urls(settings) == [
        f"sqlite:///{home.folder}/shop.db".replace("sqlite:///", "", 1),
        str(home.folder / "web.db"),
    ]
    rows = {name: (value, source) for name, value, source in setting_rows(settings, {})}
    assert rows["databases.web.url"][0].endswith("web.db")
    assert "line 7" in rows["databases.web.url"][1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[databases.a]\nurl = 'a.db'\n[databases.A]\nurl = 'b.db'\n",
            "have one name: 'a' and 'A'",
        ),
        ("[databases.a]\nurl = 'a.db'\n[databases.a]\nurl = 'b.db'\n", "twice, keep one"),
        ("[databases.'']\nurl = 'a.db'\n", "databases"),
        ("[databases.'two words']\nurl = 'a.db'\n", "found 'two words'"),
        (
            "[databases.a]\nurl = 'a.db'\n[database]\nurl = 'b.db'\n",
            r"there is a \[database\], too",
        ),
        (
            "[databases.shop]\nurl = 'a.db'\n[databases.shpo]\npolicy = 'p.toml'\n",
            "shpo has a policy",
        ),
        ("[databases.shop]\nurl = 'a.db'\n[databases.shpo]\npolicy = 'p.toml'\n", "mean shop"),
        ("[databases.shop]\nquery_rows = 5\n", "shop has settings, but neither url"),
        ("[databases.a]\nurl = 'a.db'\nurl_env = 'A_URL'\n", "both url and url_env"),
        ("[databases.a]\nurl = 'a.db'\n[policy]\nfile = 'p.toml'\n", "is for one database"),
        ("[databases.a]\nurl = 'a.db'\npolcy = 'p.toml'\n", "did you mean policy"),
        ("[databases.a]\nurl = 'a.db'\nquery_rows = 0\n", "greater than or equal to 1"),
        ("[databases]\na = 'a.db'\n", r"must be a table: write \[databases.a\]"),
        ("[databases.a]\nurl = 'postgresql://me:secret@host/a'\n", "url_env"),
        ("[databases.a]\nurl_env = 'my hidden url'\n", "name of a variable"),
    ],
)
def test_wrong_databases_are_refused_with_their_line(home: Home, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=rf"named\.toml, line \d.*{sentence}") as caught:
        load(home, text)
    assert "secret" not in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_a_named_database_wins_over_the_several_of_a_file(home: Home) -> None:
    settings = load(home, database="other.db")
    assert settings.databases == {}
    assert (settings.database.url, settings.sources["database.url"]) == ("other.db", "--database")
    assert not [name for name in settings.sources if name.startswith("databases")]


def test_a_policy_for_one_database_does_not_hold_for_several(home: Home) -> None:
    with pytest.raises(ConfigError, match="name a policy in each"):
        load(home, policy="shop_policy.toml")


def test_a_variable_holds_the_url_of_a_server(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(
        home, "[databases.web]\nurl_env = 'WEB_URL'\n[databases.shop]\nurl = 'shop.db'\n"
    )
    with pytest.raises(ConfigError, match=r"databases\.web: the variable WEB_URL is not set"):
        open_databases(settings)
    monkeypatch.setenv("WEB_URL", f"sqlite:///{home.folder}/web.db")
    with open_databases(settings) as databases:
        assert databases.first.run("SELECT pages FROM visits").rows == [(7,)]


def test_a_mistake_in_one_database_is_told_with_its_name(home: Home) -> None:
    (home.folder / "shop_policy.toml").write_text('[columns]\nmasked = ["orders.nothing"]\n')
    with (
        open_databases(load(home)) as databases,
        pytest.raises(ConfigError, match=r"databases\.shop: .*nothing"),
    ):
        check_catalogs(databases)
    (home.folder / "shop_policy.toml").write_text("[nonsense]\n")
    with pytest.raises(ConfigError, match=r"databases\.shop: "):
        open_databases(load(home))


def test_no_database_is_where_threads_are_kept(home: Home) -> None:
    done = home.run(
        "ask", "hi", "--config", "longtable.toml", "--store", "sqlite:///web.db", **NOT_ONE
    )
    assert done.returncode != 0
    assert "the same file" in done.stderr


NOT_ONE: dict[str, Any] = {"LONGTABLE_DATABASE": ""}


def test_a_file_that_is_only_found_may_not_take_the_place_of_your_own(home: Home) -> None:
    own = home.folder / "me/longtable"
    own.mkdir(parents=True)
    os.environ["XDG_CONFIG_HOME"] = str(home.folder / "me")
    (home.folder / "longtable.toml").write_text("[databases.x]\nurl = 'x.db'\n")
    for text, counts in (
        ("", True),
        ("[database]\nurl = 'mine.db'\n", False),
        ("[policy]\nfile = 'mine.toml'\n", False),
        ("[databases.mine]\nurl = 'mine.db'\n", False),
    ):
        (own / "longtable.toml").write_text(text)
        settings = load_settings(environment={}, folder=home.folder)
        assert ("x" in settings.databases) is counts, text
        assert bool(settings.notes) is not counts
    mine = "[databases.mine]\nurl = 'mine.db'\npolicy = 'mine.toml'\n"
    (own / "longtable.toml").write_text(mine)
    (home.folder / "longtable.toml").write_text("[database]\nurl = 'mine.db'\n")
    settings = load_settings(environment={}, folder=home.folder)
    assert [*settings.databases] == ["mine"], "its policy stays"
    assert settings.notes
    (own / "longtable.toml").write_text("[limits]\nquery_rows = 10\n")
    for value, counts in ((10, True), (11, False)):
        text = f"[databases.x]\nurl = 'x.db'\nquery_rows = {value}\n"
        (home.folder / "longtable.toml").write_text(text)
        settings = load_settings(environment={}, folder=home.folder)
        assert bool(settings.databases) is counts, "all of them, or none"
    (own / "longtable.toml").write_text("")
    for bad in ("url = 'postgresql://host/x'", "url_env = 'X_URL'"):
        text = f"[databases.a]\nurl = 'a.db'\n[databases.x]\n{bad}\npolicy = 'p.toml'\n"
        (home.folder / "longtable.toml").write_text(text)
        assert load_settings(environment={}, folder=home.folder).databases == {}


def test_the_first_file_shows_how_and_what_it_shows_holds(home: Home) -> None:
    shown = "\n".join(re.findall(r"^#   (.*)$", FIRST_FILE, re.M))
    settings = load(home, shown)
    assert list(settings.databases) == ["shop", "web"]
    assert settings.databases["web"].url_env == "WEB_DATABASE"
    assert settings.databases["shop"].query_rows == 5_000


def test_rows_by_person_hold_for_results_of_all_databases(home: Home) -> None:
    for name, table in (("a", "orders"), ("b", "visits")):
        text = f'[row_filters]\n{table} = "id = :id"\n'
        (home.folder / f"{name}.toml").write_text(text)
    text = "".join(
        f"[databases.{name}]\nurl = '{name}.db'\npolicy = '{name}.toml'\n" for name in "ab"
    )
    source = row_source_of(load(home, text))
    assert source is not None
    assert len(source.access("ann").keys) == 2


# -- programs --------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as server:
        yield server


def chat(home: Home, server: ModelServer, *answers: Reply, text: bytes) -> list[dict[str, Any]]:
    server.script(*answers)
    options = ("--model", "openai:gpt-4o-mini", "--base-url", server.base_url, "--thread", "t")
    environment: dict[str, Any] = {**NOT_ONE, "OPENAI_API_KEY": "k"}
    return home.events("chat", "--config", "longtable.toml", *options, stdin=text, **environment)


def test_a_chat_asks_all_and_the_audit_says_which(home: Home, server: ModelServer) -> None:
    (home.folder / "longtable.toml").write_text(f"{TWO}[databases.gone]\nurl = 'gone.db'\n")
    events = chat(
        home,
        server,
        call("run_sql", database="web", sql="SELECT pages FROM visits"),
        call("run_sql", database="gone", sql="SELECT 1"),
        say("7 pages; gone is down"),
        text=b"/tables\nhow many?\n",
    )
    notes = {event["note"]: event["text"] for event in events if event["type"] == "note"}
    assert "on database shop, web, gone" in notes["greeting"]
    [tables] = [event["text"] for event in events if event["type"] == "command"]
    assert re.search(r"shop +.*orders", tables)
    assert re.search(r"web +.*visits", tables)
    finished = [event for event in events if event["type"] == "query_finished"]
    assert [(e["database"], e["status"]) for e in finished] == [
        ("web", "success"),
        ("gone", "error"),
    ]
    assert events[-1]["text"] == "7 pages; gone is down"
    listed = home.run("audit", "--config", "longtable.toml", **NOT_ONE).stdout
    assert re.search(r"database +", listed)
    assert re.search(r"\bweb\b.*SELECT pages", listed)
    csv = home.run("audit", "--csv", "--config", "longtable.toml", **NOT_ONE).stdout.splitlines()
    assert csv[0].endswith(",database")
    assert [line.rsplit(",", 1)[1] for line in csv[1:]] == ["web", "gone"]


def test_a_query_is_shown_with_its_database(home: Home, server: ModelServer) -> None:
    server.script(call("run_sql", database="web", sql="SELECT pages FROM visits"), say("7"))
    options = ("--model", "openai:gpt-4o-mini", "--base-url", server.base_url)
    environment: dict[str, Any] = {**NOT_ONE, "OPENAI_API_KEY": "k"}
    done = home.run("ask", "how many?", "--config", "longtable.toml", *options, **environment)
    assert "run_sql web" in done.stdout


def test_a_checked_query_is_kept_with_its_database(home: Home, server: ModelServer) -> None:
    (home.folder / "longtable_knowledge").mkdir()
    right = "web: SELECT sum(pages) FROM visits"
    chat(
        home,
        server,
        call("run_sql", database="shop", sql="SELECT count(*) FROM orders"),
        say("30"),
        text=f"how many pages?\n/correct {right}\n/correct y\n/keep\n/keep y\n".encode(),
    )
    files = sorted((home.folder / "longtable_knowledge/queries").iterdir())
    texts = [file.read_text() for file in files]
    assert ["-- database: shop" in text for text in texts] == [False, True]
    assert ["-- database: web" in text for text in texts] == [True, False]
    done = home.run("knowledge", "check", "--config", "longtable.toml", **NOT_ONE)
    assert done.returncode == 0, done.stderr


def test_knowledge_is_planned_on_the_database_that_it_names(home: Home) -> None:
    folder = home.folder / "longtable_knowledge"
    (folder / "queries").mkdir(parents=True)
    for name, database in (("right", "web"), ("wrong", "shop"), ("gone", "crm")):
        text = f"-- question: {name}?\n-- database: {database}\nSELECT pages FROM visits\n"
        (folder / f"queries/{name}.sql").write_text(text)
    term = '[[term]]\nterm = "page"\nsql = "pages"\n'
    (folder / "glossary.toml").write_text(f'{term}database = "web"\n\n{term}')
    done = home.run("knowledge", "check", "--config", "longtable.toml", **NOT_ONE)
    told = done.stdout + done.stderr
    assert done.returncode == 1
    assert "queries/wrong.sql" in told
    assert "queries/gone.sql" in told
    assert "there is no database 'crm'" in told
    assert "queries/right.sql" not in told
    assert re.findall(r"glossary\.toml:\d", told) == ["glossary.toml:6"]
    options = ("--config", "longtable.toml", "--of-database")
    sql = ("--sql", "SELECT max(pages) FROM visits")
    wrong = home.run("knowledge", "add", "most?", *sql, *options, "shop", **NOT_ONE)
    assert "the query cannot run" in wrong.stderr
    added = home.run("knowledge", "add", "most?", *sql, *options, "web", **NOT_ONE)
    assert added.returncode == 0, added.stderr
    assert "-- database: web" in (folder / "queries/most.sql").read_text()


def test_an_evaluation_asks_several_and_gold_its_own(home: Home, server: ModelServer) -> None:
    (home.folder / "questions.toml").write_text(
        "[[question]]\nask = 'How many orders?'\nsql = 'SELECT count(*) FROM orders'\n"
        "[[question]]\ndatabase = 'web'\nask = 'How many pages?'\n"
        "sql = 'SELECT sum(pages) FROM visits'\n"
    )
    server.script(
        call("run_sql", database="shop", sql="SELECT count(*) FROM orders"),
        say("30"),
        call("run_sql", database="web", sql="SELECT sum(pages) FROM visits"),
        say("7"),
    )
    options = ("--model", "openai:gpt-4o-mini", "--base-url", server.base_url, "--yes")
    environment: dict[str, Any] = {**NOT_ONE, "OPENAI_API_KEY": "k"}
    done = home.run("eval", "questions.toml", "--config", "longtable.toml", *options, **environment)
    assert "2 of 2" in done.stdout or "100" in done.stdout, done.stdout + done.stderr


def test_an_mcp_client_asks_each_database(home: Home) -> None:
    with open_databases(load(home)) as databases:
        session: Any = SimpleNamespace(
            databases=databases,
            conversation=Conversation(
                build_graph(model=script("x"), database=databases).compile(InMemorySaver()), "t"
            ),
        )
        server = server_of(session)

        async def called(name: str, **arguments: Any) -> Any:
            try:
                answer: Any = await server.call_tool(name, arguments)
            except Exception as error:
                return str(error)
            return json.loads(answer.content[0].text)

        async def work() -> None:
            tools = {tool.name: tool for tool in await server.list_tools()}
            assert set(tools["run_sql"].input_schema["required"]) == {"database", "sql"}
            assert "shop (sqlite), web (sqlite)" in (tools["run_sql"].description or "")
            rows = await called("run_sql", database="web", sql="SELECT pages FROM visits")
            assert (rows["database"], rows["rows"]) == ("web", [[7]])
            masked = await called(
                "run_sql", database="shop", sql="SELECT customer FROM orders LIMIT 3"
            )
            assert {cell for [cell] in masked["rows"]} == {MASK}
            listed = await called("list_tables")
            assert [part["database"] for part in listed["databases"]] == ["shop", "web"]
            found = await called("find_values", text="2026", database="web")
            assert found["database"] == "web"
            shape = await called("describe_tables", names=["visits"], database="web")
            assert shape["tables"][0]["name"] == "visits"
            wrong = await called("run_sql", database="wbe", sql="SELECT 1")
            assert "did you mean web?" in wrong
            refused = await called("run_sql", database="web", sql="SELECT * FROM orders")
            assert "database web: " in refused

        asyncio.run(work())
        assert "shop (sqlite), web (sqlite)" in instructions_of(databases)


def test_the_page_of_a_new_thread_names_all_databases(home: Home) -> None:
    with serving(home, "--config", "longtable.toml", **NOT_ONE) as running:
        page = running.browser().open().text
    assert "SQL over shop, web." in page
    assert "orders" in page, "questions about the first"


def test_a_page_shows_the_database_of_a_query() -> None:
    place = Part(TurnPlace("t", "1", "en"), "q1")
    started = {"type": "query_started", "call_id": "c", "name": "run_sql", "sql": "SELECT 1"}
    assert ">web<" in query_part(place, {**started, "database": "web"})
    assert ">web<" not in query_part(place, started)


STUDIO = """
import runpy
found = runpy.run_path("{file}")
offer = found["_built"].offer
print(sorted({{tool.name: tool for tool in offer.tools}}["run_sql"].args))
"""


def test_studio_and_servers_ask_all(home: Home) -> None:
    file = Path(__file__).parents[3] / "app/studio.py"
    environment = home.environment(
        LONGTABLE_CONFIG="longtable.toml",
        LONGTABLE_DATABASE="",
        LONGTABLE_STORE="",
        LONGTABLE_RESULTS=str(home.folder / "results"),
    )
    done = subprocess.run(
        [sys.executable, "-c", STUDIO.format(file=file)],
        cwd=home.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == "['database', 'sql']", done.stderr


def test_a_notebook_asks_all(home: Home) -> None:
    config = str(home.folder / "longtable.toml")
    with open_with_settings(config=config, store="memory://") as conversation:
        assert conversation.database is not None
        assert conversation.database.name == "shop"
        offer: Any = conversation.graph.builder
        assert "database" in {tool.name: tool for tool in offer.offer.tools}["run_sql"].args


def test_all_that_are_down_are_no_reason_not_to_begin(home: Home) -> None:
    settings = load(home, "[databases.a]\nurl = 'a.db'\n[databases.b]\nurl = 'b.db'\n")
    with open_databases(settings) as databases:
        check_catalogs(databases)
        with pytest.raises(DatabaseUnavailableError):
            databases.first.catalog()
    with pytest.raises(DatabaseUnavailableError), open_databases(load(home, database="a.db")):
        pass
