"""Recall by tool: what was folded or retired comes back word for word, from this thread alone."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.base.stored import USAGE
from longtable.graph import (
    CompactionPolicy,
    Context,
    Conversation,
    MemoryTools,
    build_graph,
    open_persistence,
)
from longtable.graph.threads import delete_thread
from longtable.memory.counting.tokens import counter
from longtable.memory.messages.marks import RECALLED, kind_of
from longtable.memory.policy import topics, window
from longtable.store.persistence import Persistence
from tests.support.models import ScriptedModel, call
from tests.support.threads import of_type, talk, thread, values_of


def recaller(**args: Any) -> ScriptedModel:
    """Return a model that recalls when asked to, then answers with what it read; other questions it
    just answers.
    """

    def say(sent: Any) -> AIMessage:
        if isinstance(sent[-1], ToolMessage):
            texts = [message["text"] for message in json.loads(sent[-1].text).get("messages", ())]
            return AIMessage(f"read: {' | '.join(texts)}" if texts else f"nothing: {sent[-1].text}")
        if sent[-1].text.startswith("recall"):
            return call(
                "recall_history", "c1", **(args or {"query": sent[-1].text.removeprefix("recall ")})
            )
        return AIMessage("noted " + "a " * 40)

    return ScriptedModel(say=say)


def long_thread(model: ScriptedModel | None = None, **more: Any) -> Conversation:
    conversation = thread(model or recaller(), memory_tools=MemoryTools(recall=True), **more)
    conversation.ask("The project is called Kingfisher and its budget is 48,250 euros.")
    conversation.ask("代号翠鸟的预算是四万八千欧元。")
    talk(conversation, 24, start=2)
    assert "48,250 euros" not in str(conversation.view()[1:])
    return conversation


@pytest.mark.parametrize("retire_after", [None, 10])
@pytest.mark.parametrize(
    ("query", "words"),
    [("Kingfisher budget", "48,250 euros"), ("翠鸟 预算", "四万八千欧元"), ("m1", "48,250 euros")],
)
def test_what_was_compacted_or_retired_comes_back_word_for_word(
    retire_after: int | None, query: str, words: str
) -> None:
    conversation = long_thread(policy=CompactionPolicy(retire_after=retire_after))
    assert bool(values_of(conversation).get("archive")) == (retire_after is not None)
    answer = conversation.ask(f"recall {query}")
    assert words in answer.text
    assert answer.recalls == 1


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Kingfisher budget", "48,250 euros"),
        ("翠鸟的预算是多少", "四万八千欧元"),
        ("m1", "48,250 euros"),
    ],
)
def test_with_a_window_what_has_left_it_is_recalled(query: str, words: str) -> None:
    conversation = long_thread(policy=window(4))
    assert words in conversation.ask(f"recall {query}").text


def test_a_range_of_numbers_brings_those_messages_and_no_others() -> None:
    conversation = thread(recaller(), memory_tools=MemoryTools(recall=True), policy=window(4))
    conversation.context = conversation.context.replace(model_limit=12_000)
    talk(conversation, 10, words=2)
    read = conversation.ask("recall m9-m13").text.removeprefix("read: ").split(" | ")
    assert [text.split()[0] for text in read] == ["q4", "noted", "q5", "noted", "q6"]


@pytest.mark.parametrize(
    ("query", "words"), [("m3", "row 2: value 14"), ("value 4900", "row 700: value 4900")]
)
def test_a_result_that_was_shortened_in_this_turn_is_read_in_this_turn(
    query: str, words: str
) -> None:
    @tool
    def report() -> str:
        """Report."""
        return "".join(f"row {n}: value {n * 7}\n" for n in range(1, 1_500))

    def say(sent: Any) -> AIMessage:
        if not isinstance(sent[-1], ToolMessage):
            return call("report", "c1")
        if sent[-1].tool_call_id == "c1":
            assert "row 700: value 4900" not in sent[-1].text
            return call("recall_history", "c2", query=query)
        return AIMessage(json.loads(sent[-1].text)["messages"][0]["text"])

    assert (
        words
        in thread(ScriptedModel(say=say), memory_tools=MemoryTools(recall=True), tools=[report])
        .ask("report, please")
        .text
    )


def test_what_is_recalled_names_its_speaker_and_is_found_by_that_name() -> None:
    conversation = thread(recaller(), memory_tools=MemoryTools(recall=True), policy=window(2))
    given: Any = {
        "messages": [
            HumanMessage("The budget is 48,250 euros.", name="Wang Fang"),
            HumanMessage("It is 9.", name="Ann"),
        ]
    }
    conversation.graph.invoke(given, conversation.config, context=conversation.context)
    talk(conversation, 6)
    conversation.ask("recall Wang Fang")
    [answer] = [json.loads(m.text) for m in conversation.history() if m.type == "tool"]
    assert [(message["name"], message["text"]) for message in answer["messages"]] == [
        ("Wang Fang", "The budget is 48,250 euros.")
    ]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"query": "m1-m999"}, range(1, 21)),
        ({"query": "m900-m999"}, [0]),
        ({"query": "noted", "limit": 0}, [1]),
    ],
)
def test_a_range_past_the_end_and_a_limit_of_nothing_are_answered(
    arguments: dict[str, Any], shown: Sequence[int]
) -> None:
    conversation = long_thread(recaller(**arguments))
    conversation.ask("recall it")
    answer = json.loads(next(m.text for m in reversed(conversation.history()) if m.type == "tool"))
    assert answer["shown"] == len(answer["messages"])
    assert answer["shown"] in shown
    if arguments["query"] == "m1-m999":
        assert [message["number"] for message in answer["messages"]] == [
            *range(1, answer["shown"] + 1)
        ]
        assert answer["found"] == 54
    assert answer["found"] or "no message's" in answer["note"]


@pytest.mark.parametrize(
    ("question", "answer", "shown"),
    [
        (
            "How many orders came from region {n} in the spring?",
            "Region {n} had 370 orders, 12 percent more than the year before. " * 4,
            5,
        ),
        (
            "第 {n} 区春天有多少订单？",
            "第 {n} 区春天有 370 个订单，比前一年多了百分之十二，主要是因为新开了两家店。" * 3,
            4,
        ),
    ],
)
def test_what_is_recalled_fills_its_share_of_tokens_and_takes_no_more(
    question: str, answer: str, shown: int
) -> None:
    def say(sent: Any) -> AIMessage:
        if sent[-1].text == "recall":
            return call(
                "recall_history",
                "c1",
                query="orders spring" if question.isascii() else "春天 订单",
                limit=8,
            )
        return AIMessage(answer)

    conversation = thread(
        ScriptedModel(say=say), memory_tools=MemoryTools(recall=True), policy=window(4)
    )
    conversation.context = conversation.context.replace(model_limit=8_000)
    for n in range(12):
        conversation.ask(question.format(n=n))
    conversation.ask("recall")
    [text] = [message.text for message in conversation.history() if message.type == "tool"]
    assert json.loads(text)["shown"] >= shown
    assert counter("o200k_base").text(text) <= 0.1 * 0.6 * 8_000


def test_what_is_still_in_view_is_not_recalled() -> None:
    conversation = long_thread()
    answer = conversation.ask("recall noted q25")
    assert "q25 " not in answer.text


def test_turns_bound_the_search_and_the_event_says_where_it_found() -> None:
    conversation = long_thread(recaller(query="noted", from_turn=3, to_turn=4, limit=3))
    events = [dict(event) for event in conversation.stream("recall it")]
    [event] = of_type(events, "recall")
    assert event["via"] == "tool"
    assert set(event["turns"]) <= {3, 4}
    assert event["found"] >= 1


def test_a_thread_never_sees_the_words_of_another() -> None:
    saver, store = InMemorySaver(), InMemoryStore()
    other = long_thread(
        saver=saver, store=store, thread_id="other", policy=CompactionPolicy(retire_after=10)
    )
    assert "48,250" in other.ask("recall Kingfisher").text
    mine = thread(
        recaller(),
        memory_tools=MemoryTools(recall=True),
        saver=saver,
        store=store,
        thread_id="mine",
    )
    talk(mine, 24)
    assert "48,250" not in mine.ask("recall Kingfisher").text


def test_an_excluded_message_is_not_recalled() -> None:
    conversation = long_thread()
    conversation.exclude(str(conversation.history()[0].id))
    assert "48,250" not in conversation.ask("recall Kingfisher budget").text


def test_what_was_recalled_is_marked_and_never_compacted_as_if_new() -> None:
    read: list[str] = []

    def summarise(sent: Any) -> AIMessage:
        read.append(sent[-1].text)
        return AIMessage("## Facts and findings\n- numbers [m1]")

    conversation = long_thread(
        summarizer=ScriptedModel(say=summarise, profile={"max_input_tokens": 100_000})
    )
    conversation.ask("recall Kingfisher budget")
    assert [kind_of(m) for m in conversation.history() if m.type == "tool"] == [RECALLED]
    read.clear()
    talk(conversation, 20, start=40)
    assert read
    assert not any("] tool:" in text for text in read)


def test_with_topics_a_sections_sources_are_what_comes_back() -> None:
    conversation = thread(recaller(), memory_tools=MemoryTools(recall=True), policy=topics())
    conversation.ask("How does the Kingfisher budget of 48,250 euros split?")
    talk(conversation, 24, start=1, words=10)
    found = conversation.find_section("Kingfisher")
    assert found is not None
    assert 1 in found.section.sources
    assert "48,250 euros" in conversation.ask("recall Kingfisher").text
    assert conversation.find_section("xylophone") is None


def test_wrong_arguments_are_told_to_the_model() -> None:
    conversation = long_thread(recaller(query="x", from_turn=9, to_turn=3))
    assert "swap them" in conversation.ask("recall it").text


def meanings(texts: Sequence[str]) -> list[list[float]]:
    """Embed by subject: what speaks of money is near to what speaks of a budget, whatever the
    words.
    """
    subjects = (("budget", "money"), ("预算", "钱"), ("noted",))
    return [
        [1.0 * any(word in text for word in subject) for subject in subjects] + [0.1]
        for text in texts
    ]


@pytest.mark.parametrize(
    "policy", [CompactionPolicy(retire_after=10), CompactionPolicy(retire_after=None), window(4)]
)
@pytest.mark.parametrize(("query", "words"), [("money", "48,250 euros"), ("钱", "四万八千欧元")])
def test_meaning_finds_what_words_do_not_where_the_store_embeds(
    policy: CompactionPolicy, query: str, words: str
) -> None:
    store = InMemoryStore(index={"dims": 4, "embed": meanings, "fields": ["text"]})
    conversation = long_thread(store=store, policy=policy)
    assert words in conversation.ask(f"recall {query}").text
    delete_thread(Persistence(conversation.graph.checkpointer, store), "t")  # type: ignore[arg-type]  # an in-memory saver
    # What it took stays.
    assert {item.namespace for item in store.search(("longtable",), limit=1_000)} <= {USAGE}


def test_without_an_embedding_server_words_alone_are_searched() -> None:
    def down(_: Sequence[str]) -> list[list[float]]:
        raise ConnectionError("no embedding server")

    store = InMemoryStore(index={"dims": 4, "embed": down, "fields": ["text"]})
    conversation = long_thread(store=store, policy=CompactionPolicy(retire_after=10))
    assert "48,250 euros" in conversation.ask("recall Kingfisher budget").text


def test_recall_works_async_on_real_files_after_a_restart(tmp_path: Path) -> None:
    async def session(questions: list[str]) -> str:
        async with open_persistence(f"sqlite:///{tmp_path / 'chat.db'}") as kept:
            graph = build_graph(model=recaller(), policy=CompactionPolicy(retire_after=10))
            compiled = graph.compile(checkpointer=kept.checkpointer, store=kept.store)
            conversation = Conversation(compiled, "t", context=Context(model_limit=3_000))
            return [(await conversation.aask(question)).text for question in questions][-1]

    asyncio.run(
        session(["The project is called Kingfisher.", *(f"q{n} " + "w " * 82 for n in range(24))])
    )
    assert "called Kingfisher" in asyncio.run(session(["recall project Kingfisher"]))


def test_no_stream_shows_the_originals_that_the_tool_is_handed() -> None:
    conversation = long_thread()

    async def run() -> list[Any]:
        given: Any = {"messages": [("user", "recall nothing-like-this")]}
        return [
            e
            async for e in conversation.graph.astream_events(
                given, conversation.config, context=conversation.context, version="v2"
            )
        ]

    starts = [event for event in asyncio.run(run()) if event["event"] == "on_tool_start"]
    assert starts
    assert "48,250" not in str(starts)
