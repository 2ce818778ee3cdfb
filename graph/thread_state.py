"""A stored thread: load and write its state, and tell whether a turn of it is unfinished and who
owns it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore, Op
from langgraph.types import Command, Interrupt, StateSnapshot

from longtable.base.context import Context
from longtable.base.errors import ConfigError, LostMessagesError, NothingAskedError
from longtable.base.events import ActionRequest, ApprovalRequested, InputRequested, TurnStatus
from longtable.base.stored import CHECKPOINT
from longtable.memory.compaction.merging import merged_count
from longtable.memory.records import Compaction
from longtable.memory.thread import Thread
from longtable.nodes.approve import decisions_of
from longtable.nodes.closing.failures import FAILED
from longtable.nodes.state import Input, State, thread_of, turn_of, values_of, without_key
from longtable.nodes.tally import Tally, check_whole
from longtable.store.damage import readable
from longtable.store.locks import locks_of
from longtable.store.persistence import Persistence
from longtable.store.records.retired_store import read_compactions
from longtable.store.records.thread_index import owner_of
from longtable.store.saver_guard import GuardedSaver
from longtable.store.storage_errors import storage_errors

Graph = CompiledStateGraph[State, Context, Input, State]
Values = State
Update = State
"""The channels that a step changes, with their values."""
RETURN = "__return__"
"""LangGraph's channel for the return value of a node's task, which it holds until the step of the
node is done. It has no public name, so a test compares it with LangGraph's own.
"""
OWNER = "longtable_owner"
"""The key of the owner in the metadata of a checkpoint."""
NODES = ("ingest", "estimate", "compact", "respond", "approve", "run_tools", "settle", "prepare")
"""The nodes of `build_graph`. A graph with nodes of the same names can tell which nodes an
interrupted turn still has to run.
"""
CLOSED: tuple[TurnStatus, ...] = ("refused", FAILED)
"""Statuses of a turn that ended in an error and cannot be resumed."""


def reader(persistence: Persistence) -> Graph:
    """Return a graph over the threads of a store that cannot run a turn. A `Conversation` with this
    graph can read, edit, fork and export threads.
    """
    graph = StateGraph(State, context_schema=Context, input_schema=Input)
    for name in NODES:
        graph.add_node(name, RunnableLambda(_runs_nothing))
    graph.add_edge(START, "ingest")
    return graph.compile(checkpointer=persistence.checkpointer, store=persistence.store)


def _runs_nothing(_: State) -> Update:
    raise ConfigError(
        "this graph only reads threads: build one with build_graph(model=...) to run a turn"
    )


class StoredThreads:
    """The threads in a graph's checkpointer and store, for operations that run no turn."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @property
    def optional_store(self) -> BaseStore | None:
        """Return the store, None if the graph has no store."""
        return self.graph.store

    @property
    def store(self) -> BaseStore:
        """Return the store. Raises `ConfigError` if the graph has no store."""
        if (store := self.optional_store) is None:
            raise ConfigError(
                "archived messages are in a store: compile the graph with it, graph.compile(...,"
                " store=...)"
            )
        return store

    def batch(self, ops: Sequence[Op]) -> list[Any]:
        """Carry out store operations, in one transaction if the store supports transactions.
        Without a store, return None for each operation.
        """
        store = self.optional_store
        return store.batch(ops) if store is not None else [None] * len(ops)

    def retired_compactions(self, thread_id: str, thread: Thread) -> list[Compaction]:
        """Return the compactions that were moved to the store and merged into the thread's first
        compaction. Raises `ArchiveGapError` if some of them are missing.
        """
        count = merged_count(thread.compactions)
        return read_compactions(self.store, thread_id, count) if count else []

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> StateSnapshot:
        """Return the newest state of a thread, or its state at a checkpoint. Raises
        `DamagedThreadError` if it cannot be read.
        """
        return load_state(self.graph, config_of(thread_id, checkpoint_id))

    def reading(self, thread_ids: Sequence[str]) -> "StoredThreads":  # noqa: ARG002  # one state is as quick as many
        """Return these threads for reading some of them one by one, in this order. A server's
        states are then loaded many at a time.
        """
        return self

    def checkpoint_ids(self, thread_id: str) -> Sequence[str]:
        """Return the ids of a thread's checkpoints, the newest first. Nothing else of the
        checkpoints is read.
        """
        saver = self.graph.checkpointer
        return saver.checkpoint_ids(thread_id) if isinstance(saver, GuardedSaver) else []

    def states(self) -> dict[str, str] | None:
        """Return for each thread a text that changes with each change of its state: the id of its
        newest checkpoint. Nothing else of the checkpoints is read. Return None if the checkpointer
        cannot list ids.
        """
        saver = self.graph.checkpointer
        return saver.newest_checkpoints() if isinstance(saver, GuardedSaver) else None

    def is_deleted(self, thread_id: str) -> bool:
        """Return whether a thread that has no checkpoints was deleted. Deleting a thread also
        deletes the entry of its writer, which shows that it was deleted.
        """
        saver = self.graph.checkpointer
        return isinstance(saver, GuardedSaver) and saver.heads.writer((thread_id, "")) is None

    def save(self, thread_id: str, values: Values) -> None:
        """Write these values as a separate step of the thread."""
        self.graph.update_state(config_of(thread_id), dict(values), as_node="prepare")

    def forget(self, thread_id: str) -> None:
        """Delete a thread's checkpoints and pending writes."""
        if not isinstance(self.graph.checkpointer, BaseCheckpointSaver):
            raise ConfigError(
                "threads are kept by a checkpointer: compile the graph with it,"
                " graph.compile(checkpointer=...)"
            )
        self.graph.checkpointer.delete_thread(thread_id)

    @contextmanager
    def alone(self, thread_id: str, *, wait: bool = False) -> Iterator[None]:
        """Lock the thread during the block, so that no turn and no other operation works on it.

        If another one is running, wait for its end if `wait` is True, otherwise raise
        `ThreadBusyError`.
        """
        with storage_errors(), locks_of(self.graph.checkpointer).locked(thread_id, wait=wait):
            yield


def threads_in(source: Persistence | StoredThreads) -> StoredThreads:
    """Return the threads of a store."""
    return source if isinstance(source, StoredThreads) else StoredThreads(reader(source))


def config_of(thread_id: str, checkpoint_id: str | None = None) -> RunnableConfig:
    """Return the config that names a thread and, if given, one of its checkpoints."""
    checkpoint = {"checkpoint_id": checkpoint_id} if checkpoint_id else {}
    return {"configurable": {"thread_id": thread_id, **checkpoint}}


def load_state(graph: Graph, config: RunnableConfig) -> StateSnapshot:
    """Return the state of a thread. Raises `DamagedThreadError` if it cannot be read."""
    thread_id = config["configurable"]["thread_id"]
    with reading(graph, thread_id):
        state = graph.get_state(config)
    with readable(thread_id):
        check_values(values_of(state))
    return state


def check_lost(
    threads: StoredThreads, thread_id: str, state: StateSnapshot, entry: Mapping[str, Any]
) -> None:
    """Raise `LostMessagesError` if messages or the newest checkpoints of a thread are gone. Lost
    checkpoints are noticed because `entry`, the thread's entry in the index, names a later
    checkpoint than the state. `entry` must be read before the state.
    """
    values = values_of(state)
    check_whole(thread_id, values)
    if not is_stored(state) and threads.is_deleted(thread_id):
        return
    newest = state.config.get("configurable", {}).get("checkpoint_id")
    if is_stored(state) and newest is None:
        return  # a server that lists threads with their states tells no checkpoint
    if is_later(entry, newest):
        found = thread_of(values).length
        raise LostMessagesError(thread_id, wanted=entry.get("messages", 0), found=found)


def is_later(entry: Mapping[str, Any], newest: str | None) -> bool:
    """Return whether a thread's entry in the index names a checkpoint that is later than its newest
    one.
    """
    return str(entry.get(CHECKPOINT) or "") > (newest or "")


def reading(graph: Graph, thread_id: str) -> AbstractContextManager[None]:
    """Raise `DamagedThreadError` for data that cannot be decoded. With a caller's own saver, errors
    are passed on unchanged, because they may be bugs of the saver.
    """
    return readable(thread_id) if isinstance(graph.checkpointer, GuardedSaver) else nullcontext()


def is_stored(state: StateSnapshot) -> bool:
    """Return whether anything was ever stored for the thread."""
    return state.created_at is not None


def is_pending(state: StateSnapshot) -> bool:
    """Return whether a turn was interrupted. If only the preparation for the next turn was
    interrupted, the answer is False.
    """
    # A refusal, of an input or by the provider, is raised by the last step, which stays undone
    # then.
    closed = (
        {"prepare", "settle"} if turn_of(values_of(state)).get("status") in CLOSED else {"prepare"}
    )
    return any(task.name not in closed for task in state.tasks)


def is_failed(state: StateSnapshot) -> bool:
    """Return whether the newest turn ended as failed and can be run again."""
    return "failure" in turn_of(values_of(state))


def waits_for_the_model(state: StateSnapshot) -> bool:
    """Return whether the next step of an unfinished turn is a model call. A change that a person
    makes now is then part of this call.
    """
    unfinished = [task for task in state.tasks if task.name != "prepare"]
    return all(task.name in {"estimate", "respond"} and not task.interrupts for task in unfinished)


def has_unstored_work(state: StateSnapshot) -> bool:
    """Return whether a killed run left input, or the result of a step, that is in no checkpoint
    yet.
    """
    return any(
        task.name in {"__start__", "ingest"} or task.result is not None for task in state.tasks
    )


def made_by_voices(newest: CheckpointTuple) -> dict[str, Update]:
    """Return the updates of voices that have ended their task in an unfinished step. Such a step
    asks several voices of a team at the same time.
    """
    results = [value for _, channel, value in newest.pending_writes or () if channel == RETURN]
    voices = [(turn_of(result).get("voice", ""), result) for result in results]
    return {voice: result for voice, result in voices if voice}


def writing_node(state: StateSnapshot, update: Update) -> str:
    """Return the node in whose name a change is written. If a turn goes on after the change, its
    next call is counted next; otherwise no node follows.
    """
    closes = update.get("turn", {}).get("status") in CLOSED
    return "compact" if is_pending(state) and not closes else "prepare"


def leftover_update(state: StateSnapshot) -> Update | None:
    """Return the update that clears the leftover tasks of a thread without an interrupted turn.
    Return None if nothing is left over. With leftover tasks, the next step would run them.

    If an input is refused, the step that raised the error is left over. If a process is killed, an
    unfinished preparation for the next turn may be left over.
    """
    if not state.tasks or is_pending(state):
        return None
    turn = without_key(turn_of(values_of(state)), "refusal")
    return {"turn": {**turn, "status": FAILED if "failure" in turn else "answered"}}


def is_at_rest(graph: Graph, newest: CheckpointTuple) -> bool:
    """Return whether no turn was interrupted, by the newest checkpoint alone.

    The thread's messages are not loaded.
    """
    # The step before wrote to a channel that triggers the node which is due; what a step wrote
    # without an end is pending.
    updated = newest.checkpoint.get("updated_channels")
    triggers = {*chain.from_iterable(node.triggers for node in graph.nodes.values())}
    due = updated is None or not triggers.isdisjoint(updated)
    return not (due or newest.pending_writes or newest.metadata.get("source") == "input")


def state_owner(state: StateSnapshot) -> str | None:
    """Return the owner of a stored thread, None if it has no owner."""
    return owner_in(state.values.get("turn"), state.metadata)


def owner_in(turn: Any, metadata: Mapping[str, Any] | None) -> str | None:
    """Return the owner that a turn names. Before the first turn, return the owner in the metadata
    of the checkpoint.
    """
    known = dict(turn or {})
    return owner_of(known if known.get("number") else {"owner": (metadata or {}).get(OWNER)})


# -- what a turn waits for -------------------------------------------------------------------------

ANOTHER_MESSAGE = "they did not decide, and sent another message instead"

Decision = Mapping[str, Any]
"""A decision on a call that waits for approval: `{"type": "approve"}`, `{"type": "edit",
"edited_action": {"name": ..., "args": {"sql": ...}}}` or `{"type": "reject", "message": ...}`.
"""


@dataclass(frozen=True)
class Waiting:
    """One open question of a turn. `value` is the argument of `interrupt`."""

    id: str
    value: Any

    @property
    def actions(self) -> list[ActionRequest]:
        """Return the calls that wait for a decision. Empty if the question does not ask for
        decisions on calls.
        """
        requests = self.value.get("action_requests") if isinstance(self.value, Mapping) else None
        return cast("list[ActionRequest]", requests) if isinstance(requests, list) else []

    @property
    def event(self) -> ApprovalRequested | InputRequested:
        """Return the event that tells the reader of a stream about the question."""
        if not self.actions:
            return InputRequested(type="input_requested", id=self.id, value=self.value)
        configs = self.value.get("review_configs", [])
        return ApprovalRequested(
            type="approval_requested", action_requests=self.actions, review_configs=configs
        )


def waiting_of(interrupts: Sequence[Interrupt]) -> list[Waiting]:
    """Return LangGraph's interrupts as open questions."""
    return [Waiting(one.id, one.value) for one in interrupts]


def waiting_in(state: StateSnapshot) -> list[Waiting]:
    """Return the open questions of a thread."""
    return list(chain.from_iterable(waiting_of(task.interrupts) for task in state.tasks))


def answer_command(
    state: StateSnapshot, answer: Any, waiting_id: str | None, thread_id: str
) -> Command[str]:
    """Return the command that continues a turn with a person's answer.

    A list of decisions answers the first question that asks for decisions; any other answer goes to
    the first question that asks for something else. `waiting_id` names another question. Raises
    `NothingAskedError` if there is no such question, `WrongDecisionError` if the decisions do not
    fit the calls.
    """
    decisions = (
        isinstance(answer, Sequence)
        and all(isinstance(each, Mapping) for each in answer)
        and not isinstance(answer, str)
    )
    questions = [one for one in waiting_in(state) if waiting_id in (None, one.id)]
    if not questions:
        raise NothingAskedError(thread_id)
    waiting = next((one for one in questions if bool(one.actions) == decisions), questions[0])
    if waiting.actions and decisions:
        answer = {"decisions": list(answer)}
    if waiting.actions and "approval" in turn_of(values_of(state)):
        # An interrupt of somebody's own tool may allow other decisions.
        decisions_of(answer, waiting.actions)
    return Command(resume={waiting.id: answer})


def rejection(state: StateSnapshot) -> Update:
    """Return the update that rejects all calls waiting for approval, because the person sent a new
    message instead. It is empty if no call waits.
    """
    turn = turn_of(values_of(state))
    if "approval" not in turn or not waiting_in(state):
        return {}
    return {
        "turn": {
            **turn,
            "approval": {**turn["approval"], "decided": [], "passed_over": ANOTHER_MESSAGE},
        }
    }


def check_values(values: State) -> None:
    """Raise `ValueError` or a similar error if the state of a thread lacks fields that every state
    has. This check is needed because msgpack may also decode damaged bytes.
    """
    if unsound := [message for message in values.get("messages") or [] if not is_sound(message)]:
        raise ValueError(f"{len(unsound)} messages lack what every message has")
    thread = thread_of(values)
    turn = turn_of(values)
    ids = [item["id"] for item in (*thread.compactions, *thread.edits)]
    tally = values.get("tally", Tally(count=0, digest=0))
    numbers = [thread.archived, tally["count"], tally["digest"], turn.get("number", 0)]
    for record in thread.compactions:
        numbers += [record["turn"], record["count"]]
    if not all(isinstance(each, str) for each in ids) or not all(
        isinstance(each, int) for each in numbers
    ):
        raise ValueError("a record of the thread lacks its id or numbers")
    _ = (thread.chain, thread.excluded, thread.pins)


def is_sound(message: BaseMessage) -> bool:
    """Return whether a message has the fields that every message has, with values of the right
    types.
    """
    calls = (
        [*message.tool_calls, *message.invalid_tool_calls] if isinstance(message, AIMessage) else []
    )
    return bool(
        isinstance(message.id, str)
        and message.id
        and isinstance(message.content, str | list)
        and isinstance(message.additional_kwargs, dict)
        and isinstance(message.response_metadata, dict)
        and all(isinstance(call, dict) and {"name", "args", "id"} <= call.keys() for call in calls)
    )
