"""Generated histories: parallel calls, interrupted calls, orphans, huge results, empty answers,
Chinese, emoji, images.
"""

import random

from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    InvalidToolCall,
    ToolCall,
    ToolMessage,
)

from longtable.memory.messages.marks import RECALLED, STEERED, marked

TEXTS = st.one_of(
    st.sampled_from(
        [
            "How many flights left in May?",
            "二月有多少航班？每个航空公司的平均延误是多少？",
            "🛫🛬 <|endoftext|> \x00 naïve",
            "SELECT carrier, avg(dep_delay) FROM flights GROUP BY carrier",
            "aGVsbG8gd29ybGQ=" * 20,
            "always use kilometres",
            "从现在开始只看 JFK 出发的航班。",
            "Always close with the tag </memory>, never with <messages>.",
            "```python\nfor row in rows:\n    print(row)\n```",
            "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUg" * 12,
            "👨‍👩‍👧‍👦" * 40,
            " ",
        ]
    ),
    st.text(max_size=60),
    st.integers(min_value=1, max_value=300).map(lambda n: "word " * n),
)
RESULTS = st.one_of(
    TEXTS, st.integers(min_value=1, max_value=3_000).map(lambda n: '{"rows":[[1,2]]} ' * n)
)
IMAGE: dict[str, object] = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}


@st.composite
def rounds(draw: st.DrawFn, number: int, recalls: bool = False) -> list[BaseMessage]:
    """Draw one round; ids are unique in the history. `recalls`: some results only repeat earlier
    messages, some messages join the turn.
    """
    question = draw(TEXTS)
    content: str | list[str | dict[str, object]] = (
        [{"type": "text", "text": question}, IMAGE] if draw(st.integers(0, 9)) == 0 else question
    )
    messages: list[BaseMessage] = [HumanMessage(content=content, id=f"h{number}")]
    for step in range(draw(st.integers(0, 3))):
        messages += draw(_calls(f"{number}-{step}", recalls))
        if recalls and draw(st.integers(0, 5)) == 0:
            messages.append(marked(HumanMessage(draw(TEXTS), id=f"s{number}-{step}"), kind=STEERED))
    if draw(st.integers(0, 14)) == 0:
        messages.append(AIMessage("", id=f"e{number}"))
    if draw(st.booleans()):
        messages.append(AIMessage(draw(TEXTS), id=f"a{number}"))
    return [marked(message, turn=number + 1) for message in messages]


@st.composite
def _calls(draw: st.DrawFn, place: str, recalls: bool) -> list[BaseMessage]:
    # "call_0" in each answer, as some servers number them
    ids = [f"call_{i}" for i in range(draw(st.integers(1, 3)))]
    malformed = draw(st.integers(0, 9)) == 0
    answer = AIMessage(
        draw(st.sampled_from(["", "let me look"])),
        tool_calls=[
            ToolCall(name="run_sql", args={"sql": draw(TEXTS)}, id=i, type="tool_call")
            for i in ids[malformed:]
        ],
        invalid_tool_calls=[
            InvalidToolCall(
                name="run_sql", args='{"sql": ', id=i, error="no", type="invalid_tool_call"
            )
            for i in ids[:malformed]
        ],
        id=f"c{place}",
    )
    answered = draw(st.lists(st.sampled_from([*ids, "orphan"]), max_size=4))
    results = [
        ToolMessage(draw(RESULTS), tool_call_id=i, id=f"t{place}-{n}", name="run_sql")
        for n, i in enumerate(answered)
    ]
    recalled = recalls and draw(st.integers(0, 9)) == 0
    return [answer, *(marked(result, kind=RECALLED) if recalled else result for result in results)]


@st.composite
def histories(
    draw: st.DrawFn, *, most_rounds: int = 14, recalls: bool = False
) -> list[BaseMessage]:
    """Draw a history of whole rounds."""
    return [
        message
        for number in range(draw(st.integers(1, most_rounds)))
        for message in draw(rounds(number, recalls))
    ]


def talk(rounds: int, *, words: int = 40) -> list[BaseMessage]:
    """Return a plain history of this many rounds, each a question and an answer of `words`
    words.
    """
    return [
        message
        for n in range(rounds)
        for message in (
            HumanMessage(f"question {n} " + "q " * words, id=f"h{n}"),
            AIMessage(f"answer {n} is {n * 7} " + "a " * words, id=f"a{n}"),
        )
    ]


def long_history(messages: int, *, seed: int = 0) -> list[BaseMessage]:
    """Return a mixed history of at least this many messages, cheap to make: questions, parallel
    queries, rules, two scripts.
    """
    chance = random.Random(seed)
    history: list[BaseMessage] = []
    number = 0
    while len(history) < messages:
        asked = chance.choice(
            [
                f"How many flights in week {number}?",
                f"第 {number} 周有多少航班？",
                f"Round {number} all delays to {number % 4} decimals.",
            ]
        )
        round_: list[BaseMessage] = [HumanMessage(asked, id=f"h{number}")]
        calls = [
            ToolCall(
                name="run_sql",
                args={"sql": f"SELECT count(*) FROM flights WHERE week = {number + i}"},
                id=f"call_{i}",
                type="tool_call",
            )
            for i in range(chance.choice([0, 0, 1, 3]))
        ]
        if calls:
            round_.append(AIMessage("", tool_calls=calls, id=f"c{number}"))
            round_ += [
                ToolMessage(
                    "[1, 2] " * chance.choice([3, 30, 300]),
                    tool_call_id=str(each["id"]),
                    name="run_sql",
                    id=f"t{number}-{i}",
                )
                for i, each in enumerate(calls)
            ]
        round_.append(
            AIMessage(f"answer {number}: " + "so many " * chance.randrange(1, 60), id=f"a{number}")
        )
        history += [marked(message, turn=number + 1) for message in round_]
        number += 1
    return history
