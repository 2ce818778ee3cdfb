"""The memory text: headings, citations, the fallback that needs no model, findings that read
back.
"""

import time

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.memory.counting.tokens import counter
from longtable.memory.messages.marks import marked
from longtable.memory.summary.code_summary import fallback_summary
from longtable.memory.summary.summary_text import (
    HEADINGS,
    Finding,
    findings_in,
    language_of,
    pieces,
    render_memory,
    render_message,
    summary_input,
    summary_prompt,
)
from tests.support.histories import talk

count = counter("o200k_base").text


def numbered(messages: list[BaseMessage]) -> list[tuple[int, BaseMessage]]:
    return list(enumerate(messages, start=1))


def test_a_finding_reads_back_as_it_was_written() -> None:
    for language in ("en", "zh"):
        finding = Finding(
            "How many | flights\nin May?",
            "There are 28,796 flights.",
            "SELECT count(*) FROM flights WHERE month = 5",
            "m3-m6",
        )
        [read] = findings_in(render_memory(f"## Facts\n{finding.line(language)}", language))
        assert read == Finding(
            "How many / flights in May?", finding.answer, finding.sql, finding.ids
        )


def test_the_fallback_keeps_question_and_answer_the_sql_is_the_ledgers() -> None:
    round_: list[BaseMessage] = [
        HumanMessage("How many flights?"),
        AIMessage("", tool_calls=[{"name": "run_sql", "args": {"sql": "SELECT nope"}, "id": "1"}]),
        ToolMessage("no such column", tool_call_id="1", status="error"),
        AIMessage(
            "",
            tool_calls=[
                {"name": "run_sql", "args": {"sql": "SELECT count(*) FROM flights"}, "id": "2"}
            ],
        ),
        ToolMessage('{"rows":[[336776]]}', tool_call_id="2"),
        AIMessage("There are 336,776 flights."),
    ]
    summary = fallback_summary("", numbered(round_), language="en", budget=400, count=count)
    assert findings_in(summary) == [
        Finding("How many flights?", "There are 336,776 flights.", ids="m1-m6")
    ]
    assert [line for line in summary.splitlines() if line.startswith("## ")] == [
        f"## {heading}" for heading in HEADINGS["en"]
    ]


def test_the_fallback_adds_to_the_memory_before_it() -> None:
    history = numbered(talk(6, words=2))
    first = fallback_summary("", history[:6], language="en", budget=2_000, count=count)
    both = fallback_summary(first, history[6:], language="en", budget=2_000, count=count)
    assert [f.question.split()[1] for f in findings_in(both)] == ["0", "1", "2", "3", "4", "5"]


def test_the_fallback_fits_any_budget_and_says_what_gave_way() -> None:
    history = numbered(talk(60, words=10))
    for budget in (2_000, 600, 200, 80):
        summary = fallback_summary("", history, language="en", budget=budget, count=count)
        assert summary
        assert count(summary) <= budget
        kept = len(findings_in(summary))
        assert kept == 60 or f"- {60 - kept} earlier findings" in summary
    grown = fallback_summary(summary, history[:2], language="en", budget=80, count=count)
    # The count of what gave way is carried on.
    assert "61 earlier" in grown or "60 earlier" in grown


def test_a_budget_for_nothing_gives_nothing() -> None:
    assert fallback_summary("", numbered(talk(2)), language="en", budget=5, count=count) == ""


def test_the_language_is_the_users() -> None:
    assert language_of([HumanMessage("二月有多少航班？"), AIMessage("In English.")]) == "zh"
    assert language_of([HumanMessage("How many flights to 北京?")]) == "en"
    assert language_of([]) == "en"


def test_only_tool_results_are_clipped_for_the_summariser() -> None:
    words = "word " * 1_000
    messages = numbered([HumanMessage(words), ToolMessage(words, tool_call_id="1")])
    rendered = [render_message(number, message) for number, message in messages]
    text = summary_input("before", rendered, reason="it is empty")
    assert words in text
    assert text.count("word ") < 1_200
    assert "before" in text
    assert "it is empty" in text


def test_the_prompt_names_the_five_headings_and_may_be_replaced() -> None:
    for language in ("en", "zh"):
        assert all(
            f"## {heading}" in summary_prompt(language, words=100) for heading in HEADINGS[language]
        )
    mine = summary_prompt("en", words=100, instructions="Do it my way")
    assert mine.startswith("Do it my way\nWrite exactly these five headings")


def test_the_names_of_speakers_reach_the_summariser_and_the_summary_of_code() -> None:
    round_: list[BaseMessage] = [
        HumanMessage("How many flights?", name="Ana Lima"),
        AIMessage("28,796 flights.", name="checker"),
    ]
    assert [render_message(n, m) for n, m in numbered(round_)] == [
        "[m1] human (Ana Lima): How many flights?",
        "[m2] ai (checker): 28,796 flights.",
    ]
    summary = fallback_summary("", numbered(round_), language="en", budget=400, count=count)
    assert findings_in(summary) == [
        Finding("Ana Lima: How many flights?", "checker: 28,796 flights.", ids="m1-m2")
    ]


def test_many_questions_do_not_push_out_a_figure_that_the_user_stated() -> None:
    facts = {
        "en": "For the record, Oslo sold 12,345 lamps in June.",
        "zh": "记录一下，大连六月卖出12,345件台灯。",
    }
    questions = {
        "en": "How did delays develop in 2013? " + "note " * 40,
        "zh": "2013年的延误如何变化？" + "记录" * 40,
    }
    for language, fact in facts.items():
        summary, said = "", [HumanMessage(fact), AIMessage("Noted.")]
        for _ in range(10):
            said += [
                HumanMessage(questions[language]),
                AIMessage("They rose from 3.4 to 9.1 minutes. " * 4),
            ] * 8
            summary = fallback_summary(
                summary, numbered(said), language=language, budget=600, count=count
            )
            said = []
        assert fact in summary
        assert len(findings_in(summary)) >= 2


STATED_BY_FORM = {
    "told with a word of asking": "What we call a bounce is a second visit within the week.",
    "told with a word of asking, Chinese": "少于五户的院落合并展示，免得认出是谁。",
    "taken back like a request": "Open the report up to all wards again.",
    "a column that begins like a request": "列rel_dt空着说明货还扣着。",
    "a rule that begins like a request": "Compare with the year before whenever you show a trend.",
    "three words": "No medical jargon.",
}


@pytest.mark.parametrize("form", STATED_BY_FORM)
def test_what_the_user_states_beside_a_question_stands_as_said(form: str) -> None:
    stated = STATED_BY_FORM[form]
    messages: list[BaseMessage] = [
        HumanMessage(f"{stated} How many beds were free in May?"),
        AIMessage("", tool_calls=[{"name": "run_sql", "args": {"sql": "SELECT 1"}, "id": "1"}]),
        ToolMessage('{"rows":[[204]]}', tool_call_id="1"),
        AIMessage("204 beds were free."),
    ]
    summary = fallback_summary("", numbered(messages), language="en", budget=400, count=count)
    assert f"- User said: {stated} [m1]" in summary
    assert [finding.question for finding in findings_in(summary)] == [
        "How many beds were free in May?"
    ]


def test_a_request_of_which_nothing_came_was_an_instruction() -> None:
    rule = "Put the query below what you tell me."
    for answer, is_said in (("All right.", True), ("Here are 31,204 rows.", False)):
        messages: list[BaseMessage] = [HumanMessage(rule), AIMessage(answer)]
        summary = fallback_summary("", numbered(messages), language="en", budget=400, count=count)
        assert (f"User said: {rule}" in summary) is is_said


def test_what_the_user_said_outlasts_what_answers_found() -> None:
    said: list[BaseMessage] = []
    for place in range(40):
        said += [
            HumanMessage(f"Ward {place} is looked after by doctor number {place}. What of May?"),
            AIMessage("", tool_calls=[{"name": "run_sql", "args": {}, "id": f"{place}"}]),
            ToolMessage('{"rows":[]}', tool_call_id=f"{place}"),
            AIMessage(f"Altogether {31_204 + place} crates went to ward {place} in May."),
        ]
    summary = fallback_summary("", numbered(said), language="en", budget=900, count=count)
    stated = summary.count("- User said:")
    found = summary.count("- Found:")
    assert 0 < found < stated


def test_what_takes_a_rule_back_goes_after_the_rule() -> None:
    said: list[BaseMessage] = [HumanMessage("Leave out Mexico. How many orders in May?")]
    said += [AIMessage("12."), HumanMessage("Put Mexico back in. How many orders in May?")]
    said += [AIMessage("14.")]
    for place in range(60):
        said += [
            HumanMessage(f"Ward {place} has a doctor of its own, number {place}. What of May?"),
            AIMessage(f"{place} beds."),
        ]
    whole = fallback_summary("", numbered(said), language="en", budget=4_000, count=count)
    for budget in range(count(whole), 60, -20):
        summary = fallback_summary("", numbered(said), language="en", budget=budget, count=count)
        assert "Put Mexico back in." in summary or "Leave out Mexico." not in summary


def test_the_room_that_pins_leave_is_for_what_the_user_stated_alone() -> None:
    said: list[BaseMessage] = []
    for place in range(40):
        said += [
            HumanMessage(f"Ward {place} is looked after by doctor number {place}. What of May?"),
            AIMessage(f"{place} beds of the ward were free in May, as far as I can see."),
        ]
    stated = fallback_summary(
        "", numbered(said), language="en", budget=300, count=count, room_for_stated=300
    )
    assert 300 < count(stated) <= 600
    asked: list[BaseMessage] = [message for message in said if isinstance(message, AIMessage)]
    beside = fallback_summary(
        "", numbered(asked), language="en", budget=300, count=count, room_for_stated=300
    )
    assert count(beside) <= 300


def test_chinese_findings_stand_without_their_question_and_the_odd_one_longest() -> None:
    said: list[BaseMessage] = []
    for place in range(30):
        answer = f"第{place}周共有四十行，上端是{3_000 + place}，低于常态。"
        if place == 0:
            answer = "柳堰港的料盘存数为94,311。"
        said += [
            HumanMessage(f"第{place}周的情况如何？"),
            AIMessage("", tool_calls=[{"name": "run_sql", "args": {}, "id": f"{place}"}]),
            ToolMessage('{"rows":[]}', tool_call_id=f"{place}"),
            AIMessage(answer),
        ]
    summary = fallback_summary("", numbered(said), language="zh", budget=500, count=count)
    assert "- 得出: 柳堰港的料盘存数为94,311。 [m4]" in summary


def test_the_answer_to_an_excluded_question_is_not_told_as_the_answer_to_the_one_before() -> None:
    talk = [
        HumanMessage("How many in May?"),
        AIMessage("There are 28,796."),
        AIMessage("His badge is 4711."),
    ]
    turns = [
        (number, marked(message, turn=turn))
        for number, turn, message in zip((1, 2, 4), (1, 1, 2), talk, strict=True)
    ]
    findings = findings_in(fallback_summary("", turns, language="en", budget=400, count=count))
    assert [(finding.question, finding.answer, finding.ids) for finding in findings] == [
        ("How many in May?", "There are 28,796.", "m1-m2"),
        ("", "His badge is 4711.", "m4"),
    ]


def test_a_letter_repeated_for_ever_is_read_in_linear_time() -> None:
    # A word is looked at from its beginning only; from each letter took minutes.
    history = numbered([HumanMessage("x" * 200_000), AIMessage("ok"), HumanMessage("next")])
    began = time.process_time()
    fallback_summary("", history, language="en", budget=400, count=len)
    assert time.process_time() - began < 10


def test_a_text_is_cut_before_it_is_counted() -> None:
    sizes: list[int] = []

    def counted(text: str) -> int:
        sizes.append(len(text))
        return len(text) // 8

    text = "x" * 1_000_000
    assert "".join(pieces(text, 1_000, counted)) == text
    assert sum(sizes) < 2 * len(text)
