"""One thread in each framework, driven alike: longtable, langchain's SummarizationMiddleware,
langmem's SummarizationNode.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from typing_extensions import TypedDict

from benchmarks.memories.models import ENCODING, Answerer, Character, Summariser, look_up_tool
from benchmarks.memories.talks import Said, answer
from longtable.graph import CompactionPolicy, Context, Database, build_graph
from longtable.memory.counting.tokens import counter
from longtable.memory.records import Compaction
from longtable.nodes.state import State, thread_of, values_of
from longtable.store.persistence import Persistence

with warnings.catch_warnings():
    # Langmem 0.0.30 imports names that LangGraph has moved.
    warnings.simplefilter("ignore", DeprecationWarning)
    from langmem.short_term import SummarizationNode

SYSTEM = "You answer questions about flights, briefly and with numbers."
CONFIG: RunnableConfig = {"configurable": {"thread_id": "bench"}, "recursion_limit": 100}
KEPT_TURNS = 6
"""Newest turns kept word for word: longtable's default, given to the others where they can be
told.
"""


@dataclass(frozen=True)
class Setting:
    """What all systems are given alike. Sizes in tokens."""

    limit: int
    turn_messages: int = 2
    """Messages of a turn: two in plain talk, four where a tool is called."""
    character: Character = "honest"
    planted: tuple[Said, ...] = ()
    language: str = "en"
    database: Database | None = None
    """longtable's alone: its own tool then answers the questions over tables."""
    fakes: "Fakes | None" = None
    """The models and the tool, None: those of the talks."""

    @property
    def threshold(self) -> int:
        """Return the size at which a compaction is due."""
        return int(0.6 * self.limit)

    @property
    def summary(self) -> int:
        """Return the most a summary may have."""
        return int(0.15 * self.limit)


@dataclass
class Fakes:
    """The two models of one thread."""

    answerer: Any
    """A chat model that keeps the messages of each call in `sent`."""
    summariser: Any
    """A chat model that keeps the tokens of each call's input in `inputs`."""
    log: list[str]
    """Their calls, in order."""
    tool: BaseTool

    @classmethod
    def of(cls, setting: Setting) -> "Fakes":
        """Return the setting's own, or fresh ones."""
        if setting.fakes is not None:
            return setting.fakes
        log: list[str] = []
        answerer = Answerer(log=log, tool="run_sql" if setting.database else "look_up")
        summariser = Summariser(
            allowed=setting.summary,
            window=setting.limit,
            character=setting.character,
            planted=[said for said in setting.planted if said.key],
            language=setting.language,
            log=log,
        )
        return cls(answerer, summariser, log, look_up_tool())


class System(Protocol):
    """One thread in one framework."""

    fakes: Fakes

    def say(self, text: str) -> None:
        """Run one turn."""
        ...

    def plant(self, texts: Sequence[str]) -> None:
        """Let the user say these, one a turn; where a framework does nothing in such a turn, at
        once.
        """
        ...

    def compactions(self) -> int:
        """Return how many there were."""
        ...


Maker = Callable[[Setting, Persistence], System]


class Longtable:
    """longtable through its graph, with its default policy; `by_code`: without a summariser."""

    def __init__(
        self,
        setting: Setting,
        persistence: Persistence,
        *,
        by_code: bool = False,
        ahead: bool = True,
    ) -> None:
        self.fakes = Fakes.of(setting)
        self.context = Context(
            model_limit=setting.limit, system_prompt=SYSTEM, max_message_chars=100_000
        )
        with warnings.catch_warnings():
            # A fake has no known encoding: the default one counts, which is said once.
            warnings.simplefilter("ignore", UserWarning)
            graph = build_graph(
                model=self.fakes.answerer,
                database=setting.database,
                tools=[] if setting.database else [self.fakes.tool],
                summarizer=False if by_code else self.fakes.summariser,
                policy=CompactionPolicy(ahead=ahead),
            )
            self.app = graph.compile(checkpointer=persistence.checkpointer, store=persistence.store)

    def say(self, text: str) -> None:
        """See `System`."""
        self.app.invoke(
            {"messages": [HumanMessage(text)]}, CONFIG, context=self.context, durability="sync"
        )

    def plant(self, texts: Sequence[str]) -> None:
        """See `System`."""
        for text in texts:
            self.say(text)

    def compactions(self) -> int:
        """See `System`."""
        return len(self.records())

    def records(self) -> list[Compaction]:
        """Return what the thread keeps of each compaction that made a memory."""
        records = self._values().get("compactions") or []
        return [record for record in records if record.get("kind") != "results"]

    def kept_rounds(self) -> list[BaseMessage]:
        """Return the messages that the newest compaction left word for word."""
        thread = thread_of(self._values())
        return list(
            thread.messages[thread.live[1] : self.records()[-1]["length"] - thread.archived]
        )

    def _values(self) -> State:
        return values_of(self.app.get_state(CONFIG))


class LangChain:
    """langchain's agent with its SummarizationMiddleware."""

    def __init__(
        self, setting: Setting, persistence: Persistence, *, defaults: bool = False
    ) -> None:
        self.fakes = Fakes.of(setting)
        # There is no default: without it nothing is ever summarised.
        options: dict[str, Any] = {"trigger": ("tokens", setting.threshold)}
        if not defaults:
            # The same counts, the same turns kept, and nothing cut before the summariser sees it:
            # what is folded fits its window.
            options |= {
                "keep": ("messages", KEPT_TURNS * setting.turn_messages),
                "trim_tokens_to_summarize": None,
                "token_counter": exact,
            }
        self.middleware: SummarizationMiddleware[Any] = SummarizationMiddleware(
            self.fakes.summariser, **options
        )
        self.app: Any = create_agent(
            self.fakes.answerer,
            [self.fakes.tool],
            system_prompt=SYSTEM,
            middleware=[self.middleware],
            checkpointer=persistence.checkpointer,
        )

    def say(self, text: str) -> None:
        """See `System`."""
        self.app.invoke({"messages": [HumanMessage(text)]}, CONFIG, durability="sync")

    def plant(self, texts: Sequence[str]) -> None:
        """See `System`."""
        self.app.update_state(CONFIG, {"messages": planted(texts)}, as_node="model")

    def compactions(self) -> int:
        """See `System`."""
        return len(self.fakes.summariser.inputs)


class LangMemState(MessagesState):
    """As langmem's documentation has it."""

    context: dict[str, Any]


class LangMemInput(TypedDict):
    """As langmem's documentation has it."""

    summarized_messages: list[AnyMessage]
    context: dict[str, Any]


class LangMem:
    """langmem's SummarizationNode before the model, as its documentation shows it, with a tool
    beside it.
    """

    def __init__(
        self, setting: Setting, persistence: Persistence, *, defaults: bool = False
    ) -> None:
        self.fakes = Fakes.of(setting)
        options: dict[str, Any] = {"max_tokens": setting.threshold}
        if not defaults:
            # The same counts, and room left for the summary, so that it and the messages together
            # stay under the threshold.
            room = {
                "max_summary_tokens": setting.summary,
                "max_tokens_before_summary": setting.threshold - setting.summary,
            }
            options |= {**room, "token_counter": exact}
        self.node = SummarizationNode(model=self.fakes.summariser, **options)
        graph = StateGraph(LangMemState)
        graph.add_node("summarize", self.node)
        graph.add_node("respond", self._respond)
        graph.add_node("tools", ToolNode([self.fakes.tool]))
        graph.add_edge(START, "summarize")
        graph.add_edge("summarize", "respond")
        graph.add_conditional_edges("respond", tools_condition)
        graph.add_edge("tools", "summarize")
        self.app: Any = graph.compile(checkpointer=persistence.checkpointer)

    def _respond(self, state: LangMemInput) -> dict[str, Any]:
        return {
            "messages": [
                self.fakes.answerer.invoke([SystemMessage(SYSTEM), *state["summarized_messages"]])
            ]
        }

    def say(self, text: str) -> None:
        """See `System`."""
        with warnings.catch_warnings():
            # RuntimeWarning where nothing fits; a dataclass in state
            warnings.simplefilter("ignore")
            self.app.invoke({"messages": [HumanMessage(text)]}, CONFIG, durability="sync")

    def plant(self, texts: Sequence[str]) -> None:
        """See `System`."""
        self.app.update_state(CONFIG, {"messages": planted(texts)}, as_node="respond")

    def compactions(self) -> int:
        """See `System`."""
        return len(self.fakes.summariser.inputs)


def planted(texts: Sequence[str]) -> list[BaseMessage]:
    """Return turns in which the user said these."""
    turns = [
        (HumanMessage(text, id=f"q{n}"), AIMessage(answer(text), id=f"a{n}"))
        for n, text in enumerate(texts)
    ]
    return [message for turn in turns for message in turn]


def exact(messages: Any) -> int:
    """Count as longtable does, cached: what `get_num_tokens_from_messages` would cost is many times
    that.
    """
    return sum(map(counter(ENCODING).message, messages))
