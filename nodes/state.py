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
"""Name, in a run's stream, of the LangGraph task of a voice that is asked together with others."""
UNDER_WAY: tuple[TurnStatus, ...] = ("running", "overflow", "again")
"""Values of the `status` of a turn that is not closed yet. After "overflow" and "again" the call is
counted and the model asked once more.
"""
SELDOM = ("compactions", "edits", "archive", "learned", "brief")
"""Channels that most turns do not write."""
FOOTER = "footer"
"""Mark of an answer with a footer. Its value is the footer, a text at the end of the answer's
content that no model is sent.
"""
RECORD_WRITES = 8
"""The channels `compactions` and `edits` are stored whole after every this many writes. This is
seldom enough that a turn of a long thread writes few bytes.
"""
REFRESH_TURNS = 32
"""The channels in `SELDOM` are stored whole again after every this many turns, about as often as
`messages`.
"""


def refresh_update(values: Mapping[str, Any], turn: int) -> "Update":
    """Return the update that stores the channels in `SELDOM` whole again. It is empty in most
    turns.

    The update does not change the channels' values. It is needed because LangGraph, to load a
    thread, reads back checkpoint by checkpoint to where each channel was last stored whole, by
    default over 5,000 steps. After 800 turns of which only the first had written `brief`, loading
    took 430 ms, 400 of them for this.
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
    """One tool call that needs a person's approval. `description`: why the person is asked."""

    id: str
    description: str


class Decision(TypedDict):
    """What a person decided on one tool call. `type` is "approve", "edit" (with the new `sql`) or
    "reject" (with a `reason`). `by`: who decided.
    """

    type: Literal["approve", "edit", "reject"]
    by: NotRequired[str]
    sql: NotRequired[str]
    reason: NotRequired[str]


class Approval(TypedDict):
    """The calls of one answer that need approval (`asked`), and the person's decisions on them
    (`decided`). `passed_over`: the reason if a new message came and all these calls count as
    rejected.
    """

    asked: list[PendingCall]
    decided: NotRequired[list[Decision]]
    passed_over: NotRequired[str]


class Failure(TypedDict):
    """The failure of a turn whose content the provider refused. `message`: the error's text.
    `left_out`: whether the turn's messages were left out of the view.
    """

    message: str
    left_out: bool


class InputRefusal(TypedDict):
    """Why an input was refused: the code of the error, its attributes (`numbers`), and the language
    of the refused message. (The message itself is removed from the thread.)
    """

    code: str
    numbers: dict[str, Any]
    language: str


class Turn(TypedDict, total=False):
    """The record of the newest turn. It is stored, so its keys must keep their names."""

    number: int
    status: TurnStatus
    calls: int
    """Number of model calls so far. With a team: of the voice that is asked."""
    recalls: int
    searched: list[str]
    """Keywords for which a model without tools asked in vain."""
    overflows: int
    ceiling: int
    """Most tokens of this turn's calls. It is set after the provider said that a call is too long.
    """
    breaker: int | None
    """Size of the call in tokens when a compaction failed, None if none did. It is kept for later
    turns.
    """
    skipped: int | None
    """Size of the call in tokens when there was too little to compact in this turn, else None."""
    last: str | None
    """Id of the newest message that a node wrote or accepted. Messages after it came from a caller.
    """
    run: str
    owner: str | None
    channel: str
    private: bool
    schema: str
    """Hash of the database's schema."""
    bell: str
    """Token of the newest inbox notification that the turn has seen."""
    joined: list[str]
    """Keys of inbox messages that are deleted once this record is stored."""
    approval: Approval
    footers: bool
    """True if answers of the thread have a footer for people; see `without_footer`."""
    one_by_one: bool
    """True if several tools ask a person, so that each tool is run alone."""
    without: list[str | None]
    """Ids of messages that are left out of a call that is made again."""
    refusal: InputRefusal
    failure: Failure
    prepare: bool
    """Whether the node `prepare` runs after this turn."""
    unsupported_numbers: list[str]
    voice: str
    """Id of the persona that is asked. Absent without a team."""
    mentioned: list[str]
    """Ids of the personas that the user's message mentions."""
    reason: str
    """Why a voice of a team could not answer, as a sentence for the person."""
    calls_left: int
    """Number of model calls that the whole turn of a team may still make."""
    alone: bool
    """True if the voice could not continue at the same time as others, and so is asked alone."""


class Schema(TypedDict, total=False):
    """The database's schema as a thread keeps it. If there are several databases, it has the schema
    of each in `databases`, by name, and `hash` and `tables` are of all of them.
    """

    hash: str
    budget: int
    """Most tokens of the card."""
    card: str
    """The description of the tables that the model is shown in each call."""
    shown: dict[str, str]
    """The tables on the card, each with a hash of its schema."""
    tables: int
    note: str
    """A line that tells the model of a change of the schema in this thread."""
    rows: str
    """The key of the row parameters under which the rows on the card were counted."""
    databases: "dict[str, Schema]"


class SchemaChange(TypedDict):
    """A change of the database's schema between two turns. It is stored as a mark of the message
    that opens the later turn. `changed`, `new` and `gone` are names of tables.
    """

    changed: list[str]
    new: list[str]
    gone: list[str]
    listing: bool
    """True if earlier lists of tables are stale."""
    all: bool
    """True if more tables changed than are named."""


class StoredVoice(TypedDict):
    """The call config of one persona: the values that replace those of the thread's config."""

    name: str
    words: list[str]
    """The words that mention the persona, in the form that `voices.fold` gives."""
    system: str
    has_data: bool
    """Whether the persona's calls include the schema."""
    tool_tokens: int
    model: str
    own_model: bool
    limit: int
    encoding: str
    pin_tools: bool
    rounds: int | None
    apart: bool
    """Whether the persona hears nothing of what its colleagues said in the same turn."""


class StoredConfig(TypedDict, total=False):
    """The stored call config of a thread: what a call sends around its messages, and the limits. It
    is kept in the channel `brief`.
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
    """The name with which the run chose its model. Absent or "" if it chose none."""
    voices: dict[str, StoredVoice]
    """The configs of the personas, by id. Absent without a team."""


class Learned(TypedDict, total=False):
    """What was learned from the provider: the JSON of a
    `longtable.memory.counting.calibration.Calibration`.
    """

    ratio: float
    samples: int
    limit: int | None
    recent: list[float]


class Usage(UsageFigures, total=False):
    """The figures of the newest `context_usage` event, and whether a compaction is due."""

    due: bool


class ArchiveCount(TypedDict):
    """How many messages have retired to the store."""

    count: int


class State(TypedDict, total=False):
    """The state of one thread."""

    messages: Annotated[list[AnyMessage], DeltaChannel(merge_messages)]
    """The live transcript. Written by the caller, ingest (stamps), estimate (messages of the
    inbox), respond, run_tools, settle (notices) and prepare (removals of retired messages).
    """
    compactions: Annotated[
        list[Compaction], DeltaChannel(append_records, snapshot_frequency=RECORD_WRITES)
    ]
    """Append-only records of compactions. Written by compact and prepare."""
    edits: Annotated[list[Edit], DeltaChannel(append_records, snapshot_frequency=RECORD_WRITES)]
    """Append-only changes: pins made and ended, messages excluded or included, compactions undone.
    Written by `Conversation`. Pins are also written by run_tools and settle; exclusions of messages
    that the provider refused are written by respond and ingest.
    """
    archive: Annotated[ArchiveCount, DeltaChannel(keep_latest, snapshot_frequency=1)]
    """How many messages have retired to the store. Written by prepare."""
    learned: Annotated[Learned, DeltaChannel(keep_latest, snapshot_frequency=1)]
    """What was learned from the provider: how many of its tokens one counted token stands for, and
    its limit if an error named one. Written by respond; cleared by ingest if the model changes.
    """
    brief: Annotated[StoredConfig, DeltaChannel(keep_latest, snapshot_frequency=1)]
    """The call config: system prompt, schema card, tool tokens, limit, encoding, policy. Written by
    ingest if it has changed.
    """
    usage: Usage
    """Tokens of the next call by part. Written whenever a call is counted; see `Estimate`."""
    turn: Turn
    """The record of the newest turn. Written by every node."""
    ahead: dict[str, Any]
    """With a team: the updates of voices that were asked at the same time. Each update is kept here
    until its voice's turn comes. Written by respond.
    """
    tally: Tally
    """The number of messages and a digest of their ids. Written together with `messages`."""


class Update(TypedDict, total=False):
    """The update of a node: the channels of the state that it writes."""

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
    """The input of a caller: the new messages, of which the last is the user's.

    `tally` is set by the graph itself. If the input removes messages, it is the tally of the
    remaining messages.
    """

    messages: Sequence[AnyMessage | BaseMessage]
    tally: NotRequired[Tally]


def values_of(snapshot: StateSnapshot) -> State:
    """Return the values of a stored state, typed as `State` (LangGraph types them as `Any`)."""
    return cast("State", snapshot.values)


def thread_of(values: State) -> Thread:
    """Return the thread in a state, in the form that the memory package works on."""
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
    """Return the size of the call in tokens when a compaction failed or had too little to compact.
    No compaction is tried again until the call is larger. Return None if neither happened.
    """
    return max(turn.get("breaker") or 0, turn.get("skipped") or 0) or None


def turn_of(values: State | Update) -> Turn:
    """Return the record of the newest turn, empty before the first turn. Do not change the record
    in place: a node writes a new record instead.
    """
    return values.get("turn") or {}


def compacting_update(values: State) -> "Update":
    """Return the update that makes the next run compact the thread. The thread must have no running
    turn.
    """
    return {"turn": {**turn_of(values), "status": "compacting"}}


def is_ahead(state: State, turn: Turn) -> bool:
    """Return whether the messages of the voice whose turn it is were already made, because it was
    asked at the same time as others.
    """
    ahead = state.get("ahead") or {}
    voice = turn.get("voice")
    if voice not in ahead:
        return False
    made_in: Turn = ahead[voice]["turn"]
    return made_in.get("number") == turn.get("number")


def applied(state: State, update: Mapping[str, Any]) -> State:
    """Return the state after a node's update, merged as LangGraph would merge it."""
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
    """The input of a node: a thread's state at the beginning of a superstep, and the settings of
    the run.

    It is built once per superstep and passed to the node; helpers are passed the parts that they
    need.
    """

    state: State
    thread: Thread
    turn: Turn
    config: StoredConfig
    """The stored call config (channel `brief`)."""
    context: Context
    """The run's settings, limited by the operator's settings."""
    runtime: Runtime[Context]
    thread_id: str | None
    """The id under which the thread's data are stored, None if the run has no thread."""

    @classmethod
    def of(cls, state: State, runtime: Runtime[Context]) -> "Now":
        """Return the input of a node from a state and the runtime of the run."""
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
        """Return a copy with another record of the turn."""
        return self._with_state({**self.state, "turn": turn})

    def _with_state(self, state: State) -> "Now":
        turn = turn_of(state)
        config = state.get("brief") or {}
        return replace(self, state=state, thread=_thread(state, turn), turn=turn, config=config)

    @property
    def language(self) -> str:
        """Return the language to answer in: the run's setting, else the language of the newest user
        message.
        """
        return self.context.language or newest_language(self.thread.messages)


def with_tally(state: State, update: Update) -> Update:
    """Return the update and, if it writes messages, the tally of the messages after it."""
    if "messages" not in update:
        return update
    tally = tally_after(state.get("tally"), state.get("messages") or [], update["messages"])
    return {**update, "tally": tally}


def without_key(turn: Turn, *names: str) -> Turn:
    """Return a turn's record without these keys."""
    return cast("Turn", {name: value for name, value in turn.items() if name not in names})


def with_last(turn: Turn, messages: Sequence[BaseMessage]) -> Turn:
    """Return the turn's record with `last` set to the id of the newest of these messages. Every
    node that adds messages must call this.

    Messages after `last` in the transcript came from a caller, whatever stamp they bear.
    """
    return {**turn, "last": messages[-1].id} if messages else turn


def with_fresh_id(answer: BaseMessage, messages: Sequence[BaseMessage]) -> BaseMessage:
    """Return the answer, with a new id if it has none or if an older message has the same id. Some
    servers repeat ids, and the answer would overwrite the older message.
    """
    if answer.id and all(message.id != answer.id for message in messages):
        return answer
    return answer.model_copy(update={"id": str(uuid.uuid4())})


def pin_changes(
    pins: Sequence[Pin], ends: Sequence[PinEnd], answer: BaseMessage | None = None
) -> tuple[list[Edit], PinsChanged]:
    """Return the edits that store new pins and ends of pins, and the event that reports them.
    `answer`: the model's message after which they changed.
    """
    where = str(answer.id) if answer is not None else ""
    edits = [Edit(id=uuid.uuid4().hex, op="pin", pin=pin.as_json(), answer=where) for pin in pins]
    ended = [
        Edit(
            id=uuid.uuid4().hex,
            op="unpin",
            pins=[end["pin"]],
            quote=end["quote"],
            message=end["message"],
            turn=end["turn"],
            answer=where,
        )
        for end in ends
    ]
    return [*edits, *ended], pins_changed([pin.as_json() for pin in pins], ends)


def pins_changed(pins: Sequence[Mapping[str, Any]], ends: Sequence[PinEnd]) -> PinsChanged:
    """Return the event that reports new pins and ends of pins."""
    return PinsChanged(
        type="pins_changed",
        pinned=[{"id": pin["id"], "text": pin["text"], "by": pin["by"]} for pin in pins],
        ended=[{"id": end["pin"], "quote": end["quote"]} for end in ends],
    )


def newest_language(messages: Sequence[BaseMessage]) -> str:
    """Return the language of the newest user message, "en" or "zh"."""
    return language_of([message for message in messages if is_users(message)][-1:])
