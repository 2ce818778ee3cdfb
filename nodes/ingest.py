"""Take in what the user sent: check it, stamp it, open the turn."""

import base64
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from longtable.base.context import Context, RequestLimits, shown
from longtable.base.errors import (
    SYSTEM_PROMPT,
    THE_MESSAGE,
    TOOLS,
    ConfigError,
    ContextTooLargeError,
    EmptyMessageError,
    InputError,
    InvalidTextError,
    LongtableError,
    MessageTooLongError,
    NotPrivateError,
    RequestTooLargeError,
    RequestTooLongError,
    ThreadNotFoundError,
    TooManyMessagesError,
    WrongRoleError,
    check_type,
)
from longtable.base.events import SchemaChanged
from longtable.base.store_keys import thread_namespace
from longtable.memory.archive import ids_in_archive, key_of_id, page
from longtable.memory.call_config import TALK_SHARE
from longtable.memory.rounds import CHANGED, all_calls, is_users
from longtable.memory.stamps import (
    COLLEAGUE,
    GIVEN,
    STAMP,
    STEERED,
    marked,
    marks_of,
    turn_number,
    unmarked,
)
from longtable.memory.summary import language_of
from longtable.memory.thread import Thread, with_sent_name
from longtable.memory.view import CallPlan, must_stay
from longtable.memory.voices import VOICE
from longtable.nodes.inbox import InboxMessage, receive, steered_event
from longtable.nodes.model.call_plans import call_config_of
from longtable.nodes.records.archive_store import StoreArchive
from longtable.nodes.records.thread_index import (
    entry_of,
    may_see,
    open_turn,
    owner_of,
    retitle,
    thread_id_of,
    title_of,
)
from longtable.nodes.state import (
    ANSWERED,
    UNDER_WAY,
    InputRefusal,
    SchemaChange,
    State,
    StoredConfig,
    Turn,
    Update,
    thread_of,
    turn_of,
    with_last,
)
from longtable.nodes.team.team import Team, first_voice
from longtable.nodes.turns.failures import FAILED, retry_update
from longtable.nodes.turns.rate_limit import RateLimit

ACCEPTED = (HumanMessage, AIMessage, ToolMessage)
"""What a caller may hand in: not what would stand beside the system prompt (a `ChatMessage` may be
of its role, too).
"""
NOTE_TOKENS = 32
"""Room for the line that says messages were left out."""

MOST_OF_A_TURN = 200
"""Retired messages that are read for the answer to one that is sent again."""
HISTORY_FACTOR = 32
"""How many times `RequestLimits.bytes` a request may hold with the earlier talk that it hands in: 8
MiB. Checkpoint and store keep several copies of it: 20 MB made 85.
"""

MADE_UP = "do-not-render-"
"""How agent-chat-ui begins the id of a message that it made up."""

IMAGES = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}
"""Formats of images that models take, by their first bytes."""
LONGEST_ID = 200

Accepted = TypeVar("Accepted", bound=BaseMessage)


@dataclass(frozen=True)
class Question:
    """What a caller asks. `id`: the message's own, so that it can be sent again; `images`: URLs, or
    bytes of the formats in `IMAGES`.
    """

    text: str
    id: str | None = None
    name: str | None = None
    images: Sequence[str | bytes] = ()

    def message(self) -> HumanMessage:
        """Return the message. Raises `ConfigError`."""
        check_type("the text of a message", self.text, str)
        for what, value in (("id", self.id), ("name", self.name)):
            if value is not None and not (
                isinstance(value, str) and 0 < len(value) <= LONGEST_ID and value.isprintable()
            ):
                shown_value = shown(value) if isinstance(value, str) else type(value).__name__
                raise ConfigError(
                    f"the {what} of a message is a text of 1 to {LONGEST_ID} printable characters,"
                    f" found {shown_value}"
                )
        if isinstance(self.images, str | bytes) or not all(
            isinstance(each, str | bytes) for each in self.images
        ):
            raise ConfigError(
                f"images must be a list of URLs or of bytes, found {type(self.images).__name__}:"
                " images=[...]"
            )
        urls = [each if isinstance(each, str) else _data_url(each) for each in self.images]
        parts = [
            {"type": "text", "text": self.text},
            *({"type": "image_url", "image_url": {"url": url}} for url in urls),
        ]
        return HumanMessage(
            cast("Any", parts) if urls else self.text,
            id=self.id or str(uuid.uuid4()),
            name=self.name,
        )


def _data_url(image: bytes) -> str:
    kind = next((kind for head, kind in IMAGES.items() if image.startswith(head)), None)
    if kind is None:
        raise ConfigError(
            f"an image is a URL, or the bytes of a {', '.join(IMAGES.values())} file, found"
            f" {bytes(image[:12])!r}"
        )
    return f"data:image/{kind};base64,{base64.b64encode(image).decode()}"


@dataclass(frozen=True)
class Ingest:
    """The node. A refused input is taken out of the thread again here; `settle` then raises its
    error.
    """

    brief: Callable[[Context, State], tuple[StoredConfig, SchemaChange | None]]
    """Gives what surrounds each call, and the mark of a change of the database's schema."""
    clock: Callable[[], datetime]
    rate_limit: RateLimit | None = None
    limits: RequestLimits = field(default_factory=RequestLimits)
    team: Team | None = None

    def __call__(self, state: State, *, runtime: Runtime[Context]) -> Update:
        context, info, thread, before = (
            runtime.context or Context(),
            runtime.execution_info,
            thread_of(state),
            turn_of(state),
        )
        try:
            brief, change = self.brief(context, state)
        except InputError as error:
            return _refused(new_messages(thread.messages, before), before, error)
        old_brief = state.get("brief") or {}
        update: Update = {"brief": brief} if brief != old_brief else {}
        update |= Update(ahead={}) if state.get("ahead") else Update()  # of a turn that was left
        if old_brief.get("model") != brief.get("model") and state.get("learned"):
            update["learned"] = {}  # what one provider taught says nothing of another
        run, thread_id = (info.run_id, info.thread_id or "") if info else (None, "")
        run = run or uuid.uuid4().hex[:16]
        embedded = info is not None and "|" in info.checkpoint_ns  # the thread is another graph's
        sent = new_messages(thread.messages, before, embedded=embedded)
        number = before.get("number", 0)
        owner = owner_of(before) if number else context.owner
        if not may_see(owner, context.owner):
            return _refused(sent, before, ThreadNotFoundError(thread_id))
        index = runtime.store if thread_id and not embedded else None
        if (
            context.project
            and index is not None
            and entry_of(index, thread_id).get("project", "") not in ("", context.project)
        ):
            return _refused(sent, before, ThreadNotFoundError(thread_id))
        if context.privacy == "types" and number and not before.get("private"):
            return _refused(sent, before, NotPrivateError())
        newest = thread.messages[-1] if thread.messages else None
        if not sent and newest and (newest.type == "human" or "failure" in before):
            # The newest message was sent again, by its id, before it was answered, or its turn
            # failed: answer it now.
            if change and newest.type == "human":
                update["messages"] = [_with_schema_change(newest, change, runtime)]
            return {**update, **retry_update(state)}
        taken_in = [
            _taken_in(message, embedded=embedded) for message in sent if not is_made_up(message)
        ]
        new = _not_retired(taken_in, thread, runtime.store, thread_id)
        closed = before.get("status") not in (*UNDER_WAY, "refused", FAILED) and not any(
            map(is_made_up, sent)
        )
        if number and not new and closed and not embedded:
            # A client that lost its connection sent again what the transcript has, and what is
            # answered.
            return {
                "messages": [RemoveMessage(id=str(message.id)) for message in sent],
                "turn": {**before, "status": ANSWERED},
            }
        try:
            learned = update.get("learned", state.get("learned", {}))
            check_input(
                new,
                context,
                CallPlan(thread, call_config_of({"brief": brief, "learned": learned}, context)),
                None if embedded else self.limits,
            )
            if self.rate_limit:
                self.rate_limit.check(
                    context.owner, thread_id_of(runtime) or "", run, runtime.store
                )
        except InputError as error:
            return _refused(sent, before, error)
        now = self.clock().isoformat(timespec="seconds")
        # The breaker outlives the turn: a compaction that failed is not tried again at every
        # message.
        turn = Turn(
            number=number + 1,
            status="running",
            calls=0,
            overflows=0,
            breaker=before.get("breaker"),
            run=run,
        )
        optional = Turn(
            owner=owner,
            channel=context.channel or "",
            private=context.privacy == "types",
            schema=(brief.get("schema") or {}).get("hash", ""),
            bell=before.get("bell", ""),
            joined=before.get("joined", []),
            footers="footers" in before,
        )
        received, turn = receive(
            {**turn, **cast("Turn", {name: value for name, value in optional.items() if value})},
            runtime,
        )
        ordered, steered = _with_inbox(new, received, thread.messages)
        stamped = [
            _accepted(message, turn, now, steered=message.id in steered) for message in ordered
        ]
        if change:
            stamped[-1] = _with_schema_change(stamped[-1], change, runtime)
        for message in stamped:
            if message.id in steered:
                runtime.stream_writer(steered_event(message, number + 1))
        if index is not None:
            first, model = stamped[-1].text, str(brief.get("model") or "")
            open_turn(
                index,
                thread_id,
                first=first,
                owner=owner,
                model=model,
                turns=number + 1,
                now=now,
                project=context.project,
            )
            if titles := {
                title_of(message.text)
                for message in thread.messages
                if message.id in thread.refused
            }:
                retitle(index, thread_id, titles=titles, first=first)
        if self.team:
            turn = first_voice(self.team, [*thread.messages, *stamped], turn, runtime.stream_writer)
        # A forged stamp is in the transcript already: its message is taken out, and put back in
        # without it. So is the input where a message from the inbox goes before it.
        again, is_taken = (
            bool(steered) or any(marks_of(message) for message in sent),
            {message.id for message in ordered},
        )
        removals = [
            RemoveMessage(id=str(message.id))
            for message in sent
            if again or message.id not in is_taken
        ]
        return {**update, "messages": [*removals, *stamped], "turn": with_last(turn, stamped)}


def _with_inbox(
    new: Sequence[BaseMessage], received: Sequence[InboxMessage], messages: Sequence[BaseMessage]
) -> tuple[list[BaseMessage], set[str | None]]:
    """Return the input with what waited in the inbox before it, in the order it came, and the ids
    of what was steered.
    """
    ids, known = {message.id for message in new}, {message.id for message in messages}
    others = [each.message for each in received if each.message.id not in known]
    places = {each.message.id: place for place, each in enumerate(received)}
    ordered = sorted([*others, *new], key=lambda message: places.get(message.id, len(places)))
    left = {each.message.id for each in received if each.detached}
    return ordered, {message.id for message in others} | (left & ids)


def _with_schema_change(
    message: BaseMessage, change: SchemaChange, runtime: Runtime[Context]
) -> BaseMessage:
    """Return the message that opens the turn with the mark of a changed schema, and send the
    event.
    """
    runtime.stream_writer(
        SchemaChanged(
            type="schema_changed", changed=change["changed"], new=change["new"], gone=change["gone"]
        )
    )
    return marked(message, **{CHANGED: dict(change)})


def _not_retired(
    new: Sequence[BaseMessage], thread: Thread, store: BaseStore | None, thread_id: str
) -> list[BaseMessage]:
    """Return the messages that the archive does not have: a client may send the whole transcript
    again.
    """
    known: Sequence[str] = ()
    if thread.archived and store is not None and thread_id:
        with suppress(Exception):
            # A store that fails never fails a turn: at worst a message stands in the transcript
            # twice.
            known = ids_in_archive(
                StoreArchive(store),
                thread_id,
                [str(message.id) for message in new],
                thread.archived,
            )
    return [message for message in new if message.id not in known]


def answer_to(
    message_id: str, thread: Thread, store: BaseStore | None, thread_id: str
) -> tuple[BaseMessage | None, AIMessage | None]:
    """Return the message of an id, live or retired, and the answer of its turn; None for what there
    is not. Reads the store.
    """
    place = next(
        (place for place, message in enumerate(thread.messages) if message.id == message_id), None
    )
    after: list[BaseMessage] = [] if place is None else list(thread.messages[place:])
    if place is None and store is not None and thread.archived:
        [item] = StoreArchive(store).get(
            thread_namespace("archived", thread_id), [key_of_id(message_id)]
        )
        if item is not None and item["number"] <= thread.archived:
            place, last = item["number"], min(thread.archived, item["number"] + MOST_OF_A_TURN)
            after = [
                *(each.message for each in page(StoreArchive(store), thread_id, place, last)),
                *thread.messages,
            ]
    of_turn = [each for each in after if turn_number(each) == turn_number(after[0])]
    # The last one: with a team each voice has one.
    return next(iter(after), None), next(
        (each for each in reversed(of_turn) if isinstance(each, AIMessage) and not all_calls(each)),
        None,
    )


def _refused(new: Sequence[BaseMessage], before: Turn, error: LongtableError) -> Update:
    """Take the input out again and keep why, for `settle` to raise."""
    numbers = {key: value for key, value in vars(error).items() if not key.startswith("_")}
    refusal = InputRefusal(code=error.code, numbers=numbers, language=language_of(new))
    turn: Turn = {
        **before,
        "number": before.get("number", 0),
        "status": "refused",
        "refusal": refusal,
    }
    return {"messages": [RemoveMessage(id=str(message.id)) for message in new], "turn": turn}


def new_messages(
    messages: Sequence[BaseMessage], turn: Turn, *, embedded: bool = False
) -> list[BaseMessage]:
    """Return the newest messages that no turn has accepted yet, oldest first: before the first turn
    all, then those after `last`.

    Where that one is gone (a person took it out), or was never noted (a thread of an earlier
    version; `embedded` in a graph that keeps the messages and nothing else), stamps decide.
    """
    if not turn.get("number") and not embedded:
        return list(messages)
    last = turn.get("last")
    place = (
        next((i for i in range(len(messages) - 1, -1, -1) if messages[i].id == last), None)
        if last
        else None
    )
    if place is not None:
        return list(messages[place + 1 :])
    new: list[BaseMessage] = []
    for message in reversed(messages):
        # Stamps can be forged: the newest message, where it is the user's, is looked at in any
        # case.
        if turn_number(message) and (new or message.type != "human"):
            break
        new.append(message)
    return new[::-1]


def _taken_in(message: Accepted, *, embedded: bool) -> Accepted:
    """Return a message without marks; of a graph around this one it may be another agent's."""
    clean = unmarked(message)
    return (
        marked(clean, kind=COLLEAGUE)
        if embedded and message.type == "human" and not is_users(message)
        else clean
    )


def is_made_up(message: BaseMessage) -> bool:
    """Return whether a chat client made up a tool's answer (agent-chat-ui does for each open call):
    what did not run has no result.
    """
    return isinstance(message, ToolMessage) and str(message.id).startswith(MADE_UP)


def stamp(
    message: Accepted, *, turn: Turn, time: str, marks: Mapping[str, Any] | None = None
) -> Accepted:
    """Return the message marked as accepted in this turn (its record), with whose it is, its texts
    fit to be stored.
    """
    names = ("run", "owner", "channel", *(() if message.type == "human" else (VOICE,)))
    whose = {name: value for name, value in turn.items() if name in names and value}
    stamped = {
        **marks_of(message),
        "turn": turn.get("number", 0),
        "time": time,
        **whose,
        **(marks or {}),
    }
    changes: dict[str, Any] = {"additional_kwargs": {**message.additional_kwargs, STAMP: stamped}}
    for name in (
        "content",
        "tool_calls",
        "invalid_tool_calls",
        "additional_kwargs",
        "response_metadata",
        "name",
    ):
        value = changes.get(name, getattr(message, name, None))
        if (clean := storable(value)) != value:
            changes[name] = clean
    usage = getattr(message, "usage_metadata", None)
    if storable(usage) != usage:
        changes["usage_metadata"] = None  # no count of tokens
    return message.model_copy(update=changes)


def _accepted(message: Accepted, turn: Turn, time: str, *, steered: bool) -> Accepted:
    marks = {
        **({"kind": STEERED} if steered else {}),
        **({} if isinstance(message, HumanMessage) else {GIVEN: True}),
    }
    return stamp(message, turn=turn, time=time, marks=marks)


def storable(value: Any) -> Any:
    """Return the value as a checkpoint (msgpack) takes it: half an emoji is replaced, an integer
    past 64 bits becomes text.
    """
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def check_input(
    new: Sequence[BaseMessage],
    context: Context,
    call_plan: CallPlan | None,
    limits: RequestLimits | None = None,
) -> None:
    """Raise the `InputError` of an input that cannot be accepted; sizes in characters and tokens.

    Without `limits` each message is checked alone. With a `call_plan`, also refuse a message that
    could not be sent word for word beside system prompt, tools and pins.
    """
    if not new:
        raise EmptyMessageError
    for message in new:
        if not isinstance(message, ACCEPTED):
            raise WrongRoleError(role=str(getattr(message, "role", message.type))[:40])
        if isinstance(message, HumanMessage) and is_users(message):
            _check_human(message, context)
    question = next((message for message in reversed(new) if is_users(message)), new[-1])
    if not isinstance(new[-1], HumanMessage):
        raise WrongRoleError(role=new[-1].type)
    if limits:
        _check_sizes(request_of(new), context, limits)
        if (size := _bytes(new)) > (most := HISTORY_FACTOR * _most_bytes(context, limits)):
            raise RequestTooLargeError(size=size, limit=most)
    if call_plan:
        _check_fit(with_sent_name(question), call_plan)


def _check_fit(message: BaseMessage, call_plan: CallPlan) -> None:
    """Refuse what cannot be sent word for word within the limit less the reserve; the error names
    what is too large.
    """
    call_config = call_plan.call_config
    parts = must_stay(call_plan, message)
    need, budget = parts.total + NOTE_TOKENS, call_config.hard_tokens
    if need > budget:
        fixed = SYSTEM_PROMPT if parts.system >= parts.tools else TOOLS
        leaves_room = need - parts.messages <= budget - call_config.share(TALK_SHARE)
        raise ContextTooLargeError(
            need=need, budget=budget, what=THE_MESSAGE if leaves_room else fixed
        )


def request_of(new: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return what is asked now: an earlier talk that a caller hands in, or put into the thread,
    ends with its last answer.
    """
    return new[
        next((i + 1 for i in range(len(new) - 1, -1, -1) if isinstance(new[i], AIMessage)), 0) :
    ]


_SENT = (
    "content",
    "name",
    "id",
    "tool_calls",
    "invalid_tool_calls",
    "tool_call_id",
    "artifact",
    "additional_kwargs",
    "response_metadata",
)


def _check_sizes(new: Sequence[BaseMessage], context: Context, limits: RequestLimits) -> None:
    longest = context.max_message_chars
    for size, limit, error in (
        (len(new), limits.messages, TooManyMessagesError),
        (
            sum(len(message.text) for message in new),
            max(limits.chars, longest),
            RequestTooLongError,
        ),
        (_bytes(new), _most_bytes(context, limits), RequestTooLargeError),
    ):
        if size > limit:
            raise error(size=size, limit=limit)


def _bytes(messages: Sequence[BaseMessage]) -> int:
    """Return the size of messages as JSON: content that is no text (images) and calls with all else
    that would be kept.
    """
    fields = (
        [value for name in _SENT if (value := getattr(message, name, None))] for message in messages
    )
    return sum(
        len(json.dumps(each, ensure_ascii=False, default=str).encode("utf-8", "replace"))
        for each in fields
    )


def _most_bytes(context: Context, limits: RequestLimits) -> int:
    """Return the most bytes of what is asked now: one message passes in any script."""
    return max(limits.bytes, 4 * context.max_message_chars + 1_000)


def _check_human(message: HumanMessage, context: Context) -> None:
    text = message.text
    if storable(text) != text:
        raise InvalidTextError
    has_other = not isinstance(message.content, str) and any(
        isinstance(b, dict) and b.get("type") != "text" for b in message.content
    )
    if not has_other and not any(letter.isprintable() and not letter.isspace() for letter in text):
        raise EmptyMessageError
    if len(text) > context.max_message_chars:
        raise MessageTooLongError(size=len(text), limit=context.max_message_chars)
