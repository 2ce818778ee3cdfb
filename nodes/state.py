"""What a thread keeps: messages and plain JSON only, for a checkpoint outlives our class names."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, NotRequired, cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    BaseMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
    convert_to_messages,
    message_chunk_to_message,
)
from langgraph.channels.delta import DeltaChannel
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from pydantic import ValidationError
from typing_extensions import TypedDict

from longtable.base.context import Context
from longtable.base.events import PinsChanged, UsageFigures
from longtable.memory.call_config import Calibration, CallConfig
from longtable.memory.pins import Pin, PinEnd
from longtable.memory.policy import CompactionPolicy
from longtable.memory.reasoning import reasoning_sent
from longtable.memory.rounds import is_users
from longtable.memory.stamps import is_copy, mark_of, marks_of
from longtable.memory.stamps import merged as merged_fields
from longtable.memory.summary import language_of
from longtable.memory.thread import Compaction, Edit, Thread
from longtable.memory.tokens import fingerprint
from longtable.memory.view import CallPlan, build_view
from longtable.memory.voices import Voice

ANSWERED: Literal["answered"] = "answered"
NOBODY: Literal["nobody"] = "nobody"
"""Status of a turn in which the team's mode named nobody to answer."""
VOICE_TASK = "voice"
"""Name, in a run's stream, of what a voice of a team does that is asked at once with others."""
UNDER_WAY = ("running", "overflow", "again")
"""What the record of a turn has for `status` until it is closed: "overflow" and "again" count and
ask once more.
"""
ROLES = {"user", "human", "assistant", "ai", "system", "tool"}
_MESSAGES: tuple[type[BaseMessage], ...] = (
    HumanMessage,
    AIMessage,
    SystemMessage,
    ToolMessage,
    RemoveMessage,
)
_CHUNKS: tuple[type[BaseMessage], ...] = (
    HumanMessageChunk,
    AIMessageChunk,
    SystemMessageChunk,
    ToolMessageChunk,
)
_CLASSES = {kind.model_fields["type"].default: kind for kind in (*_MESSAGES, *_CHUNKS)}
"""Message classes by the `type` that their dicts hold."""
SELDOM = ("compactions", "edits", "archive", "learned", "brief")
"""Channels that most turns do not write."""
FOOTER = "footer"
"""Mark of an answer: what its content ends with that no model is sent."""
RECORD_WRITES = 8
"""Writes after which the records are stored whole: seldom enough that a long thread's bytes a turn
stay few.
"""
REFRESH_TURNS = 32
"""Turns after which these are stored whole again; `messages` is about as often."""


def merge_messages(state: list[BaseMessage], writes: Sequence[Any]) -> list[BaseMessage]:
    """Upsert messages by id, in order; the reducer of `messages`.

    Deterministic and batching-invariant, as a delta channel replays its writes:
    `merge(merge(s, a), b) == merge(s, a + b)`. LangGraph adds ids to the messages it gets; one that
    still has none (a bare string or tuple) gets an id made from its place and content. An accepted
    message is not overwritten by input that repeats its id: a resent message is a duplicate; a
    deliberate edit carries the stamp of the message it was copied from, and its metadata merges
    field by field. `RemoveMessage` takes a message out, with `REMOVE_ALL_MESSAGES` all before it;
    an unknown id is no error, for the removal may be replayed.
    """
    try:
        merged = {message.id: message for message in state}
    except AttributeError:  # a server restores dicts
        merged = {message.id: message for message in map(_message, state)}
    for message in (message for write in writes for message in read_messages(write)):
        if isinstance(message, RemoveMessage):
            merged = {} if message.id == REMOVE_ALL_MESSAGES else merged
            merged.pop(message.id, None)
            continue
        if not message.id:
            message = message.model_copy(update={"id": _made_id(message, merged)})
        known = merged.get(message.id)
        if known is None or not marks_of(known):
            merged[message.id] = message
        elif is_copy(message, known):
            merged[message.id] = merged_fields(known, message)
    return list(merged.values())


def read_messages(write: Any) -> list[BaseMessage]:
    """Return the messages of one write, in whatever form LangGraph takes them."""
    messages = map(_message, _items(write))
    return [
        message_chunk_to_message(each) if isinstance(each, BaseMessageChunk) else each
        for each in messages
    ]


def _message(item: Any) -> BaseMessage:
    """Return a message, also from its dict: a server stores its messages as dicts.

    `convert_to_messages` knows some fields only and puts the others (`usage_metadata`,
    `invalid_tool_calls`) into `additional_kwargs`. Here only keys that are no field go there: what
    stands there counts towards a request's size.
    """
    if isinstance(item, BaseMessage):
        return item
    kind = (
        _CLASSES.get(str(item.get("type")))
        if isinstance(item, dict) and "content" in item and "role" not in item
        else None
    )
    if kind is None:
        if not isinstance(item, dict | str | list | tuple):  # a damaged row
            raise ValueError(
                "a message must be a message, a dict, a text or a pair, found"
                f" {type(item).__name__}"
            )
        return convert_to_messages([item])[0]
    fields = {name: value for name, value in item.items() if name in kind.model_fields}
    others = {name: value for name, value in item.items() if name not in fields}
    try:
        extra = {**others, **(item.get("additional_kwargs") or {})}
        return kind(
            **{
                **fields,
                "content": "" if item["content"] is None else item["content"],
                "additional_kwargs": extra,
            }
        )
    except (ValidationError, TypeError):
        # A client's, in another shape: tool calls as OpenAI has them.
        return convert_to_messages([item])[0]


def _made_id(message: BaseMessage, known: Mapping[str | None, BaseMessage]) -> str:
    place = len(known)
    while (new_id := f"at-{place}-{fingerprint(message).hex()[:12]}") in known:
        place += 1  # a removal made the count repeat: never overwrite what is there
    return new_id


def _items(write: Any) -> Sequence[Any]:
    # A bare ("user", "hi") comes back from a checkpoint as ["user", "hi"]: both are one message.
    if isinstance(write, list | tuple):
        pair = (
            len(write) == 2 and all(isinstance(part, str) for part in write) and write[0] in ROLES
        )
        return [tuple(write)] if pair else list(write)
    return [write]


def append_records(state: list[Any], writes: Sequence[Any]) -> list[Any]:
    """Append records by id, each once; the reducer of `compactions` and `edits`. One that
    `replaces` others takes their place.
    """
    merged: dict[str, Any] = {record["id"]: record for record in state}
    for record in (record for write in writes for record in _items(write)):
        if replaced := set(record.get("replaces", ())):
            before = next((i for i, id_ in enumerate(merged) if id_ in replaced), len(merged))
            rest = [other for id_, other in merged.items() if id_ not in replaced]
            merged = {each["id"]: each for each in [*rest[:before], record, *rest[before:]]}
        else:
            merged.setdefault(record["id"], record)
    return list(merged.values())


def keep_latest(state: dict[str, Any], writes: Sequence[Any]) -> dict[str, Any]:
    """Return the newest value; the reducer of what seldom changes, on a delta channel so that it is
    written only when it does.
    """
    return writes[-1] if writes else state


def refresh_update(values: Mapping[str, Any], turn: int) -> "Update":
    """Return the update that stores the seldom written channels whole again, empty in most turns;
    their values stay.

    To load a thread LangGraph reads back, checkpoint by checkpoint, to where each channel was last
    stored whole, by default over 5,000 steps: after 800 turns of which the first alone had written
    `brief`, loading took 430 ms, of which 400 were this.
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
    """The calls of one answer that wait for approval, and what was decided; `passed_over`: why a
    new message rejected them all.
    """

    asked: list[PendingCall]
    decided: NotRequired[list[Decision]]
    passed_over: NotRequired[str]


class Failure(TypedDict):
    """A turn that its provider refused: the error's words, and whether its messages left the
    view.
    """

    message: str
    left_out: bool


class InputRefusal(TypedDict):
    """Why an input was refused: code and attributes of its error, and the language of the message,
    which is gone by then.
    """

    code: str
    numbers: dict[str, Any]
    language: str


Notice = Literal[
    "call_budget",
    "empty_answer",
    "recall_exhausted",
    "content_filter",
    "voice_failed",
    "voice_gone",
    "nobody",
]
TurnStatus = (
    Literal[
        "running", "overflow", "again", "refused", "failed", "compacting", "cut_off", "answered"
    ]
    | Notice
)
"""`overflow` and `again` count and ask once more; `refused` is an input, `failed` a request that
the provider refused; a notice stands for the answer.
"""


class Turn(TypedDict, total=False):
    """The running turn's record. Stored: its keys keep their names."""

    number: int
    status: TurnStatus
    calls: int
    """Model calls so far."""
    recalls: int
    searched: list[str]
    """What a model without tools asked for in vain."""
    overflows: int
    ceiling: int
    """Most tokens of this turn's calls, after the provider said that one is too long."""
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
    """Several tools wait for a person: each is run alone."""
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
    """The voice could not go on at once with others, and is asked by itself."""


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


class StoredVoice(TypedDict):
    """What surrounds the calls of one persona, where it differs from the thread's."""

    name: str
    words: list[str]
    """Folded words that mention it."""
    system: str
    has_data: bool
    """Whether the schema stands in its calls."""
    tool_tokens: int
    model: str
    own_model: bool
    limit: int
    encoding: str
    pin_tools: bool
    rounds: int | None
    apart: bool
    """Whether it hears nothing of what its colleagues said in this turn."""


class StoredConfig(TypedDict, total=False):
    """What surrounds each call of a thread; the channel is `brief`."""

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
    """The name by which a run chose the model, where it did."""
    voices: dict[str, StoredVoice]
    """By persona; absent without a team."""


class Learned(TypedDict, total=False):
    """What the provider taught: see `longtable.memory.call_config.Calibration`."""

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
    """What the provider taught: its tokens for each one counted, its limit where an error named it.
    Written by respond.
    """
    brief: Annotated[StoredConfig, DeltaChannel(keep_latest, snapshot_frequency=1)]
    """What surrounds each call: system prompt, schema card, tool tokens, limit, encoding, policy.
    Written by ingest when it changes.
    """
    usage: Usage
    """Tokens of the next call by part. Written by estimate."""
    turn: Turn
    """Written by every node."""
    ahead: dict[str, Any]
    """What voices of a team that were asked at once have made, each an `Update`, until it is their
    turn. Written by respond.
    """


class Update(TypedDict, total=False):
    """What a node writes of the state."""

    messages: Sequence[BaseMessage]
    compactions: Sequence[Compaction]
    edits: Sequence[Edit]
    archive: ArchiveCount
    learned: Learned
    brief: StoredConfig
    usage: Usage
    turn: Turn
    ahead: dict[str, Any]


class Input(TypedDict):
    """What a caller gives: the new messages, the user's last."""

    messages: Sequence[AnyMessage | BaseMessage]


class Output(TypedDict):
    """What a person reads, for a server that shows a graph's output: the transcript, without what
    memory keeps beside it.
    """

    messages: Annotated[list[AnyMessage], DeltaChannel(merge_messages)]


def thread_of(values: Mapping[str, Any]) -> Thread:
    """Return a thread as memory sees it, empty where there is nothing yet."""
    return Thread(
        messages=(
            [*map(without_footer, values["messages"])]
            if "footers" in turn_of(values)
            else values.get("messages") or []
        ),
        compactions=values.get("compactions") or [],
        edits=values.get("edits") or [],
        archived=(values.get("archive") or {}).get("count", 0),
    )


def without_footer(message: BaseMessage) -> BaseMessage:
    """Return a message without what `settle` put below it for people."""
    footer, content = mark_of(message, FOOTER), message.content
    if not isinstance(footer, str) or not isinstance(content, str):
        return message
    return message.model_copy(update={"content": content.removesuffix(footer)})


def failed_at(turn: Turn) -> int | None:
    """Return the tokens at which a compaction came to nothing: until there are more, none is tried
    again.
    """
    return max(turn.get("breaker") or 0, turn.get("skipped") or 0) or None


def turn_of(values: Mapping[str, Any]) -> Turn:
    """Return the running turn's record, empty before the first. Do not change it: a new record is
    written by a node.
    """
    return cast("Turn", values.get("turn") or {})


def is_ahead(state: State) -> bool:
    """Return whether the voice that is asked has its messages of this turn already."""
    turn, ahead = turn_of(state), state.get("ahead") or {}
    return turn.get("voice") in ahead and ahead[turn["voice"]]["turn"].get("number") == turn.get(
        "number"
    )


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


def call_plan_of(values: Mapping[str, Any], context: Context, *, shared: bool = False) -> CallPlan:
    """Return the next call of a thread before anything gives way; `shared`: as a compaction sees
    it, see `call_config_of`.
    """
    return CallPlan(thread_of(values), call_config_of(values, context, shared=shared))


def calibration_of(values: Mapping[str, Any]) -> Calibration:
    """Return what the thread's provider taught about its counting."""
    return Calibration.from_json(values.get("learned") or {})


def call_config_of(
    values: Mapping[str, Any], context: Context, *, shared: bool = False
) -> CallConfig:
    """Return the call config of a thread's next call: the stored one, with this run's settings on
    top.

    With a team, that of the voice which is asked; between turns, or where `shared` (a compaction
    serves all voices), that of the voice with least room, which then hears all.
    """
    brief, turn = values.get("brief") or {}, turn_of(values)
    if not (voices := brief.get("voices")):
        return _call_config(values, context, brief)
    id_ = turn.get("voice", "")
    if id_ in voices and turn.get("status") in UNDER_WAY and not shared:
        apart = turn.get("number", 0) if voices[id_]["apart"] else 0
        words = {word: other for other, each in voices.items() for word in each["words"]}
        names = {other: each["name"] for other, each in voices.items()}
        voice = Voice(id=id_, names=names, words=words, rounds=voices[id_]["rounds"], apart=apart)
        return replace(_call_config(values, context, brief, voices[id_]), voice=voice)
    configs = [_call_config(values, context, brief, each) for each in voices.values()]
    return min(configs, key=lambda config: config.threshold_tokens - config.around_tokens)


def _call_config(
    values: Mapping[str, Any],
    context: Context,
    brief: Mapping[str, Any],
    voice: StoredVoice | None = None,
) -> CallConfig:
    about = {**brief, **(voice or {})}
    turn, learned = turn_of(values), calibration_of(values)
    if voice is not None and voice["own_model"]:
        learned = Calibration()  # what one provider taught says nothing of another
    limit = (
        (None if voice is not None and voice["own_model"] else context.model_limit)
        or about.get("limit")
        or 0
    )
    own = "" if voice is None else voice["system"]
    with_data = voice is None or voice["has_data"]
    system = (context.system_prompt or brief.get("system")) if with_data else ""
    return CallConfig(
        system="\n\n".join(
            filter(None, [own, system, schema_text(brief.get("schema")) if with_data else ""])
        ),
        tool_tokens=about.get("tool_tokens", 0),
        limit=min(limit, learned.limit or limit),
        encoding=about.get("encoding") or "o200k_base",
        policy=CompactionPolicy.from_json(brief.get("policy") or {}),
        # A ceiling holds for the turn that met it.
        ceiling=turn.get("ceiling") if turn.get("status") in UNDER_WAY else None,
        factor=learned.factor,
        window=brief.get("window"),
        pin_tools=about.get("pin_tools", False),
        reasoning=reasoning_sent(str(about.get("model") or "")),
    )


def schema_text(schema: Mapping[str, Any] | None) -> str:
    """Return what of a database's schema stands below the system prompt: that it has changed, and
    its card.
    """
    return "\n".join(filter(None, [schema.get("note"), schema.get("card")])) if schema else ""


def next_view(values: Mapping[str, Any], context: Context | None = None) -> list[BaseMessage]:
    """Return exactly the messages the next model call of this thread would be sent.

    `values`: a thread's state, as `graph.get_state(config).values` gives it. Pure: same input, same
    view. A thread that never ran has no brief yet: its view is empty.
    """
    if not values.get("brief"):
        return []
    return build_view(call_plan_of(values, context or Context())).messages


def pin_changes(pins: Sequence[Pin], ends: Sequence[PinEnd]) -> tuple[list[Edit], PinsChanged]:
    """Return the edits that store new pins and what ended, and the event that tells of them."""
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
    """Return the event of stored pins and what ended."""
    return PinsChanged(
        type="pins_changed",
        pinned=[{"id": pin["id"], "text": pin["text"], "by": pin["by"]} for pin in pins],
        ended=[{"id": end["pin"], "quote": end["quote"]} for end in ends],
    )


def newest_language(messages: Sequence[BaseMessage]) -> str:
    """Return the language of the newest user message, "en" or "zh"."""
    return language_of([message for message in messages if is_users(message)][-1:])
