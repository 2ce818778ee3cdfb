"""What each voice of a team hears, and whom a message mentions."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.memory.messages.marks import marked
from longtable.memory.messages.rounds import pair_calls, split_rounds
from longtable.memory.voices import Mentions, Voice, as_heard, fold, mentions_in
from tests.memory.messages.test_rounds import assert_paired

NAMES = {"analyst": "Analyst", "checker": "Checker", "ana": "Data Analyst"}
WORDS = {
    fold(word): id_
    for id_, words in {
        "analyst": ["Analyst", "分析师"],
        "checker": ["checker"],
        "ana": ["Data Analyst"],
    }.items()
    for word in words
}


def voice(id_: str, **more: object) -> Voice:
    return Voice(id=id_, names=NAMES, words=WORDS, **more)  # type: ignore[arg-type]  # of a test's table


def said(by: str, text: str, turn: int = 1) -> AIMessage:
    return marked(
        AIMessage(text, id=f"{by}-{turn}-{len(text)}", name=NAMES[by]), voice=by, turn=turn
    )


def query(by: str, handle: str, turn: int = 1) -> list[BaseMessage]:
    result = json.dumps(
        {"columns": ["n"], "rows": [[7]], "row_count": 1, "sql": "SELECT 7 AS n", "handle": handle}
    )
    call = AIMessage(
        "",
        id=f"call-{handle}",
        tool_calls=[{"name": "run_sql", "args": {"sql": "SELECT 7 AS n"}, "id": handle}],
    )
    answer = ToolMessage(result, tool_call_id=handle, name="run_sql", id=f"result-{handle}")
    return [marked(call, voice=by, turn=turn), marked(answer, voice=by, turn=turn)]


ROUND = [
    marked(HumanMessage("How many?", id="q"), turn=1),
    *query("analyst", "r1"),
    said("analyst", "There are 7."),
]


def test_a_colleagues_answer_is_a_user_message_with_its_name_and_a_line_for_its_queries() -> None:
    question, answer = as_heard(ROUND, voice("checker"))
    assert question.text == "How many?"
    assert answer.type == "human"
    assert answer.text == "Analyst: There are 7.\n[Analyst ran r1: SELECT 7 AS n -> 1 rows (n=7)]"
    assert len(split_rounds([question, answer])) == 1


def test_its_own_calls_and_answers_stay_without_its_name() -> None:
    heard = as_heard(ROUND, voice("analyst"))
    assert [message.type for message in heard] == ["human", "ai", "tool", "ai"]
    assert [message.name for message in heard if message.type == "ai"] == [None, None]
    assert heard[-1].text == "There are 7."


def test_a_colleague_that_was_stopped_before_its_answer_is_heard_by_its_queries() -> None:
    heard = as_heard([*ROUND[:3], said("checker", "I see nothing.")], voice("checker"))
    assert [message.type for message in heard] == ["human", "human", "ai"]
    assert heard[1].text == "Analyst: [Analyst ran r1: SELECT 7 AS n -> 1 rows (n=7)]"


def test_apart_it_hears_colleagues_of_earlier_turns_alone() -> None:
    talk = [*ROUND, marked(HumanMessage("And now?", id="q2"), turn=2), said("analyst", "Now 8.", 2)]
    assert "Now 8" not in str(as_heard(talk, voice("checker", apart=2)))
    assert "There are 7" in str(as_heard(talk, voice("checker", apart=2)))
    assert "Now 8" in str(as_heard(talk, voice("checker")))


def test_it_is_shown_no_more_rounds_than_its_persona_says() -> None:
    talk = [*ROUND, marked(HumanMessage("And now?", id="q2"), turn=2), said("analyst", "Now 8.", 2)]
    assert next(message.id for message in as_heard(talk, voice("checker", rounds=1))) == "q2"


def test_what_was_said_before_there_was_a_team_is_everybodys() -> None:
    old = [HumanMessage("Hi", id="1"), AIMessage("Hello", id="2")]
    assert as_heard(old, voice("checker")) == old


@given(
    st.lists(
        st.sampled_from(
            [
                "question",
                "analyst",
                "checker",
                "query-analyst",
                "query-checker",
                "call-checker",
                "result",
            ]
        ),
        max_size=14,
    ),
    st.sampled_from(["analyst", "checker"]),
)
def test_every_history_is_heard_in_pairs_and_the_same_each_time(kinds: list[str], who: str) -> None:
    talk: list[BaseMessage] = []
    for place, kind in enumerate(kinds):
        if kind == "question":
            talk.append(marked(HumanMessage(f"question {place}", id=f"q{place}"), turn=place + 1))
        elif kind == "result":
            talk.append(
                marked(
                    ToolMessage("lost", tool_call_id="nobody", id=f"t{place}"),
                    voice="checker",
                    turn=1,
                )
            )
        elif kind.startswith(("query", "call")):
            made = query(kind.partition("-")[2], f"r{place}")
            talk += made if kind.startswith("query") else made[:1]
        else:
            talk.append(said(kind, f"words {place}"))
    before = [message.model_copy(deep=True) for message in talk]
    heard = as_heard(talk, voice(who))
    assert_paired(pair_calls(heard))
    assert heard == as_heard(talk, voice(who))
    assert talk == before
    assert [m.text for m in talk if m.type == "human"] == [
        m.text for m in heard if m.type == "human" and m.text.startswith("question")
    ]


@pytest.mark.parametrize(
    ("text", "clean", "ids", "unknown"),
    [
        ("@analyst how many?", "how many?", ["analyst"], []),
        ("请@分析师看看", "请Analyst看看", ["analyst"], []),
        ("＠ＣＨＥＣＫＥＲ，看一下", "看一下", ["checker"], []),
        (
            "ask @data analyst, then @checker",
            "ask Data Analyst, then Checker",
            ["ana", "checker"],
            [],
        ),
        ("@analyst@checker hello", "hello", ["analyst", "checker"], []),
        ("@analystx and @nobody", "@analystx and @nobody", [], ["analystx", "nobody"]),
        ("mail me at a@checker.com", "mail me at a@checker.com", [], []),
        ('`@checker` and "@checker" and “@checker” and\n> @checker', None, [], []),
        ("```\n@checker\n```", None, [], []),
        ("@", None, [], []),
        ("@checker", None, ["checker"], []),
        ("@all what do you think?", "what do you think?", list(NAMES), []),
        ("@所有人 好", "好", list(NAMES), []),
        ("so, @all of you", "so, all of you", list(NAMES), []),
        ("@checker @analyst look", "look", ["checker", "analyst"], []),
    ],
)
def test_mentions(text: str, clean: str | None, ids: list[str], unknown: list[str]) -> None:
    found = mentions_in(text, WORDS, NAMES)
    assert (list(found.ids), list(found.unknown)) == (ids, unknown)
    assert found.text == (text if clean is None else clean)


def test_a_text_without_an_at_sign_mentions_nobody() -> None:
    assert mentions_in("plain", WORDS, NAMES) == Mentions("plain")
