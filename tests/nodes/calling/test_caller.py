"""One model call over real HTTP: the run's settings in the request, further tries, fallbacks, and
who answered.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import SecretStr, create_model

from longtable.base.errors import (
    ConfigError,
    ProviderAuthError,
    ProviderError,
    ProviderRateLimitedError,
    ProviderUnavailableError,
    UnknownModelError,
)
from longtable.graph import (
    Context,
    Conversation,
    Price,
    Summarizer,
    build_graph,
    metadata_of,
    open_persistence,
    usage_of_threads,
)
from longtable.memory.policy import rolling_chat
from longtable.nodes.calling.caller import call_settings
from tests.support import threads
from tests.support.model_server import (
    ChatRequest,
    ModelServer,
    Reply,
    answer_or_summary,
    context_overflow,
    open_model_server,
    rate_limited,
    say,
    server_error,
    unauthorized,
)
from tests.support.models import ScriptedModel, script

CONTEXT = Context(model_limit=16_000)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with open_model_server() as running:
        yield running


@pytest.fixture
def other() -> Iterator[ModelServer]:
    with open_model_server() as running:
        yield running


def talk(model: Any, context: Context = CONTEXT, **settings: Any) -> Conversation:
    return Conversation(
        build_graph(model=model, **settings).compile(checkpointer=InMemorySaver()),
        "t",
        context=context,
    )


@pytest.mark.parametrize(
    ("model", "settings", "sent"),
    [
        ("gpt-4o-mini", {}, {}),
        ("gpt-4o-mini", {"temperature": 0.2}, {"temperature": 0.2}),
        ("gpt-5", {"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
        ("gpt-5", {"thinking": False}, {"reasoning_effort": "none"}),
        (
            "qwen3-32b",
            {"thinking": False},
            {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
        ),
        (
            "qwen3-32b",
            {"thinking": 900},
            {
                "chat_template_kwargs": {"enable_thinking": True, "thinking": True},
                "thinking_budget": 900,
            },
        ),
    ],
)
def test_settings_of_a_run_stand_in_the_request(
    server: ModelServer, model: str, settings: dict[str, Any], sent: dict[str, Any]
) -> None:
    server.script(say("Hello."))
    talk(server.chat_model(model), CONTEXT.replace(**settings)).ask("Hi")
    names = {
        "temperature",
        "reasoning_effort",
        "thinking",
        "thinking_budget",
        "chat_template_kwargs",
        "enable_thinking",
    }
    assert {name: value for name, value in server.requests[0].body.items() if name in names} == sent


@pytest.mark.parametrize(
    ("base_url", "model", "sent"),
    [
        ("https://api.deepseek.com/v1", "deepseek-v4-pro", {"thinking": {"type": "disabled"}}),
        (
            "https://dashscope.aliyuncs.com/compatible-mode/v1",
            "qwen-plus",
            {"enable_thinking": False},
        ),
        (
            "http://127.0.0.1:1/v1",
            "deepseek-v3.2",
            {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
        ),
    ],
)
def test_thinking_is_turned_off_as_each_server_takes_it(
    server: ModelServer, base_url: str, model: str, sent: dict[str, Any]
) -> None:
    made = server.chat_model(model, extra_body={"top_k": 5}).model_copy(
        update={"openai_api_base": base_url}
    )
    assert call_settings(Context(thinking=False), made) == {"extra_body": {"top_k": 5, **sent}}


@pytest.mark.parametrize(
    ("base_url", "model"),
    [("https://api.deepseek.com/v1", "deepseek-v4-pro"), ("https://api.openai.com/v1", "gpt-5")],
)
def test_a_budget_that_no_server_takes_is_said(
    server: ModelServer, base_url: str, model: str
) -> None:
    with pytest.raises(ConfigError, match="takes no number of tokens"):
        call_settings(
            Context(thinking=100),
            server.chat_model(model).model_copy(update={"openai_api_base": base_url}),
        )


def test_anthropics_models_take_thinking_with_a_budget() -> None:
    anthropic = pytest.importorskip(
        "langchain_anthropic", reason="langchain-anthropic is not installed"
    )
    model = anthropic.ChatAnthropic(
        model_name="claude-sonnet-4-5", api_key=SecretStr("no-key"), timeout=None, stop=None
    )
    thinking = {"type": "enabled", "budget_tokens": 2_000}
    assert call_settings(Context(thinking=2_000), model) == {"thinking": thinking}


def test_a_setting_the_model_cannot_take_is_said() -> None:
    with pytest.raises(
        ConfigError, match=r"Context\.thinking cannot be set for a run of ScriptedModel"
    ):
        talk(script("hi"), CONTEXT.replace(thinking=True)).ask("Hi")
    for name, value in {
        "temperature": 3,
        "reasoning_effort": "much",
        "thinking": "yes",
        "request_timeout": -1,
    }.items():
        with pytest.raises(ConfigError, match=f"Context.{name} must be"):
            Context().replace(**{name: value})
    with pytest.raises(
        ConfigError,
        match=(
            "thinking must be a whole number from 1 to 10,000,000 or True, False or None, found 0"
        ),
    ):
        Context(thinking=0)


@pytest.mark.parametrize(
    ("field", "name", "least"),
    [
        ("max_tokens", "llama-3", 200),
        ("max_output_tokens", "models/gemini-2.0-flash", 200),
        ("max_output_tokens", "models/gemini-2.5-flash", 4_096),
        ("num_predict", "llama3.2:3b", 200),
        ("num_predict", "deepseek-r1:8b", 4_096),
        (None, "other", None),
    ],
)
def test_a_summary_is_bounded_by_the_field_that_the_clients_class_has(
    field: str | None, name: str, least: int | None
) -> None:
    bounds: list[int | None] = []

    class Client(ScriptedModel):
        model: str

        def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
            assert not {"max_tokens", "max_output_tokens", "num_predict"} & kwargs.keys()
            bounds.append(getattr(self, field) if field else None)
            return super()._generate(*args, **kwargs)

    fields: Any = {field: (int | None, None)} if field else {}
    client = create_model("Client", __base__=Client, **fields)(
        model=name, say=lambda _: AIMessage(threads.GOOD), profile={"max_input_tokens": 100_000}
    )
    threads.talk(threads.thread(summarizer=client), 14)
    assert bounds
    assert all(
        bound is None if least is None else bound is not None and least < bound < least + 1_500
        for bound in bounds
    )
    assert field is None or getattr(client, field) is None


def test_a_busy_provider_is_asked_again_after_the_time_it_names(server: ModelServer) -> None:
    server.script(rate_limited(0.05), server_error(503), say("There."))
    started = time.monotonic()
    events = list(talk(server.chat_model(), CONTEXT.replace(max_retries=2)).stream("Hi"))
    retries = [
        (event["code"], event["wait_s"], event["attempt"])
        for event in events
        if event["type"] == "model_retry"
    ]
    assert retries == [("provider_rate_limited", 0.05, 1), ("provider_unavailable", 1.0, 2)]
    assert time.monotonic() - started >= 1
    assert events[-1]["type"] == "answer"
    assert len(server.requests) == 3


@pytest.mark.parametrize("client_retries", [1, None])
def test_the_clients_own_waits_are_told_before_they_begin(
    server: ModelServer, client_retries: int | None
) -> None:
    server.script(rate_limited(2), say("There."))
    model = server.chat_model(max_retries=client_retries)
    told: list[float] = []
    for event in talk(model, CONTEXT).stream("Hi"):
        if event["type"] == "model_retry":
            told.append(time.monotonic())
            assert (event["wait_s"], len(server.requests)) == (2, 1)
    assert time.monotonic() - told[0] >= 2
    assert model.root_client.max_retries == (1 if client_retries else 2)


@pytest.mark.parametrize(
    ("fault", "error"),
    [(rate_limited(900), ProviderRateLimitedError), (unauthorized(), ProviderAuthError)],
)
def test_no_further_try_where_it_cannot_help_or_takes_too_long(
    server: ModelServer, fault: Any, error: type[ProviderError]
) -> None:
    server.always(fault)
    with pytest.raises(error):
        talk(server.chat_model(), CONTEXT.replace(max_retries=3)).ask("Hi")
    assert len(server.requests) == 1


def test_a_call_waits_no_longer_than_the_run_says(server: ModelServer) -> None:
    def late(request: ChatRequest) -> Reply:
        time.sleep(0.5)
        return say("late")

    server.always(late)
    with pytest.raises(ProviderUnavailableError):
        talk(server.chat_model(), CONTEXT.replace(request_timeout=0.1)).ask("Hi")


def test_a_run_chooses_among_the_operators_models_and_usage_is_told_by_model(
    server: ModelServer, other: ModelServer
) -> None:
    server.always(
        lambda request: say(f"{request.body['model']} says", input_tokens=1_000, output_tokens=10)
    )
    other.always(
        lambda request: say(f"{request.body['model']} says", input_tokens=2_000, output_tokens=20)
    )
    models = {"small": other.chat_model("gpt-4")}
    with open_persistence("memory://") as persistence:
        graph = build_graph(model=server.chat_model("gpt-4o"), models=models).compile(
            persistence.checkpointer, store=persistence.store
        )

        def ask(name: str | None) -> tuple[str, int]:
            conversation = Conversation(graph, "t", context=Context(model=name))
            return (
                conversation.ask("Hi").text,
                graph.get_state(conversation.config).values["usage"]["limit"],
            )

        said = [ask(None), ask("small"), ask(None)]
        assert said == [("gpt-4o says", 128_000), ("gpt-4 says", 8_192), ("gpt-4o says", 128_000)]
        prices = {"gpt-4": Price(input=1, output=0), "gpt-4o": Price(input=10, output=0)}
        rows = {
            row.model: (row.calls, row.input, row.cost)
            for row in usage_of_threads(persistence, by=["model"], prices=prices)
        }
        assert rows == {"gpt-4o": (2, 2_000, 0.02), "gpt-4": (1, 2_000, 0.002)}


def test_a_model_that_the_operator_does_not_offer_is_refused_and_nothing_is_kept(
    server: ModelServer, other: ModelServer
) -> None:
    conversation = talk(server.chat_model(), models={"small": other.chat_model()})
    with pytest.raises(UnknownModelError, match=r"operator's models \(small\), found 'large'"):
        Conversation(conversation.graph, "t", context=CONTEXT.replace(model="large")).ask("Hi")
    assert (conversation.history(), server.requests, other.requests) == ([], [], [])


def test_a_chosen_model_writes_its_own_summaries_and_they_count_as_its(
    server: ModelServer, other: ModelServer
) -> None:
    server.always(answer_or_summary)
    other.always(answer_or_summary)
    policy = rolling_chat()
    context = Context(model="small", model_limit=16_000)
    with open_persistence("memory://") as persistence:
        graph = build_graph(
            model=server.chat_model("gpt-4o"),
            models={"small": other.chat_model("gpt-4o-mini")},
            policy=policy,
        )
        conversation = Conversation(
            graph.compile(persistence.checkpointer, store=persistence.store), "t", context=context
        )
        for number in range(8):
            conversation.ask(f"Question {number}: " + "a word or two " * 20)
        rows = {
            (row.model, row.purpose)
            for row in usage_of_threads(persistence, by=["model", "purpose"])
        }
    assert server.requests == []
    assert ("gpt-4o-mini", "summary") in rows


def test_a_turn_that_waits_is_finished_by_the_model_it_was_counted_for(
    server: ModelServer, other: ModelServer
) -> None:
    server.always(say("own"))
    other.script(server_error(500), say("chosen"))
    first = talk(
        server.chat_model(), CONTEXT.replace(model="small"), models={"small": other.chat_model()}
    )
    with pytest.raises(ProviderUnavailableError):
        first.ask("Hi")
    assert Conversation(first.graph, "t", context=CONTEXT).resume().text == "chosen"


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "120", 1e20])
def test_seconds_that_no_summary_can_be_given_are_refused_when_built(
    server: ModelServer, seconds: Any
) -> None:
    with pytest.raises(ConfigError, match=r"Summarizer\.seconds must be over 0"):
        build_graph(model=server.chat_model(), summarizer=Summarizer(seconds=seconds))


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("fault", [unauthorized(), server_error(500), rate_limited(None)])
def test_a_fallback_answers_and_is_named(
    server: ModelServer, other: ModelServer, fault: Any, asynchronous: bool
) -> None:
    server.always(fault)
    other.script(say("From the other."))
    conversation = talk(server.chat_model("gpt-4o"), fallbacks=[other.chat_model("gpt-4o-mini")])
    if asynchronous:

        async def run() -> list[Any]:
            return [event async for event in conversation.astream("Hi")]

        events = asyncio.run(run())
    else:
        events = list(conversation.stream("Hi"))
    (told,) = [dict(event) for event in events if event["type"] == "model_fallback"]
    assert (told["model"], told["fallback"]) == ("gpt-4o", "gpt-4o-mini")
    answered = metadata_of(conversation.history()[-1])
    assert (answered.model, answered.instead_of) == ("gpt-4o-mini", "gpt-4o")
    assert other.requests[0].tool_names == server.requests[0].tool_names


def test_where_a_part_of_the_answer_has_come_no_other_model_answers(
    server: ModelServer, other: ModelServer
) -> None:
    server.always(Reply(text="The answer is 42.", breaks="drop"))
    with pytest.raises(ProviderUnavailableError):
        talk(
            server.chat_model(), CONTEXT.replace(max_retries=3), fallbacks=[other.chat_model()]
        ).ask("Hi")
    assert (len(server.requests), len(other.requests)) == (1, 0)


def test_an_overflow_compacts_and_goes_to_no_fallback(
    server: ModelServer, other: ModelServer
) -> None:
    server.script(context_overflow(limit=12_000), say("Shorter."))
    answer = talk(server.chat_model(), fallbacks=[other.chat_model()]).ask("Hi")
    assert (answer.text, len(other.requests)) == ("Shorter.", 0)


def test_the_last_models_error_is_raised(server: ModelServer, other: ModelServer) -> None:
    server.always(server_error(500))
    other.always(unauthorized())
    with pytest.raises(ProviderAuthError):
        talk(server.chat_model(), fallbacks=[other.chat_model()]).ask("Hi")


def test_a_models_messages_are_not_made_into_one_text_for_nobody() -> None:
    rendered: list[str] = []

    def called(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name == "get_buffer_string":
            rendered.append(frame.f_code.co_filename)

    graph = build_graph(model=script("Five.")).compile()
    sys.setprofile(called)
    threading.setprofile(called)
    try:
        graph.invoke({"messages": [HumanMessage("How many?")]}, context=Context(model_limit=16_000))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert not rendered
