"""Faults measured in other implementations of compaction, each as a situation that ours must stand.
The numbers are theirs in the notes.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import ContextTooLargeError
from longtable.graph import CompactionPolicy, Conversation, build_graph
from longtable.memory import policy as presets
from longtable.memory.compaction.compaction import Request
from longtable.memory.compaction.plan import WORTH
from longtable.memory.counting.tokenizers import estimate, load_encoding
from longtable.memory.counting.tokens import counter
from longtable.memory.messages.rounds import INTERRUPTED
from longtable.memory.summary.summary_text import findings_in
from longtable.memory.thread import Thread
from longtable.memory.view import CallPlan, build_view
from tests.memory.messages.test_rounds import assert_paired
from tests.support.compacting import Talk, call_config, sent, system_of
from tests.support.histories import talk as plain_talk
from tests.support.models import ScriptedModel, call, script
from tests.support.threads import (
    CONTEXT,
    GOOD,
    LIMIT,
    Hopeless,
    of_type,
    summariser,
    talk,
    talker,
    thread,
    values_of,
)

OURS = counter("o200k_base")


def put(conversation: Conversation, messages: Sequence[BaseMessage]) -> None:
    """Write messages into a thread as they would stand there after older runs."""
    conversation.graph.update_state(
        conversation.config, {"messages": list(messages)}, as_node="prepare"
    )


def filer(request: Request) -> str:
    """Answer as a summariser of the strategy `topics` that files each request's messages under one
    section.
    """
    numbers = [
        int(number) for number in re.findall(r"^\[m(\d+)\]", str(request[-1].text), re.MULTILINE)
    ]
    if not numbers:
        return '{"topic": null, "summary": ""}'
    section = {"title": "Gates", "sources": numbers, "body": "Facts about gates."}
    return json.dumps(
        {"topics": [{"title": "Gates", "summary": "gates and seats", "sections": [section]}]}
    )


def numbered_facts(count: int) -> list[BaseMessage]:
    """Return rounds of some 140 tokens that each state one fact."""
    return [
        message
        for n in range(count)
        for message in (
            HumanMessage(
                f"Fact FACT-{n:03d}: gate {n} holds {n * 31} seats. " + "and so on " * 30,
                id=f"h{n}",
            ),
            AIMessage(f"Noted {n}. " + "well then " * 30, id=f"a{n}"),
        )
    ]


# -- 1 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["rolling", "topics"])
def test_01_all_of_290_early_facts_are_shown_to_the_summariser(strategy: str) -> None:
    """SummarizationMiddleware shows its summariser the last 4,071 of 40,490 tokens: 29 of 290
    facts; the originals are deleted.
    """
    talking = Talk(
        call_config(40_000, window=12_000, strategy=strategy),
        say=filer if strategy == "topics" else lambda _: GOOD,
    )
    history = [*numbered_facts(290), *plain_talk(6)]
    for message in history:
        talking.add(message)
    assert sent(history, talking.call_config) > 40_000
    outcome = talking.compact("asked")
    assert outcome is not None
    assert outcome.record is not None
    read = " ".join(str(request[-1].text) for request in talking.asked[0])
    assert {f"FACT-{n:03d}" for n in range(290)} <= set(re.findall(r"FACT-\d{3}", read))
    assert outcome.record["coverage"] == 1
    assert list(talking.thread.messages) == history


# -- 2 ---------------------------------------------------------------------------------------------


def test_02_a_long_tool_loop_behind_one_question_still_reaches_the_model() -> None:
    """There: the placeholder "Previous conversation was too long to summarize.", and the model is
    never called.
    """

    @tool
    def dump(n: int) -> str:
        """Return much."""
        return f"dump {n}: " + "data " * 700

    model = script(*[call("dump", f"c{n}", n=n) for n in range(9)], "done")
    conversation = thread(model, tools=[dump], summarizer=summariser())
    answer = conversation.ask("Look at everything, one by one.")
    assert (answer.status, answer.text) == ("answered", "done")
    assert len(model.sent) == 10
    for request in model.sent:
        assert any(message.text == "Look at everything, one by one." for message in request)
        assert OURS.messages(request) <= 0.6 * LIMIT


# -- 3 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["rolling", "topics", "window"])
def test_03_parallel_results_that_came_mixed_leave_no_orphan(strategy: str) -> None:
    """There (langchain #38352, langmem too) a cut between parallel results keeps an answer without
    its call.
    """
    history: list[BaseMessage] = []
    for n in range(12):
        calls: list[Any] = [{"name": "f", "args": {"i": i}, "id": f"{n}-{i}"} for i in range(4)]
        answers = [
            ToolMessage(f"result {i} " + "x " * 60, tool_call_id=f"{n}-{i}", id=f"t{n}-{i}")
            for i in (2, 0, 3, 1)
        ]
        history += [
            HumanMessage(f"question {n}", id=f"h{n}"),
            AIMessage("", tool_calls=calls, id=f"c{n}"),
            *answers,
        ]
        history += [AIMessage(f"answer {n}", id=f"a{n}")]
    more = {"keep_messages": 7} if strategy == "window" else {"min_messages": 0}
    talking = Talk(call_config(2_500, strategy=strategy, **more))
    for made in talking.hear(history):
        assert_paired(made.view.messages[1:])
    assert talking.thread.compactions or strategy == "window"


# -- 4, 5, 15 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " \n ", "## Facts and findings", "<summary></summary>"])
def test_04_an_empty_summary_is_never_a_memory(text: str) -> None:
    conversation = thread(summarizer=summariser(lambda _: AIMessage(text)))
    events = talk(conversation, 12)
    assert of_type(events, "context_compressed")
    for record in values_of(conversation)["compactions"]:
        assert record["method"] == "fallback"
        assert findings_in(record["summary"])


def test_05_a_summary_longer_than_what_it_replaces_is_cut_to_its_budget() -> None:
    """There 1,032 tokens grew to 25,274."""
    long = "## Facts and findings\n" + "\n".join(f"- detail {n} of no matter" for n in range(4_000))
    conversation = thread(summarizer=summariser(lambda _: AIMessage(long)))
    folds = of_type(talk(conversation, 20), "context_compressed")
    assert folds
    assert all(fold["compressed_tokens"] < fold["original_tokens"] for fold in folds)
    assert all(
        record["summary_tokens"] < record["folded_tokens"]
        for record in values_of(conversation)["compactions"][:1]
    )


def test_15_no_compaction_ever_doubles_a_context() -> None:
    """gemini-cli #5432 "compressed" 737,820 to 1,475,805 tokens; here the same in small: a
    summariser that says all twice.
    """

    def twice(request: Sequence[BaseMessage]) -> AIMessage:
        return AIMessage(f"## Facts and findings\n- {request[-1].text}\n- {request[-1].text}")

    conversation = thread(summarizer=summariser(twice))
    folds = of_type(talk(conversation, 20), "context_compressed")
    assert folds
    assert all(fold["compressed_tokens"] < fold["original_tokens"] for fold in folds)


# -- 6, 11 -----------------------------------------------------------------------------------------


def test_06_a_tail_that_is_over_the_trigger_alone_asks_no_summary_every_turn() -> None:
    """There the kept tail alone is over the trigger: a summariser's call each turn. Here system
    prompt and tools are.
    """
    talking = Talk(
        call_config(6_000, tools=3_300, window=100_000, min_messages=0), say=lambda _: GOOD
    )
    turns = 60
    for made in talking.hear(plain_talk(turns, words=8)):
        assert made.view.parts.total <= talking.call_config.hard_tokens
    assert sum(map(len, talking.asked)) <= turns / 5


def test_06_a_tail_over_the_policys_own_trigger_waits_for_new_messages() -> None:
    """What the last fold left standing is not new: four messages over 3,500 tokens fold every
    second turn, not every turn.
    """
    talking = Talk(replace(call_config(100_000), policy=presets.rolling_chat()))
    for _ in talking.hear(plain_talk(30, words=1_200)):
        pass
    lengths = [record["length"] for record in talking.thread.compactions]
    assert len(lengths) >= 5
    assert all(later - earlier >= 4 for earlier, later in pairwise(lengths))


def test_06_one_large_result_asks_one_summary_and_not_one_at_each_call() -> None:
    talking = Talk(call_config(6_000, window=100_000, min_messages=0), say=lambda _: GOOD)
    loop: list[BaseMessage] = [HumanMessage("look closely", id="q")]
    for n in range(20):
        loop.append(AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": str(n)}], id=f"c{n}"))
        loop.append(ToolMessage("row " * 3_000, tool_call_id=str(n), id=f"t{n}"))
    for made in talking.hear([*plain_talk(5), *loop]):
        assert made.view.parts.total <= talking.call_config.threshold_tokens
    assert sum(map(len, talking.asked)) == 1


@pytest.mark.parametrize("reported", [0, None])
def test_11_compaction_never_runs_in_a_circle(reported: int | None) -> None:
    """opencode #37871 compacted 104 times on a reported total of 0; codex #31351 without end."""

    def say(request: Sequence[BaseMessage]) -> AIMessage:
        usage: Any = (
            None
            if reported is None
            else {"input_tokens": reported, "output_tokens": 0, "total_tokens": reported}
        )
        return AIMessage("an answer " + "a " * 80, usage_metadata=usage)

    model = ScriptedModel(say=say)
    summarizer = summariser(lambda _: AIMessage(""))  # a fold that fails is where circles begin
    policy = CompactionPolicy(strategy="hopeless")
    conversation = thread(model, summarizer=summarizer, policy=policy, hooks=[Hopeless()])
    turns = 20
    events = talk(conversation, turns)
    tried = len(of_type(events, "context_compressed")) + len(
        of_type(events, "context_compaction_skipped")
    )
    spoken = OURS.messages(conversation.history())
    assert 1 <= tried <= 1 + spoken / (WORTH * 0.6 * LIMIT)
    assert len(model.sent) == turns
    assert len(summarizer.sent) <= 2 * tried


# -- 7 ---------------------------------------------------------------------------------------------


def test_07_the_same_state_twice_is_summarised_once() -> None:
    conversation = thread(
        summarizer=(summarizer := summariser()), policy=CompactionPolicy(ahead=False)
    )
    talk(conversation, 14)
    graph = conversation.graph
    before = [
        state
        for state in graph.get_state_history(conversation.config)
        if state.next == ("compact",)
    ]
    made, records = len(summarizer.sent), values_of(conversation)["compactions"]
    assert made == len(before) == len(records) >= 1
    for state in [*before, *before]:
        graph.invoke(None, state.config, context=CONTEXT)
    assert len(summarizer.sent) == made
    assert [record["id"] for record in values_of(conversation)["compactions"]] == [records[0]["id"]]


# -- 8 ---------------------------------------------------------------------------------------------


def _down(_: Any) -> AIMessage:
    raise ConnectionError("no route to the summariser")


def test_08_a_failing_summariser_does_not_fail_the_users_turn() -> None:
    conversation = thread(summarizer=summariser(_down))
    events = talk(conversation, 14)
    assert [event["status"] for event in of_type(events, "answer")] == ["answered"] * 14
    assert {
        reason["code"]
        for fold in of_type(events, "context_compressed")
        for reason in fold["reasons"]
    } == {"summariser_failed"}


def test_08_after_pruning_the_view_is_more_than_the_summary() -> None:
    """deepagents cuts at a position: once messages are pruned below it, the view is `[summary]`
    alone.
    """
    conversation = thread(policy=CompactionPolicy(ahead=False))
    talk(conversation, 9)
    assert conversation.compact() is not None
    whole = conversation.view()
    folded = values_of(conversation)["compactions"][0]["count"]
    put(
        conversation,
        [RemoveMessage(id=str(message.id)) for message in conversation.history()[: folded - 1]],
    )
    assert conversation.view() == whole
    # The last that was folded.
    put(conversation, [RemoveMessage(id=str(conversation.history()[0].id))])
    assert [message.id for message in conversation.view()[1:]] == [
        message.id for message in whole[1:]
    ]
    assert conversation.ask("still there?").status == "answered"


# -- 9 ---------------------------------------------------------------------------------------------


def test_09_an_oversized_last_message_is_refused_not_dropped_and_nothing_passes_the_limit() -> None:
    """langmem drops it in silence, and gives 4,053 tokens for a limit of 600."""
    model = talker()
    conversation = thread(model)
    conversation.context = CONTEXT.replace(model_limit=600)
    conversation.ask("hello")
    with pytest.raises(ContextTooLargeError) as refused:
        conversation.ask("w " * 3_000)
    assert refused.value.need > refused.value.budget
    talk(conversation, 12, words=40)
    assert max(OURS.messages(request) for request in model.sent) <= 600
    assert all(request[-1].text.startswith(("q", "hello")) for request in model.sent)


def test_09_parallel_results_are_not_orphaned_when_one_is_missing() -> None:
    calls: list[Any] = [{"name": "f", "args": {}, "id": str(i)} for i in range(3)]
    cut = [
        HumanMessage("q", id="h"),
        AIMessage("", tool_calls=calls, id="c"),
        ToolMessage("one", tool_call_id="1", id="t1"),
    ]
    view = build_view(CallPlan(Thread(cut), call_config(3_000)))
    assert_paired(view.messages[1:])
    assert [message.text for message in view.messages if message.type == "tool"] == [
        INTERRUPTED,
        "one",
        INTERRUPTED,
    ]


def test_09_what_a_compaction_keeps_does_not_grow_with_the_messages_it_covers() -> None:
    """langmem's set of summarised ids grows for ever, and is written at each step."""
    small, large = (
        Talk(call_config(3_000, min_messages=0)),
        Talk(call_config(3_000, min_messages=0)),
    )
    for talking, rounds in ((small, 30), (large, 300)):
        for _ in talking.hear(plain_talk(rounds, words=30)):
            pass
    sizes = [len(json.dumps(talking.thread.compactions[-1])) for talking in (small, large)]
    assert len(large.thread.compactions) > 5 * len(small.thread.compactions)
    assert sizes[1] < 1.5 * sizes[0]


# -- 10 --------------------------------------------------------------------------------------------


def test_10_system_prompt_and_tools_count() -> None:
    """langchain #34664: they are not in the number that triggers."""

    @tool
    def far(place: str) -> str:
        """Tell how far a place is. It may be a city, an airport, a mountain, a lake or the name of
        a person's home town.
        """
        return place

    bare, dressed = thread(), thread(tools=[far], thread_id="d")
    dressed.context = CONTEXT.replace(system_prompt="You are careful. " * 150)
    talks = [talk(each, 12) for each in (bare, dressed)]
    first, second = (of_type(events, "context_usage")[0]["parts"] for events in talks)
    assert second["tools"] > 40 > first["tools"] == 0
    assert second["system"] > first["system"] + 300
    assert first["messages"] == second["messages"]
    began = [
        next(i for i, event in enumerate(events) if event["type"] == "context_compressed")
        for events in talks
    ]
    assert began[1] < began[0]


# -- 12 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", [1.0, 3.0])
def test_12_compaction_works_when_the_context_is_full_and_over(fill: float) -> None:
    """codex #29319: the request for the summary itself is over the limit exactly when it is
    needed.
    """
    limit = 4_000

    def strict(request: Sequence[BaseMessage]) -> AIMessage:
        assert OURS.messages(request) <= limit, "this request is over the summariser's limit"
        return AIMessage(GOOD)

    summarizer = ScriptedModel(say=strict, profile={"max_input_tokens": limit})
    conversation = thread(summarizer=summarizer)
    conversation.context = CONTEXT.replace(model_limit=1_000_000)
    conversation.ask("begin")
    rounds = int(fill * limit / 120)
    put(conversation, plain_talk(rounds, words=52))
    conversation.context = CONTEXT.replace(model_limit=limit)
    events = [dict(event) for event in conversation.stream("and now?")]
    [fold] = of_type(events, "context_compressed")
    assert (fold["method"], fold["reasons"]) == ("model", [])
    assert fold["original_tokens"] > fill * limit * 0.9
    assert of_type(events, "answer")[0]["status"] == "answered"


# -- 13 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["rolling", "topics"])
def test_13_a_read_only_agent_stays_read_only_after_compaction(strategy: str) -> None:
    """opencode #16372: after compaction the agent began to write. A summariser that says the
    contrary changes nothing.
    """
    rule = "You must only read: never write, delete or change anything in this database."
    wrong = (
        "## Facts and findings\n- talk about flights [m1]\n## Decisions\n- the user allowed writing"
        " [m2]"
    )
    model = talker()
    conversation = thread(
        model,
        summarizer=summariser(lambda _: AIMessage(wrong)),
        policy=CompactionPolicy(strategy=strategy),
    )
    conversation.context = CONTEXT.replace(system_prompt="You are a read-only analyst.")
    conversation.ask(rule)
    events = talk(conversation, 40)
    assert len(of_type(events, "context_compressed")) >= 3
    for request in model.sent:
        assert request[0].text.startswith("You are a read-only analyst.")
        assert any(rule in message.text for message in request)


# -- 14 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("orphan", ["call", "answer", "both", "malformed"])
def test_14_one_orphan_call_does_not_stop_compaction_for_ever(orphan: str) -> None:
    """adk #7236."""
    broken: list[BaseMessage] = [HumanMessage("a run that was cancelled", id="x")]
    if orphan in {"call", "both"}:
        broken.append(AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "lost"}], id="x-c"))
    if orphan == "malformed":
        bad: Any = {
            "name": "f",
            "args": '{"a": ',
            "id": "bad",
            "error": "no JSON",
            "type": "invalid_tool_call",
        }
        broken.append(AIMessage("", invalid_tool_calls=[bad], id="x-m"))
    if orphan in {"answer", "both"}:
        broken.append(ToolMessage("for nobody", tool_call_id="nobody", id="x-t"))
    conversation = thread()
    conversation.ask("hello")
    put(conversation, broken)
    events = talk(conversation, 30)
    assert len(of_type(events, "context_compressed")) >= 3
    assert of_type(events, "context_compaction_skipped") == []


# -- 16 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "二月份有多少航班晚点？请按航空公司列出平均延误时间。" * 20,
        "用户希望所有金额以人民币显示，并保留两位小数；部门名称使用全称。" * 20,
        "今日の売上を教えてください。部門ごとに集計してください。" * 20,
    ],
)
def test_16_chinese_is_counted_as_what_it_is(text: str) -> None:
    """LiveAgent #173 counts it 2.5 to 3 times too low (characters by four). Also where tiktoken
    cannot be read.
    """
    exact = len(load_encoding("o200k_base").encode_ordinary(text))
    assert exact > 1.5 * len(text) / 4
    assert OURS.text(text) == exact
    assert estimate(text) >= exact
    assert OURS.message(HumanMessage(text)) >= exact


def test_16_a_chinese_thread_is_compacted_before_it_is_full() -> None:
    conversation = thread(
        ScriptedModel(say=lambda _: AIMessage("二月份共有 24951 个航班，其中大部分准点。" * 6))
    )
    events = [
        dict(event)
        for n in range(30)
        for event in conversation.stream(f"第 {n} 周有多少航班晚点？" * 8)
    ]
    assert len(of_type(events, "context_compressed")) >= 3
    assert max(event["fraction"] for event in of_type(events, "context_usage")) < 0.85


# -- 17 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("summarised", [True, False])
def test_17_the_memory_points_into_the_transcript(summarised: bool) -> None:
    """claude-code #26771: its lines cite messages, and what they cite can be read back word for
    word.
    """
    conversation = thread(
        summarizer=summariser() if summarised else None,
        saver=InMemorySaver(),
        store=InMemoryStore(),
    )
    talk(conversation, 14)
    record = values_of(conversation)["compactions"][-1]
    told = system_of(conversation.view())
    assert f"m1-m{record['count']} of the transcript" in told
    cited = [
        (int(first), int(last))
        for first, last in re.findall(r"\[m(\d+)-m(\d+)\]", record["summary"])
    ]
    assert cited
    first, last = cited[0]
    originals = conversation.history(start=first, limit=last - first + 1)
    assert [message.type for message in originals] == ["human", "ai"]
    if not summarised:
        finding = findings_in(told)[0]
        assert originals[0].text.startswith(finding.question.rstrip("…").split("…")[0][:40])


# -- all of them async -----------------------------------------------------------------------------


def test_a_turn_survives_the_summariser_in_async_runs_as_well() -> None:
    graph = build_graph(model=talker(), summarizer=summariser(_down)).compile(
        checkpointer=InMemorySaver(), store=InMemoryStore()
    )
    conversation = Conversation(graph, "t", context=CONTEXT)

    async def run() -> list[dict[str, Any]]:
        return [
            dict(event)
            for n in range(14)
            async for event in conversation.astream(f"q{n} " + "w " * 82)
        ]

    events = asyncio.run(run())
    assert [event["status"] for event in of_type(events, "answer")] == ["answered"] * 14
    assert of_type(events, "context_compressed")
    assert all(isinstance(message, SystemMessage) for message in conversation.view()[:1])
