"""Use the conversation inside another graph: as a node with its own memory, as an agent of a team,
or as a tool of another agent.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated, Any, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    convert_to_messages,
)
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.config import get_config
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from langgraph.types import StateSnapshot
from typing_extensions import TypedDict

from longtable.base.concurrency import ASYNC, SYNC, Execution, complete
from longtable.base.context import Context
from longtable.base.errors import (
    ConfigError,
    ContextTooLargeError,
    EmptyMessageError,
    InputError,
    InvalidTextError,
    MessageTooLongError,
    ProviderError,
    RequestLimitError,
    WrongRoleError,
)
from longtable.base.stored import NODE
from longtable.graph.thread_state import is_failed
from longtable.graph.wiring.build import ConversationGraph
from longtable.memory.messages.marks import COLLEAGUE, STAMP, mark_of, marked, marks_of, turn_number
from longtable.memory.summary.summary_text import language_of
from longtable.memory.voices import VOICE
from longtable.nodes.arriving.input_checks import check_input, storable
from longtable.nodes.state import Input, State

Compiled = CompiledStateGraph[State, Context, Input, State]
Agent = CompiledStateGraph[Any, Any, Any, Any]
Values = Mapping[str, Any]
Update = dict[str, Any]
WHEN_MESSAGES = (
    "add `messages: Annotated[list, add_messages]` to the parent's state, or name its keys:"
    " as_node(..., messages='chat')"
)
NO_TEXT_KEYS = "read and write such keys in a node of your own, before and after this one"
NAMES = [field.name for field in fields(Context)]
RESUMING = "__pregel_resuming"
"""LangGraph's key for whether a nested run resumes. The key has no public name, so a test compares
it with LangGraph's own.

Without it, a child graph gets no new input while its parent is being resumed. Writing the input by
`update_state` and running from there would also work, even when the parent goes back to an earlier
checkpoint. But the guard of the checkpointer takes such a run for a deliberate fork, so two parents
at once could each leave a branch.
"""
TASK_ERRORS = (
    EmptyMessageError,
    InvalidTextError,
    MessageTooLongError,
    RequestLimitError,
    ContextTooLargeError,
)
"""Errors that mean that the text of a task cannot be used."""
HANDED_BACK = "__is_handoff_back"
"""The mark that langgraph-supervisor puts on a message which only announces which agent is active
again. Such a message is not part of the conversation.
"""


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

    The node reads the new messages under the parent's key `messages` and adds its answer there. A
    team adds one answer for each voice, under the name of the voice. The node has its own
    transcript and memory, which are kept in the parent's checkpointer by thread and node.
    Interrupts reach the parent. If the parent goes on from an earlier checkpoint, the memory stays
    as it is now, and a question that is asked again gets the same answer.

    `context` are settings, or a function that makes them from the parent's context. Without it, the
    parent's context is used if it is a `Context` or has fields with the same names. `name` tells
    two such nodes in one parent apart. Raises `ConfigError` when the node runs if the parent's
    state lacks the key.
    """
    for argument, value in (("question", question), ("answer", answer)):
        if value is not None:
            raise TypeError(f"as_node takes no {argument!r}: {NO_TEXT_KEYS}")
    node = _Node(
        graph.compile(checkpointer=True, name=name),
        graph.compile(name=name),
        name,
        messages,
        context,
    )
    return RunnableLambda(node.run, partial(node._turn, how=ASYNC), name=name)


class _Agent(TypedDict):
    """The state of a graph that is an agent among others."""

    messages: Annotated[list[AnyMessage], add_messages]


def as_agent(
    graph: ConversationGraph,
    *,
    name: str,
    context: Context | Callable[[Any], Context] | None = None,
) -> Agent:
    """Return a compiled graph that other people's teams can use as an agent:
    `create_supervisor([as_agent(graph, name="analyst")], model=...)`.

    langgraph-supervisor, langgraph-swarm and deepagents' `CompiledSubAgent` accept it. Like a node
    of `as_node`, it has its own memory on each of the parent's threads. It answers the messages
    that came after its last answer. If a hand-off brings no new message, it answers the user's
    newest message again. It never hands off to another agent. If a task is empty or too long, it
    answers with a sentence that says so.
    """
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(_Agent, context_schema=None)
    node = _Node(
        graph.compile(checkpointer=True, name=name),
        graph.compile(name=name),
        name,
        "messages",
        context,
        is_agent=True,
    )
    # LangGraph keeps the memory by the names of nodes: this one tells two agents that one tool of
    # the parent calls apart.
    builder.add_node(name, RunnableLambda(node.run, partial(node._turn, how=ASYNC), name=name))
    builder.add_edge(START, name)
    builder.add_edge(name, END)
    return builder.compile(name=name)


def node_thread_id(thread_id: str, *nodes: str) -> str:
    """Return the id under which a node keeps its results and archive files for a thread of its
    parent.

    `nodes` is the name of the node in the parent graph. For a node inside a subgraph, give the name
    of the subgraph and then the name of the node. `ResultStore` and `ArchiveFiles` accept this id
    as a thread's id.
    """
    return NODE.join([thread_id, *nodes])


def as_tool(
    graph: ConversationGraph,
    *,
    name: str = "ask_data",
    description: str = "Ask a data analyst one complete question about the database, in words. It writes and runs read-only SQL.",
    context: Context | None = None,
) -> BaseTool:
    """Return a tool for another agent. The tool takes a question and returns the text of the
    answer; for a team, the text of each voice after its name.

    Each call is independent, because earlier messages are in the agent's own thread. So calls may
    run in parallel. Interrupts reach the agent's caller. Bad input or an error of the provider
    gives a tool message with status "error" that says what is wrong.
    """
    compiled = graph.compile(name=name)

    async def run(question: str, how: Execution) -> str:
        turn_input = Input(messages=[HumanMessage(question)])
        settings = _context_of(context)
        given = _passed_on(settings, context)
        try:
            answer = await how.call(
                lambda: compiled.invoke(turn_input, context=given),
                lambda: compiled.ainvoke(turn_input, context=given),
            )
        except (InputError, ProviderError) as error:
            raise ToolException(
                error.user_text(settings.language or language_of(turn_input["messages"]))
            ) from error
        return _text_of(_answers_in(answer["messages"]))

    def ask(question: str) -> str:
        """Run one turn."""
        return complete(run(question, SYNC))

    async def aask(question: str) -> str:
        """Run one turn."""
        return await run(question, ASYNC)

    return StructuredTool.from_function(
        ask, aask, name=name, description=description, handle_tool_error=True
    )


@dataclass(frozen=True)
class _Node:
    memory: Compiled
    once: Compiled
    name: str
    messages: str
    context: Context | Callable[[Any], Context] | None
    is_agent: bool = False
    """Whether `as_agent` made this node. If the parent brings no new message, such a node answers
    the user's newest message again. If a task cannot be used, it answers with a sentence instead of
    an error, because the parent's model writes the tasks.
    """

    def run(self, state: Any) -> Update:
        """Run one turn of the child graph as a step of the parent."""
        return complete(self._turn(state, SYNC))

    async def _turn(self, state: Any, how: Execution) -> Update:
        context = _context_of(self.context)
        given = _passed_on(context, self.context)
        talk = self._talk(state)
        try:
            if not _has_memory():
                new = self._new_messages(talk, (), context)
                once = self.once
                turn_input = Input(messages=new)
                values = await how.call(
                    lambda: once.invoke(turn_input, context=given),
                    lambda: once.ainvoke(turn_input, context=given),
                )
                return self._update(_answers_in(values.get("messages") or []))
            child = await self._child(how)
            new = self._new_messages(talk, _messages_of(child), context)
            if not _has_answered(child, new[-1]):
                memory = self.memory
                run = _run_of(child, new)
                await how.call(
                    lambda: memory.invoke(*run, context=given),
                    lambda: memory.ainvoke(*run, context=given),
                )
                child = await self._child(how)
            return self._update(_answers_to(child, new[-1]))
        except TASK_ERRORS as error:
            if not self.is_agent:
                raise
            sentence = error.user_text(context.language or language_of(talk))
            return self._update([AIMessage(sentence)])

    def _child(self, how: Execution) -> Awaitable[StateSnapshot]:
        config = get_config()
        return how.call(
            lambda: self.memory.get_state(config), lambda: self.memory.aget_state(config)
        )

    def _talk(self, state: Any) -> list[BaseMessage]:
        """Return the parent's messages that are part of the conversation: those of people, and
        texts that models wrote.
        """
        values = state if isinstance(state, Mapping) else vars(state)
        if self.messages not in values:
            keys = ", ".join(sorted(values)) or "no keys"
            raise ConfigError(
                f"as_node reads and writes {self.messages!r} of the parent's state, found {keys}:"
                f" {WHEN_MESSAGES}"
            )
        talk = [
            m
            for m in convert_to_messages(values[self.messages])
            if m.type == "human" or (m.type == "ai" and m.text)
        ]
        return [message for message in talk if not message.response_metadata.get(HANDED_BACK)]

    def _new_messages(
        self, talk: Sequence[BaseMessage], known: Sequence[BaseMessage], context: Context
    ) -> list[BaseMessage]:
        """Return the messages that the child does not know yet, in the parent's order. The last one
        is from the user or a colleague.

        These are the messages after the child's last answer, and answers that colleagues gave at
        the same time as this answer. A child without a memory gets all messages. Raises
        `WrongRoleError` if there is nothing new.
        """
        mine = [i for i, message in enumerate(talk) if self._is_mine(message)]
        ids = {message.id for message in known}
        since = mine[-1] + 1 if mine else 0
        before = [i for i in mine if turn_number(talk[i]) != turn_number(talk[mine[-1]])]
        newest = range(before[-1] + 1 if before else 0, since)
        earlier = [
            talk[i]
            for i in newest
            if i not in mine and talk[i].type == "ai" and talk[i].id not in ids
        ]
        new = list(talk[since:])
        if not new:
            question = next(
                (message for message in reversed(talk) if message.type == "human"), None
            )
            if not self.is_agent or question is None:
                raise WrongRoleError(role=talk[-1].type if talk else "none")
            new = [question.model_copy(update={"id": f"{question.id}/{len(talk)}"})]
        return self._as_child_input([*(earlier if _has_memory() else talk[:since]), *new], context)

    def _as_child_input(
        self, messages: Sequence[BaseMessage], context: Context
    ) -> list[BaseMessage]:
        """Return messages as input for the child, in order, without the marks and tool calls of
        other agents.

        A colleague's words are marked as such. A question before the last one is left out if it
        cannot be accepted. It was refused when it was asked, but it is still in the parent's state.
        """
        last = max((i for i, message in enumerate(messages) if message.type == "human"), default=-1)
        child_input: list[BaseMessage] = []
        for place, message in enumerate(messages):
            plain = _without_marks(message)
            if message.type == "human":
                child_input += [plain] if place == last or _acceptable(plain, context) else []
            elif self._is_mine(message) or not (message.name or place > last):
                child_input.append(plain)
            else:
                text = f"{message.name}: {plain.text}" if message.name else str(plain.text)
                child_input.append(marked(HumanMessage(text, id=plain.id), kind=COLLEAGUE))
        return child_input

    def _is_mine(self, message: BaseMessage) -> bool:
        return message.type == "ai" and self.name in (marks_of(message).get("node"), message.name)

    def _update(self, answers: Sequence[AIMessage]) -> Update:
        """Return the answers as messages for the parent; for a team, one message for each voice."""
        named = [
            answer.model_copy(update={"name": answer.name or self.name})
            for answer in answers or [AIMessage("")]
        ]
        return {self.messages: [marked(answer, node=self.name) for answer in named]}


def _answers_in(messages: Sequence[BaseMessage]) -> list[AIMessage]:
    """Return the answers of the newest turn. For a team, this is one answer for each voice, in
    order; otherwise it is the model's last message.
    """
    made = [message for message in messages if isinstance(message, AIMessage)]
    if not made:
        return []
    turn = turn_number(made[-1])
    voices = [
        message
        for message in made
        if turn_number(message) == turn and mark_of(message, VOICE) and not message.tool_calls
    ]
    return voices or made[-1:]


def _text_of(answers: Sequence[AIMessage]) -> str:
    """Return the text of the answers. If there are several, each text comes after the name of its
    speaker.
    """
    if len(answers) < 2:
        return "".join(str(answer.text) for answer in answers)
    return "\n\n".join(f"{answer.name}: {answer.text}" for answer in answers)


def _has_answered(child: StateSnapshot, question: BaseMessage) -> bool:
    """Return whether the child has already answered the question. It has if the parent was stopped
    before it stored the answer, or if the parent went back to an earlier checkpoint.
    """
    return not child.tasks if _is_newest(child, question) else bool(_answers_to(child, question))


def _answers_to(child: StateSnapshot, question: BaseMessage) -> list[AIMessage]:
    """Return the answers of the turn that the question opened."""
    messages = _messages_of(child)
    turn = next((turn_number(message) for message in messages if message.id == question.id), None)
    if not turn:
        return []
    mine = [m for m in messages if isinstance(m, AIMessage) and turn_number(m) == turn]
    return _answers_in([message for message in mine if not message.tool_calls])


def _is_newest(child: StateSnapshot, question: BaseMessage) -> bool:
    return (
        next((m.id for m in reversed(_messages_of(child)) if m.type == "human"), None)
        == question.id
    )


def _messages_of(child: StateSnapshot) -> list[BaseMessage]:
    return child.values.get("messages") or []


def _run_of(child: StateSnapshot, new: Sequence[BaseMessage]) -> tuple[Any, RunnableConfig]:
    """Return the input and the config of the child's next run. The input is None if the run resumes
    a turn.

    A child whose turn failed gets its question again. While the parent is being resumed, LangGraph
    assumes that a child at rest has already answered, unless `RESUMING` says otherwise.
    """
    resumes = _is_newest(child, new[-1]) and not is_failed(child)
    config = get_config()
    configurable = {**config["configurable"], RESUMING: resumes}
    return None if resumes else Input(messages=new), {**config, "configurable": configurable}


def _acceptable(message: BaseMessage, context: Context) -> bool:
    try:
        check_input([message], context, None)
    except InputError:
        return False
    return True


def _without_marks(message: BaseMessage) -> BaseMessage:
    kwargs = {key: value for key, value in message.additional_kwargs.items() if key != STAMP}
    if isinstance(message, AIMessage):
        return AIMessage(storable(str(message.text)), id=message.id, name=message.name)
    return message.model_copy(update={"additional_kwargs": kwargs})


def _context_of(setting: Context | Callable[[Any], Context] | None) -> Context:
    """Return the settings of the child: its own, or the parent's if it has none."""
    if isinstance(setting, Context):
        return setting
    # A tool that is called by itself has a config, and no runtime.
    runtime = cast("object", get_runtime()) if _in_graph() else None
    parents: object = getattr(runtime, "context", None)
    if setting is not None:
        return setting(parents)
    if isinstance(parents, Context):
        return parents
    values = (
        parents
        if isinstance(parents, Mapping)
        else {name: getattr(parents, name) for name in NAMES if hasattr(parents, name)}
    )
    return Context(**{name: values[name] for name in NAMES if name in values})


def _passed_on(context: Context, setting: object) -> Any:
    """Return the settings as the child's run is given them. Those of the parent may be a client's:
    as a mapping they name no owner whose rows are read.
    """
    if setting is not None:
        return context
    return {name: getattr(context, name) for name in context.fields_set}


def _in_graph() -> bool:
    try:
        get_config()
    except RuntimeError:
        return False
    return True


def _has_memory() -> bool:
    """Return whether the parent's run has a thread, and a checkpointer that can keep the child's
    memory.
    """
    info = get_runtime().execution_info
    return (
        info is not None
        and info.thread_id is not None
        and get_config()["configurable"].get(CONFIG_KEY_CHECKPOINTER) is not None
    )
