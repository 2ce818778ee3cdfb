"""The rules of compaction as laws over generated histories that grow call by call, each with an
example by name.
"""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from longtable.base.errors import ModelContextOverflowError
from longtable.memory import policy as presets
from longtable.memory.call_config import CallConfig
from longtable.memory.compaction.compaction import Request
from longtable.memory.compaction.gate import pairs_valid
from longtable.memory.compaction.plan import LITTLE, WORTH
from longtable.memory.messages.marks import is_recalled, marked
from longtable.memory.messages.rounds import split_rounds
from longtable.memory.pins.pins import current_pins, make_pin
from longtable.memory.policy import WINDOW
from longtable.memory.summary.summary_text import CLIP_TOOL_CHARS, HEADINGS, cited_numbers
from longtable.memory.view import CallPlan, build_view
from tests.memory.messages.test_rounds import assert_paired
from tests.support.compacting import Call, Say, Talk, call_config, sent, system_of
from tests.support.histories import histories, long_history, talk

GOOD = "## Facts and findings\n- numbers were asked for [m1-m2]\n## Constraints\n- none"


def echo(request: Request) -> str:
    return str(request[-1].text)


SAYS: dict[str, Say] = {
    "good": lambda _: GOOD,
    "raises": lambda _: RuntimeError("down"),
    "times out": lambda _: TimeoutError(),
    "empty": lambda _: "",
    "no headings": lambda _: "I had rather talk about the weather.",
    "echo": echo,
    "longer": lambda request: "## Facts and findings\n" + "- a line of nothing at all\n" * 3_000,
    "too many lines": (
        lambda request: (
            "## Facts and findings\n"
            + "".join(f"- question {n} came up [m1]\n" for n in range(3_000))
        )
    ),
    "one endless line": lambda request: (
        f"## Facts and findings\n- {'question and answer ' * 3_000} [m1]"
    ),
    "invents ids": lambda _: f"{GOOD}\n## Decisions\n- agreed on it [m999999]\n- and on this [m0]",
    "overflows": lambda _: ModelContextOverflowError("too long"),
    "json": lambda _: '{"topics": []}',
}
POLICIES: dict[str, dict[str, Any]] = {
    "rolling": {"min_messages": 0},
    "topics": {"strategy": "topics", "min_messages": 0},
    "window": {"strategy": "window", "keep_messages": 5},
    "assistant": {"memory_role": "assistant", "min_messages": 0},
    "analyst": presets.analyst().as_json(),
    "rolling_chat": presets.rolling_chat().as_json(),
    "single_history": presets.single_history().as_json(),
    "window(20)": presets.window(20).as_json(),
    "topics()": presets.topics().as_json(),
}


def talk_of(
    limit: int, kind: str, says: str | None = None, *, window: int = 4_000, **more: Any
) -> Talk:
    return Talk(
        call_config(limit, window=window if says else None, **{**POLICIES[kind], **more}),
        say=SAYS[says] if says else None,
    )


def most_of(call: Call, limits: CallConfig) -> int:
    """Return the threshold; where what must stay leaves next to nothing below it, a tenth of the
    limit more than that.
    """
    fixed = replace(CallPlan(call.thread, limits).memory, text="", ledger="", count=0).render()
    question = [message for message in call.view.messages if message.type == "human"][-1]
    must_stay = sent(
        [SystemMessage("\n\n".join(filter(None, [limits.system, fixed]))), question], limits
    )
    return (
        limits.threshold_tokens
        if must_stay <= 0.57 / 0.6 * limits.threshold_tokens
        else must_stay + limits.threshold_tokens // 6
    )


def waiting_tokens(call: Call, limits: CallConfig) -> int:
    """Return the tokens of old rounds that wait for a compaction, also of those that are left out
    because they do not fit; none waits in a window.
    """
    if limits.policy.strategy == WINDOW:
        return 0
    old = split_rounds(CallPlan(call.thread, limits).messages)[:-1]
    return sum(limits.counter.message(message) for round_ in old for message in round_)


def check(call: Call, limits: CallConfig) -> None:
    """Assert all that holds of every call, whatever was said before it."""
    view, thread = call.view, call.thread
    total = sent(view.messages, limits)
    assert view.parts.total == total
    assert total <= limits.hard_tokens
    waiting = waiting_tokens(call, limits)
    assert total - waiting <= most_of(call, limits)
    if call.compacted or sum(message.type == "human" for message in thread.uncompacted) == 1:
        little = max(LITTLE, WORTH * limits.threshold_tokens)
        assert total - (waiting if waiting < little else 0) <= most_of(call, limits)
    assert_paired(view.messages[1:])
    assert pairs_valid(view.messages)
    newest = [message for message in thread.messages if message.type == "human"][-1]
    assert newest in view.messages
    assert build_view(CallPlan(thread, limits)).messages == view.messages
    shown = {message.id for message in view.messages}
    kept = {message.id for message in CallPlan(thread, limits).messages}
    assert view.left_out == len(kept - shown)
    assert not view.left_out or f"{view.left_out} messages" in system_of(view.messages)


# -- 1, 2: never over, pairs -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", POLICIES)
@settings(max_examples=6)
@given(
    history=histories(most_rounds=10, recalls=True),
    limit=st.sampled_from([900, 2_500, 9_000]),
    says=st.sampled_from([None, *SAYS]),
)
def test_every_call_of_a_growing_thread_fits_and_is_paired(
    kind: str, history: list[BaseMessage], limit: int, says: str | None
) -> None:
    talking = talk_of(limit, kind, says)
    for call in talking.hear(history):
        check(call, talking.call_config)


@pytest.mark.parametrize(
    ("kind", "says"),
    # A window asks no summariser.
    [(kind, None) for kind in POLICIES]
    + [(kind, says) for kind in POLICIES if "window" not in kind for says in ("good", "longer")],
)
def test_a_long_mixed_thread_never_goes_over(kind: str, says: str | None) -> None:
    talking = talk_of(6_000, kind, says)
    for call in talking.hear(long_history(120)):
        check(call, talking.call_config)
    assert talking.outcomes or talking.call_config.policy.strategy == "window"


def test_a_thousand_messages_never_go_over_and_all_are_covered() -> None:
    history = long_history(1_000)
    talking = talk_of(16_000, "analyst")
    calls = list(talking.hear(history))
    for call in calls[:: len(calls) // 40]:
        check(call, talking.call_config)
    check(calls[-1], talking.call_config)
    assert list(talking.thread.messages) == history
    assert len(talking.thread.compactions) >= 5


def test_a_window_stays_under_the_threshold_too() -> None:
    """No fold will ever take what a window holds: it has no reason to go past the threshold."""
    talking = talk_of(2_000, "window(20)")
    for call in talking.hear(talk(30, words=60)):
        assert sent(call.view.messages, talking.call_config) <= talking.call_config.threshold_tokens


@pytest.mark.parametrize("factor", [1.0, 1.4, 2.5])
def test_a_provider_that_counts_more_is_not_sent_too_much_either(factor: float) -> None:
    talking = Talk(replace(call_config(6_000, min_messages=0), factor=factor))
    for call in talking.hear(long_history(60)):
        check(call, talking.call_config)
        assert sent(call.view.messages, talking.call_config) * factor <= 6_000


@pytest.mark.parametrize("system", [0.3, 0.45, 0.55])
def test_a_large_system_prompt_leaves_compactions_that_pass(system: float) -> None:
    """The rounds are folded, not left out unseen, also where prompt and tools take most of the
    threshold.
    """
    limits = call_config(8_000, tools=int(8_000 * system), min_messages=0)
    talking = Talk(limits)
    for call in talking.hear(talk(60, words=20)):
        check(call, limits)
        assert call.view.left_out == 0
    assert talking.thread.compactions
    assert all(outcome.record for outcome in talking.outcomes)


# -- 3: nothing lost -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rolling", "topics", "window"])
@settings(max_examples=8)
@given(history=histories(recalls=True), says=st.sampled_from([None, "good"]))
def test_no_compaction_changes_a_byte_and_all_is_compacted_or_shown(
    kind: str, history: list[BaseMessage], says: str | None
) -> None:
    before = [message.model_dump_json() for message in history]
    talking = talk_of(2_500, kind, says)
    for _ in talking.hear(history):
        pass
    thread = talking.thread
    assert [message.model_dump_json() for message in history] == before
    heard = {message.id for message in thread.messages}
    assert [message.id for message in thread.messages] == [
        message.id for message in history if message.id in heard
    ]
    record, start = thread.live
    assert [message.id for message in thread.uncompacted] == [
        message.id for message in thread.messages[start:]
    ]
    assert (
        start == (record["count"] if record else 0) == sum(each["folded"] for each in thread.chain)
    )
    ends = [0, *(each["count"] for each in thread.chain)]
    assert all(
        thread.messages[end - 1].id == each["to_id"]
        for end, each in zip(ends[1:], thread.chain, strict=True)
    )
    assert json.loads(json.dumps(thread.compactions)) == list(thread.compactions)


# -- 4: nothing dropped unseen ---------------------------------------------------------------------


def read_of(requests: list[Request]) -> str:
    """Return what a summariser was shown of the messages, the pieces of a long one joined again."""
    shown = "".join(
        f"\n{str(request[-1].text).partition('<messages>')[2].rpartition('</messages>')[0].strip(chr(10))}"
        for request in requests
    )
    return re.sub(r"\n\[m\d+\] \(part \d+ of \d+\) ", "", shown)


def as_shown(text: str) -> str:
    return re.sub(r"<(?=/?(?:memory|messages))", "‹", text)


@pytest.mark.parametrize("window", [1_500, 4_000, 100_000])
@settings(max_examples=8)
@given(history=histories(most_rounds=8, recalls=True))
def test_the_summariser_is_shown_every_word_or_the_record_says_what_not(
    window: int, history: list[BaseMessage]
) -> None:
    talking = talk_of(2_500, "rolling", "good", window=window, rebuild_every=0)
    for _ in talking.hear(history):
        pass
    for job, requests, outcome in zip(talking.jobs, talking.asked, talking.outcomes, strict=True):
        if outcome.record is None or outcome.record["method"] != "model":
            continue
        read, clip = read_of(requests), CLIP_TOOL_CHARS
        for _, message in job.compacted:
            if is_recalled(message):
                continue
            text = str(message.text)
            wanted = as_shown(text[:clip] if message.type == "tool" else text).strip("\n")
            assert wanted.strip() in read  # white space beside an image is no word
        assert 0 < outcome.record["coverage"] <= 1
        clipped = any(
            message.type == "tool" and len(message.text) > clip for _, message in job.reads
        )
        assert (
            bool(outcome.record["coverage_note"]) == clipped
            or "image" in outcome.record["coverage_note"]
        )
        assert outcome.record["coverage"] == 1 or outcome.record["coverage_note"]


@pytest.mark.parametrize("kind", ["rolling", "topics"])
def test_the_coverage_is_under_one_where_results_were_clipped(kind: str) -> None:
    history = talk(12, words=60)
    call = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}], id="c")
    history[1:1] = [call, ToolMessage("row of data " * 400, tool_call_id="1", id="r")]
    talking = talk_of(3_000, kind, "good")
    for _ in talking.hear(history):
        pass
    record = talking.thread.compactions[0]
    assert record["coverage"] < 1
    assert record["coverage_note"]


@pytest.mark.parametrize(
    "long",
    [
        " ".join(f"word{n}" for n in range(4_000)),
        "".join(f"第{n}条航班数据。" for n in range(3_000)),
        " " * 30_000 + "𓀀𓁐𓂀" * 1_500,
        "QUJD" * 9_000,
    ],
    ids=["words", "chinese", "dense at the end", "base64"],
)
def test_a_message_longer_than_the_summarisers_window_reaches_it_whole(long: str) -> None:
    """In parts, each within the window, no word cut in two, also where the parts differ in
    density.
    """
    window = 3_000
    talking = talk_of(100_000, "rolling", "good", window=window)
    for message in [HumanMessage(long, id="long"), AIMessage("noted", id="noted"), *talk(8)]:
        talking.add(message)
    outcome = talking.compact("asked")
    assert outcome is not None
    assert outcome.record is not None
    assert outcome.record["method"] == "model"
    assert outcome.record["coverage"] == 1
    [requests] = talking.asked
    assert len(requests) > 2
    assert as_shown(long).strip("\n") in read_of(requests)
    count = talking.call_config.counter
    assert max(count.messages(request) for request in requests) <= window
    if long.startswith("word"):
        words = {word for request in requests for word in str(request[-1].text).split()}
        assert words >= set(long.split())


def test_a_memory_that_grows_between_the_parts_is_cut_before_it_fills_the_window() -> None:
    window = 3_000
    say: Say = lambda _: (  # noqa: E731  # a fake beside its use
        "## Facts and findings\n" + "".join(f"- word{n} came up [m1]\n" for n in range(1_000))
    )
    talking = Talk(call_config(100_000, window=window), say=say)
    for message in [
        HumanMessage(" ".join(f"word{n}" for n in range(4_000)), id="long"),
        AIMessage("noted", id="noted"),
        *talk(8),
    ]:
        talking.add(message)
    outcome = talking.compact("asked")
    assert outcome is not None
    assert outcome.record is not None
    assert outcome.record["method"] == "model"
    assert outcome.reasons == []
    assert len(talking.asked[0]) > 2
    assert (
        max(talking.call_config.counter.messages(request) for request in talking.asked[0]) <= window
    )


def test_what_a_summariser_cannot_read_is_named() -> None:
    """Images are not shown to the summariser: their place is, and the record says so."""
    image: list[str | dict[str, Any]] = [
        {"type": "text", "text": "what is in this picture?"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ]
    talking = talk_of(100_000, "rolling", "good", window=20_000)
    for message in [HumanMessage(content=image, id="i"), AIMessage("a cat", id="cat"), *talk(8)]:
        talking.add(message)
    outcome = talking.compact("asked")
    assert outcome is not None
    assert outcome.record is not None
    assert "image" in outcome.record["coverage_note"]
    assert "[image" in read_of(talking.asked[0])


# -- 5: one gate -----------------------------------------------------------------------------------

RULE = "From now on report all distances in kilometres."


@pytest.mark.parametrize("kind", ["rolling", "topics"])
@pytest.mark.parametrize("says", SAYS)
def test_whatever_the_summariser_does_a_lawful_memory_stands_in_the_end(
    kind: str, says: str
) -> None:
    talking = talk_of(3_000, kind, says)
    for call in talking.hear(
        [HumanMessage(RULE, id="rule"), AIMessage("noted", id="noted"), *talk(30, words=60)]
    ):
        check(call, talking.call_config)
    assert len(talking.outcomes) >= 3
    for outcome in talking.outcomes:
        assert outcome.record is not None
        assert outcome.record["tokens_after"] < outcome.record["tokens_before"]
        assert max(cited_numbers(outcome.record["summary"]), default=0) <= outcome.record["count"]
    assert RULE in system_of(build_view(CallPlan(talking.thread, talking.call_config)).messages)


@pytest.mark.parametrize(
    ("says", "codes", "asked", "method"),
    [
        ("good", [], 1, "model"),
        ("invents ids", [], 1, "model"),
        ("raises", ["summariser_failed"], 1, "fallback"),
        ("times out", ["summariser_failed"], 1, "fallback"),
        ("empty", ["empty", "empty"], 2, "fallback"),
        ("no headings", ["empty", "empty"], 2, "fallback"),
        ("echo", ["empty", "empty"], 2, "fallback"),
        ("longer", ["empty", "empty"], 2, "fallback"),
        ("too many lines", [], 1, "model"),
        ("one endless line", ["too_long", "no_gain", "over_threshold"] * 2, 2, "fallback"),
        ("overflows", ["summariser_failed"] * 4, 4, "fallback"),
    ],
)
def test_the_reasons_say_what_happened_on_the_way(
    says: str, codes: list[str], asked: int, method: str
) -> None:
    talking = talk_of(3_000, "rolling", says)
    for _ in talking.hear(talk(30, words=60)):
        if talking.outcomes:
            break
    [outcome] = talking.outcomes
    assert outcome.record is not None
    assert outcome.record["method"] == method
    found = [reason["code"] for reason in outcome.reasons]
    assert found[: len(codes)] == codes
    assert len(talking.asked[0]) == asked


@pytest.mark.parametrize(
    "rule",
    [
        "Always close with the tag </memory>, never with <messages>.",
        "Never   use\n<Memory>\ttags.",
        "Always use “< memory >” alone.",
    ],
)
def test_a_rule_that_holds_the_blocks_own_tags_does_not_stop_every_compaction(rule: str) -> None:
    talking = talk_of(3_000, "rolling", "good")
    for call in talking.hear(
        [HumanMessage(rule, id="rule"), AIMessage("noted", id="noted"), *talk(30, words=60)]
    ):
        check(call, talking.call_config)
    assert talking.thread.compactions
    assert all(outcome.record for outcome in talking.outcomes)
    assert current_pins(talking.thread.pins)


@settings(max_examples=12)
@given(
    history=histories(recalls=True),
    kind=st.sampled_from(["rolling", "topics"]),
    says=st.sampled_from([None, *SAYS]),
)
def test_no_compaction_that_has_room_for_a_text_is_ever_given_up(
    history: list[BaseMessage], kind: str, says: str | None
) -> None:
    """The fallback passes the gate wherever there is room for some lines: beside a newest round
    that fills the threshold there is none.
    """
    talking = talk_of(4_000, kind, says)
    for _ in talking.hear(history):
        pass
    for job, outcome in zip(talking.jobs, talking.outcomes, strict=True):
        assert outcome.record or job.budget < 100, outcome.reasons


# -- 6: exactly once -------------------------------------------------------------------------------


@settings(max_examples=8)
@given(history=histories(recalls=True))
def test_two_runs_over_the_same_words_make_the_same_compactions(history: list[BaseMessage]) -> None:
    one, two = (talk_of(2_500, "rolling", "good") for _ in range(2))
    for talking in (one, two):
        for _ in talking.hear(history):
            pass
    assert [job.id for job in one.jobs] == [job.id for job in two.jobs]
    assert one.thread.compactions == two.thread.compactions
    ids = [record["id"] for record in one.thread.compactions]
    assert len(set(ids)) == len(ids)


def test_a_compaction_has_another_identity_where_anything_it_reads_differs() -> None:
    history = talk(12, words=60)
    edited = [*history]
    edited[1] = AIMessage("another answer", id=history[1].id)
    changes: list[dict[str, Any]] = [{}, {"strategy": "topics"}, {}]
    jobs = []
    for messages, more in [(edited, changes[0]), *((history, change) for change in changes)]:
        talking = talk_of(3_000, "rolling", None, **more)
        for message in messages:
            talking.add(message)
        talking.compact("asked")
        jobs.append(talking.jobs[0].id)
    assert jobs[1] == jobs[-1]
    assert len(set(jobs)) == 3


# -- 7: incremental, from the originals every k-th time --------------------------------------------


@pytest.mark.parametrize("every", [0, 2, 5])
def test_every_kth_memory_is_made_from_the_originals_and_the_others_continue(every: int) -> None:
    talking = talk_of(3_000, "rolling", "good", window=200_000, rebuild_every=every)
    for _ in talking.hear(talk(80, words=60)):
        pass
    assert len(talking.jobs) > max(every, 3)
    for number, (job, requests) in enumerate(zip(talking.jobs, talking.asked, strict=True), 1):
        read = str(requests[0][-1].text)
        rebuilt = bool(every) and number % every == 0
        assert job.rebuilt == rebuilt
        assert ("[m1] human" in read) == (rebuilt or number == 1)
        assert ("numbers were asked for" in read.partition("<messages>")[0]) == (
            not rebuilt and number > 1
        )


def test_an_error_of_the_summariser_is_healed_from_the_originals() -> None:
    """Told by one fold, a mistake is handed on only until the memory is made from the originals
    again.
    """

    def drifting(request: Request) -> str:
        text = str(request[-1].text)
        said = (
            "the user is called Mallory [m1]"
            if "Mallory" in text or len(talking.asked) == 1
            else "the user is called Alice [m1]"
        )
        return f"## Facts and findings\n- {said}"

    talking = Talk(call_config(3_000, window=200_000, min_messages=0), say=drifting)
    for _ in talking.hear(
        [
            HumanMessage("I am called Alice.", id="alice"),
            AIMessage("hello", id="hello"),
            *talk(80, words=60),
        ]
    ):
        pass
    told = ["Mallory" in record["summary"] for record in talking.thread.compactions]
    assert told[:4] == [True] * 4
    assert not any(told[4:])


# -- 8: pins ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "says"),
    [(kind, says) for kind in ("rolling", "topics") for says in (None, "good", "longer")]
    + [(kind, "good") for kind in ("rolling_chat", "single_history", "topics()")],
)
def test_a_rule_stands_word_for_word_in_every_view_from_then_on(
    kind: str, says: str | None
) -> None:
    talking = talk_of(3_000, kind, says)
    for call in talking.hear(
        [HumanMessage(RULE, id="rule"), AIMessage("noted", id="noted"), *talk(40, words=60)]
    ):
        assert any(RULE in message.text for message in call.view.messages)
    assert len(talking.thread.compactions) >= 3


@pytest.mark.parametrize("says", ["good", None])
def test_the_later_rule_on_a_matter_stands_below_the_earlier_and_replaces_it_where_the_summariser_says_so(
    says: str | None,
) -> None:
    later = "From now on report all distances in miles."
    history = [
        HumanMessage(RULE, id="r1"),
        AIMessage("ok", id="o1"),
        *talk(10, words=60),
        HumanMessage(later, id="r2"),
        AIMessage("ok", id="o2"),
    ]
    more = [
        message.model_copy(update={"id": f"more-{message.id}"}) for message in talk(20, words=60)
    ]
    quoting = (
        f'{GOOD}\n## Pins\n- "{later}" replaces {make_pin(RULE, HumanMessage(RULE, id="r1")).id}'
    )
    talking = (
        talk_of(3_000, "rolling", says)
        if says is None
        else Talk(call_config(3_000, window=100_000), say=lambda _: quoting)
    )
    for _ in talking.hear([marked(message, turn=i) for i, message in enumerate([*history, *more])]):
        pass
    shown = system_of(build_view(CallPlan(talking.thread, talking.call_config)).messages)
    assert {RULE, later} <= {pin.text for pin in talking.thread.pins}
    assert later in shown
    if says is None:
        assert 0 < shown.index(RULE) < shown.index(later)
    else:
        assert RULE not in shown
        assert next(pin.ended for pin in talking.thread.pins if pin.text == RULE) == later


# -- 9: the text -----------------------------------------------------------------------------------


@settings(max_examples=20)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                [
                    "## Facts and findings",
                    "**Constraints**",
                    "## 决定",
                    "- x [m3]",
                    "[m1-m400]",
                    "[m0]",
                    "- y [m2, m7–m9]",
                    "</memory>",
                ]
            ),
            st.text(max_size=30),
        ),
        max_size=25,
    ),
    st.sampled_from(["", "今天有多少航班？"]),
)
def test_an_accepted_summary_has_five_headings_and_no_unknown_citation(
    lines: list[str], asked: str
) -> None:
    talking = Talk(
        call_config(3_000, window=100_000, min_messages=0), say=lambda _: "\n".join(lines)
    )
    history = talk(12, words=0 if asked else 60)
    for message in history:
        talking.add(
            message.model_copy(update={"content": asked * 12})
            if asked and message.type == "human"
            else message
        )
    outcome = talking.compact("asked")
    assert outcome is not None
    assert outcome.record is not None
    text = outcome.record["summary"]
    headings = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert headings == list(HEADINGS["zh" if asked else "en"])
    assert all(1 <= number <= outcome.record["count"] for number in cited_numbers(text))
    told = system_of(build_view(CallPlan(talking.thread, talking.call_config)).messages)
    assert told.count("</memory>") == 1
    assert ("不是指令" if asked else "not instructions") in told


# -- 11: undo --------------------------------------------------------------------------------------


@settings(max_examples=8)
@given(history=histories(), kind=st.sampled_from(["rolling", "topics"]))
def test_undoing_each_compaction_restores_each_earlier_view(
    history: list[BaseMessage], kind: str
) -> None:
    talking = talk_of(2_500, kind)
    for _ in talking.hear(history):
        pass
    thread = talking.thread
    while (record := thread.live[0]) is not None:
        before = replace(
            thread, compactions=[each for each in thread.compactions if each["id"] != record["id"]]
        )
        undone = replace(
            thread,
            edits=[
                *thread.edits,
                {"id": f"undo-{record['id']}", "op": "undo", "record": record["id"]},
            ],
        )
        assert (
            build_view(CallPlan(undone, talking.call_config)).messages
            == build_view(CallPlan(before, talking.call_config)).messages
        )
        assert undone.pins == before.pins
        thread = undone
    assert thread.live == (None, 0)
