"""A conversation over its limit several times, for the tests of the panel."""

from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage

from longtable.app.pages.context.panel_data import PanelData, panel_data, thread_record
from longtable.graph import Conversation, Summarizer
from tests.support.models import ScriptedModel
from tests.support.threads import GOOD, summariser, talk, thread

HOSTILE = '</pre><script>alert("x")</script><img src=x onerror=alert(1)>'


def long_talk(turns: int = 24, **more: Any) -> Conversation:
    """Return a conversation with compactions by a model and, after its second summary, by code."""
    asked: list[object] = []

    def summary(sent: object) -> AIMessage:
        asked.append(sent)
        return AIMessage(GOOD) if len(asked) <= 2 else AIMessage("")

    conversation = thread(summarizer=Summarizer(model=summariser(summary)), **more)
    talk(conversation, turns)
    return conversation


def short_talk(say: Callable[[str], str] = lambda _: HOSTILE) -> Conversation:
    """Return a conversation of one turn with a hostile question and answer."""
    model = ScriptedModel(say=lambda sent: AIMessage(say(sent[-1].text)))
    conversation = thread(model)
    conversation.ask(HOSTILE)
    return conversation


def data_of(conversation: Conversation) -> PanelData:
    """Return the panel's data of a conversation that has had a call."""
    data = panel_data(thread_record(conversation), conversation.context)
    assert data is not None
    return data
