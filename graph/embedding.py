"""The conversation as a part of another graph: a node with a memory of its own, or a tool of another agent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool
from langgraph._internal._constants import CONFIG_KEY_READ, CONFIG_KEY_RESUMING
from langgraph.config import get_config
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from langgraph.types import StateSnapshot

from longtable.base.context import Context
from longtable.base.errors import ConfigError, InputError, WrongRoleError
from longtable.base.store_keys import NODE
from longtable.graph.build import ConversationGraph
from longtable.graph.running import is_failed
from longtable.memory.stamps import STAMP, marked, marks_of
from longtable.nodes.ingest import check_input, storable
from longtable.nodes.state import Input, State

Compiled = CompiledStateGraph[State, Context, Input, State]
Values = Mapping[str, Any]
Update = dict[str, Any]
WHEN_MESSAGES = "add `messages: Annotated[list, add_messages]` to the parent's state, or name its keys: as_node(..., messages='chat')"
WHEN_TEXT = "add it to the parent's state, or name another"


def as_node(
    graph: ConversationGraph,
    *,
    name: str = "longtable",
    messages: str = "messages",
    question: str | Callable[[Any], str] | None = None,
    answer: str | None = None,
    context: Context | Callable[[Any], Context] | None = None,
) -> Runnable[Any, Update]:
    """Return a node for another graph: `builder.add_node("analyst", as_node(build_graph(...)))`.

    It reads what is new under the parent's key `messages` and adds its answer there. Or it reads its question as text:
    under the key `question` or from a function of the parent's state; and writes the text under the key `answer` (besides
    `messages`, where the parent has it). Transcript and memory are the node's own: kept in the parent's checkpointer by
    thread and node, and following the parent back when it goes on from an earlier checkpoint. Interrupts pass.

    `context`: settings, or a function that makes them of the parent's context; else the parent's context where it is a
    `Context`, or has fields of the same names. `name` tells two such nodes in one parent apart. A key that the parent
    lacks raises `ConfigError` when the node runs.
    """
    if question is not None and answer is None:
        raise ConfigError("as_node with question= writes its text under a key of the parent's: give answer= too")
    node = _Node(
        memory=graph.compile(checkpointer=True, name=name),
        once=graph.compile(name=name),
        name=name,
        messages=messages,
        question=question,
        answer=answer,
        context=context,
    )
    return RunnableLambda(node.run, node.arun, name=name)


def node_thread_id(thread_id: str, *nodes: str) -> str:
    """Return the id under which a node keeps its results and archive files on its parent's thread.

    `nodes`: the parent's name for it; of a node within a subgraph the names of both. `ResultStore` and `ArchiveFiles` take it.
    """
    return NODE.join([thread_id, *nodes])


def as_tool(
    graph: ConversationGraph,
    *,
    name: str = "ask_data",
    description: str = "Ask a data analyst one complete question about the database, in words. It writes and runs read-only SQL.",
    context: Context | None = None,
) -> BaseTool:
    """Return a tool for another agent: a question in, the answer's text out.

    Each call stands for itself (what came before is in the agent's own thread), so calls may run in parallel; interrupts
    pass to the agent's caller.
    """
    compiled = graph.compile(name=name)

    def ask(question: str) -> str:
        """Run one turn."""
        return _text(compiled.invoke(_asked(question), context=_context_of(context)))

    async def aask(question: str) -> str:
        """Run one turn."""
        return _text(await compiled.ainvoke(_asked(question), context=_context_of(context)))

    return StructuredTool.from_function(ask, aask, name=name, description=description)


@dataclass(frozen=True)
class _Node:
    memory: Compiled
    once: Compiled
    name: str
    messages: str
    question: str | Callable[[Any], str] | None
    answer: str | None
    context: Context | Callable[[Any], Context] | None

    def run(self, state: Any) -> Update:
        """Run a turn of the child in one of the parent's."""
        context = _context_of(self.context)
        given = self._given(state, context)
        if not _has_thread():
            return self._update(self.once.invoke(Input(messages=given.new), context=context), None)
        child = self.memory.get_state(get_config())
        if not (step := _next(child, given)):
            return self._update(child.values, child)
        if step.place is _FIRST:
            step = replace(step, place=list(self.memory.get_state_history(get_config()))[-1])
        self.memory.invoke(cast("Any", step.given), step.config, context=context)
        child = self.memory.get_state(get_config())
        return self._update(child.values, child)

    async def arun(self, state: Any) -> Update:
        """Do the same without blocking the event loop."""
        context = _context_of(self.context)
        given = self._given(state, context)
        if not _has_thread():
            return self._update(await self.once.ainvoke(Input(messages=given.new), context=context), None)
        child = await self.memory.aget_state(get_config())
        if not (step := _next(child, given)):
            return self._update(child.values, child)
        if step.place is _FIRST:
            step = replace(step, place=[past async for past in self.memory.aget_state_history(get_config())][-1])
        await self.memory.ainvoke(cast("Any", step.given), step.config, context=context)
        child = await self.memory.aget_state(get_config())
        return self._update(child.values, child)

    def _given(self, state: Any, context: Context) -> "_Given":
        values = state if isinstance(state, Mapping) else vars(state)
        if self.answer is not None and not _has_channel(self.answer):
            raise ConfigError(f"as_node(answer={self.answer!r}): the parent has no such key, found {_keys(values)}: {WHEN_TEXT}")
        if self.question is not None:
            return self._asked(state, values)
        if self.messages not in values or not _has_channel(self.messages):
            raise ConfigError(f"as_node reads and writes {self.messages!r} of the parent's state, found {_keys(values)}: {WHEN_MESSAGES}")
        talk = [message for message in convert_to_messages(values[self.messages]) if message.type in {"human", "ai"}]
        mine = [i for i, message in enumerate(talk) if marks_of(message).get("node") == self.name]
        at = marks_of(talk[mine[-1]]).get("at") if mine else None
        known = frozenset(message.id or "" for message in talk)
        since = mine[-1] + 1 if mine and _has_thread() else 0  # without a thread there is no memory but the parent's
        return _Given(_said(talk[since:], context), at, known)

    def _asked(self, state: Any, values: Values) -> "_Given":
        if callable(self.question):
            text = self.question(state)
        elif (key := str(self.question)) in values:
            text = values[key]
        else:
            raise ConfigError(
                f"as_node(question={self.question!r}): the parent's state has no such value, found {_keys(values)}: {WHEN_TEXT}"
            )
        runtime = get_runtime()
        # The same question of the same task: one that is resumed asks once.
        task = runtime.execution_info.task_id if runtime.execution_info else None
        asked = [HumanMessage(str(text), id=f"{self.name}-{task}")]
        return _Given(asked, None, None)

    def _update(self, values: Values, child: StateSnapshot | None) -> Update:
        answer = next((m for m in reversed(values.get("messages") or []) if isinstance(m, AIMessage)), AIMessage(""))
        at = child.config["configurable"].get("checkpoint_id") if child else None
        update: Update = {self.answer: str(answer.text)} if self.answer else {}
        if _has_channel(self.messages):
            update[self.messages] = [marked(answer.model_copy(update={"name": answer.name or self.name}), node=self.name, at=at)]
        return update


@dataclass(frozen=True)
class _Given:
    """What the parent gives: what is new since the node's last answer, and where the child stood then."""

    new: Sequence[BaseMessage]
    at: str | None
    known: frozenset[str] | None
    """Ids of the parent's messages; None where it gives no messages."""


_FIRST = "first"


@dataclass(frozen=True)
class _Step:
    """One run of the child: what it is given, and the checkpoint it goes on from where that is not its newest."""

    given: Input | None
    place: StateSnapshot | str | None = None

    @property
    def config(self) -> RunnableConfig:
        """The parent's config, with what LangGraph would have to guess said aloud."""
        config = get_config()
        # While a parent is being resumed LangGraph takes a child at rest for one that has answered already.
        own = {**config["configurable"], CONFIG_KEY_RESUMING: self.given is None}
        if self.place is not None:
            at = self.place if isinstance(self.place, str) else self.place.config["configurable"]["checkpoint_id"]
            namespace = "|".join(part.split(":")[0] for part in own["checkpoint_ns"].split("|"))
            own["checkpoint_map"] = {**own.get("checkpoint_map", {}), namespace: at}
        return {**config, "configurable": own}


def _next(child: StateSnapshot, given: _Given) -> _Step | None:
    """Return the child's next run, None where it has answered: the parent was stopped before it could keep that."""
    if child.created_at is None:
        return _Step(Input(messages=given.new))
    if _went_elsewhere(child, given):
        return _Step(Input(messages=given.new), given.at or _FIRST)
    if any(message.id == given.new[-1].id for message in child.values.get("messages") or []):
        # One that failed is at its end: handed its question again, it tries again.
        return _Step(Input(messages=given.new) if is_failed(child) else None) if child.tasks else None
    return _Step(Input(messages=given.new))


def _went_elsewhere(child: StateSnapshot, given: _Given) -> bool:
    """Tell whether the child's newest question is none of the parent's: it goes on from an earlier place."""
    if given.known is None or child.created_at is None:
        return False
    asked = [message for message in child.values.get("messages") or [] if message.type == "human"]
    return bool(asked) and (asked[-1].id or "") not in given.known


def _said(talk: Sequence[BaseMessage], context: Context) -> list[BaseMessage]:
    """Return messages as the child takes them: what was said, without marks and calls of others, the question last.

    An older question that cannot be accepted was refused when it was asked, and is still in the parent's state: left out.
    """
    said = [_plain(message) for message in talk if message.type == "human" or message.text]
    asked = [i for i, message in enumerate(said) if message.type == "human"]
    if not asked:
        raise WrongRoleError(role=said[-1].type if said else "none")
    question = said.pop(asked[-1])
    return [*(message for message in said if message.type == "ai" or _acceptable(message, context)), question]


def _acceptable(message: BaseMessage, context: Context) -> bool:
    try:
        check_input([message], context, None)
    except InputError:
        return False
    return True


def _plain(message: BaseMessage) -> BaseMessage:
    kwargs = {key: value for key, value in message.additional_kwargs.items() if key != STAMP}
    if isinstance(message, AIMessage):
        return AIMessage(storable(str(message.text)), id=message.id, name=message.name)
    return message.model_copy(update={"additional_kwargs": kwargs})


def _asked(question: str) -> Input:
    return Input(messages=[HumanMessage(question)])


def _text(values: Values) -> str:
    return str(values["messages"][-1].text)


def _context_of(given: Context | Callable[[Any], Context] | None) -> Context:
    """Return the child's settings, from the parent's where none are given."""
    if isinstance(given, Context):
        return given
    runtime = cast("object", get_runtime()) if _in_graph() else None  # a tool that is called by itself has a config, and no runtime
    parents: object = getattr(runtime, "context", None)
    if given is not None:
        return given(parents)
    if isinstance(parents, Context):
        return parents
    names = [field.name for field in fields(Context)]
    if isinstance(parents, Mapping):
        return Context(**{name: parents[name] for name in names if name in parents})
    return Context(**{name: getattr(parents, name) for name in names if hasattr(parents, name)})


def _in_graph() -> bool:
    try:
        get_config()
    except RuntimeError:
        return False
    return True


def _has_thread() -> bool:
    info = get_runtime().execution_info
    return info is not None and info.thread_id is not None


def _has_channel(key: str) -> bool:
    """Tell whether the parent's state has a key: LangGraph drops what a node writes under another in silence."""
    try:
        get_config()["configurable"][CONFIG_KEY_READ](key, False)
    except KeyError:
        return False
    return True


def _keys(values: Values) -> str:
    return ", ".join(sorted(values)) or "no keys"
