"""Rows by person in each program: settings, command line, pages, MCP and a server with users."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from mcp import Client

from longtable.app.settings.row_settings import row_function, row_source_of, seen_by_owner
from longtable.app.settings.run_settings import load_settings, server_settings, setting_rows
from longtable.base.errors import ConfigError, RowParameterError
from longtable.tools.database import Database
from tests.app.pages.served_pages import serving
from tests.app.runner import Home, make_home
from tests.app.test_mcp_server import text_of, with_server
from tests.app.test_studio import ROOT, new_thread, running, said, with_client

POLICY = '[row_filters]\nvisits = "region = :region"\n'
OWNERS = 'owners = { ann = { region = "north" }, bo = { region = "south" } }\n'
PAGES = '[web]\nowner_header = "X-User"\nproxies = ["127.0.0.1"]\n'
QUESTION = "How many visits are there?"


def make_rows_home(folder: Path, extra: str = "") -> Home:
    """Make a home whose shop has visits of two regions, 3 of the north and 5 of the south."""
    home = make_home(folder)
    with closing(sqlite3.connect(folder / "shop.db")) as connection, connection:
        connection.execute("CREATE TABLE visits (id INTEGER PRIMARY KEY, region TEXT)")
        rows = [(number, "north" if number < 3 else "south") for number in range(8)]
        connection.executemany("INSERT INTO visits VALUES (?, ?)", rows)
    (folder / "policy.toml").write_text(POLICY)
    head = '[policy]\nfile = "policy.toml"\n[row_parameters]\n'
    (folder / "rows.toml").write_text(head + OWNERS + extra)
    return home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return make_rows_home(tmp_path_factory.mktemp("home"), 'owner = "ann"\n')


def test_a_table_of_owners_gives_their_parameters(home: Home) -> None:
    settings = load_settings({"config": str(home.folder / "rows.toml")}, environment={})
    read = row_function(settings)
    assert read is not None
    values = [read(owner) for owner in ("ann", "bo", "eve", None)]
    assert values == [{"region": "north"}, {"region": "south"}, {}, {"region": "north"}]
    source = row_source_of(settings)
    assert source is not None
    assert source.access("bo").parameters == {"region": "south"}
    shown = {name: text for name, text, _ in setting_rows(settings, {})}
    assert shown["row_parameters.owner"] == "ann"
    with Database.open(home.shop, policy=home.folder / "policy.toml", isolation="none") as shop:
        counts = seen_by_owner(shop, settings).run("SELECT count(*) FROM visits").rows
        assert counts == [(3,)]


def rows_of(owner: str | None) -> object:
    """Be the function of an operator."""
    return {"region": owner} if owner != "odd" else "no mapping"


def settings_with(folder: Path, text: str) -> Any:
    (folder / "longtable.toml").write_text(f"[row_parameters]\n{text}\n")
    return load_settings({"config": str(folder / "longtable.toml")}, environment={})


def test_a_function_is_found_by_its_name(tmp_path: Path) -> None:
    read = row_function(settings_with(tmp_path, f'function = "{__name__}:rows_of"'))
    assert read is not None
    assert read("north") == {"region": "north"}
    with pytest.raises(RowParameterError, match="must return a mapping"):
        read("odd")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('function = "rows_of"', "must be module:function"),
        ('function = "no_such_module:rows"', "cannot be imported \\(ModuleNotFoundError\\)"),
        ('function = "json:no_such"', "cannot be imported \\(AttributeError\\)"),
        ('function = "sys:path"', "is no function"),
        ("owners = 3", "row_parameters.owners"),
        ("owners = { ann = 3 }", "row_parameters.owners"),
        ("owners = { ann = { region = [1] } }", "row_parameters.owners"),
        ("people = 3", "people"),
    ],
)
def test_what_is_wrong_with_row_parameters_is_told(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        row_function(settings_with(tmp_path, text))


def test_a_file_that_nobody_named_sets_no_row_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    (tmp_path / "longtable.toml").write_text(f"[row_parameters]\n{OWNERS}")
    settings = load_settings({}, environment={}, folder=tmp_path)
    assert row_function(settings) is None
    assert "does not count" in " ".join(settings.notes)


def test_a_server_has_no_owner_of_its_own(home: Home) -> None:
    environment = {"LONGTABLE_CONFIG": str(home.folder / "rows.toml")}
    with pytest.raises(ConfigError, match="each user sees their own rows"):
        server_settings(environment)


def test_the_command_line_sees_the_rows_of_its_owner(home: Home) -> None:
    config = ("--config", str(home.folder / "rows.toml"))
    events = home.events("ask", QUESTION, "--thread", "rows", *config)
    [query] = [event for event in events if event["type"] == "query_finished"]
    assert query["rows"] == [[3]]
    assert home.run("result", "r1", "--thread", "rows", "--csv", *config).stdout.splitlines()[
        1:
    ] == ["3"]
    other = home.folder / "other.toml"
    other.write_text((home.folder / "rows.toml").read_text().replace('"north"', '"south"'))
    refused = home.run("result", "r1", "--thread", "rows", "--csv", "--config", str(other))
    assert refused.returncode != 0
    assert "other permissions" in refused.stderr
    again = home.events("ask", QUESTION, "--thread", "rows", "--config", str(other))
    assert [each["rows"] for each in again if each["type"] == "query_finished"] == [[[5]]]


def test_a_wrong_filter_is_told_before_the_chat_begins(home: Home) -> None:
    (home.folder / "wrong.toml").write_text('[row_filters]\nvisits = "zone = :zone"\n')
    done = home.run("ask", QUESTION, LONGTABLE_POLICY=str(home.folder / "wrong.toml"))
    assert done.returncode != 0
    assert "wrong.toml, line 2" in done.stderr
    assert "'zone'" in done.stderr


def test_mcp_sees_the_rows_of_its_owner(home: Home) -> None:
    async def work(client: Client) -> tuple[Any, ...]:
        asked = await client.call_tool("ask", {"question": QUESTION})
        ran = await client.call_tool("run_sql", {"sql": "SELECT count(*) FROM visits"})
        tables = await client.call_tool("list_tables", {})
        values = await client.call_tool("find_values", {"text": "south"})
        return tuple(map(text_of, (asked, ran, tables, values)))

    asked, ran, tables, values = with_server(home, work, "--config", str(home.folder / "rows.toml"))
    assert asked["rows"] == [[3]]
    assert ran["rows"] == [[3]]
    assert {each["name"]: each["rows"] for each in tables["tables"]}["visits"] == 3
    assert values["matches"] == []


def test_pages_show_each_person_their_rows(tmp_path: Path) -> None:
    home = make_rows_home(tmp_path, PAGES)
    with serving(home, "--config", str(home.folder / "rows.toml")) as server:
        seen = {}
        for owner in ("ann", "bo", "eve"):
            browser = server.browser(**{"X-User": owner})
            thread = browser.new_thread()
            page = browser.ask(thread, QUESTION)
            csv = browser.http.get(f"{thread}/results/r1.csv")
            lines = csv.text.splitlines()[1:] if csv.status_code == 200 else []
            seen[owner] = (lines, "There are 3 visits" in page, "There are 5 visits" in page)
        assert seen == {
            "ann": (["3"], True, False),
            "bo": (["5"], False, True),
            "eve": ([], False, False),
        }
        unknown = server.browser()
        assert unknown.http.get("/threads").status_code == 401


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = make_rows_home(tmp_path_factory.mktemp("served"))
    folder = tmp_path_factory.mktemp("server")
    auth = {"path": f"{ROOT}/tests/support/authentication.py:auth", "disable_studio_auth": True}
    variables = {
        "LONGTABLE_CONFIG": str(home.folder / "rows.toml"),
        "LONGTABLE_DATABASE": home.shop,
    }
    with running(folder, {}, variables, auth=auth) as url:
        yield url


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("user", "claimed", "seen"),
    [("ann", "bo", "3"), ("bo", "ann", "5"), ("eve", "ann", ""), ("guest", "ann", "")],
)
def test_a_server_s_user_sees_their_rows_whatever_the_client_claims(
    server: str, user: str, claimed: str, seen: str
) -> None:
    headers = {"x-user": user, **({"x-guest": "yes"} if user == "guest" else {})}

    async def work(client: LangGraphClient) -> tuple[str, Any]:
        thread_id = await new_thread(client)
        context: Any = {"owner": claimed}
        values = await client.runs.wait(
            thread_id, "longtable", input=said(QUESTION), context=context
        )
        return thread_id, values

    thread_id, values = with_client(server, work, headers)
    tools = [str(each["content"]) for each in values["messages"] if each["type"] == "tool"]
    ran = [text for text in tools if '"row_count"' in text]
    assert [f'"rows":[[{seen}]]' in text for text in ran] == ([True] if seen else [])
    claim = {**headers, "x-longtable-owner": claimed}
    path = f"{server}/longtable/threads/{thread_id}/results/r1.csv"
    answer = httpx.get(path, headers=claim, timeout=60)
    if seen:
        assert (answer.status_code, answer.text.splitlines()[1:]) == (200, [seen])
    else:
        assert answer.status_code >= 400
    others = {**headers, "x-user": "bo" if user == "ann" else "ann"}
    assert httpx.get(path, headers=others, timeout=60).status_code >= 400
