"""Small threads with fake models, for tests of the graph's memory."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from longtable.base.concurrency import SYNC, complete
from longtable.graph import Context, Conversation, MemoryTools, build_graph
from longtable.memory.compaction.compaction import Attempts, Draft, Job
from longtable.memory.compaction.rolling import Rolling
from longtable.nodes.state import State
from longtable.store.locks import locks_of
from tests.support.models import ScriptedModel

LIMIT = 3_000
CONTEXT = Context(model_limit=LIMIT)
SECRET = "Zanzibar-token"
GOOD = (
    f"## Facts and findings\n- the user asked for numbers {SECRET} [m1-m2]\n## Constraints\n- none"
)

Events = list[dict[str, Any]]


def talker() -> ScriptedModel:
    """Return a model that answers each question with its number."""
    return ScriptedModel(
        say=lambda sent: AIMessage(f"answer to {sent[-1].text.split()[0]} " + "a " * 82)
    )


def summariser(say: Callable[[Any], AIMessage] = lambda _: AIMessage(GOOD)) -> ScriptedModel:
    """Return a summariser with a large window."""
    return ScriptedModel(say=say, profile={"max_input_tokens": 100_000})


@dataclass(frozen=True)
class Hopeless(Rolling):
    """A strategy whose drafts are empty, so that no compaction of it is ever accepted."""

    name: str = "hopeless"

    def attempts(self, job: Job) -> Attempts:
        """See `longtable.memory.compaction.compaction.Strategy`."""
        inner = super().attempts(job)
        with suppress(StopIteration):
            step = next(inner)
            while True:
                step = inner.send(
                    (yield replace(step, text="") if isinstance(step, Draft) else step)
                )


def thread(
    model: BaseChatModel | None = None,
    *,
    thread_id: str = "t",
    saver: Any = None,
    store: Any = None,
    **more: Any,
) -> Conversation:
    """Return a new conversation; `more` goes to `build_graph`. Without recall_history, whose
    definition takes room.
    """
    graph = build_graph(
        model=model or talker(), **{"memory_tools": MemoryTools(recall=False), **more}
    ).compile(checkpointer=saver or InMemorySaver(), store=store or InMemoryStore())
    return Conversation(graph, thread_id, context=CONTEXT)


def talk(conversation: Conversation, turns: int, start: int = 0, words: int = 82) -> Events:
    """Run so many turns and return their events, with those of what goes on after the last."""
    events = [
        dict(e)
        for n in range(start, start + turns)
        for e in conversation.stream(f"q{n} " + "w " * words)
    ]
    locks = locks_of(conversation.graph.checkpointer)
    complete(locks.wait_for_job(conversation.thread_id, SYNC))
    return [*events, *map(dict, locks.events_of(conversation.thread_id))]


def of_type(events: Events, kind: str) -> Events:
    """Return the events of one type."""
    return [event for event in events if event["type"] == kind]


def values_of(conversation: Conversation) -> State:
    """Return the thread's state."""
    return cast("State", dict(conversation.graph.get_state(conversation.config).values))
