"""A conversation over its limit several times, for the tests of the panel."""

from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage

from longtable.app.pages.context.panel_data import (
    PanelData,
    PanelThread,
    panel_data,
    panel_thread,
)
from longtable.app.pages.context.transcript_facts import ArchiveFacts
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


def known_of(conversation: Conversation) -> PanelThread:
    """Return what is read of a conversation for the panel, nothing of it known before."""
    return panel_thread(conversation, ArchiveFacts())


def data_of(conversation: Conversation) -> PanelData:
    """Return the panel's data of a conversation that has had a call."""
    data = panel_data(known_of(conversation), conversation.context)
    assert data is not None
    return data
