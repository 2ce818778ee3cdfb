"""The schema in a conversation: its card in the system prompt, and what happens when the schema
changes. Real files, a real server.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from longtable.analyst.model import BuiltInAnalyst
from longtable.graph import Context, Conversation, Database, build_graph, next_view
from longtable.memory.counting.tokens import counter
from longtable.memory.messages.marks import marks_of
from longtable.memory.messages.rounds import without_stale
from tests.support.models import ScriptedModel, call, script
from tests.support.postgres import postgres_server

CONTEXT = Context(model_limit=16_000)
SCHEMA = (
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL); CREATE TABLE people (id INTEGER"
    " PRIMARY KEY, name TEXT);"
)
count = counter("o200k_base").text
DRIFT = "ALTER TABLE orders ADD COLUMN state TEXT; CREATE TABLE returns (id INTEGER);"
Change = Callable[[str], None]
Talk = Callable[..., Conversation]


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Change]:
    """A database's URL, and what runs a script in it."""
    if request.param == "postgres":
        url = postgres_server().create(SCHEMA)

        def run(text: str) -> None:
            postgres_server().run(url, text)

        return url, run
    path = tmp_path / "shop.db"

    def change(text: str) -> None:
        connection = sqlite3.connect(path)
        connection.executescript(text)
        connection.close()

    change(SCHEMA)
    return f"sqlite:///{path}", change


@pytest.fixture
def talk() -> Iterator[Talk]:
    """Return what opens a conversation on a database, each time as a new process would."""
    with ExitStack() as opened:

        def start(url: str, model: Any, saver: InMemorySaver | None = None) -> Conversation:
            graph = build_graph(model=model, database=opened.enter_context(Database.open(url)))
            return Conversation(
                graph.compile(checkpointer=saver or InMemorySaver()), "t", context=CONTEXT
            )

        yield start


def values(conversation: Conversation) -> dict[str, Any]:
    return dict(conversation.graph.get_state(conversation.config).values)


def answers(messages: list[BaseMessage]) -> list[str]:
    return [message.text for message in messages if isinstance(message, ToolMessage)]


def test_the_card_is_in_the_system_prompt_counted_and_the_same_each_turn(
    shop: tuple[str, Change], talk: Talk
) -> None:
    url, change = shop
    model = script("fine")
    conversation = talk(url, model)
    first = conversation.ask("hello")
    system = model.sent[0][0].text
    assert "orders (" in system
    assert "total" in system
    change("INSERT INTO orders VALUES (1, 2.5);")
    conversation.ask("again")
    assert model.sent[1][0].text == system
    assert first.usage is not None
    assert first.usage["parts"]["system"] == counter("o200k_base").message(model.sent[0][0])


def test_the_card_stands_below_a_system_prompt_of_ones_own(
    shop: tuple[str, Change], talk: Talk
) -> None:
    conversation = talk(shop[0], model := script("fine"))
    conversation.context = CONTEXT.replace(system_prompt="Be a pirate.")
    conversation.ask("hello")
    assert model.sent[0][0].text.startswith("Be a pirate.\n\nSchema (2 tables;")


def test_a_changed_schema_is_told_and_what_was_described_leaves_the_view_not_the_transcript(
    shop: tuple[str, Change], talk: Talk
) -> None:
    url, change = shop
    model = script(
        AIMessage(
            "",
            tool_calls=[
                {"name": "describe_tables", "args": {"names": [name]}, "id": name}
                for name in ("orders", "people")
            ],
        ),
        call("list_tables", "list"),
        "Seen.",
        call("describe_tables", "again", names=["orders"]),
        "Seen again.",
    )
    saver = InMemorySaver()
    talk(url, model, saver).ask("describe orders and people")
    orders, people, listing = answers(model.sent[2])
    change(DRIFT)
    # Another process: all that is known of the schema before is in the thread.
    conversation = talk(url, model, saver)
    events = list(conversation.stream("and now?"))
    assert {
        "type": "schema_changed",
        "changed": ["orders"],
        "new": ["returns"],
        "gone": [],
    } in events
    system = model.sent[3][0].text
    assert (
        "The schema changed before turn 2 (changed: orders; new: returns; 3 tables, 2 before)."
        in system
    )
    assert "state" in system
    assert "returns" in system
    stale_orders, kept_people, stale_listing = answers(model.sent[3])
    assert '"stale"' in stale_orders
    assert "(orders)" in stale_orders
    assert kept_people == people
    assert '"stale"' in stale_listing
    *_, fresh = answers(model.sent[4])
    assert "state" in fresh
    assert answers(conversation.history())[:3] == [orders, people, listing]
    assert [message.text for message in conversation.view()] == [
        message.text for message in next_view(values(conversation), CONTEXT)
    ]
    # Nothing changed since: nothing is told, and the view's beginning stays as it was.
    assert not [
        event for event in conversation.stream("and now?") if event["type"] == "schema_changed"
    ]
    assert model.sent[-1][0].text == system
    assert answers(model.sent[-1])[-1] == fresh


def test_a_table_that_is_gone_is_told_once_and_each_turn_keeps_the_schemas_hash(
    shop: tuple[str, Change], talk: Talk
) -> None:
    url, change = shop
    conversation = talk(url, ScriptedModel(say=lambda _: AIMessage("fine")))
    hashes = []
    for text in (
        "",
        "DROP TABLE people;",
        "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT);",
    ):
        change(text or "SELECT 1;")
        conversation.ask("hello")
        hashes.append(values(conversation)["turn"]["schema"])
    assert hashes[0] == hashes[2] != hashes[1]
    told = [
        marks_of(message).get("schema_changed")
        for message in conversation.history()
        if message.type == "human"
    ]
    assert [mark and (mark["gone"], mark["new"]) for mark in told] == [
        None,
        (["people"], []),
        ([], ["people"]),
    ]


def test_the_analyst_answers_about_a_table_that_came_later(tmp_path: Path, talk: Talk) -> None:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE rental (id INTEGER); INSERT INTO rental VALUES (1), (2);"
        )
        conversation = talk(f"sqlite:///{path}", BuiltInAnalyst())
        assert "2" in conversation.ask("How many rentals are there?").text
        connection.executescript(
            "CREATE TABLE bicycle (id INTEGER); INSERT INTO bicycle VALUES (1), (2), (3);"
        )
        assert "3" in conversation.ask("How many bicycles are there?").text
    connection.close()


def test_a_database_that_cannot_be_reached_fails_no_turn_and_forgets_no_schema(
    tmp_path: Path, talk: Talk
) -> None:
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    connection.close()
    conversation = talk(f"sqlite:///{path}", model := script("fine"))
    conversation.ask("hello")
    path.rename(tmp_path / "away.db")
    conversation.ask("still there?")
    assert model.sent[1][0].text == model.sent[0][0].text


def test_what_is_stale_follows_from_the_marks_alone() -> None:
    def answer(name: str, **marks: Any) -> ToolMessage:
        return ToolMessage(
            f"about {name}", tool_call_id=name, id=name, additional_kwargs={"longtable": marks}
        )

    def opened(number: int, **change: Any) -> HumanMessage:
        return HumanMessage(
            "q",
            id=f"h{number}",
            additional_kwargs={"longtable": {"schema_changed": change} if change else {}},
        )

    a, b, listing = (
        answer("a", described={"a": "1"}),
        answer("b", described={"b": "1", "c": "1"}),
        answer("l", described={}, listing=True),
    )
    plain = answer("sql")
    messages = [
        opened(1),
        a,
        b,
        listing,
        plain,
        opened(2, changed=["c"], gone=[], new=[], listing=False, all=False),
        answer("c", described={"c": "2"}),
    ]
    shown = [message.text for message in without_stale(messages, messages)]
    assert shown[1] == "about a"
    assert "(c)" in shown[2]
    assert shown[3:] == ["about l", "about sql", "q", "about c"]
    everything = [*messages, opened(3, changed=[], gone=[], new=[], listing=True, all=True)]
    assert [text.startswith("about") for text in (message.text for message in without_stale(everything, everything))] == [
        False, False, False, False, True, False, False, False,
    ]  # fmt: skip
    assert without_stale(messages[:5], messages[:5]) == messages[:5]


def test_what_the_model_is_told_of_many_changes_leaves_a_small_limit_its_room(
    tmp_path: Path, talk: Talk
) -> None:
    names = [f"{'区域销售统计明细表按月份与渠道汇总' * 3}{n}" for n in range(14)]

    def change(text: str) -> None:
        connection = sqlite3.connect(tmp_path / "wide.db")
        connection.executescript(text)
        connection.close()

    change("".join(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY);" for name in names))
    conversation = talk(
        f"sqlite:///{tmp_path / 'wide.db'}", script(call("describe_tables", names=names), "fine")
    )
    conversation.ask("describe them")
    change(
        "".join(
            f"ALTER TABLE {name} ADD COLUMN more TEXT; CREATE TABLE 新{name} (id INTEGER);"
            for name in names
        )
    )
    for limit, told in (
        (16_000, f"changed: {names[0][:20]}"),
        (100_000, "and 11 more"),
        (2_800, "The schema changed earlier"),
    ):
        conversation.context = CONTEXT.replace(model_limit=limit)
        assert conversation.ask("and now?").status == "answered"
        schema = values(conversation)["brief"]["schema"]
        assert told in schema["note"]
        assert count(schema["note"]) <= max(100, 0.5 * schema["budget"])
        assert count(schema["note"] + schema["card"]) <= max(100, schema["budget"]) + 2
