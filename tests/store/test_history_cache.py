"""Turns read what was written since the turn before; whoever changes a message, or reads outside of
a turn, shares nothing.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import DeltaChannelHistory

from longtable.graph import Context, Conversation, build_graph, open_persistence
from longtable.store.history_cache import SHARES, HistoryCache
from longtable.store.saver_guard import GuardedSaver
from tests.support.models import ScriptedModel

CALL = {"name": "run_sql", "args": {"sql": "SELECT 1"}, "id": "c1", "type": "tool_call"}
MESSAGE = AIMessage(
    "x" * 200, id="1", tool_calls=[CALL], additional_kwargs={"longtable": {"turn": 1}}
)


def _answers() -> ScriptedModel:
    return ScriptedModel(say=lambda messages: AIMessage(f"answer to {messages[-1].text}"))


def _talk(kept: Any, model: ScriptedModel) -> Conversation:
    graph = build_graph(model=model).compile(checkpointer=kept.checkpointer, store=kept.store)
    return Conversation(graph, "t", context=Context(model_limit=4_000))


def _read(graph: Any, config: RunnableConfig, *, shared: bool) -> dict[str, DeltaChannelHistory]:
    """Return the histories of a checkpoint, as a turn reads them (`shared`) or in whole."""
    saver = graph.checkpointer
    loaded = saver.get_tuple(config)
    channels = [
        name
        for name, channel in graph.channels.items()
        if isinstance(channel, DeltaChannel) and name not in loaded.checkpoint["channel_values"]
    ]
    marked = {**loaded.config["configurable"], SHARES: shared}
    return dict(saver.get_delta_channel_history(config={"configurable": marked}, channels=channels))


def _edit(talk: Conversation, chance: random.Random) -> None:
    """Do to a thread one thing of those that are not a turn."""
    graph: Any = talk.graph
    kind = chance.choice(["none", "undo", "pin", "compact", "update", "earlier"])
    if kind == "undo":
        talk.undo()
    elif kind == "pin":
        talk.pin(f"Round figure {chance.randint(0, 99)}.")
    elif kind == "compact":
        talk.compact()
    elif kind == "update":
        said = HumanMessage(f"{chance.random()}", id=f"{chance.random()}")
        graph.update_state(talk.config, {"messages": [said]}, as_node="settle")
    elif kind == "earlier":
        steps = [*graph.get_state_history(talk.config, limit=20)]
        before = chance.choice([each for each in steps if not each.next])
        graph.update_state(before.config, {"messages": []}, as_node="settle")


@pytest.mark.parametrize("seed", range(3))
def test_a_turn_is_handed_the_history_that_a_whole_read_gives(url: str, seed: int) -> None:
    chance = random.Random(seed)
    with open_persistence(url) as kept:
        talk = _talk(kept, _answers())
        for n in range(30):
            talk.ask(f"question {n} {'and so on ' * chance.randint(1, 40)}")
            _edit(talk, chance)
            assert _read(talk.graph, talk.config, shared=True) == _read(
                talk.graph, talk.config, shared=False
            )


def test_a_turn_decodes_only_what_was_written_since(url: str) -> None:
    with open_persistence(url) as kept:
        talk = _talk(kept, _answers())
        talk.ask("first")
        decoded: list[Any] = []
        serde: Any = kept.checkpointer.serde
        loads = serde.loads_typed

        def counting(data: tuple[str, bytes]) -> Any:
            decoded.append(loads(data))
            return decoded[-1]

        serde.loads_typed = counting
        for n in range(20):
            talk.ask(f"question {n}")
        by_turns = len(decoded)
        decoded.clear()
        _read(talk.graph, talk.config, shared=False)
        assert by_turns < 20 * len(decoded) / 3


def test_who_reads_outside_of_a_turn_gets_messages_of_its_own(url: str) -> None:
    with open_persistence(url) as kept:
        talk = _talk(kept, _answers())
        talk.ask("first")
        shared = _read(talk.graph, talk.config, shared=True)["messages"]
        again = _read(talk.graph, talk.config, shared=True)["messages"]
        own = _read(talk.graph, talk.config, shared=False)["messages"]
        assert shared == again == own
        mine = _messages(own)[0]
        theirs = _messages(shared)[0]
        assert theirs is _messages(again)[0]
        assert mine is not theirs


def _messages(history: DeltaChannelHistory) -> list[BaseMessage]:
    listed: list[BaseMessage] = []
    for _, _, value in history["writes"]:
        listed += value if isinstance(value, list) else [value]
    return listed


def _content(message: Any) -> None:
    message.content = "mine"


def _kwargs(message: Any) -> None:
    message.additional_kwargs["longtable"]["turn"] = 7


def _call(message: Any) -> None:
    message.tool_calls[0]["args"]["sql"] = "DROP TABLE t"


def _beside(message: Any) -> None:
    message.mood = "curious"


def _object(message: Any) -> None:
    message.response_metadata["made"] = object()


CHANGES = [_content, _kwargs, _call, _beside, _object]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("whole", [False, True], ids=["written", "stored whole"])
def test_a_history_is_dropped_if_somebody_changed_a_message(
    change: Callable[[Any], None], *, whole: bool
) -> None:
    message = MESSAGE.model_copy(deep=True)
    history: DeltaChannelHistory = {"writes": [("task", "messages", [message])]}
    if whole:
        history = {"writes": [], "seed": [message]}
    cache = HistoryCache()
    cache.put(("t", ""), "c1", {"messages": history})
    assert cache.get(("t", "")) is not None
    change(message)
    assert cache.get(("t", "")) is None


def test_records_that_somebody_changed_are_noticed() -> None:
    records = [{"id": "r1", "ledger": [{"sql": "SELECT 1", "rows": 2}]}]
    cache = HistoryCache()
    cache.put(("t", ""), "c1", {"compactions": {"writes": [("task", "compactions", records)]}})
    records[0]["ledger"][0]["rows"] = 99  # type: ignore[index]  # a list of records
    assert cache.get(("t", "")) is None


def test_lists_that_a_run_changes_are_its_own(url: str) -> None:
    with open_persistence(url) as kept:
        talk = _talk(kept, _answers())
        talk.ask("first")
        for _ in range(2):
            for history in _read(talk.graph, talk.config, shared=True).values():
                history["writes"].append(("task", "messages", "mine"))
                value = getattr(history.get("seed"), "value", None)
                if isinstance(value, list):
                    value.append("mine")
        expected = _read(talk.graph, talk.config, shared=False)
        assert _read(talk.graph, talk.config, shared=True) == expected


def test_no_more_is_kept_than_the_bound_and_the_oldest_goes_first() -> None:
    cache = HistoryCache(most=1_000)
    keys = [(f"t{n}", "") for n in range(5)]
    for key in keys:
        cache.put(key, "c1", {"messages": {"writes": [("task", "messages", "x" * 300)]}})
    assert [cache.get(key) is not None for key in keys] == [False] * 2 + [True] * 3
    assert 900 < cache.size <= 1_000
    kept = cache.size
    cache.put(keys[4], "c2", {"messages": {"writes": [("task", "messages", "y" * 300)]}})
    assert cache.size == kept
    cache.put(keys[0], "c3", {"messages": {"writes": [("task", "messages", "z" * 5_000)]}})
    assert cache.get(keys[0]) is None
    assert cache.size == 0


def test_a_history_with_anything_but_messages_and_json_is_not_kept() -> None:
    cache = HistoryCache()
    cache.put(("t", ""), "c1", {"messages": {"writes": [("task", "messages", object())]}})
    assert cache.get(("t", "")) is None
    assert cache.size == 0


def test_an_encrypted_store_keeps_no_text_in_memory(tmp_path: Path) -> None:
    pytest.importorskip("Crypto", reason="the extra encryption is not installed")
    for key in (None, "a secret key of the test"):
        with open_persistence(f"sqlite:///{tmp_path}/{key}.db", key=key) as kept:
            talk = _talk(kept, _answers())
            for text in ("one", "two", "three"):
                talk.ask(text)
            saver = kept.checkpointer
            assert isinstance(saver, GuardedSaver)
            cache = getattr(saver.inner, "cache", None)
            assert (cache is not None and cache.size > 0) == (key is None)


def test_of_a_deleted_thread_nothing_stays_in_memory(url: str) -> None:
    with open_persistence(url) as kept:
        saver = kept.checkpointer
        assert isinstance(saver, GuardedSaver)
        cache: HistoryCache = getattr(saver.inner, "cache")  # noqa: B009  # savers differ
        talk = _talk(kept, _answers())
        for text in ("one", "two"):
            talk.ask(text)
        assert cache.get(("t", "")) is not None
        talk.delete()
        assert cache.get(("t", "")) is None
        assert cache.size == 0


def test_what_a_model_or_a_caller_does_to_messages_is_seen_in_no_later_turn(url: str) -> None:
    sent: list[list[str]] = []

    def say(messages: Sequence[BaseMessage]) -> AIMessage:
        sent.append([str(message.text) for message in messages[1:]])
        for message in messages:
            if isinstance(message, HumanMessage) and len(sent) == 3:
                message.content = "changed by the client"
        return AIMessage(f"answer {len(sent)}")

    with open_persistence(url) as kept:
        talk = _talk(kept, ScriptedModel(say=say))
        for n in range(1, 6):
            talk.ask(f"question {n}")
            for message in talk.history():
                message.content = "changed by the caller"
        assert [message.text for message in talk.history()][-2:] == ["question 5", "answer 5"]
    expected = [f"{word} {n}" for n in range(1, 5) for word in ("question", "answer")]
    assert sent[-1] == [*expected, "question 5"]
