"""The state of a thread. It holds only messages and plain JSON, because checkpoints outlive our
class names.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NotRequired, cast

from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.runtime import Runtime
from langgraph.types import StateSnapshot
from typing_extensions import TypedDict

from longtable.base.context import Context
from longtable.base.events import PinsChanged, TurnStatus, UsageFigures
from longtable.memory.messages.marks import mark_of
from longtable.memory.messages.rounds import is_users
from longtable.memory.pins.pins import Pin, PinEnd
from longtable.memory.records import Compaction
from longtable.memory.summary.summary_text import language_of
from longtable.memory.thread import Edit, Thread
from longtable.nodes.reducers import append_records, keep_latest, merge_messages
from longtable.nodes.tally import Tally, tally_after
from longtable.store.records.thread_index import thread_id_of

ANSWERED: Literal["answered"] = "answered"
NOBODY: Literal["nobody"] = "nobody"
"""Status of a turn in which the team's mode named nobody to answer."""
VOICE_TASK = "voice"
"""Name of the task, in a run's stream, of a voice that is asked at the same time as others."""
UNDER_WAY: tuple[TurnStatus, ...] = ("running", "overflow", "again")
"""Values of a turn's `status` until it is closed. After "overflow" and "again" the turn is counted
and the model asked once more.
"""
SELDOM = ("compactions", "edits", "archive", "learned", "brief")
"""Channels that most turns do not write."""
FOOTER = "footer"
"""Mark of an answer: the end of its content, which no model is sent."""
RECORD_WRITES = 8
"""The records are stored whole after so many writes: seldom enough that a turn of a long thread
writes few bytes.
"""
REFRESH_TURNS = 32
"""The seldom written channels are stored whole again after so many turns, about as often as
`messages`.
"""


def refresh_update(values: Mapping[str, Any], turn: int) -> "Update":
    """Return the update that stores the seldom written channels whole again, empty in most turns.

    Their values do not change. To load a thread, LangGraph reads back checkpoint by checkpoint to
    where each channel was last stored whole, by default over 5,000 steps. After 800 turns of which
    only the first had written `brief`, loading took 430 ms, 400 of them for this.
    """
    if turn % REFRESH_TURNS:
        # The records grow with the thread: an empty write counts towards their next whole one, and
        # costs nothing.
        counts = turn % (REFRESH_TURNS // RECORD_WRITES) == 0
        return cast(
            "Update",
            {
                name: []
                for name in ("compactions", "edits")
                if counts and values.get(name) is not None
            },
        )
    whole = {
        name: [] if isinstance(values[name], list) else values[name]
        for name in SELDOM
        if values.get(name) is not None
    }
    return cast("Update", whole)


class PendingCall(TypedDict):
    """One call that needs a person's approval."""

    id: str
    description: str


class Decision(TypedDict):
    """What a person decided on one call."""

    type: str
    sql: NotRequired[str]
    reason: NotRequired[str]


class Approval(TypedDict):
    """The calls of one answer that wait for approval, and the decisions on them. `passed_over`: the
    reason if a new message rejected them all.
    """

    asked: list[PendingCall]
    decided: NotRequired[list[Decision]]
    passed_over: NotRequired[str]


class Failure(TypedDict):
    """The failure of a turn that the provider refused: the error's words, and whether the turn's
    messages left the view.
    """

    message: str
    left_out: bool


class InputRefusal(TypedDict):
    """Why an input was refused: code and attributes of the error, and the language of the message,
    which itself is removed.
    """

    code: str
    numbers: dict[str, Any]
    language: str


class Turn(TypedDict, total=False):
    """The running turn's record. Stored: its keys keep their names."""

    number: int
    status: TurnStatus
    calls: int
    """Model calls so far."""
    recalls: int
    searched: list[str]
    """Keywords that a model without tools asked for in vain."""
    overflows: int
    ceiling: int
    """Most tokens of this turn's calls, set after the provider said that a call is too long."""
    breaker: int | None
    """Tokens at which a compaction failed; it outlives the turn."""
    skipped: int | None
    """Tokens at which there was too little to compact in this turn."""
    last: str | None
    """Id of the newest message that a node wrote or took in: messages after it came from a
    caller.
    """
    run: str
    owner: str | None
    channel: str
    private: bool
    schema: str
    """Hash of the database's schema."""
    bell: str
    """Token of the inbox's newest notification that the turn has seen."""
    joined: list[str]
    """Keys of inbox messages to delete once this record is stored."""
    approval: Approval
    footers: bool
    """Answers of the thread have something below them for people: see `without_footer`."""
    one_by_one: bool
    """Several tools wait for a person, so each is run alone."""
    without: list[str | None]
    """Ids of messages that a repeated call goes without."""
    refusal: InputRefusal
    failure: Failure
    prepare: bool
    unsupported_numbers: list[str]
    voice: str
    """The persona that is asked; absent without a team."""
    mentioned: list[str]
    """Personas that the user's message mentions."""
    reason: str
    """Why a voice of a team could not answer, for the person."""
    calls_left: int
    """Model calls that the whole turn of a team may still make."""
    alone: bool
    """The voice could not go on at the same time as others, so it is asked by itself."""


class Schema(TypedDict, total=False):
    """The database's schema as a thread keeps it."""

    hash: str
    budget: int
    """Tokens."""
    card: str
    shown: dict[str, str]
    """Tables on the card, each with a hash."""
    tables: int
    note: str
    """A line for the model about a change in this thread."""


class SchemaChange(TypedDict):
    """The mark of the message that opens a turn before which the schema changed."""

    changed: list[str]
    new: list[str]
    gone: list[str]
    listing: bool
    """Lists of tables are stale."""
    all: bool
    """More tables changed than are named."""


class StoredVoice(TypedDict):
    """The call config of one persona, as far as it differs from the thread's."""

    name: str
    words: list[str]
    """Folded words that mention it."""
    system: str
    has_data: bool
    """Whether its calls include the schema."""
    tool_tokens: int
    model: str
    own_model: bool
    limit: int
    encoding: str
    pin_tools: bool
    rounds: int | None
    apart: bool
    """Whether it hears nothing that its colleagues said in this turn."""


class StoredConfig(TypedDict, total=False):
    """The call config of a thread: what is sent around the messages of each call. The channel is
    `brief`.
    """

    system: str
    schema: Schema
    tool_tokens: int
    model: str
    dialect: str
    limit: int
    window: int | None
    encoding: str
    policy: dict[str, Any]
    pin_tools: bool
    """Whether the tools `remember` and `forget` go with the calls."""
    choice: str
    """The name with which a run chose the model, if it chose one."""
    voices: dict[str, StoredVoice]
    """By persona; absent without a team."""


class Learned(TypedDict, total=False):
    """What the provider taught: see `longtable.memory.counting.calibration.Calibration`."""

    ratio: float
    samples: int
    limit: int | None
    recent: list[float]


class Usage(UsageFigures, total=False):
    """The newest `context_usage` event, and whether a compaction is due."""

    due: bool


class ArchiveCount(TypedDict):
    """How many messages retired to the store."""

    count: int


class State(TypedDict, total=False):
    """One thread."""

    messages: Annotated[list[AnyMessage], DeltaChannel(merge_messages)]
    """The transcript. Written by the caller, ingest (stamps), respond, run_tools, settle
    (notices).
    """
    compactions: Annotated[
        list[Compaction], DeltaChannel(append_records, snapshot_frequency=RECORD_WRITES)
    ]
    """Append-only records of compactions. Written by compact."""
    edits: Annotated[list[Edit], DeltaChannel(append_records, snapshot_frequency=RECORD_WRITES)]
    """Append-only changes: pins made and ended, messages excluded, compactions undone. Written by
    `Conversation`; pins also by run_tools and settle, messages that the provider refused by respond
    and ingest.
    """
    archive: Annotated[ArchiveCount, DeltaChannel(keep_latest, snapshot_frequency=1)]
    """How many messages retired to the store. Written by prepare."""
    learned: Annotated[Learned, DeltaChannel(keep_latest, snapshot_frequency=1)]
    """What the provider taught: how many of its tokens equal one counted token, and its limit if an
    error named it. Written by respond.
    """
    brief: Annotated[StoredConfig, DeltaChannel(keep_latest, snapshot_frequency=1)]
    """The call config: system prompt, schema card, tool tokens, limit, encoding, policy. Written by
    ingest when it changes.
    """
    usage: Usage
    """Tokens of the next call by part. Written by estimate."""
    turn: Turn
    """Written by every node."""
    ahead: dict[str, Any]
    """The updates of a team's voices that were asked at the same time, each kept until it is the
    voice's turn. Written by respond.
    """
    tally: Tally
    """The number of messages and a digest of their ids. Written with messages."""


class Update(TypedDict, total=False):
    """The part of the state that a node writes."""

    messages: Sequence[BaseMessage]
    compactions: Sequence[Compaction]
    edits: Sequence[Edit]
    archive: ArchiveCount
    learned: Learned
    brief: StoredConfig
    usage: Usage
    turn: Turn
    ahead: dict[str, Any]
    tally: Tally


class Input(TypedDict):
    """What a caller gives: the new messages, the user's last.

    `tally` is set by the graph itself: the tally of the remaining messages if the input removes
    some.
    """

    messages: Sequence[AnyMessage | BaseMessage]
    tally: NotRequired[Tally]


def values_of(snapshot: StateSnapshot) -> State:
    """Return the values of a stored state, which LangGraph types as `Any`."""
    return cast("State", snapshot.values)


def thread_of(values: State) -> Thread:
    """Return a thread as memory sees it, empty if there is nothing yet."""
    return _thread(values, turn_of(values))


def _thread(values: State, turn: Turn) -> Thread:
    messages: Sequence[BaseMessage] = values.get("messages") or []
    if "footers" in turn:
        messages = [without_footer(message) for message in messages]
    return Thread(
        messages=messages,
        compactions=values.get("compactions") or [],
        edits=values.get("edits") or [],
        archived=(values.get("archive") or ArchiveCount(count=0)).get("count", 0),
    )


def without_footer(message: BaseMessage) -> BaseMessage:
    """Return a message without the footer that `settle` put below it for people."""
    footer = mark_of(message, FOOTER)
    content = message.content
    if not isinstance(footer, str) or not isinstance(content, str):
        return message
    return message.model_copy(update={"content": content.removesuffix(footer)})


def failed_at(turn: Turn) -> int | None:
    """Return the tokens at which a compaction failed or had too little to do. None is tried again
    until there are more tokens.
    """
    return max(turn.get("breaker") or 0, turn.get("skipped") or 0) or None


def turn_of(values: State | Update) -> Turn:
    """Return the running turn's record, empty before the first. Do not change it: a new record is
    written by a node.
    """
    return values.get("turn") or {}


def compacting_update(values: State) -> "Update":
    """Return the update that makes the next run of a thread at rest compact it."""
    return {"turn": {**turn_of(values), "status": "compacting"}}


def is_ahead(state: State, turn: Turn) -> bool:
    """Return whether the voice that is asked has its messages of this turn already."""
    ahead = state.get("ahead") or {}
    voice = turn.get("voice")
    if voice not in ahead:
        return False
    made_in: Turn = ahead[voice]["turn"]
    return made_in.get("number") == turn.get("number")


def applied(state: State, update: Mapping[str, Any]) -> State:
    """Return the state after a node's update, as LangGraph makes it."""
    before: dict[str, Any] = {**state}
    reducers: dict[str, Callable[..., Any]] = {
        "messages": merge_messages,
        "compactions": append_records,
        "edits": append_records,
    }
    reduced = {
        name: reducers[name](before.get(name) or [], [update[name]])
        for name in reducers.keys() & update.keys()
    }
    return cast("State", {**before, **update, **reduced})


@dataclass(frozen=True)
class Now:
    """The input of a node: a thread as a superstep finds it, with the settings of the run.

    The step builds it once and hands it to the node; helpers take the part of it that they need.
    """

    state: State
    thread: Thread
    turn: Turn
    config: StoredConfig
    """The channel `brief`."""
    context: Context
    """The run's settings, within the operator's."""
    runtime: Runtime[Context]
    thread_id: str | None
    """None outside a thread."""

    @classmethod
    def of(cls, state: State, runtime: Runtime[Context]) -> "Now":
        """Read a state, within a run."""
        turn = turn_of(state)
        return cls(
            state=state,
            thread=_thread(state, turn),
            turn=turn,
            config=state.get("brief") or {},
            context=runtime.context or Context(),
            runtime=runtime,
            thread_id=thread_id_of(runtime),
        )

    def after(self, update: Update) -> "Now":
        """Return a copy with the state after an update."""
        return self._with_state(applied(self.state, update))

    def with_turn(self, turn: Turn) -> "Now":
        """Return the same with another record of the turn."""
        return self._with_state({**self.state, "turn": turn})

    def _with_state(self, state: State) -> "Now":
        turn = turn_of(state)
        config = state.get("brief") or {}
        return replace(self, state=state, thread=_thread(state, turn), turn=turn, config=config)

    @property
    def language(self) -> str:
        """Return the language to answer in: the run's, else that of the newest user message."""
        return self.context.language or newest_language(self.thread.messages)


def with_tally(state: State, update: Update) -> Update:
    """Return the update with the tally of the messages that the state has after it."""
    if "messages" not in update:
        return update
    tally = tally_after(state.get("tally"), state.get("messages") or [], update["messages"])
    return {**update, "tally": tally}


def without_key(turn: Turn, *names: str) -> Turn:
    """Return a turn's record without these keys."""
    return cast("Turn", {name: value for name, value in turn.items() if name not in names})


def with_last(turn: Turn, messages: Sequence[BaseMessage]) -> Turn:
    """Return the turn's record after a node wrote these messages: `last` is the id of the newest
    message a node wrote or took in.

    Messages after it in the transcript came from a caller, whatever stamp they bear. A node that
    adds messages says so here.
    """
    return {**turn, "last": messages[-1].id} if messages else turn


def with_fresh_id(answer: BaseMessage, messages: Sequence[BaseMessage]) -> BaseMessage:
    """Never let an answer overwrite an older message: some servers repeat their ids."""
    if answer.id and all(message.id != answer.id for message in messages):
        return answer
    return answer.model_copy(update={"id": str(uuid.uuid4())})


def pin_changes(pins: Sequence[Pin], ends: Sequence[PinEnd]) -> tuple[list[Edit], PinsChanged]:
    """Return the edits that store new and ended pins, and the event that tells of them."""
    edits = [Edit(id=uuid.uuid4().hex, op="pin", pin=pin.as_json()) for pin in pins]
    ended = [
        Edit(
            id=uuid.uuid4().hex,
            op="unpin",
            pins=[end["pin"]],
            quote=end["quote"],
            message=end["message"],
            turn=end["turn"],
        )
        for end in ends
    ]
    return [*edits, *ended], pins_changed([pin.as_json() for pin in pins], ends)


def pins_changed(pins: Sequence[Mapping[str, Any]], ends: Sequence[PinEnd]) -> PinsChanged:
    """Return the event of stored and ended pins."""
    return PinsChanged(
        type="pins_changed",
        pinned=[{"id": pin["id"], "text": pin["text"], "by": pin["by"]} for pin in pins],
        ended=[{"id": end["pin"], "quote": end["quote"]} for end in ends],
    )


def newest_language(messages: Sequence[BaseMessage]) -> str:
    """Return the language of the newest user message, "en" or "zh"."""
    return language_of([message for message in messages if is_users(message)][-1:])
