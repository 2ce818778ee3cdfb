"""The lasting events of a turn equal those that were streamed, whatever happened to the thread
since.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from longtable.base.errors import ProviderUnavailableError
from longtable.base.events import Event
from longtable.graph import FreeChat, Mode, Persona, Scene, Team, import_thread
from longtable.graph.running.past_events import (
    LASTING,
    MOST_ROWS,
    NOT_STORED,
    KeptTurn,
    past_events,
    status_of_turn,
)
from longtable.graph.running.past_turns import PastTurn
from longtable.graph.thread_state import StoredThreads
from longtable.memory.messages.marks import marked
from longtable.nodes.tooling.audit import AuditEntry
from tests.nodes.tooling.test_recall_by_marker import asker, long_thread
from tests.support.full_talk import (
    CONTEXT,
    ROWS,
    TEAM,
    FullTalk,
    make_database,
    opened,
    talk_fully,
    talk_in_a_team,
)
from tests.support.models import call

FIELDS = {
    "answer": "text status turn tokens voices",
    "approval_requested": "action_requests review_configs",
    "chart": "call_id handle spec notes",
    "context_compressed": (
        "id original_tokens compressed_tokens messages strategy method writer why_by_code input"
        " output coverage rebuilt ahead reasons ms"
    ),
    "context_passed": "call passed left_out",
    "context_usage": (
        "total calibrated ratio limit fraction threshold parts shrunk left_out estimated"
    ),
    "failed": "code text retry_after",
    "input_requested": "id value",
    "model_fallback": "model fallback code",
    "pins_changed": "pinned ended",
    "query_finished": (
        "call_id name status ms sql columns column_types rows row_count handle verified decision"
        " decided_by error problem line column"
    ),
    "query_started": "call_id name sql",
    "reasoning": "text",
    "recall": "query found turns via",
    "schema_changed": "changed new gone",
    "steered": "id text turn",
    "token": "text",
    "tool_finished": "call_id name status ms error",
    "tool_started": "call_id name args",
    "unsupported_numbers": "turn figures",
    "voice_started": "voice name color",
}
"""The types that last, each with the fields that the talks below tell."""
PASSING = {
    "audit_failed": "the store failed: there is no place to keep it",
    "context_compaction_skipped": "nothing changed",
    "messages_retired": "upkeep, of no turn",
    "model_retry": "a wait that is over",
    "team_turn": "what a turn may cost, told before it",
    "thread_waiting": "a wait that is over",
    "unknown_mentions": "a hint to whoever is typing",
}
WAITS = ("approval_requested", "input_requested")


def test_each_type_of_event_lasts_or_is_named_as_passing() -> None:
    types = [get_args(get_type_hints(event)["type"])[0] for event in get_args(Event)]
    assert sorted(types) == sorted([*LASTING, *PASSING])
    assert sorted(LASTING) == sorted(FIELDS)


# -- what was streamed, as it lasts ----------------------------------------------------------------


def lasting(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return the streamed events of a turn in the form in which they last."""
    kept: list[dict[str, Any]] = []
    for event in events:
        plain: dict[str, Any] = {**event}
        if plain["type"] not in LASTING or plain["type"] == "context_usage":
            continue
        plain.pop("at_once", None)
        if plain["type"] == "query_finished" and "rows" in plain:
            plain["rows"] = plain["rows"][:MOST_ROWS]
        before = kept[-1] if kept else {}
        same = before.get("type") == plain["type"] and before.get("voice") == plain.get("voice")
        if same and plain["type"] in ("token", "reasoning"):
            before["text"] += plain["text"]
        else:
            kept.append(plain)
    return in_order_of_calls(without_failed_call(without_waits(kept)))


def without_failed_call(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events without those of a model call that gave no answer."""
    if events[-1]["type"] != "failed":
        return events
    before = list(events[:-1])
    while before and before[-1]["type"] in ("context_passed", "model_fallback"):
        before.pop()
    return [*before, events[-1]]


def without_waits(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events without questions that were answered since, and their answers. A tool that
    asks begins again with the answer.
    """
    ends = [i for i, event in enumerate(events) if event["type"] in ("answer", "failed")]
    last = max([i for i in ends if events[i].get("status") not in WAITS], default=-1)
    waits = [
        i
        for i, event in enumerate(events)
        if i < last and (event["type"] in WAITS or event.get("status") in WAITS)
    ]
    waits += [i - 1 for i in waits if events[i]["type"] == "input_requested"]
    return [event for i, event in enumerate(events) if i not in waits]


def in_order_of_calls(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events with those of calls that ran side by side in the order of the calls."""
    ordered: list[dict[str, Any]] = []
    block: list[dict[str, Any]] = []
    for event in [*events, {"type": "end"}]:
        if "call_id" in event:
            block.append(event)
            continue
        ordered += sorted(block, key=lambda each: (not is_start(each), each["call_id"]))
        ordered.append(event)
        block = []
    return ordered[:-1]


def is_start(event: dict[str, Any]) -> bool:
    return str(event["type"]).endswith("_started")


def plain_events(turn: PastTurn) -> list[dict[str, Any]]:
    events = [{**event} for event in turn.events if event["type"] != "context_usage"]
    return json.loads(json.dumps(events))  # type: ignore[no-any-return]


def assert_same(told: FullTalk, turns: Sequence[PastTurn]) -> None:
    assert [turn.number for turn in turns] == sorted(told.told)
    for turn in turns:
        streamed = json.loads(json.dumps(lasting(told.told[turn.number])))
        assert plain_events(turn) == streamed, turn.number
        usages = [event for event in turn.events if event["type"] == "context_usage"]
        assert all(usage in told.told[turn.number] for usage in usages)


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullTalk]:
    folder = tmp_path_factory.mktemp("talked")
    make_database(folder)
    with opened(folder) as talk:
        talk_fully(talk)
        yield talk


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullTalk]:
    folder = tmp_path_factory.mktemp("team")
    make_database(folder)
    with opened(folder, team=TEAM) as talk:
        talk_in_a_team(talk)
        yield talk


def test_past_turns_have_the_events_that_were_streamed(talked: FullTalk, team: FullTalk) -> None:
    assert_same(talked, talked.conversation.turns())
    assert_same(team, team.conversation.turns())


def test_voices_that_were_asked_at_the_same_time_stand_one_after_the_other(tmp_path: Path) -> None:
    make_database(tmp_path)
    personas = [Persona(name, f"You are {name}.", color="green") for name in ("ada", "bob")]
    with opened(tmp_path, team=Team(*personas, mode=FreeChat())) as talk:
        talk.ask("Hello both.", "Hello there", "Hello there")
        (turn,) = talk.conversation.turns()
        past = plain_events(turn)
        voices = [event["voice"] for event in past if "voice" in event]
        assert voices == sorted(voices)
        streamed = json.loads(json.dumps(lasting(talk.told[1])))
        assert by_voice(past) == by_voice(streamed)


def by_voice(events: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the events of each voice, with its heading once. While voices are asked at the same
    time, a stream may change from one to the other and back.
    """
    voices: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        own = voices.setdefault(str(event.get("voice", "")), [])
        if event["type"] != "voice_started" or event not in own:
            own.append(event)
    return voices


class OneSpeaks(Mode):
    """The first persona answers, and then the round is over."""

    name = "one_speaks"

    def speakers(self, scene: Scene) -> list[str]:
        return list(scene.names)[:1]

    def close(self, scene: Scene) -> str:
        return f"Round {scene.turn} is over."


def test_what_the_mode_says_at_the_end_is_a_voice_of_its_own(tmp_path: Path) -> None:
    make_database(tmp_path)
    personas = [Persona(name, f"You are {name}.", color="green") for name in ("ada", "bob")]
    with opened(tmp_path, team=Team(*personas, mode=OneSpeaks())) as talk:
        talk.ask("Hello.", "Hello there")
        assert_same(talk, talk.conversation.turns())
        (turn,) = talk.conversation.turns()
        assert turn.events[-2] == {
            "type": "token",
            "text": "Round 1 is over.",
            "voice": "narrator",
        }


def test_every_lasting_type_is_told_here_with_its_fields(talked: FullTalk, team: FullTalk) -> None:
    fields: dict[str, set[str]] = {}
    for turn in [*talked.conversation.turns(), *team.conversation.turns()]:
        for event in turn.events:
            fields.setdefault(event["type"], set()).update(event)
    for kind, names in FIELDS.items():
        if kind not in WAITS:
            assert set(names.split()) <= fields[kind], kind
    assert set(fields) == set(FIELDS) - set(WAITS)


def test_they_are_the_same_in_another_process(talked: FullTalk) -> None:
    file = talked.folder / "chat.db"
    command = [sys.executable, "-m", "tests.support.full_talk", str(file)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    turns = [asdict(turn) for turn in talked.conversation.turns()]
    assert json.loads(printed.stdout) == json.loads(json.dumps(turns))


def test_a_fork_and_an_import_have_the_same_turns(talked: FullTalk) -> None:
    conversation = talked.conversation
    turns = conversation.turns()
    fork = conversation.fork(8)
    assert fork.turns() == turns[:8]
    copied = import_thread(
        StoredThreads(conversation.graph),
        conversation.export().splitlines(keepends=True),
        thread_id="copied",
        owner="ann",
    )
    conversation.results.copy("t", copied)
    other = type(conversation)(
        conversation.graph, copied, context=conversation.context, results=conversation.results
    )
    assert other.turns() == turns


def test_rows_that_are_gone_are_missed_and_the_rest_stays(talked: FullTalk) -> None:
    fork = talked.conversation.fork(1)
    (before, *_) = finished_queries(fork.turns()[0])
    assert (len(before["rows"]), before["row_count"]) == (MOST_ROWS, ROWS)
    fork.results.path(fork.thread_id, "r1").unlink()
    (after, *_) = finished_queries(fork.turns()[0])
    assert "r1" in after.pop("gone")
    assert after == {**before, "rows": []}
    fork.results.delete(fork.thread_id)
    (unknown, *_) = finished_queries(fork.turns()[0])
    assert unknown["gone"] == NOT_STORED
    assert (len(unknown["rows"]), unknown["row_count"]) == (20, ROWS)


def finished_queries(turn: PastTurn) -> list[dict[str, Any]]:
    return [{**event} for event in turn.events if event["type"] == "query_finished"]


def test_an_exclusion_and_an_undo_are_told_with_the_turn(talked: FullTalk) -> None:
    fork = talked.conversation.fork(6)
    before = fork.turns()
    fork.exclude(before[1].id)
    after = fork.turns()
    assert [turn.excluded for turn in after] == [False, True, False, False, False, False]
    assert [turn.events for turn in after] == [turn.events for turn in before]
    assert fork.undo() is not None
    undone = fork.turns()[-1].events
    assert [event.get("undone", False) for event in undone if "undone" in event] == [True]
    assert [without_undo(event) for event in undone] == before[-1].events


def without_undo(event: Event) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != "undone"}


def test_what_waits_is_part_of_the_newest_turn(tmp_path: Path) -> None:
    make_database(tmp_path)
    with opened(tmp_path) as talk:
        asking = CONTEXT.replace(approve_sql="always")
        query = call("run_sql", sql="SELECT name FROM people")
        talk.ask("Names?", query, context=asking)
        (turn,) = talk.conversation.turns()
        assert turn.status == "approval_requested"
        assert plain_events(turn) == json.loads(json.dumps(lasting(talk.told[1])))
        talk.ask(None, "Ada.", answer=[{"type": "approve"}], context=asking)
        (turn,) = talk.conversation.turns()
        assert turn.status == "answered"
        (event,) = finished_queries(turn)
        assert (event["decision"], event["decided_by"]) == ("approve", "ann")
        talk.ask("Ask me.", call("ask_person", question="Which year?"))
        turn = talk.conversation.turns(start=-1)[0]
        assert turn.status == "input_requested"
        assert turn.events[-2]["type"] == "input_requested"


def test_a_failed_turn_that_is_run_again_and_answered_has_no_failure(tmp_path: Path) -> None:
    make_database(tmp_path)
    with opened(tmp_path) as talk:
        talk.spare.append(ProviderUnavailableError("away, too"))
        talk.ask("Will it fail?", ProviderUnavailableError("away"))
        (turn,) = talk.conversation.turns()
        assert (turn.status, turn.events[-1]["type"]) == ("provider_unavailable", "failed")
        talk.ask(None, "No.")
        (turn,) = talk.conversation.turns()
        assert turn.status == "answered"
        assert [event["type"] for event in turn.events][-2:] == ["token", "answer"]
        talk.ask("Bye.", "Bye.")
        assert [turn.status for turn in talk.conversation.turns()] == ["answered", "answered"]


def test_what_a_marker_recalled_is_told() -> None:
    conversation = long_thread(asker("[NEED_CONTEXT: Kingfisher]"))
    events = [*conversation.stream("budget?")]
    (turn,) = conversation.turns(start=-1)
    assert of_type(turn.events, "recall") == of_type(events, "recall") != []


def of_type(events: Sequence[Event], kind: str) -> list[Event]:
    return [event for event in events if event["type"] == kind]


# -- threads of older versions ---------------------------------------------------------------------


def old(message: Any, turn: int = 1, **marks: Any) -> Any:
    """Return a message as versions before the mark `report` kept it."""
    return marked(message, turn=turn, time="2026-01-01T00:00:00", **marks)


def old_turn(*messages: Any, **more: Any) -> KeptTurn:
    return KeptTurn(
        number=1, messages=[old(HumanMessage("How many?", id="h")), *messages], first=1, **more
    )


def old_query(content: dict[str, Any], **marks: Any) -> list[Any]:
    asked = call("run_sql", sql="select 1")
    status: Any = "error" if "error" in content else "success"
    answer = ToolMessage(json.dumps(content), tool_call_id="call_1", name="run_sql", status=status)
    return [old(asked.model_copy(update={"id": "a"})), old(answer, **marks)]


def test_an_older_query_is_told_from_its_preview_and_the_audit() -> None:
    content = {
        "row_count": 1,
        "columns": ["1"],
        "types": ["INTEGER"],
        "rows": [[1]],
        "sql": "SELECT 1",
    }
    entry = AuditEntry("a:0", "2026-01-01", 1, "run_sql", "run", "select 1", ms=7)
    turn = old_turn(
        *old_query(content, tables=[], verified="ones"),
        old(AIMessage("One.")),
        audit={"a:0": entry},
    )
    started, finished, token, answer = past_events(turn)
    assert started == {
        "type": "query_started",
        "call_id": "call_1",
        "name": "run_sql",
        "sql": "select 1",
    }
    assert finished == {
        "type": "query_finished",
        "call_id": "call_1",
        "name": "run_sql",
        "status": "success",
        "ms": 7,
        "sql": "SELECT 1",
        "columns": ["1"],
        "column_types": ["INTEGER"],
        "rows": [[1]],
        "row_count": 1,
        "verified": {"query": "ones", "question": "", "checked_by": "", "checked_on": ""},
    }
    assert token == {"type": "token", "text": "One."}
    assert answer == {"type": "answer", "text": "One.", "status": "answered", "turn": 1}


def test_an_older_query_that_failed_is_told_with_its_error() -> None:
    error = {"class": "query_failed", "problem": "syntax", "message": "no", "line": 1}
    finished = past_events(old_turn(*old_query({"error": error})))[1]
    assert finished == {
        "type": "query_finished",
        "call_id": "call_1",
        "name": "run_sql",
        "status": "error",
        "ms": 0,
        "sql": "select 1",
        "error": "no",
        "problem": "syntax",
        "line": 1,
    }


def test_older_material_and_pins_are_told() -> None:
    passed = [{"source": "doc", "tokens": 9, "ms": 1, "cites": ["a"]}]
    pin = {"id": "p1", "text": "In euros.", "message_id": "h", "turn": 1, "by": "model"}
    turn = old_turn(
        old(AIMessage("One."), passed=passed), edits=[{"id": "e", "op": "pin", "pin": pin}]
    )
    kinds = [event["type"] for event in past_events(turn)]
    assert kinds == ["context_passed", "token", "pins_changed", "answer"]
    by_hand: Any = {"id": "e", "op": "pin", "pin": pin, "turn": 1}
    turn = old_turn(old(AIMessage("One.")), edits=[by_hand])
    assert [event["type"] for event in past_events(turn)] == ["token", "answer"]


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (AIMessage("One."), "answered"),
        (AIMessage("One", response_metadata={"finish_reason": "length"}), "cut_off"),
        (marked(AIMessage("I stopped."), notice="call_budget"), "call_budget"),
        (HumanMessage("and?"), ""),
    ],
)
def test_the_status_of_an_older_turn_follows_from_its_last_message(
    message: Any, status: str
) -> None:
    assert status_of_turn(old_turn(old(message))) == status


def test_conversation_that_was_handed_in_is_no_turns_own() -> None:
    turn = KeptTurn(
        number=1,
        messages=[
            old(HumanMessage("earlier", id="e")),
            old(AIMessage("said"), given=True),
            old(HumanMessage("now", id="n")),
            old(AIMessage("Now.")),
        ],
        first=1,
    )
    assert turn.question is not None
    assert turn.question.id == "n"
    assert [event["type"] for event in past_events(turn)] == ["token", "answer"]
