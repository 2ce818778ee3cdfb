"""A few simulated people in the web chat; `benchmarks/people` has the thousand."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from benchmarks.people.comparison import lost
from benchmarks.people.crowd import run_crowd
from benchmarks.people.open_page import body_of, words_of
from benchmarks.people.people_report import report
from benchmarks.people.person import PlannedTurn, TakenTurn
from benchmarks.people.talk_model import answer_to, question_of
from longtable.app.pages.turn_html import sse_data
from longtable.store.records.retired import encode_message

SEED = 1838
"""Three people who reload, stop, go on and leave, approve a query and refuse one."""


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's /proc")
def test_people_meet_no_error_and_nothing_is_lost(tmp_path: Path) -> None:
    crowd = run_crowd(tmp_path, people=3, minutes=0.05, seed=SEED, on_postgres=False, stretch=0.3)
    assert not crowd.errors, crowd.examples
    assert not crowd.lost
    assert not crowd.complaints
    taken = [turn for person in crowd.people for turn in person.taken]
    assert len(taken) == sum(len(person.turns) for person in crowd.people)
    assert {turn.plan.act for turn in taken} == {
        "read",
        "reload",
        "leave",
        "stop",
        "stop and go on",
    }
    assert any(turn.waited for turn in taken)
    assert any(turn.is_cut for turn in taken)
    assert crowd.used.server_s > 0
    assert "| messages lost, doubled or altered | 0 |" in report(crowd)


def test_a_page_shows_a_turn_that_comes_as_it_is_stored() -> None:
    card = '<form class="card approval" id="t1-2">\n</form>'
    changed = f'<hx-partial hx-target="#body-t1" hx-swap="beforeend">{card}</hx-partial>'
    stored = f'<hx-partial hx-target="#turn-t1" hx-swap="outerHTML">{card}</hx-partial>'
    for html in (changed, stored):
        stream = sse_data(html, "t1.1") + sse_data("done", "t1.2", "done")
        assert body_of(stream) == card


def turn_of(key: str, *, is_cut: bool = False) -> TakenTurn:
    plan = PlannedTurn(key, "talk", "read", 0.0, 0.0, True)
    answer = "" if is_cut else words_of(answer_to(key))
    return TakenTurn(plan, question_of(key, "talk"), answer, is_cut)


def exported(messages: Sequence[BaseMessage]) -> str:
    lines = [f'{{"type":"message","message":{encode_message(each)}}}' for each in messages]
    return "\n".join(['{"type":"longtable-thread"}', *lines])


def messages_of(*keys: str) -> list[BaseMessage]:
    messages: list[BaseMessage] = []
    for key in keys:
        messages += [HumanMessage(question_of(key, "talk")), AIMessage(answer_to(key))]
    return messages


def test_a_thread_that_kept_everything_lost_nothing() -> None:
    taken = [turn_of("a-a"), turn_of("a-b")]
    assert lost(taken, exported(messages_of("a-a", "a-b"))) == []


def test_a_turn_that_was_stopped_need_not_have_its_answer() -> None:
    taken = [turn_of("a-a", is_cut=True), turn_of("a-b")]
    messages = messages_of("a-a", "a-b")
    del messages[1]
    assert lost(taken, exported(messages)) == []


ALTERED = AIMessage(answer_to("a-a").replace("That was all", "That is all"))
LOSSES = {
    "a question": messages_of("a-a", "a-b")[:2],
    "an answer": messages_of("a-a", "a-b")[:3],
    "the order": messages_of("a-b", "a-a"),
    "a question twice": messages_of("a-a", "a-a", "a-b"),
    "a word of an answer": [messages_of("a-a")[0], ALTERED, *messages_of("a-b")],
    "another thread's answer": [
        messages_of("a-a")[0],
        *messages_of("b-a")[1:],
        *messages_of("a-b"),
    ],
}


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_lost_is_found(loss: str) -> None:
    taken = [turn_of("a-a"), turn_of("a-b")]
    assert len(lost(taken, exported(LOSSES[loss]))) == 1


def test_an_answer_that_nobody_saw_has_to_be_kept_too() -> None:
    turn = turn_of("a-a")
    turn.answer = ""
    assert lost([turn], exported(messages_of("a-a"))) == []
    assert len(lost([turn], exported(messages_of("a-a")[:1]))) == 1
