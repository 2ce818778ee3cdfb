"""What tokens cost: added up by hand, by a user's table in code or in a file; what has no price is
said, not guessed.
"""

import json
import math
import random
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import StateSnapshot

from longtable.base.errors import ConfigError, LostMessagesError, ThreadNotFoundError
from longtable.base.stored import CHECKPOINT, NODE, SPENDING, THREADS, USAGE, thread_namespace
from longtable.graph import (
    Context,
    Conversation,
    Persistence,
    Price,
    build_graph,
    delete_thread,
    import_thread,
    list_threads,
    move_thread,
    open_persistence,
    prune_threads,
    read_prices,
    reports,
    usage_of_threads,
)
from longtable.graph.listing.thread_list import visible_entries
from longtable.graph.reports import audit_of, audit_of_threads, within
from longtable.graph.thread_state import StoredThreads, check_lost, reader
from longtable.graph.transcripts import load_thread, spent_in
from longtable.memory.counting.prices import price_of, price_rows
from longtable.memory.counting.tokens import counter
from longtable.memory.counting.usage import By, Spent, added, call_usage, spent_of, spent_on
from longtable.nodes.tooling.audit import AuditEntry
from tests.support.models import ScriptedModel

BIG, MINI = Price(input=2.5, cached=1.25, output=10, reasoning=12), Price(input=0.15, output=0.6)
PRICES = {"gpt-4o": BIG, "gpt-4o-mini*": MINI, "gpt-*": Price(input=1, output=1)}


def test_the_cost_is_the_one_added_by_hand() -> None:
    rows = [
        Spent(
            "d",
            "t",
            "gpt-4o",
            calls=2,
            input=1_000_000,
            output=200_000,
            cached=400_000,
            reasoning=50_000,
        ),
        Spent(
            "d",
            "t",
            "gpt-4o-mini-2024-07-18",
            calls=1,
            input=2_000_000,
            output=1_000_000,
            cached=500_000,
            reasoning=1_000_000,
        ),
        Spent("d", "t", "somebody-else", calls=3, input=9, output=9),
    ]
    big = 0.6 * 2.5 + 0.4 * 1.25 + 0.15 * 10 + 0.05 * 12
    # Without prices of their own cached and reasoning tokens cost as the others.
    mini = 2 * 0.15 + 1 * 0.6
    costed = price_rows(rows, PRICES)
    assert [row.cost for row in costed] == [pytest.approx(big), pytest.approx(mini), None]
    (total,) = added(costed, ["thread"])
    assert total.cost == pytest.approx(big + mini)
    assert (total.calls, total.unpriced) == (6, 3)
    assert added(price_rows(rows[2:], PRICES), ["model"])[0].cost is None
    assert added(rows, ["thread"])[0].cost is None


def test_a_model_has_the_price_of_its_name_or_of_the_longest_pattern() -> None:
    names = {
        "gpt-4o": BIG,
        "gpt-4o-mini": MINI,
        "gpt-5": PRICES["gpt-*"],
        "unknown": None,
        "": None,
    }
    assert {name: price_of(name, PRICES) for name in names} == names


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.toml", '["gpt-4o"]\ninput = 2.5\noutput = 10\ncached = 1.25\n'),
        ("p.json", '{"gpt-4o": {"input": 2.5, "output": 10, "cached": 1.25}}'),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_table_is_read_from_a_file_as_windows_writes_it_too(
    tmp_path: Path, name: str, text: str, encoding: str
) -> None:
    (tmp_path / name).write_text(text, encoding=encoding)
    assert read_prices(tmp_path / name) == {"gpt-4o": Price(input=2.5, output=10, cached=1.25)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "cannot be read"),
        ("", "must hold a table"),
        ("m = 3", "model 'm': give input and output"),
        ("[m]\ninput = 1", "output is missing"),
        ("[m]\ninput = 1\noutput = -1", "the price of output must be"),
        ("[m]\ninput = nan\noutput = 1", "the price of input must be"),
        ("[m]\ninput = 1\noutput = 1\ninputs = 2", "there is no 'inputs'"),
    ],
)
def test_a_wrong_table_is_named_by_file_model_and_field(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ConfigError, match=said) as caught:
        read_prices(tmp_path / "mine.toml")
    assert "mine.toml" in str(caught.value)
    with pytest.raises(ConfigError, match=r"gone\.toml"):
        read_prices(tmp_path / "gone.toml")


def spend(
    kept: Persistence, thread: str, project: str | None, model: str, owner: str | None = None
) -> Conversation:
    usage: Any = {"input_tokens": 1_000, "output_tokens": 100, "total_tokens": 1_100}
    answer = AIMessage("fine", usage_metadata=usage, response_metadata={"model_name": model})
    scripted = ScriptedModel(say=lambda messages: answer.model_copy(), disable_streaming=True)
    graph = build_graph(model=scripted).compile(checkpointer=kept.checkpointer, store=kept.store)
    talk = Conversation(
        graph, thread, context=Context(model_limit=16_000, project=project, owner=owner)
    )
    talk.ask("Hi")
    return talk


def test_usage_and_threads_by_project(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
        one = spend(kept, "a", "sales", "gpt-4o")
        spend(kept, "b", "sales", "gpt-4o-mini")
        spend(kept, "c", None, "somebody-else")
        rows = usage_of_threads(kept, by=["project"], prices=PRICES)
        assert [(row.project, row.calls, row.unpriced) for row in rows] == [
            ("", 1, 1),
            ("sales", 2, 0),
        ]
        assert rows[1].cost == pytest.approx((1_000 * 2.65 + 100 * 10.6) / 1_000_000)
        assert one.usage(PRICES)[0].cost == pytest.approx(0.0035)
        assert [info.thread_id for info in list_threads(kept, project="sales")] == ["b", "a"]
        assert {info.project for info in list_threads(kept)} == {"sales", ""}
        one.ask("And?")  # goes on where it belongs
        import_thread(kept, one.export().splitlines(keepends=True), thread_id="copy")
        assert {info.project for info in list_threads(kept) if info.thread_id in ("a", "copy")} == {
            "sales"
        }
        call_config = pytest.importorskip("pandas", reason="pandas is not installed").DataFrame(
            usage_of_threads(kept, by=["project"], prices=PRICES)
        )
        assert set(call_config["project"]) == {"sales", ""}
        assert json.dumps(call_config["cost"].sum()) != "NaN"


def test_usage_outlives_the_thread_once_for_its_owner_only(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
        spend(kept, "a", "sales", "gpt-4o").ask("Again")
        before = usage_of_threads(kept, by=["project", "model", "hour", "month"], prices=PRICES)
        delete_thread(kept, "a")
        assert (
            usage_of_threads(kept, by=["project", "model", "hour", "month"], prices=PRICES)
            == before
        )
        assert before[0].hour[:7] == before[0].month == f"{datetime.now(UTC):%Y-%m}"
        assert [row.thread for row in usage_of_threads(kept, by=["thread"])] == ["deleted"]
        assert "a" not in {item.key for item in kept.store.search(("longtable",), limit=100)}
        spend(kept, "a", "sales", "gpt-4o")  # another thread of the same name
        assert sum(row.calls for row in usage_of_threads(kept)) == 3
        assert (
            len(prune_threads(kept, older_than=timedelta(0), now=datetime.now(UTC) + timedelta(1)))
            == 1
        )
        assert sum(row.calls for row in usage_of_threads(kept)) == 3
        spend(kept, "hers", None, "gpt-4o", owner="ann")
        delete_thread(kept, "hers", owner="ann")
        assert [
            sum(row.calls for row in usage_of_threads(kept, owner=owner))
            for owner in (None, "bob", "ann")
        ] == [3, 3, 4]


def test_a_deletion_that_was_cut_short_counts_once(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
        spend(kept, "a", None, "gpt-4o")
        [item] = kept.store.search(THREADS)
        delete_thread(kept, "a")
        kept.store.put(THREADS, "a", item.value)  # killed after the checkpoints, before the index
        assert [row.calls for row in usage_of_threads(kept)] == [1]
        delete_thread(kept, "a")
        assert [row.calls for row in usage_of_threads(kept)] == [1]


def test_usage_of_a_period(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
        spend(kept, "a", None, "gpt-4o")
        now = datetime.now(UTC)
        month, day, hour = (
            f"{now:%Y-%m}",
            f"{now:%Y-%m-%d}",
            f"{now - timedelta(hours=1):%Y-%m-%dT%H}",
        )
        for first, last in (
            (month, ""),
            ("", "2999-01"),
            (day, day),
            (hour, ""),
            (month, day),
            ("1999-12-31", "2999-12-31T23"),
        ):
            assert [row.calls for row in usage_of_threads(kept, by=[], first=first, last=last)] == [
                1
            ], (first, last)
        assert (
            usage_of_threads(kept, first="2999-01")
            == usage_of_threads(kept, last="1999-12-31")
            == []
        )
        for wrong in (
            "2026",
            "2026-13",
            "2026-02-30",
            "2026-11-23T24",
            "yesterday",
            "20261123",
            " 2026-11",
            "２０２６-11",
            "2026-1-01",
        ):
            with pytest.raises(ConfigError, match="give a day, month or hour"):
                usage_of_threads(kept, first=wrong)
        with pytest.raises(ConfigError, match="a period ends after it begins"):
            usage_of_threads(kept, first="2026-11-23T09", last="2026-11-22")


@pytest.mark.parametrize(
    ("metadata", "charged"),
    [
        ({"token_usage": {"cost": 0.25}}, 0.25),  # OpenRouter through langchain-openai
        ({"cost": 0.5}, 0.5),  # langchain-openrouter
        ({"usage": {"cost": 2}}, 2.0),
        ({"token_usage": {"cost": 0}}, 0.0),
        ({"token_usage": None}, None),
        ({"token_usage": {"cost": "0.25"}}, None),
        ({"cost": -1}, None),
        ({"cost": math.nan}, None),
        ({"cost": True}, None),
    ],
)
def test_what_a_provider_charged_stands_beside_the_computed_price(
    metadata: dict[str, Any], charged: float | None
) -> None:
    usage: Any = {"input_tokens": 1_000_000, "output_tokens": 0, "total_tokens": 1_000_000}
    answers = [
        AIMessage(
            "fine", usage_metadata=usage, response_metadata={"model_name": "gpt-4o", **metadata}
        )
        for _ in range(2)
    ]
    [row] = added(
        price_rows(spent_of(answers, thread="t", model="", encoding="o200k_base"), PRICES),
        ["model"],
    )
    assert row.charged == (None if charged is None else 2 * charged)
    assert row.cost == pytest.approx(5.0)
    record = {"spent": [call_usage(answers[0], [], "", counter("o200k_base"))]}
    assert spent_on([json.loads(json.dumps(record))], thread="t")[0].charged == charged


def test_a_turn_from_another_project_finds_no_thread_until_it_is_moved(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
        talk = spend(kept, "a", None, "gpt-4o")
        spend(kept, "a", "sales", "gpt-4o")
        with pytest.raises(ThreadNotFoundError):
            spend(kept, "a", "north", "gpt-4o")
        assert len(talk.history()) == 4
        talk.ask("without a project")
        assert [info.project for info in list_threads(kept)] == ["sales"]
        move_thread(kept, "a", "north")
        spend(kept, "a", "north", "gpt-4o")
        with pytest.raises(ThreadNotFoundError):
            spend(kept, "a", "sales", "gpt-4o")
        assert [row.project for row in usage_of_threads(kept, by=["project"])] == ["north"]
        for wrong in (" a", "x" * 300, "a\n"):
            with pytest.raises(ConfigError):
                move_thread(kept, "a", wrong)
        with pytest.raises(ThreadNotFoundError):
            move_thread(kept, "nobody", "north")
        move_thread(kept, "a", "")
        assert [info.project for info in list_threads(kept)] == [""]


ROOMY = Context(model_limit=100_000)


class CountingThreads(StoredThreads):
    """The threads of a store, with the ids of those that were read."""

    def __init__(self, persistence: Persistence) -> None:
        super().__init__(reader(persistence))
        self.read: list[str] = []

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> StateSnapshot:
        self.read.append(thread_id)
        return super().load(thread_id, checkpoint_id)


def report(persistence: Persistence) -> tuple[dict[str, int], list[str]]:
    """Return the calls of each thread, and the threads that were read for it."""
    threads = CountingThreads(persistence)
    rows = usage_of_threads(threads, by=["thread"], all_owners=True)
    return {row.thread: row.calls for row in rows}, sorted(threads.read)


@pytest.mark.parametrize("url", ["memory://", "sqlite"])
def test_a_second_report_reads_only_threads_that_changed(tmp_path: Path, url: str) -> None:
    place = f"sqlite:///{tmp_path}/chat.db" if url == "sqlite" else url
    with open_persistence(place) as persistence:
        graph = build_graph(model=ScriptedModel(say=lambda _: AIMessage("yes"))).compile(
            checkpointer=persistence.checkpointer, store=persistence.store
        )
        talks = {name: Conversation(graph, name, context=ROOMY) for name in ("a", "b", "c")}
        for talk in talks.values():
            talk.ask("one")
        assert report(persistence) == ({"a": 1, "b": 1, "c": 1}, ["a", "b", "c"])
        assert report(persistence) == ({"a": 1, "b": 1, "c": 1}, [])
        talks["b"].ask("two")
        assert report(persistence) == ({"a": 1, "b": 2, "c": 1}, ["b"])
        talks["a"].pin("Count open orders only.")
        assert report(persistence) == ({"a": 1, "b": 2, "c": 1}, ["a"])
        delete_thread(persistence, "c")
        assert persistence.store.get(SPENDING, "c") is None
        assert report(persistence) == ({"a": 1, "b": 2, "deleted": 1}, [])
        move_thread(persistence, "a", project="north")
        rows = usage_of_threads(persistence, by=["project"])
        assert {row.project: row.calls for row in rows} == {"north": 1, "": 3}


def test_a_report_is_right_where_the_checkpointer_tells_no_checkpoints(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as persistence:
        saver = UnlistedSaver()
        graph = build_graph(model=ScriptedModel(say=lambda _: AIMessage("yes"))).compile(
            checkpointer=saver, store=persistence.store
        )
        talk = Conversation(graph, "a", context=ROOMY)
        threads = StoredThreads(graph)
        for calls in (1, 2, 3):
            talk.ask("again")
            for _ in range(2):
                (row,) = usage_of_threads(threads, by=["thread"])
                assert row.calls == calls


class UnlistedSaver(InMemorySaver):
    """A saver that is not wrapped by ours, as a server has one."""


BY: tuple[By, ...] = ("day", "month", "thread", "model", "project", "purpose", "voice")


def priced_answer(chance: random.Random) -> AIMessage:
    """Return an answer with tokens, at times reported by the provider, of one model of three."""
    model = chance.choice(["gpt-4o", "gpt-4o-mini-1", "somebody-else"])
    tokens = chance.randint(1, 500)
    reported: Any = {"input_tokens": tokens, "output_tokens": 7, "total_tokens": tokens + 7}
    message = AIMessage("yes", response_metadata={"model_name": model})
    message.usage_metadata = reported if chance.random() < 0.7 else None
    return message


def read_each(persistence: Persistence, owner: str | None) -> list[Spent]:
    """Return what an owner's threads took, read from each of them, and from deleted ones."""
    rows: list[Spent] = []
    threads = StoredThreads(reader(persistence))
    for info in list_threads(persistence, limit=999, owner=owner):
        whole, _ = load_thread(threads, info.thread_id, owner)
        rows += spent_in(whole)
    for item in persistence.store.search(USAGE, limit=999):
        if item.value["owner"] in (None, owner):
            rows += [Spent(**row) for row in item.value["rows"]]
    return rows


def test_a_report_is_what_reading_each_thread_gives(tmp_path: Path) -> None:
    chance = random.Random(11)
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as persistence:
        model = ScriptedModel(say=lambda _: priced_answer(chance))
        graph = build_graph(model=model).compile(
            checkpointer=persistence.checkpointer, store=persistence.store
        )
        seen: set[str] = set()
        for step in range(60):
            owner = chance.choice(["ann", "bob", None])
            infos = list_threads(persistence, limit=99, owner=owner)
            change = chance.choice(["new", "ask", "exclude", "undo", "fork", "move", "delete"])
            if change == "new" or len(infos) < 3:
                name = f"t{step}"
                talk = Conversation(graph, name, context=replace(ROOMY, owner=owner))
                talk.ask("one")
                continue
            info = chance.choice(infos)
            talk = Conversation(graph, info.thread_id, context=replace(ROOMY, owner=info.owner))
            if change == "ask":
                talk.ask("again")
            elif change == "exclude" and talk.history():
                talk.exclude(str(chance.choice(talk.history()).id))
            elif change == "undo":
                talk.undo()
            elif change == "fork":
                talk.fork(1)
            elif change == "move":
                move_thread(persistence, info.thread_id, chance.choice("xy"), owner=info.owner)
            elif change == "delete":
                delete_thread(persistence, info.thread_id, owner=info.owner)
            seen.add(change)
            if step == 40:
                later = datetime.now(UTC) + timedelta(days=9)
                prune_threads(persistence, older_than=timedelta(days=1), now=later, owner="bob")
            by = chance.sample(BY, chance.randint(0, 4))
            prices = chance.choice([None, PRICES])
            first = chance.choice(["", "2020-01-01", "2099-01"])
            rows = within(read_each(persistence, owner), first, "")
            wanted = added(rows if prices is None else price_rows(rows, prices), by)
            found = usage_of_threads(persistence, by=by, prices=prices, owner=owner, first=first)
            assert [replace(row, cost=None) for row in found] == [
                replace(row, cost=None) for row in wanted
            ], (step, change, by)
            assert [row.cost for row in found] == [
                row.cost if row.cost is None else pytest.approx(row.cost) for row in wanted
            ]
        assert seen == {"ask", "exclude", "undo", "fork", "move", "delete"}


def test_a_thread_that_is_deleted_after_it_was_listed_is_not_found(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as persistence:
        graph = build_graph(model=ScriptedModel(say=lambda _: AIMessage("yes"))).compile(
            checkpointer=persistence.checkpointer, store=persistence.store
        )
        Conversation(graph, "a", context=ROOMY).ask("one")
        threads = StoredThreads(graph)
        [(_, entry)] = visible_entries(threads, None, all_owners=False)
        assert load_thread(threads, "a", None, entry=entry)[0].entry == entry
        delete_thread(persistence, "a")
        with pytest.raises(ThreadNotFoundError):
            load_thread(threads, "a", None, entry=entry)


def test_a_state_without_a_checkpoint_has_lost_none(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as persistence:
        graph = build_graph(model=ScriptedModel(say=lambda _: AIMessage("yes"))).compile(
            checkpointer=persistence.checkpointer, store=persistence.store
        )
        Conversation(graph, "a", context=ROOMY).ask("one")
        threads = StoredThreads(graph)
        state = threads.load("a")
        later = {CHECKPOINT: "9", "messages": 4}
        with pytest.raises(LostMessagesError):
            check_lost(threads, "a", state, later)
        check_lost(threads, "a", state._replace(config={}), later)


@pytest.mark.parametrize("few", [0, 99])
def test_the_audit_of_all_threads_reads_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(reports, "FEW_THREADS", few)
    chance = random.Random(2)
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as persistence:
        graph = build_graph(model=ScriptedModel(say=lambda _: AIMessage("yes"))).compile(
            checkpointer=persistence.checkpointer, store=persistence.store
        )
        for number in range(8):
            name = f"t.{number}"
            owner = chance.choice(["ann", "bob", None])
            Conversation(graph, name, context=replace(ROOMY, owner=owner)).ask("one")
            for place in (name, f"{name}{NODE}node"):
                for turn in range(chance.randint(0, 3)):
                    time = f"2026-11-27T08:00:0{chance.randint(0, 9)}"
                    entry = AuditEntry(f"k{turn}", time, turn, "run_sql", "run", "SELECT 1")
                    namespace = thread_namespace("audit", place)
                    persistence.store.put(namespace, f"k{turn}", entry.as_json(), index=False)
        for owner in ("ann", "bob", None):
            threads = CountingThreads(persistence)
            found = audit_of_threads(threads, owner=owner)
            assert threads.read == []
            wanted: list[tuple[str, AuditEntry]] = []
            for info in list_threads(persistence, owner=owner):
                audit = audit_of(threads, info.thread_id, owner)
                wanted += [(info.thread_id, each) for each in audit]
            assert found == sorted(wanted, key=lambda pair: (pair[1].time, pair[0], pair[1].key))
            assert found


def test_a_thread_whose_entry_is_damaged_is_reported_to_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "chat.db"
    with open_persistence(f"sqlite:///{file}") as persistence:
        graph = build_graph(model=ScriptedModel(say=lambda _: AIMessage("yes"))).compile(
            checkpointer=persistence.checkpointer, store=persistence.store
        )
        Conversation(graph, "a", context=replace(ROOMY, owner="ann")).ask("one")
        entry = AuditEntry("k", "2026-11-27", 1, "run_sql", "run", "SELECT 'of ann'")
        persistence.store.put(thread_namespace("audit", "a"), "k", entry.as_json(), index=False)
        assert usage_of_threads(persistence, owner="ann")
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE store SET value = '{' WHERE prefix = 'longtable.threads'")
    with open_persistence(f"sqlite:///{file}") as persistence:
        assert audit_of_threads(persistence) == []
        assert audit_of_threads(persistence, all_owners=True) == [("a", entry)]
        assert usage_of_threads(persistence) == []
        [row] = usage_of_threads(persistence, by=["thread"], all_owners=True)
        assert (row.thread, row.calls) == ("a", 1)


@pytest.mark.parametrize("owner", [5, None])
def test_whose_entry_names_no_owner_is_reported_to_its_owner_alone(
    tmp_path: Path, owner: int | None
) -> None:
    """`owner`: what the damaged entry has in place of it; None: nothing."""
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as persistence:
        graph = build_graph(model=ScriptedModel(say=lambda _: AIMessage("yes"))).compile(
            checkpointer=persistence.checkpointer, store=persistence.store
        )
        Conversation(graph, "t", context=replace(ROOMY, owner="ann")).ask("one")
        entry = AuditEntry("k", "2026-11-27T08:00:00", 1, "run_sql", "run", "SELECT 1")
        namespace = thread_namespace("audit", "t")
        persistence.store.put(namespace, "k", entry.as_json(), index=False)
        usage_of_threads(persistence, all_owners=True)  # which keeps a record
        item = persistence.store.get(THREADS, "t")
        assert item is not None
        damaged = {name: value for name, value in item.value.items() if name != "owner"}
        if owner is not None:
            damaged["owner"] = owner
        persistence.store.put(THREADS, "t", damaged, index=False)
        assert audit_of_threads(persistence, owner="bob") == []
        assert sum(spent.calls for spent in usage_of_threads(persistence, owner="bob")) == 0
        assert audit_of_threads(persistence, owner="ann") == [("t", entry)]
        assert sum(spent.calls for spent in usage_of_threads(persistence, owner="ann")) == 1


def test_a_record_of_usage_with_a_figure_that_is_none_is_made_again(tmp_path: Path) -> None:
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as persistence:
        graph = build_graph(model=ScriptedModel(say=lambda _: AIMessage("yes"))).compile(
            checkpointer=persistence.checkpointer, store=persistence.store
        )
        Conversation(graph, "t", context=ROOMY).ask("one")
        expected = usage_of_threads(persistence, all_owners=True)
        item = persistence.store.get(SPENDING, "t")
        assert item is not None
        item.value["rows"][0]["input"] = "many"
        persistence.store.put(SPENDING, "t", item.value, index=False)
        assert usage_of_threads(persistence, all_owners=True) == expected
