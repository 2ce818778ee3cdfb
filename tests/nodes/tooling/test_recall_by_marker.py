"""Recall by marker, for models that call no tools: originals are loaded, marker and draft reach
nobody.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from longtable.graph import Conversation, MemoryTools
from tests.support.models import ScriptedModel
from tests.support.threads import CONTEXT, of_type, summariser, talk, thread

FACT = "How far does the Kingfisher budget of 48,250 euros go?"
MODES: Any = ["messages", "updates", "values", "custom", "debug", "tasks", "checkpoints"]


class Toolless(ScriptedModel):
    """A model that calls no tools."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        raise NotImplementedError


def asker(*answers: str) -> Toolless:
    """Return a model that answers "budget?" with these in turn, and repeats what it was given of
    Kingfisher at the end.
    """
    given: Iterator[str] = iter(answers)

    def say(sent: Any) -> AIMessage:
        if not sent[-1].text.startswith("budget?"):
            return AIMessage(f"noted {sent[-1].text.split()[0]} " + "a " * 82)
        return AIMessage(
            next(
                given,
                (
                    "It was 48,250."
                    if "48,250 euros" in sent[0].text.split("Recalled")[-1]
                    else "unknown"
                ),
            )
        )

    return Toolless(say=say)


def long_thread(model: ScriptedModel) -> Conversation:
    # One that forgets everything.
    conversation = thread(model, memory_tools=MemoryTools(recall=True), summarizer=summariser())
    conversation.ask(FACT)
    talk(conversation, 24, start=1, words=60)
    assert "48,250" not in str(list(conversation.view()))
    return conversation


def test_a_marker_brings_the_originals_and_the_model_is_asked_again() -> None:
    model = asker("[NEED_CONTEXT: Kingfisher budget]")
    conversation = long_thread(model)
    events = [dict(event) for event in conversation.stream("budget?")]
    [answer] = of_type(events, "answer")
    assert answer["text"] == "It was 48,250."
    [recall] = of_type(events, "recall")
    assert (recall["via"], recall["query"], recall["turns"]) == ("marker", "Kingfisher budget", [1])
    assert FACT in model.sent[-1][0].text
    assert conversation.ask("and?").recalls == 0


@pytest.mark.parametrize("draft", ["", "Let me look that up. ", "让我查一下。", "Xanadu " * 300])
def test_neither_marker_nor_draft_reaches_anyone_in_any_mode(draft: str) -> None:
    conversation = long_thread(asker(f"{draft}[NEED_CONTEXT: Kingfisher]"))
    given: Any = {"messages": [HumanMessage("budget?")]}
    shown = str(
        list(
            conversation.graph.stream(
                given, conversation.config, context=CONTEXT, stream_mode=MODES
            )
        )
    )
    assert "It was 48,250." in shown
    assert "[NEED_CONTEXT: Kingfisher" not in shown
    assert not draft or draft.strip() not in shown
    assert "Xanadu" not in shown
    assert "NEED_CONTEXT" not in str(conversation.history())


def test_the_same_holds_for_async_event_streams() -> None:
    conversation = long_thread(asker("Let me look. [NEED_CONTEXT: Kingfisher]"))

    async def run() -> list[Any]:
        given: Any = {"messages": [HumanMessage("budget?")]}
        return [
            e
            async for e in conversation.graph.astream_events(
                given, conversation.config, context=CONTEXT, version="v2"
            )
        ]

    tokens = "".join(
        str(e["data"]["chunk"].content)
        for e in asyncio.run(run())
        if e["event"] == "on_chat_model_stream"
    )
    assert tokens == "It was 48,250."


@pytest.mark.parametrize("draft", ["", "Let me look. "])
@pytest.mark.parametrize(
    "marker",
    [
        "[NEED_CONTEXT: xylophone]",
        "NEED_CONTEXT: xylophone",
        "<NEED_CONTEXT: xylophone>",
        "【NEED_CONTEXT：xylophone】",
        "(NEED_CONTEXT: xylophone)",
        "**NEED_CONTEXT: xylophone**",
    ],
)
def test_a_marker_that_finds_nothing_is_told_so_and_asked_again(draft: str, marker: str) -> None:
    model = asker(f"{draft}{marker}")
    conversation = long_thread(model)
    before = len(model.sent)
    answer = conversation.ask("budget?")
    assert answer.text == "unknown"
    assert len(model.sent) - before == 2
    assert "Nothing was found for “xylophone”" in model.sent[-1][0].text
    assert "Let me look" not in str(conversation.history())


def test_a_draft_is_no_answer_however_often_the_model_asks() -> None:
    conversation = long_thread(asker(*["Let me look. [NEED_CONTEXT: xylophone]"] * 9))
    answer = conversation.ask("budget?")
    assert answer.status == "recall_exhausted"
    assert "Let me look" not in f"{answer.text}{conversation.history()}"


def test_a_range_that_does_not_fit_names_the_marker_that_reads_on() -> None:
    model = asker("[NEED_CONTEXT: m1-m40]")
    long_thread(model).ask("budget?")
    assert FACT in model.sent[-1][0].text
    assert re.search(r"The next: \[NEED_CONTEXT: m\d+-m40\]", model.sent[-1][0].text)


def test_a_model_that_never_stops_asking_is_followed_three_times_and_the_person_reads_what_was_searched() -> (
    None
):
    model = asker(*["[NEED_CONTEXT: Kingfisher]"] * 9)
    conversation = long_thread(model)
    before = len(model.sent)
    answer = conversation.ask("budget?")
    assert len(model.sent) - before == 4
    assert answer.recalls == 3
    assert answer.status == "recall_exhausted"
    assert "“Kingfisher”" in answer.text
    assert "last search" in model.sent[-1][0].text


def test_two_markers_in_one_answer_load_both() -> None:
    model = asker("[NEED_CONTEXT: Kingfisher] and then [NEED_CONTEXT: q3]")
    conversation = long_thread(model)
    events = [dict(event) for event in conversation.stream("budget?")]
    assert [event["query"] for event in of_type(events, "recall")] == ["Kingfisher", "q3"]
    assert FACT in model.sent[-1][0].text
    assert "q3 w" in model.sent[-1][0].text


def test_brackets_of_other_words_are_words_of_the_answer() -> None:
    answer = thread(
        asker("See [1] and [NEED] and [a link](x)"), memory_tools=MemoryTools(recall=True)
    ).ask("budget?")
    assert answer.text == "See [1] and [NEED] and [a link](x)"


def test_a_model_that_calls_tools_is_told_of_no_marker() -> None:
    model = ScriptedModel(say=lambda _: AIMessage("fine"))
    thread(model, memory_tools=MemoryTools(recall=True)).ask("hello")
    assert "NEED_CONTEXT" not in model.sent[0][0].text


def test_tools_a_model_cannot_take_are_not_counted() -> None:
    answer = thread(asker(), memory_tools=MemoryTools(recall=True)).ask("hello")
    assert answer.usage is not None
    assert answer.usage["parts"]["tools"] == 0


# -- answers that are not whole --------------------------------------------------------------------


def test_an_answer_cut_off_by_the_providers_length_says_so() -> None:
    model = ScriptedModel(
        say=lambda _: AIMessage("The first half", response_metadata={"finish_reason": "length"})
    )
    conversation = thread(model)
    given: Any = {"messages": [HumanMessage("tell")]}
    values = conversation.graph.invoke(given, conversation.config, context=CONTEXT)
    assert values["turn"]["status"] == "cut_off"
    assert values["messages"][-1].text == "The first half"


def test_a_filtered_answer_is_no_empty_one() -> None:
    model = ScriptedModel(
        say=lambda _: AIMessage("", response_metadata={"finish_reason": "content_filter"})
    )
    conversation = thread(model)
    given: Any = {"messages": [HumanMessage("tell")]}
    values = conversation.graph.invoke(given, conversation.config, context=CONTEXT)
    assert values["turn"]["status"] == "content_filter"
    assert "content filter" in values["messages"][-1].text
