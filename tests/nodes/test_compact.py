"""Folding through the graph: never over, nothing lost, once, private, and never at the cost of the
user's turn.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from longtable.base.errors import ConfigError
from longtable.graph import (
    CompactionPolicy,
    Context,
    Conversation,
    Database,
    MemoryTools,
    build_graph,
    next_view,
)
from longtable.memory.counting.prices import Price
from longtable.memory.counting.tokens import counter
from longtable.memory.records import Compaction, writer_of
from longtable.memory.summary.summary_text import HEADINGS, findings_in
from tests.memory.messages.test_rounds import assert_paired
from tests.support.model_server import answer_or_summary, open_model_server, unauthorized
from tests.support.models import ScriptedModel, call, script
from tests.support.threads import (
    CONTEXT,
    GOOD,
    LIMIT,
    SECRET,
    Events,
    Hopeless,
    of_type,
    summariser,
    talk,
    talker,
    thread,
    values_of,
)

BOTH: Any = ["messages", "custom"]
HOPELESS = CompactionPolicy(strategy="hopeless")


def talk_until_skipped(conversation: Conversation) -> Events:
    """Run turns until a compaction fails, and return what was said of it."""
    for n in range(20):
        events = talk(conversation, 1, start=n, words=160)
        assert of_type(events, "answer")[0]["status"] == "answered"
        if skipped := of_type(events, "context_compaction_skipped"):
            return skipped
    raise AssertionError("no compaction was tried")


def test_a_long_thread_is_compacted_stays_under_the_threshold_and_loses_nothing() -> None:
    model = talker()
    conversation = thread(model)
    events = talk(conversation, 40)
    folds = of_type(events, "context_compressed")
    assert len(folds) >= 3
    assert all(fold["compressed_tokens"] < fold["original_tokens"] for fold in folds)
    ours = counter("o200k_base")
    assert max(ours.messages(sent) for sent in model.sent) <= 0.6 * LIMIT
    history = conversation.history()
    assert [m.text.split()[0] for m in history if m.type == "human"] == [f"q{n}" for n in range(40)]
    assert [m.text.split()[2] for m in history if m.type == "ai"] == [f"q{n}" for n in range(40)]
    for sent in model.sent:
        assert_paired(sent[1:])


def test_short_threads_are_compacted_past_the_threshold_alone() -> None:
    """`min_messages` holds for the policy's own triggers: no call goes out over the threshold for
    it.
    """
    model = talker()
    assert of_type(talk(thread(model), 4, words=400), "context_compressed")
    assert max(counter("o200k_base").messages(sent) for sent in model.sent) <= 0.6 * LIMIT
    small = CompactionPolicy(trigger_messages=6, keep_rounds=1)
    assert of_type(talk(thread(policy=small), 4), "context_compressed") == []


def test_where_there_is_too_little_to_compact_the_turn_is_answered() -> None:
    """The trigger by messages stays due: the graph must not go round between estimate and
    compact.
    """
    policy = CompactionPolicy(trigger_messages=6, keep_rounds=2, min_messages=2)
    model = script("Answer: word word word word.")
    graph = build_graph(model=model, policy=policy, summarizer=script("nothing")).compile(
        checkpointer=InMemorySaver()
    )
    conversation = Conversation(graph, "t", context=Context(model_limit=12_000))
    skips: list[int] = []
    for text in ["Always show two digits.", *(f"question {n} about item{n}" for n in range(2, 15))]:
        events = [dict(event) for event in conversation.stream(text)]
        assert of_type(events, "answer")[0]["status"] == "answered"
        skips.append(len(of_type(events, "context_compaction_skipped")))
    assert 0 < max(skips) <= 2  # before the answer and after it


def test_the_memory_reaches_the_model_and_reads_back() -> None:
    model = talker()
    conversation = thread(model)
    talk(conversation, 14)
    memory = next(sent[0].text for sent in model.sent if "<memory>" in sent[0].text)
    found = findings_in(memory)
    assert found
    assert all(f"answer to {finding.question.split()[0]}" in finding.answer for finding in found)


@pytest.mark.parametrize("other", [None, False, "another"])
def test_the_conversations_model_writes_the_memory_unless_told_otherwise(other: Any) -> None:
    with open_model_server() as server, open_model_server() as second:
        server.always(answer_or_summary)
        second.always(answer_or_summary)
        summarizer = second.chat_model() if other else other
        conversation = thread(server.chat_model(), summarizer=summarizer)
        folds = of_type(talk(conversation, 8), "context_compressed")
        written = [request for request in server.requests if request.is_for_summary]
        assert {fold["method"] for fold in folds} == {"fallback" if other is False else "model"}
        assert len(written) == (len(folds) if other is None else 0)
        assert len(second.requests) == (len(folds) if other else 0)
        rows = conversation.usage({"gpt-4o-mini": Price(input=1, output=2)})
        summaries = [
            (row.calls, row.input, row.output, row.cost) for row in rows if row.purpose == "summary"
        ]
        n = 0 if other is False else len(folds)
        assert summaries == ([(n, 5_100 * n, 600 * n, 6_300 * n / 1e6)] if n else [])
        assert [row.calls for row in rows if not row.purpose] == [8]


def test_a_summarizer_that_is_no_model_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"summarizer must be a chat model, None .* or False .*, found str"
    ):
        thread(summarizer="gpt-4o-mini")


def test_a_refused_key_is_not_used_again_in_the_run() -> None:
    with open_model_server() as server, open_model_server() as locked:
        server.always(answer_or_summary)
        locked.always(unauthorized())
        for strategy in ("rolling", "topics"):
            asked = len(locked.requests)
            conversation = thread(
                server.chat_model(),
                summarizer=locked.chat_model(),
                policy=CompactionPolicy(strategy=strategy),
            )
            folds = of_type(talk(conversation, 8), "context_compressed")
            assert {fold["method"] for fold in folds} == {"fallback"}
            assert len(locked.requests) - asked == len({fold["id"] for fold in folds})


def test_the_summariser_writes_the_memory_and_its_tokens_stay_private() -> None:
    for mode in ("messages", "custom"):
        summarizer = summariser()
        conversation = thread(summarizer=summarizer)
        shown = []
        for n in range(14):
            given: Any = {"messages": [HumanMessage(f"q{n} " + "w " * 82)]}
            shown += list(
                conversation.graph.stream(
                    given, conversation.config, context=CONTEXT, stream_mode=mode
                )
            )
        assert len(summarizer.sent) >= 1
        assert SECRET not in str(shown)
        assert SECRET in conversation.view()[0].text


def test_event_and_record_say_who_wrote_what_it_cost_and_why_not_a_model() -> None:
    usage = UsageMetadata(input_tokens=5_100, output_tokens=600, total_tokens=5_700)
    good = AIMessage(GOOD, usage_metadata=usage, response_metadata={"model_name": "gpt-4o"})
    dull = AIMessage("Sorry.", usage_metadata=usage, response_metadata={"model_name": "gpt-4o"})
    for answer, writer, calls, why in (
        (good, "gpt-4o", 1, ""),
        (dull, "code", 2, "the summary is empty or has no line that can be used"),
        (None, "code", 0, "no model"),
    ):
        conversation = thread(summarizer=summariser(script(answer).say) if answer else False)
        event = of_type(talk(conversation, 14), "context_compressed")[0]
        assert (event["writer"], event["input"], event["output"]) == (
            writer,
            calls * 5_100,
            calls * 600,
        )
        assert event["why_by_code"].startswith(why)
        assert bool(event["why_by_code"]) == (writer == "code")
        record = values_of(conversation)["compactions"][0]
        assert (record["writer"], record["why_by_code"]) == (writer, event["why_by_code"])
        before = {
            name: value for name, value in record.items() if name not in ("writer", "why_by_code")
        }
        # As a store of an earlier version has it.
        assert writer_of(cast("Compaction", before)) == writer


def test_the_summarisers_tokens_stay_private_in_async_runs_too() -> None:
    summarizer = summariser()
    conversation = thread(summarizer=summarizer)

    async def run() -> list[object]:
        shown: list[object] = []
        for n in range(14):
            given: Any = {"messages": [HumanMessage(f"q{n} " + "w " * 82)]}
            shown += [
                event
                async for event in conversation.graph.astream(
                    given, conversation.config, context=CONTEXT, stream_mode=BOTH
                )
            ]
        return shown

    shown = asyncio.run(run())
    assert len(summarizer.sent) >= 1
    assert SECRET not in str(shown)


def _raises(_: object) -> AIMessage:
    raise RuntimeError("summariser down")


@pytest.mark.parametrize(
    ("say", "calls"),
    [
        (_raises, 1),
        (lambda _: AIMessage(""), 2),
        (lambda _: AIMessage("no headings at all"), 2),
        (lambda _: AIMessage("## Facts and findings\n" + "- long line of nothing\n" * 2_000), 2),
        (lambda _: call("add", a=1), 2),
    ],
)
def test_a_summariser_that_fails_never_fails_the_turn(
    say: Callable[[Any], AIMessage], calls: int
) -> None:
    summarizer = summariser(say)
    conversation = thread(summarizer=summarizer)
    events = talk(conversation, 12)
    [fold, *_] = of_type(events, "context_compressed")
    assert fold["method"] == "fallback"
    assert fold["reasons"]
    assert len(summarizer.sent) == calls * len(of_type(events, "context_compressed"))
    assert all(event["status"] == "answered" for event in of_type(events, "answer"))


def test_the_second_try_is_told_what_was_wrong() -> None:
    answers = iter(["nothing", GOOD] * 20)
    summarizer = summariser(lambda _: AIMessage(next(answers)))
    events = talk(thread(summarizer=summarizer), 12)
    assert of_type(events, "context_compressed")[0]["method"] == "model"
    assert "no line that can be used" in summarizer.sent[1][-1].text


def test_a_summariser_with_a_small_window_reads_all_of_it_in_parts() -> None:
    summarizer = ScriptedModel(say=lambda _: AIMessage(GOOD), profile={"max_input_tokens": 1_200})
    conversation = thread(summarizer=summarizer)
    talk(conversation, 12)
    read = " ".join(m.text for sent in summarizer.sent for m in sent)
    record = conversation.graph.get_state(conversation.config).values["compactions"][0]
    folded = conversation.history()[: record["count"]]
    assert len(summarizer.sent) > 1
    assert all(message.text in read for message in folded)
    assert record["coverage"] == 1.0


def test_a_compaction_is_made_once_whatever_is_replayed() -> None:
    summarizer = summariser()
    conversation = thread(summarizer=summarizer)
    graph = conversation.graph
    events: list[dict[str, Any]] = []
    n = 0
    while not of_type(events, "context_compressed"):
        events += talk(conversation, 1, start=n)
        n += 1
    before = next(
        state
        for state in graph.get_state_history(conversation.config)
        if state.next in {("compact",), ("prepare",)}
    )
    records = graph.get_state(conversation.config).values["compactions"]
    graph.invoke(None, before.config, context=CONTEXT)
    assert len(summarizer.sent) == 1
    assert [r["id"] for r in graph.get_state(conversation.config).values["compactions"]] == [
        r["id"] for r in records
    ]


def test_a_compaction_no_one_can_make_is_not_tried_at_every_call() -> None:
    summarizer = summariser(lambda _: AIMessage(""))
    conversation = thread(
        script("fine"), summarizer=summarizer, policy=HOPELESS, hooks=[Hopeless()]
    )
    [skipped] = talk_until_skipped(conversation)
    assert len(skipped["reasons"]) == 3  # two tries of the summariser, one of the fallback
    assert len(summarizer.sent) == 2
    assert of_type(talk(conversation, 2, start=20, words=1), "context_compaction_skipped") == []
    again = talk(conversation, 1, start=22, words=150)  # a twentieth of the limit came since
    assert len(of_type(again, "context_compaction_skipped")) == 1


def test_the_breaker_survives_a_restart() -> None:
    first = thread(script("fine"), policy=HOPELESS, hooks=[Hopeless()])
    talk_until_skipped(first)
    graph = build_graph(
        model=script("fine"),
        policy=HOPELESS,
        hooks=[Hopeless()],
        memory_tools=MemoryTools(recall=False),
    )
    checkpointer: Any = first.graph.checkpointer
    second = Conversation(graph.compile(checkpointer=checkpointer), "t", context=CONTEXT)
    assert of_type(talk(second, 1, start=12, words=1), "context_compaction_skipped") == []


def test_compacting_now_compacts_under_the_threshold_and_changes_no_turn() -> None:
    conversation = thread(policy=CompactionPolicy(ahead=False))
    talk(conversation, 9)
    history = conversation.history()
    fold = conversation.compact()
    assert fold is not None
    assert fold["type"] == "context_compressed"
    assert fold["messages"] == 12
    assert conversation.history() == history
    assert not conversation.pending()
    assert len(conversation.view()) == 1 + 6
    again = conversation.compact()
    assert again is not None
    assert again["type"] == "context_compaction_skipped"
    assert [reason["code"] for reason in again["reasons"]] == ["all_compacted"]
    assert conversation.ask("and on").turn == 10


def test_compacting_now_works_async() -> None:
    async def run() -> None:
        conversation = thread(policy=CompactionPolicy(ahead=False))
        for n in range(9):
            await conversation.aask(f"q{n} " + "w " * 82)
        fold = await conversation.acompact()
        assert fold is not None
        assert len(await conversation.aview()) == 1 + 6
        assert not await conversation.apending()

    asyncio.run(run())


def test_huge_tool_results_in_one_round_shrink_and_the_turn_succeeds() -> None:
    @tool
    def dump(n: int) -> str:
        """Return much."""
        return f"dump {n}: " + "data " * 900

    model = script(*[call("dump", f"c{n}", n=n) for n in range(6)], "done")
    conversation = thread(model, tools=[dump])
    assert conversation.ask("all of it").text == "done"
    assert max(counter("o200k_base").messages(sent) for sent in model.sent) <= 0.6 * LIMIT
    assert all(
        "data data data" in m.text and len(m.text) > 4_000
        for m in conversation.history()
        if m.type == "tool"
    )


def test_next_view_is_pure_and_public() -> None:
    conversation = thread()
    talk(conversation, 14)
    values = conversation.graph.get_state(conversation.config).values
    assert next_view(values, CONTEXT) == next_view(values, CONTEXT) == conversation.view()
    assert next_view({}, CONTEXT) == []


def test_the_policy_is_the_callers() -> None:
    conversation = thread(
        policy=CompactionPolicy(keep_rounds=2, min_messages=4, threshold=0.4, ahead=False)
    )
    events = talk(conversation, 12)
    folds = of_type(events, "context_compressed")
    assert folds
    assert all(fold["original_tokens"] > 0.4 * LIMIT >= fold["compressed_tokens"] for fold in folds)


def test_the_model_itself_is_sent_the_constraint_turn_after_turn() -> None:
    """The same through the graph, as the model sees it: with a summariser that keeps only its
    headings.
    """
    constraint = "Don't ever modify the data, it is production."
    conversation = thread(
        summarizer=summariser(
            lambda _: AIMessage("\n".join(f"## {heading}\n- none" for heading in HEADINGS["en"]))
        )
    )
    events = [
        dict(event) for event in conversation.stream(f"How many flights are there? {constraint}")
    ]
    for number in range(40):
        events += [
            dict(event) for event in conversation.stream(f"And in week {number}? " + "w " * 80)
        ]
    assert len(of_type(events, "context_compressed")) >= 3
    assert constraint in conversation.view()[0].text


def test_fifty_turns_with_sql_results_ask_for_ten_summaries_at_most(tmp_path: Path) -> None:
    """With a summariser that writes more than it may: 31 to 37 calls in a hundred turns before, at
    a limit of 8,000.
    """
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute(
            "CREATE TABLE orders (id INTEGER, customer TEXT, amount REAL, city TEXT)"
        )
        rows = [(n, f"customer name {n}", n * 1.5, f"city {n % 7}") for n in range(300)]
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", rows)

    def say(sent: Sequence[BaseMessage]) -> AIMessage:
        if sent[-1].type == "tool":
            return AIMessage("The rows are above: the first is 12 and the last is 20. " * 2)
        turn = int(sent[-1].text.split()[1].rstrip(":"))
        return call(
            "run_sql",
            f"c{turn}",
            sql=(
                f"SELECT * FROM orders WHERE id > {turn} ORDER BY id LIMIT"
                f" {(1, 3, 9, 15)[turn % 4]}"
            ),
        )

    lines = "\n".join(
        f"- fact {n} about the rows that were asked for [m{n + 1}]" for n in range(40)
    )
    summarizer = ScriptedModel(say=lambda _: AIMessage(f"## Facts and findings\n{lines}"))
    with Database.open(f"sqlite:///{tmp_path}/shop.db") as database:
        graph = build_graph(model=ScriptedModel(say=say), summarizer=summarizer, database=database)
        conversation = Conversation(
            graph.compile(checkpointer=InMemorySaver()), "t", context=Context(model_limit=8_000)
        )
        for turn in range(50):
            conversation.ask(f"question {turn}: which rows come after it?")
    assert 3 <= len(summarizer.sent) <= 10
