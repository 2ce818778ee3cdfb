"""The conversation as a part of another graph: a node with a memory of its own, or a tool of another agent."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.config import get_config
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from langgraph.types import StateSnapshot

from longtable.base.context import Context
from longtable.base.errors import ConfigError, InputError, WrongRoleError
from longtable.base.store_keys import NODE
from longtable.base.twins import ASYNC, SYNC, Execution, complete
from longtable.graph.build import ConversationGraph
from longtable.graph.thread_state import is_failed
from longtable.memory.stamps import STAMP, marked, marks_of, turn_number
from longtable.nodes.ingest import check_input, storable
from longtable.nodes.state import Input, State

Compiled = CompiledStateGraph[State, Context, Input, State]
Values = Mapping[str, Any]
Update = dict[str, Any]
WHEN_MESSAGES = "add `messages: Annotated[list, add_messages]` to the parent's state, or name its keys: as_node(..., messages='chat')"
NO_TEXT_KEYS = "read and write such keys in a node of your own, before and after this one"
NAMES = [field.name for field in fields(Context)]
RESUMING = "__pregel_resuming"
"""LangGraph's key of a nested run's config, which has no public name: the only way to give a child new input while its parent
is being resumed. A test compares it with LangGraph's own."""


def as_node(
    graph: ConversationGraph,
    *,
    name: str = "longtable",
    messages: str = "messages",
    context: Context | Callable[[Any], Context] | None = None,
    question: None = None,
    answer: None = None,
) -> Runnable[Any, Update]:
    """Return a node for another graph: `builder.add_node("analyst", as_node(build_graph(...)))`.

    It reads what is new under the parent's key `messages` and adds its answer there. Transcript and memory are the node's
    own, kept in the parent's checkpointer by thread and node. Interrupts pass. A parent that goes on from an earlier
    checkpoint finds the memory as it is now, and gets the same answer to a question that it asks again.

    `context`: settings, or a function that makes them of the parent's context; else the parent's context where it is a
    `Context`, or has fields of the same names. `name` tells two such nodes in one parent apart. A key that the parent
    lacks raises `ConfigError` when the node runs.
    """
    for argument, value in (("question", question), ("answer", answer)):
        if value is not None:
            raise TypeError(f"as_node takes no {argument!r}: {NO_TEXT_KEYS}")
    node = _Node(graph.compile(checkpointer=True, name=name), graph.compile(name=name), name, messages, context)
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
        return _text(compiled.invoke(Input(messages=[HumanMessage(question)]), context=_context_of(context)))

    async def aask(question: str) -> str:
        """Run one turn."""
        return _text(await compiled.ainvoke(Input(messages=[HumanMessage(question)]), context=_context_of(context)))

    return StructuredTool.from_function(ask, aask, name=name, description=description)


@dataclass(frozen=True)
class _Node:
    memory: Compiled
    once: Compiled
    name: str
    messages: str
    context: Context | Callable[[Any], Context] | None

    def run(self, state: Any) -> Update:
        """Run a turn of the child in one of the parent's."""
        return complete(self._turn(state, SYNC))

    async def arun(self, state: Any) -> Update:
        """Do the same without blocking the event loop."""
        return await self._turn(state, ASYNC)

    async def _turn(self, state: Any, how: Execution) -> Update:
        context = _context_of(self.context)
        new = self._new_messages(state, context)
        if not _has_thread():
            once, asked = self.once, Input(messages=new)
            values = await how.call(lambda: once.invoke(asked, context=context), lambda: once.ainvoke(asked, context=context))
            return self._update(_newest_answer(values))
        child = await self._child(how)
        if not _has_answered(child, new[-1]):
            memory, run = self.memory, _run_of(child, new)
            await how.call(lambda: memory.invoke(*run, context=context), lambda: memory.ainvoke(*run, context=context))
            child = await self._child(how)
        return self._update(_answer_to(child, new[-1]))

    def _child(self, how: Execution) -> Awaitable[StateSnapshot]:
        config = get_config()
        return how.call(lambda: self.memory.get_state(config), lambda: self.memory.aget_state(config))

    def _new_messages(self, state: Any, context: Context) -> list[BaseMessage]:
        """Return what the parent's messages say since the node's last answer, the question last."""
        values = state if isinstance(state, Mapping) else vars(state)
        if self.messages not in values:
            found = ", ".join(sorted(values)) or "no keys"
            raise ConfigError(f"as_node reads and writes {self.messages!r} of the parent's state, found {found}: {WHEN_MESSAGES}")
        talk = [message for message in convert_to_messages(values[self.messages]) if message.type in {"human", "ai"}]
        mine = [i for i, message in enumerate(talk) if marks_of(message).get("node") == self.name]
        since = mine[-1] + 1 if mine and _has_thread() else 0  # without a thread there is no memory but the parent's
        return _child_messages(talk[since:], context)

    def _update(self, answer: AIMessage | None) -> Update:
        answer = answer or AIMessage("")
        return {self.messages: [marked(answer.model_copy(update={"name": answer.name or self.name}), node=self.name)]}


def _newest_answer(values: Values) -> AIMessage | None:
    return next((m for m in reversed(values.get("messages") or []) if isinstance(m, AIMessage)), None)


def _has_answered(child: StateSnapshot, question: BaseMessage) -> bool:
    """Return whether the child has answered: the parent was stopped before it could keep that, or went back in time."""
    return not child.tasks if _is_newest(child, question) else _answer_to(child, question) is not None


def _answer_to(child: StateSnapshot, question: BaseMessage) -> AIMessage | None:
    """Return the answer of the question's own turn."""
    messages = _messages_of(child)
    turn = next((turn_number(message) for message in messages if message.id == question.id), None)
    mine = (m for m in reversed(messages) if isinstance(m, AIMessage) and turn_number(m) == turn)
    return next((m for m in mine if not m.tool_calls), None) if turn else None


def _is_newest(child: StateSnapshot, question: BaseMessage) -> bool:
    return next((m.id for m in reversed(_messages_of(child)) if m.type == "human"), None) == question.id


def _messages_of(child: StateSnapshot) -> list[BaseMessage]:
    return child.values.get("messages") or []


def _run_of(child: StateSnapshot, new: Sequence[BaseMessage]) -> tuple[Any, RunnableConfig]:
    """Return input and config of the child's next run; the input is None to resume it.

    A child that failed is handed its question again. While a parent is being resumed LangGraph takes a child at rest for one that
    has answered already, unless `RESUMING` says otherwise.
    """
    resumes = _is_newest(child, new[-1]) and not is_failed(child)
    config = get_config()
    configurable = {**config["configurable"], RESUMING: resumes}
    return None if resumes else Input(messages=new), {**config, "configurable": configurable}


def _child_messages(talk: Sequence[BaseMessage], context: Context) -> list[BaseMessage]:
    """Return messages as the child takes them: what was said, without marks and calls of others, the question last.

    An older question that cannot be accepted was refused when it was asked, and is still in the parent's state: left out.
    """
    said = [_as_said(message) for message in talk if message.type == "human" or message.text]
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


def _as_said(message: BaseMessage) -> BaseMessage:
    kwargs = {key: value for key, value in message.additional_kwargs.items() if key != STAMP}
    if isinstance(message, AIMessage):
        return AIMessage(storable(str(message.text)), id=message.id, name=message.name)
    return message.model_copy(update={"additional_kwargs": kwargs})


def _text(values: Values) -> str:
    return str(values["messages"][-1].text)


def _context_of(setting: Context | Callable[[Any], Context] | None) -> Context:
    """Return the child's settings, from the parent's where it has none of its own."""
    if isinstance(setting, Context):
        return setting
    runtime = cast("object", get_runtime()) if _in_graph() else None  # a tool that is called by itself has a config, and no runtime
    parents: object = getattr(runtime, "context", None)
    if setting is not None:
        return setting(parents)
    if isinstance(parents, Context):
        return parents
    values = parents if isinstance(parents, Mapping) else {name: getattr(parents, name) for name in NAMES if hasattr(parents, name)}
    return Context(**{name: values[name] for name in NAMES if name in values})


def _in_graph() -> bool:
    try:
        get_config()
    except RuntimeError:
        return False
    return True


def _has_thread() -> bool:
    info = get_runtime().execution_info
    return info is not None and info.thread_id is not None
