"""One thread in each framework, driven alike: longtable, langchain's SummarizationMiddleware, langmem's SummarizationNode."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from benchmarks.memories.models import ENCODING, Answerer, Summariser, look_up_tool
from longtable.graph import CompactionPolicy, Context, build_graph
from longtable.graph.persistence import Persistence
from longtable.memory.archive import page
from longtable.memory.compaction_plan import plan_compaction
from longtable.memory.stamps import marked
from longtable.memory.tokens import counter
from longtable.memory.view import build_view
from longtable.nodes.records.archive_store import StoreArchive
from longtable.nodes.state import call_plan_of, thread_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # langmem 0.0.30 imports names that LangGraph has moved
    from langmem.short_term import SummarizationNode

SYSTEM = "You answer questions about flights, briefly and with numbers."
CONFIG: RunnableConfig = {"configurable": {"thread_id": "bench"}, "recursion_limit": 100}
KEPT_TURNS = 6
"""Newest turns kept word for word: longtable's default, given to the others where they can be told."""


@dataclass(frozen=True)
class Setting:
    """What all systems are given alike. Sizes in tokens."""

    limit: int
    turn_messages: int = 2
    """Messages of a turn: two in plain talk, four where a tool is called."""

    @property
    def threshold(self) -> int:
        """Return the size at which a fold is due."""
        return int(0.6 * self.limit)

    @property
    def summary(self) -> int:
        """Return the most a summary may have."""
        return int(0.15 * self.limit)


@dataclass
class Fakes:
    """The two models of one thread."""

    answerer: Answerer
    summariser: Summariser
    log: list[str]
    """Their calls, in order."""

    @classmethod
    def of(cls, setting: Setting) -> "Fakes":
        """Return fresh ones."""
        log: list[str] = []
        return cls(Answerer(log=log), Summariser(allowed=setting.summary, window=setting.limit, log=log), log)


class System(Protocol):
    """One thread in one framework."""

    fakes: Fakes

    def say(self, text: str) -> None:
        """Run one turn."""
        ...

    def load(self, messages: Sequence[BaseMessage]) -> None:
        """Put earlier messages into the thread, without a turn."""
        ...

    def originals(self) -> list[BaseMessage]:
        """Return the messages that the thread still has word for word."""
        ...

    def folds(self) -> int:
        """Return how many compactions there were."""
        ...

    def hook(self) -> Callable[[], object]:
        """Return what the framework does around the next model call, on the thread as it stands, checkpoints left out."""
        ...


Maker = Callable[[Setting, Persistence], System]


class Longtable:
    """longtable through its graph, with its default policy or another."""

    def __init__(self, setting: Setting, kept: Persistence, *, policy: CompactionPolicy | None = None) -> None:
        self.fakes, self.kept = Fakes.of(setting), kept
        self.context = Context(model_limit=setting.limit, system_prompt=SYSTEM)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a fake has no known encoding: the default one counts, which is said once
            graph = build_graph(model=self.fakes.answerer, tools=[look_up_tool()], summarizer=self.fakes.summariser, policy=policy)
            self.app = graph.compile(checkpointer=kept.checkpointer, store=kept.store)
        self.loaded = 0

    def say(self, text: str) -> None:
        """See `System`."""
        self.app.invoke({"messages": [HumanMessage(text)]}, CONFIG, context=self.context, durability="sync")

    def load(self, messages: Sequence[BaseMessage]) -> None:
        """See `System`."""
        stamped = [marked(message, turn=self.loaded + i // 2, time="2026-01-01T00:00:00") for i, message in enumerate(messages)]
        self.loaded += len(messages)
        self.app.update_state(CONFIG, {"messages": stamped}, as_node="settle")

    def originals(self) -> list[BaseMessage]:
        """See `System`."""
        thread = thread_of(self._values())
        retired = page(StoreArchive(self.kept.store), "bench", 1, thread.archived) if thread.archived else []
        return [*(original.message for original in retired), *thread.messages]

    def folds(self) -> int:
        """See `System`."""
        return len(self._values().get("compactions") or [])

    def hook(self) -> Callable[[], object]:
        """See `System`: the steps that `estimate`, `respond` and `settle` take in a turn without a tool."""
        values, context = self._values(), self.context

        def work() -> None:
            before = call_plan_of(values, context)
            plan_compaction(before)
            build_view(before)
            build_view(call_plan_of(values, context))
            plan_compaction(call_plan_of(values, context), "ahead")

        return work

    def _values(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self.app.get_state(CONFIG).values)


class LangChain:
    """langchain's agent with its SummarizationMiddleware."""

    def __init__(self, setting: Setting, kept: Persistence, *, defaults: bool = False) -> None:
        self.fakes = Fakes.of(setting)
        options: dict[str, Any] = {"trigger": ("tokens", setting.threshold)}  # there is no default: without it nothing is ever summarised
        if not defaults:
            # The same counts, the same turns kept, and nothing cut before the summariser sees it: what is folded fits its window.
            options |= {"keep": ("messages", KEPT_TURNS * setting.turn_messages), "trim_tokens_to_summarize": None, "token_counter": exact}
        self.middleware: SummarizationMiddleware[Any] = SummarizationMiddleware(self.fakes.summariser, **options)
        self.app: Any = create_agent(
            self.fakes.answerer, [look_up_tool()], system_prompt=SYSTEM, middleware=[self.middleware], checkpointer=kept.checkpointer
        )

    def say(self, text: str) -> None:
        """See `System`."""
        self.app.invoke({"messages": [HumanMessage(text)]}, CONFIG, durability="sync")

    def load(self, messages: Sequence[BaseMessage]) -> None:
        """See `System`."""
        self.app.update_state(CONFIG, {"messages": list(messages)}, as_node="model")

    def originals(self) -> list[BaseMessage]:
        """See `System`."""
        return [message for message in self._messages() if message.additional_kwargs.get("lc_source") != "summarization"]

    def folds(self) -> int:
        """See `System`."""
        return len(self.fakes.summariser.inputs)

    def hook(self) -> Callable[[], object]:
        """See `System`."""
        messages, runtime = self._messages(), cast("Runtime[None]", Runtime())
        return lambda: self.middleware.before_model({"messages": messages}, runtime)

    def _messages(self) -> list[AnyMessage]:
        return cast("list[AnyMessage]", self.app.get_state(CONFIG).values.get("messages") or [])


class LangMemState(MessagesState):
    """As langmem's documentation has it."""

    context: dict[str, Any]


class LangMemInput(TypedDict):
    """As langmem's documentation has it."""

    summarized_messages: list[AnyMessage]
    context: dict[str, Any]


class LangMem:
    """langmem's SummarizationNode before the model, as its documentation shows it, with a tool beside it."""

    def __init__(self, setting: Setting, kept: Persistence, *, defaults: bool = False) -> None:
        self.fakes = Fakes.of(setting)
        options: dict[str, Any] = {"max_tokens": setting.threshold}
        if not defaults:
            # The same counts, and room left for the summary, so that it and the messages together stay under the threshold.
            room = {"max_summary_tokens": setting.summary, "max_tokens_before_summary": setting.threshold - setting.summary}
            options |= {**room, "token_counter": exact}
        self.node = SummarizationNode(model=self.fakes.summariser, **options)
        graph = StateGraph(LangMemState)
        graph.add_node("summarize", self.node)
        graph.add_node("respond", self._respond)
        graph.add_node("tools", ToolNode([look_up_tool()]))
        graph.add_edge(START, "summarize")
        graph.add_edge("summarize", "respond")
        graph.add_conditional_edges("respond", tools_condition)
        graph.add_edge("tools", "summarize")
        self.app: Any = graph.compile(checkpointer=kept.checkpointer)

    def _respond(self, state: LangMemInput) -> dict[str, Any]:
        return {"messages": [self.fakes.answerer.invoke([SystemMessage(SYSTEM), *state["summarized_messages"]])]}

    def say(self, text: str) -> None:
        """See `System`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # RuntimeWarning where nothing fits; a dataclass in state
            self.app.invoke({"messages": [HumanMessage(text)]}, CONFIG, durability="sync")

    def load(self, messages: Sequence[BaseMessage]) -> None:
        """See `System`."""
        self.app.update_state(CONFIG, {"messages": list(messages)}, as_node="respond")

    def originals(self) -> list[BaseMessage]:
        """See `System`."""
        return list(self.app.get_state(CONFIG).values.get("messages") or [])

    def folds(self) -> int:
        """See `System`."""
        return len(self.fakes.summariser.inputs)

    def hook(self) -> Callable[[], object]:
        """See `System`."""
        values = self.app.get_state(CONFIG).values
        given = {"messages": values.get("messages") or [], "context": values.get("context") or {}}
        return lambda: self.node.invoke(given)


def exact(messages: Any) -> int:
    """Count as longtable does, cached: what `get_num_tokens_from_messages` would cost is many times that."""
    return sum(map(counter(ENCODING).message, messages))
