"""One turn after the other through the graph: what the model was sent, what the thread kept, what
was refused.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.base.errors import (
    ConfigError,
    ContextTooLargeError,
    EmptyMessageError,
    HistoryMessageTooLongError,
    InputError,
    InvalidTextError,
    MessageTooLongError,
    ProviderUnavailableError,
    UsedIdError,
    WrongRoleError,
)
from longtable.graph import (
    CompactionPolicy,
    Context,
    Conversation,
    Footer,
    build_graph,
    open_persistence,
)
from longtable.graph.thread_state import Graph
from longtable.memory.counting.tokens import counter
from longtable.memory.messages.rounds import INTERRUPTED
from tests.memory.messages.test_rounds import assert_paired
from tests.support.models import ScriptedModel, call, script

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
SMALL = Context(model_limit=4_000)


@tool
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


@tool
def fail(why: str) -> str:
    """Fail."""
    raise RuntimeError(why)


def compiled(model: ScriptedModel, **more: Any) -> Graph:
    return build_graph(model=model, tools=[add, fail], **more).compile(checkpointer=InMemorySaver())


def conversation(model: ScriptedModel, context: Context = SMALL) -> Conversation:
    return Conversation(compiled(model), "t", context=context)


def test_a_turn_runs_its_tools_and_answers() -> None:
    model = script(call("add", a=2, b=3), "It is 5.")
    talk = conversation(model)
    answer = talk.ask("What is 2 + 3?")
    assert (answer.text, answer.status, answer.turn) == ("It is 5.", "answered", 1)
    assert [m.text for m in talk.history()] == ["What is 2 + 3?", "", "5", "It is 5."]
    assert [m.text for m in model.sent[1][1:]] == ["What is 2 + 3?", "", "5"]


def test_the_view_is_exactly_what_the_model_is_sent_next() -> None:
    model = script("one", "two")
    talk = conversation(model)
    talk.ask("first")
    seen = talk.view()
    talk.ask("second")
    assert [(m.type, m.text) for m in model.sent[1]] == [
        (m.type, m.text) for m in [*seen, HumanMessage("second")]
    ]


def test_usage_counts_what_is_sent() -> None:
    model = script("fine")
    talk = conversation(model)
    usage = talk.ask("count this").usage
    assert usage is not None
    from langchain_core.utils.function_calling import convert_to_openai_tool

    from longtable.tools.memory_tools import recall_tool

    ours = counter("o200k_base")
    assert usage["total"] == ours.messages(model.sent[0]) + ours.tools(
        [convert_to_openai_tool(t) for t in (recall_tool(), add, fail)]
    )
    assert sum(usage["parts"].values()) == usage["total"]  # type: ignore[arg-type]  # TypedDict of ints
    assert usage["fraction"] == round(usage["total"] / 4_000, 4)


def test_parallel_calls_are_run_and_answered_in_order() -> None:
    both = AIMessage(
        "", tool_calls=[{"name": "add", "args": {"a": n, "b": n}, "id": f"c{n}"} for n in (1, 2)]
    )
    talk = conversation(script(both, "done"))
    talk.ask("twice")
    assert [m.text for m in talk.history() if isinstance(m, ToolMessage)] == ["2", "4"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (call("fail", why="the disk is gone"), "the disk is gone"),
        (call("ad", a=1, b=2), "did you mean add"),
        (call("nothing_like_it"), "The tools are: add, fail"),
        (call("add", a="x"), "arguments of add do not fit"),
        (
            AIMessage(
                "",
                invalid_tool_calls=[
                    {
                        "name": "add",
                        "args": "a = 1",
                        "id": "c",
                        "error": None,
                        "type": "invalid_tool_call",
                    }
                ],
            ),
            "not valid JSON",
        ),
    ],
)
def test_a_failing_call_is_an_answer_to_the_model(answer: AIMessage, told: str) -> None:
    model = script(answer, "I see.")
    talk = conversation(model)
    assert talk.ask("try").text == "I see."
    [result] = [m for m in talk.history() if isinstance(m, ToolMessage)]
    assert result.status == "error"
    assert told in result.text
    assert_paired(model.sent[1][1:])


def test_an_endless_tool_loop_ends_with_a_notice_and_the_thread_goes_on() -> None:
    endless = script(call("add", a=1, b=1))
    talk = conversation(endless, Context(model_limit=4_000, max_model_calls=3))
    answer = talk.ask("loop")
    assert answer.status == "call_budget"
    assert "3 model calls" in answer.text
    assert len(endless.sent) == 3
    after = Conversation(compiled(script("fine")), "t", context=SMALL)
    after.graph.checkpointer = talk.graph.checkpointer
    assert after.ask("and now?").text == "fine"


def test_the_notice_speaks_the_users_language() -> None:
    talk = conversation(
        script(call("add", a=1, b=1)), Context(model_limit=4_000, max_model_calls=1)
    )
    assert "模型调用" in talk.ask("一直算下去吧，好吗？").text


def test_an_empty_answer_is_asked_for_once_more() -> None:
    model = script(AIMessage(""), "here I am")
    assert conversation(model).ask("hello").text == "here I am"
    assert len(model.sent) == 2


def test_two_empty_answers_end_the_turn_with_a_notice() -> None:
    talk = conversation(script(AIMessage("  ")))
    answer = talk.ask("hello")
    assert answer.status == "empty_answer"
    assert "empty answer" in answer.text
    assert [m.type for m in talk.history()] == ["human", "ai"]


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([], EmptyMessageError),
        ([HumanMessage("  \n ")], EmptyMessageError),
        ([HumanMessage("x" * 8_001)], MessageTooLongError),
        ([HumanMessage("hi"), AIMessage("ho")], WrongRoleError),
        ([SystemMessage("obey"), HumanMessage("hi")], WrongRoleError),
        ([ChatMessage(content="obey", role="system"), HumanMessage("hi")], WrongRoleError),
        ([HumanMessage("\u200b \u2060")], EmptyMessageError),
        ([HumanMessage("字" * 7_000)], ContextTooLargeError),
    ],
)
def test_bad_input_is_refused_and_leaves_nothing(
    messages: list[BaseMessage], error: type[InputError]
) -> None:
    model = script("fine")
    graph = compiled(model)
    with pytest.raises(error) as caught:
        graph.invoke({"messages": messages}, CONFIG, context=SMALL)
    assert caught.value.user_text("en")
    assert graph.get_state(CONFIG).values.get("messages", []) == []
    assert model.sent == []
    out = graph.invoke({"messages": [HumanMessage("hello")]}, CONFIG, context=SMALL)
    assert [m.text for m in out["messages"]] == ["hello", "fine"]


def test_half_an_emoji_is_refused_from_a_person_and_mended_from_a_tool_or_model(
    tmp_path: Path,
) -> None:
    @tool
    def broken() -> str:
        """Return half an emoji."""
        return "half \ud83d"

    with open_persistence(f"sqlite:///{tmp_path}/t.db") as kept:
        model = script(call("broken", note="\ud83d", n=10**30), AIMessage("other half \ude00"))
        graph = build_graph(model=model, tools=[broken]).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        talk = Conversation(graph, "t", context=SMALL)
        with pytest.raises(InvalidTextError):
            talk.ask("\ud83d")
        assert talk.ask("whole 😀").text == "other half ?"
        assert [m.text for m in talk.history()] == ["whole 😀", "", "half ?", "other half ?"]


def test_the_facade_refuses_before_anything_is_written() -> None:
    talk = conversation(script("fine"))
    with pytest.raises(MessageTooLongError, match="8,000"):
        talk.ask("x" * 9_000)
    assert talk.graph.get_state(talk.config).created_at is None


def test_a_model_without_a_known_limit_is_a_config_error_and_the_message_survives() -> None:
    graph = compiled(script("fine"))
    with pytest.raises(ConfigError, match="model_limit"):
        graph.invoke({"messages": [HumanMessage("hello")]}, CONFIG)
    out = graph.invoke(None, CONFIG, context=SMALL)
    assert [m.text for m in out["messages"]] == ["hello", "fine"]


def test_a_limit_too_small_for_the_prompt_is_said_as_that() -> None:
    with pytest.raises(ContextTooLargeError) as caught:
        conversation(script("fine"), Context(model_limit=100)).ask("hi")
    assert "limit is too small" in caught.value.user_text("en")
    assert "上限太小" in caught.value.user_text("zh")


def test_a_whole_history_may_be_given_at_once() -> None:
    graph = compiled(script("fine"))
    given: list[BaseMessage] = [HumanMessage("a"), AIMessage("b"), HumanMessage("c")]
    out = graph.invoke({"messages": given}, CONFIG, context=SMALL)
    assert [m.text for m in out["messages"]] == ["a", "b", "c", "fine"]


def sizes_counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that will hold the length of each text that is counted anew."""
    ours = counter("o200k_base")
    count = ours._count
    sizes: list[int] = []

    def counted(text: str) -> int:
        sizes.append(len(text))
        return count(text)

    monkeypatch.setattr(ours, "_count", counted)
    return sizes


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (2, AIMessage("x" * 64_001)),
        (2, AIMessage([{"type": "text", "text": "x" * 64_001}])),
        (3, ToolMessage("x" * 64_001, tool_call_id="t")),
        (2, call("add", a="x" * (64_001 - len('{"a": ""}')))),
        (2, AIMessage("x", name="n" * 64_000)),
        (2, HumanMessage("x", additional_kwargs={"name": "n" * 64_000})),
    ],
)
def test_a_message_of_a_history_that_no_call_could_hold_is_refused_uncounted(
    place: int, message: BaseMessage, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = sizes_counted(monkeypatch)
    calling = [call("add", a=1, b=2)] if place == 3 else []
    history = [HumanMessage("a"), *calling, message, HumanMessage("c")]
    graph = compiled(script("fine"))
    with pytest.raises(HistoryMessageTooLongError) as caught:
        graph.invoke({"messages": history}, CONFIG, context=SMALL)
    assert (caught.value.place, caught.value.size) == (place, 64_001)
    assert caught.value.limit == 16 * 4_000
    assert "64,001" in caught.value.user_text("en")
    assert "64,001" in caught.value.user_text("zh")
    assert max(sizes) < 60_000
    assert graph.get_state(CONFIG).values.get("messages", []) == []


def test_a_long_text_of_a_history_is_taken_in_and_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = sizes_counted(monkeypatch)
    history = [HumanMessage("a"), AIMessage("x" * 60_000), HumanMessage("c")]
    out = compiled(script("fine")).invoke({"messages": history}, CONFIG, context=SMALL)
    assert out["messages"][-1].text == "fine"
    assert [size for size in sizes if size > 10_000] == [60_000]


def test_a_repeated_message_id_from_a_server_overwrites_nothing() -> None:
    talk = conversation(script(AIMessage("one", id="same"), AIMessage("two", id="same")))
    talk.ask("a")
    talk.ask("b")
    assert [m.text for m in talk.history()] == ["a", "one", "b", "two"]


def test_tools_of_one_name_are_refused_at_build() -> None:
    with pytest.raises(ConfigError, match="share a name"):
        build_graph(model=script("x"), tools=[add, add])


def test_cancelling_in_mid_tool_leaves_a_thread_whose_next_turn_works(tmp_path: Path) -> None:
    started = threading.Event()
    ended: list[str] = []

    @tool
    async def slow() -> str:
        """Wait."""
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "never"

    model = script(call("slow"), "next turn works")

    async def run() -> list[BaseMessage]:
        async with open_persistence(f"sqlite:///{tmp_path}/t.db") as kept:
            graph = build_graph(model=model, tools=[slow]).compile(
                checkpointer=kept.checkpointer, store=kept.store
            )
            talk = Conversation(graph, "t", context=SMALL)
            task = asyncio.create_task(talk.aask("wait for it"))
            while not started.is_set():
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await talk.apending()
            assert (await talk.aask("never mind")).text == "next turn works"
            return await talk.ahistory()

    history = asyncio.run(run())
    assert ended == ["cancelled"]
    # The transcript is not touched.
    assert [m.type for m in history] == ["human", "ai", "human", "ai"]
    assert [m.text for m in model.sent[1][1:]] == ["wait for it", "", INTERRUPTED, "never mind"]
    assert_paired(model.sent[1][1:])


def collect(talk: Conversation, text: str) -> list[dict[str, Any]]:
    return [dict(event) for event in talk.stream(text)]


def acollect(talk: Conversation, text: str) -> list[dict[str, Any]]:
    async def run() -> list[dict[str, Any]]:
        return [dict(event) async for event in talk.astream(text)]

    return asyncio.run(run())


@pytest.mark.parametrize("read", [collect, acollect])
def test_events_come_in_order_and_tokens_make_the_answer(
    read: Callable[[Conversation, str], list[dict[str, Any]]],
) -> None:
    events = read(conversation(script(call("add", a=1, b=2), "The sum is 3.")), "add")
    kinds = [event["type"] for event in events if event["type"] != "token"]
    assert kinds == ["context_usage", "tool_started", "tool_finished", "context_usage", "answer"]
    assert (
        "".join(event["text"] for event in events if event["type"] == "token")
        == "The sum is 3."
        == events[-1]["text"]
    )


def test_a_message_sent_again_by_its_id_is_one_message() -> None:
    model = script("fine")
    graph = compiled(model)
    sent: Any = {"messages": [HumanMessage("hello", id="h1")]}
    graph.invoke(sent, CONFIG, context=SMALL)
    assert [m.text for m in graph.invoke(sent, CONFIG, context=SMALL)["messages"]] == [
        "hello",
        "fine",
    ]
    with pytest.raises(MessageTooLongError):
        graph.invoke({"messages": [HumanMessage("x" * 9_000, id="h2")]}, CONFIG, context=SMALL)
    other: Any = {"messages": [HumanMessage("overwritten", id="h1"), HumanMessage("next", id="h3")]}
    out = graph.invoke(other, CONFIG, context=SMALL)
    assert [m.text for m in out["messages"]] == ["hello", "fine", "next", "fine"]


def test_a_message_sent_again_before_it_was_answered_is_answered() -> None:
    down = iter([True, False])

    def say(_: object) -> AIMessage:
        if next(down):
            raise ConnectionResetError(104, "reset")
        return AIMessage("fine")

    graph = compiled(ScriptedModel(say=say))
    sent: Any = {"messages": [HumanMessage("hello", id="h1")]}
    with pytest.raises(ProviderUnavailableError):
        graph.invoke(sent, CONFIG, context=SMALL)
    out = graph.invoke(sent, CONFIG, context=SMALL)
    assert [m.text for m in out["messages"]] == ["hello", "fine"]


def test_a_pair_is_one_message_also_when_it_is_read_back() -> None:
    graph = compiled(script("fine"))
    pair: Any = {"messages": ("user", "hi")}
    graph.invoke(pair, CONFIG, context=SMALL)
    assert [m.text for m in graph.get_state(CONFIG).values["messages"]] == ["hi", "fine"]


def test_a_call_without_an_id_keeps_its_result() -> None:
    nameless = AIMessage("", tool_calls=[{"name": "add", "args": {"a": 1, "b": 2}, "id": None}])
    talk = conversation(script(nameless, "done"))
    talk.ask("add")
    assert [m.text for m in talk.history()] == ["add", "", "3", "done"]
    assert_paired(talk.view()[1:])


@pytest.mark.parametrize(
    ("answers", "steps"),
    [
        (["Five."], ["ingest", "respond", "settle"]),
        (
            [call("recall", query="five"), "Five."],
            ["ingest", "respond", "run_tools", "respond", "settle"],
        ),
    ],
    ids=["plain", "with a tool"],
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_turn_takes_no_step_only_to_count(
    answers: list[AIMessage | str], steps: list[str], asynchronous: bool
) -> None:
    app = build_graph(model=script(*answers)).compile(checkpointer=InMemorySaver())
    given: Any = {"messages": [HumanMessage("How many?")]}
    config: Any = {"configurable": {"thread_id": "t"}}
    limit = Context(model_limit=16_000)

    async def updates() -> list[Any]:
        return [
            update
            async for update in app.astream(given, config, context=limit, stream_mode="updates")
        ]

    found = (
        asyncio.run(updates())
        if asynchronous
        else [*app.stream(given, config, context=limit, stream_mode="updates")]
    )
    assert [name for update in found for name in update] == steps
    usages = [update["usage"] for step in found for update in step.values() if "usage" in update]
    assert len(usages) == steps.count("respond")


def test_a_message_sent_again_by_its_id_ends_a_bare_run_with_the_answer_it_has() -> None:
    model = script("one", "two")
    graph = compiled(model)
    first, second = HumanMessage("first", id="a"), HumanMessage("second", id="b")
    graph.invoke({"messages": [first]}, CONFIG, context=SMALL)
    again = graph.invoke({"messages": [first.model_copy()]}, CONFIG, context=SMALL)
    assert [m.text for m in again["messages"]] == ["first", "one"]
    graph.invoke({"messages": [second]}, CONFIG, context=SMALL)
    again = graph.invoke(
        {"messages": [first.model_copy(), second.model_copy()]}, CONFIG, context=SMALL
    )
    assert [m.text for m in again["messages"]] == ["first", "one", "second", "two"]
    assert graph.get_state(CONFIG).next == ()
    assert len(model.sent) == 2


@pytest.mark.parametrize("when_busy", ["queue", "steer"])
def test_a_question_asked_again_by_its_id_gets_the_answer_it_has(when_busy: Any) -> None:
    model = script("one", "two")
    graph = build_graph(model=model, tools=[add, fail]).compile(
        checkpointer=InMemorySaver(), store=InMemoryStore()
    )
    talk = Conversation(graph, "t", context=SMALL, when_busy=when_busy)
    first = talk.ask("first", id="a")
    talk.ask("second", id="b")
    assert talk.ask("first", id="a") == replace(first, usage=None)
    assert asyncio.run(talk.aask("second", id="b")).text == "two"
    assert [m.text for m in talk.history()] == ["first", "one", "second", "two"]


def test_a_question_asked_again_by_its_id_goes_on_where_its_turn_was_interrupted() -> None:
    down: list[Exception] = [ConnectionError()]

    def say(_: Any) -> AIMessage:
        if down:
            raise down.pop()
        return AIMessage("yes")

    talk = conversation(ScriptedModel(say=say))
    with pytest.raises(ProviderUnavailableError):
        talk.ask("first", id="a")
    assert talk.ask("first", id="a").text == "yes"
    assert [m.text for m in talk.history()] == ["first", "yes"]


def test_a_question_that_failed_before_another_was_answered_is_answered_anew_by_its_id() -> None:
    down: list[Exception] = [ConnectionError()]

    def say(messages: Any) -> AIMessage:
        if down:
            raise down.pop()
        return AIMessage(f"answer to {messages[-1].text}")

    talk = conversation(ScriptedModel(say=say))
    with pytest.raises(ProviderUnavailableError):
        talk.ask("first", id="a")
    talk.ask("second", id="b")
    assert talk.ask("first", id="a").text == "answer to first"
    assert talk.ask("first", id="a").text == "answer to first"
    assert [m.text for m in talk.history()] == [
        "first",
        "second",
        "answer to second",
        "first",
        "answer to first",
    ]


def test_an_id_that_another_message_has_is_refused_and_not_answered_with_its_answer() -> None:
    talk = conversation(
        ScriptedModel(say=lambda messages: AIMessage(f"answer to {messages[-1].text}"))
    )
    talk.ask("first", id="a")
    for _ in range(2):
        with pytest.raises(
            ConfigError, match="the id 'a' belongs to another message of this thread: give"
        ):
            talk.ask("second", id="a")
        talk.ask("third", id="b")
    assert talk.ask("first", id="a").text == "answer to first"
    assert [m.text for m in talk.history()] == [
        "first",
        "answer to first",
        "third",
        "answer to third",
    ]


def test_a_question_that_failed_and_was_excluded_is_asked_anew_by_its_id() -> None:
    down: list[Exception] = [ConnectionError()]

    def say(messages: Any) -> AIMessage:
        if down:
            raise down.pop()
        return AIMessage(f"answer to {messages[-1].text}")

    talk = conversation(ScriptedModel(say=say))
    with pytest.raises(ProviderUnavailableError):
        talk.ask("first", id="a")
    talk.exclude("a")
    assert talk.ask("first", id="a").text == "answer to first"
    talk.exclude("a/again")
    assert talk.ask("first", id="a").text == "answer to first"  # it was answered: excluded or not
    assert [m.text for m in talk.history()] == ["first", "first", "answer to first"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"images": b"\x89PNG"},
        {"images": [Path("a.png")]},
        {"images": "http://x/y.png"},
        {"name": 3},
        {"id": "\0"},
        {"name": "n" * 201},
    ],
)
def test_a_question_of_another_shape_is_refused_before_anything_is_written(
    wrong: dict[str, Any],
) -> None:
    talk = conversation(script("yes"))
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        talk.ask("hello", **wrong)


def test_a_retired_question_asked_again_by_its_id_gets_its_answer(tmp_path: Path) -> None:
    words = "w " * 60
    model = ScriptedModel(say=lambda messages: AIMessage(f"answer to {messages[-1].text}"))
    policy = CompactionPolicy(retire_after=12, keep_rounds=2, min_messages=4)
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
        graph = build_graph(model=model, policy=policy, summarizer=False).compile(
            checkpointer=kept.checkpointer, store=kept.store
        )
        talk = Conversation(graph, "t", context=Context(model_limit=2_500))
        for number in range(30):
            talk.ask(f"question {number} {words}", id=str(number))
        live = graph.get_state(talk.config).values["messages"]
        assert "2" not in {message.id for message in live}
        asked = len(model.sent)
        assert talk.ask(f"question 2 {words}", id="2").text.startswith("answer to question 2 ")
        with pytest.raises(ConfigError, match="belongs to another message"):
            talk.ask("question 2", id="2")
        with pytest.raises(UsedIdError):
            graph.invoke(
                {"messages": [HumanMessage("question 2", id="2")]},
                talk.config,
                context=talk.context,
            )
        graph.invoke(
            {"messages": [HumanMessage(f"question 2 {words}", id="2")]},
            talk.config,
            context=talk.context,
        )
        assert len(model.sent) == asked
        assert len(talk.history()) == 60


def test_a_question_has_a_speaker_and_images() -> None:
    talk = conversation(script("a dot"))
    dot = b"\x89PNG\r\n\x1a\n" + b"0" * 20
    talk.ask("What is this?", name="ann", images=[dot, "https://example.com/a.jpg"])
    [asked, _] = talk.history()
    assert (asked.name, asked.text) == ("ann", "What is this?")
    urls = [
        part["image_url"]["url"]
        for part in asked.content
        if isinstance(part, dict) and part["type"] == "image_url"
    ]
    assert urls == [
        "data:image/png;base64,iVBORw0KGgowMDAwMDAwMDAwMDAwMDAwMDAwMA==",
        "https://example.com/a.jpg",
    ]


@pytest.mark.parametrize(
    "wrong", [{"id": ""}, {"id": "x" * 201}, {"id": 7}, {"images": [b"%PDF"]}], ids=str
)
def test_a_wrong_id_or_image_is_refused_before_anything_is_written(wrong: Any) -> None:
    talk = conversation(script())
    with pytest.raises(ConfigError):
        talk.ask("hello", **wrong)
    assert talk.graph.get_state(talk.config).values == {}


@pytest.mark.parametrize("on_disconnect", ["finish", "cancel"])
def test_a_reader_that_goes_away_loses_no_answer_where_the_turn_is_to_finish(
    on_disconnect: Any,
) -> None:
    reading, goes_on = threading.Event(), threading.Event()

    def say(_: Any) -> AIMessage:
        reading.set()
        goes_on.wait(10)
        return AIMessage("yes")

    async def run() -> list[str]:
        talk = conversation(ScriptedModel(say=say))

        async def read() -> None:
            async for _ in talk.astream("first", on_disconnect=on_disconnect):
                pass

        reader = asyncio.create_task(read())
        await asyncio.to_thread(reading.wait, 10)
        reader.cancel()
        with suppress(asyncio.CancelledError):
            await reader
        goes_on.set()
        await talk.aresume() if on_disconnect == "cancel" else await talk.aask("second")
        return [m.text for m in await talk.ahistory()]

    expected = ["first", "yes", "second", "yes"] if on_disconnect == "finish" else ["first", "yes"]
    assert asyncio.run(run()) == expected


def test_an_unknown_choice_for_a_reader_that_goes_away_is_refused() -> None:
    with pytest.raises(ConfigError, match="on_disconnect"):
        conversation(script()).astream("hello", on_disconnect="stay")  # type: ignore[arg-type]


def test_the_error_of_a_turn_that_finishes_alone_reaches_its_reader() -> None:
    async def run() -> None:
        async for _ in conversation(script()).astream("", on_disconnect="finish"):
            pass

    with pytest.raises(EmptyMessageError):
        asyncio.run(run())


def test_what_people_read_below_an_answer_is_in_the_state_and_in_nothing_that_a_model_is_sent() -> (
    None
):
    def footer(thread_id: str, messages: Sequence[BaseMessage]) -> str:
        return f"\n\n[{thread_id}: 4711](/{len(messages)})" if len(messages) > 2 else ""

    answers: list[AIMessage | str] = [call("add", a=1, b=2), "It is 3.", "no tool"]
    plain, footed = script(*answers), script(*answers)
    talks = [conversation(plain), conversation(footed)]
    talks[1].graph = build_graph(model=footed, tools=[add, fail], hooks=[Footer(footer)]).compile(
        checkpointer=InMemorySaver()
    )
    usages = [[talk.ask(text).usage for text in ("1 + 2?", "and now?", "again?")] for talk in talks]
    assert usages[0] == usages[1]
    assert [[m.text for m in sent] for sent in plain.sent] == [
        [m.text for m in sent] for sent in footed.sent
    ]
    state = [m.text for m in talks[1].graph.get_state(talks[1].config).values["messages"]]
    assert state == [
        "1 + 2?",
        "",
        "3",
        "It is 3.\n\n[t: 4711](/4)",
        "and now?",
        "no tool",
        "again?",
        "no tool",
    ]
    assert not [m for m in [*talks[1].view(), *talks[1].history()] if "4711" in m.text]
    answer = talks[1].graph.get_state(talks[1].config).values["messages"][3]
    talks[1].graph.update_state(
        talks[1].config,
        {
            "messages": [
                {"role": "assistant", "id": answer.id, "content": "Three.\n\n[t: 4711](/4)"}
            ]
        },
    )
    assert [m.text for m in talks[1].view()][4] == "Three."
