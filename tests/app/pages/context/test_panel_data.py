"""The panel's data of a real conversation: pins, memory, undo."""

import json
from dataclasses import replace
from pathlib import Path

from longtable.analyst.model import BuiltInAnalyst
from longtable.app.pages.context.panel_data import originals, panel_data
from longtable.graph import CompactionPolicy, Conversation, open_conversation
from longtable.memory.counting.tokens import counter
from tests.app.pages.context.panel_talk import data_of, known_of, long_talk
from tests.app.runner import make_home


def states(conversation: Conversation) -> dict[str, str]:
    return {pin.text: pin.state for pin in data_of(conversation).pins}


def test_pins_hold_end_and_are_told_apart() -> None:
    conversation = long_talk(2)
    conversation.ask("From now on always leave out the airport EWR.")
    by_hand = conversation.pin("Money is in dollars.")
    said = next(pin for pin in conversation.pins() if "EWR" in pin.text)
    row = next(pin for pin in data_of(conversation).pins if pin.id == said.id)
    assert conversation.history()[row.number - 1].text.startswith("From now on")
    assert row.by == "heuristic"
    conversation.unpin(by_hand.id)
    conversation.unpin(said.id)
    assert states(conversation) == {said.text: "removed", "Money is in dollars.": "removed"}
    conversation.pin(said.text)
    assert states(conversation) == {said.text: "holds", "Money is in dollars.": "removed"}


def test_a_pin_without_room_says_so() -> None:
    conversation = long_talk(2)
    for n in range(12):
        conversation.pin(f"Rule {n}: " + "word " * 60)
    found = list(states(conversation).values())
    assert {*found} == {"holds", "no_room"}
    view = conversation.view()[0].text
    assert sum(f"Rule {n}:" in view for n in range(12)) == found.count("holds")


def test_undo_shows_in_the_curve_and_in_the_memory() -> None:
    conversation = long_talk(20)
    before = data_of(conversation)
    assert before.can_undo
    assert before.memory.covered
    undone = conversation.undo()
    after = data_of(conversation)
    assert undone is not None
    assert [fall.undone for fall in after.curve.falls][-1]
    assert after.memory.covered < before.memory.covered
    assert after.gauge.total > before.gauge.total


def test_a_new_thread_has_no_data() -> None:
    conversation = long_talk(1)
    known = known_of(conversation)
    assert panel_data(known, conversation.context) is not None
    empty = replace(known, values={})
    assert panel_data(empty, conversation.context) is None


def test_retired_messages_are_in_the_panel() -> None:
    conversation = long_talk(40, policy=CompactionPolicy(retire_after=10))
    known = known_of(conversation)
    assert known.thread.archived > 0
    data = data_of(conversation)
    assert data.messages == len(known.facts) == 80
    assert data.curve.calls == 40
    records = known.thread.compactions
    assert len(data.curve.falls) == len(records) + len(known.retired) - sum(
        "merged" in each for each in records
    )


def test_tool_definitions_are_those_that_go_with_the_call(tmp_path: Path) -> None:
    shop = make_home(tmp_path).shop
    with open_conversation(shop, model=BuiltInAnalyst(), store="memory://") as conversation:
        conversation.ask("How many orders are there?")
        data = data_of(conversation)
        part = next(part for part in data.parts if part.kind == "tools")
        named = {tool.name: json.loads(tool.text) for tool in part.tools}
        assert "sql" in named["run_sql"]["parameters"]["properties"]
        known = known_of(conversation)
        assert known.offer is not None
        definitions = known.offer.definitions(pinning=False)
        assert [tool.name for tool in part.tools] == [
            each["function"]["name"] for each in definitions
        ]
        assert part.tokens == counter(known.values["brief"]["encoding"]).tools(definitions)


def test_originals_are_word_for_word() -> None:
    conversation = long_talk(3)
    history = conversation.history()
    conversation.exclude(str(history[3].id))
    shown = originals(conversation.history(start=3, limit=2), 3)
    assert [(each.number, each.text) for each in shown] == [
        (3, history[2].text),
        (4, history[3].text),
    ]
    assert [each.excluded for each in shown] == [False, True]
    assert [each.turn for each in shown] == [2, 2]
