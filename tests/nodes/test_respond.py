"""What the provider reports teaches the thread: its tokens for each one counted, its limit when an
error names it.
"""

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from longtable.base.errors import ModelContextOverflowError
from longtable.graph import CompactionPolicy, Conversation, MemoryTools, build_graph
from longtable.memory.counting.tokens import counter
from tests.support.model_server import open_model_server, say
from tests.support.models import ScriptedModel
from tests.support.threads import CONTEXT, LIMIT, of_type, talk, thread, values_of

count = counter("o200k_base").messages


class TooLongError(Exception):
    """As an OpenAI-compatible server says it."""

    status_code = 400

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"This model's maximum context length is {limit} tokens. However, your messages"
            " resulted in more tokens."
        )


def reporting(factor: float) -> ScriptedModel:
    """Return a model whose provider counts `factor` tokens for each of ours."""

    def say(sent: Any) -> AIMessage:
        used = round(count(sent) * factor)
        usage: Any = {"input_tokens": used, "output_tokens": 90, "total_tokens": used + 90}
        return AIMessage(f"answer to {sent[-1].text.split()[0]} " + "a " * 82, usage_metadata=usage)

    return ScriptedModel(say=say)


def invoked(conversation: Conversation, turns: int) -> list[dict[str, Any]]:
    """Run turns without streaming, as the scripted model reports usage only then."""
    events: list[dict[str, Any]] = []
    for n in range(turns):
        given: Any = {"messages": [("user", f"q{n} " + "w " * 82)]}
        events += conversation.graph.stream(
            given, conversation.config, context=CONTEXT, stream_mode="custom"
        )
    return events


def test_a_provider_that_counts_more_makes_the_thread_compact_earlier() -> None:
    model = reporting(1.5)
    conversation = thread(model)
    events = invoked(conversation, 30)
    usages = of_type(events, "context_usage")
    assert usages[0]["ratio"] == 1
    assert usages[-1]["ratio"] == pytest.approx(1.5, abs=0.05)
    assert usages[-1]["calibrated"] == pytest.approx(usages[-1]["total"] * 1.5, rel=0.05)
    assert max(count(sent) * 1.5 for sent in model.sent[4:]) <= 0.6 * LIMIT * 1.02
    assert of_type(events, "context_compressed")


@pytest.mark.parametrize(
    ("model", "estimated"),
    [
        ("gpt-4o", False),
        ("qwen-plus", False),
        ("claude-sonnet-4-5", True),
        ("gemini-2.5-pro", True),
        ("mine", True),
    ],
)
@pytest.mark.filterwarnings(
    "ignore::longtable.memory.counting.model_limits.EncodingFallbackWarning"
)
def test_usage_says_that_it_estimates_wherever_another_tokenizer_counts(
    model: str, estimated: bool
) -> None:
    with open_model_server() as server:
        server.always(say("Hello."))
        conversation = thread(server.chat_model(model))
        events = [dict(event) for event in conversation.stream("Hi")]
    assert {event["estimated"] for event in of_type(events, "context_usage")} == {estimated}
    assert values_of(conversation)["usage"]["estimated"] is estimated


def test_a_provider_that_counts_less_or_reports_nothing_changes_nothing() -> None:
    for model in (reporting(0.6), reporting(0)):
        events = invoked(thread(model), 12)
        assert {usage["ratio"] for usage in of_type(events, "context_usage")} == {1}


def test_what_was_learned_survives_a_restart_and_not_another_model() -> None:
    conversation = thread(reporting(1.5))
    invoked(conversation, 6)
    saver: Any = conversation.graph.checkpointer
    again = Conversation(
        build_graph(model=reporting(1.5), memory_tools=MemoryTools(recall=False)).compile(
            checkpointer=saver
        ),
        "t",
        context=CONTEXT,
    )
    assert invoked(again, 1)[0]["ratio"] > 1.3

    class Other(ScriptedModel):
        model_name: str = "other"

    other = Conversation(
        build_graph(
            model=Other(say=reporting(0).say), memory_tools=MemoryTools(recall=False)
        ).compile(checkpointer=saver),
        "t",
        context=CONTEXT,
    )
    assert invoked(other, 1)[0]["ratio"] == 1


def limited(limit: int) -> ScriptedModel:
    def say(sent: Any) -> AIMessage:
        if count(sent) > limit:
            raise TooLongError(limit)
        return AIMessage("answer " + "a " * 82)

    return ScriptedModel(say=say)


def test_a_limit_that_an_error_names_is_kept_for_the_thread() -> None:
    model = limited(1_200)
    conversation = thread(model, policy=CompactionPolicy(ahead=False))
    events = talk(conversation, 24)
    assert all(event["status"] == "answered" for event in of_type(events, "answer"))
    assert of_type(events, "context_usage")[-1]["limit"] == 1_200
    assert values_of(conversation)["learned"]["limit"] == 1_200
    refused = sum(count(sent) > 1_200 for sent in model.sent)
    assert refused == 1  # once learned, no call is too long again


def test_a_call_that_never_fits_ends_with_what_is_too_big() -> None:
    conversation = thread(limited(10))
    with pytest.raises(ModelContextOverflowError, match=r"tokens sent: (system|messages) \d+"):
        conversation.ask("hello " + "w " * 100)
    assert len(conversation.history()) == 1
    assert conversation.pending()
