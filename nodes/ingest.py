"""Take in what the user sent: check it, stamp it, open the turn."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from longtable.base.context import Context, RequestLimits
from longtable.base.errors import (
    SYSTEM_AND_TOOLS,
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
)
from longtable.base.events import SchemaChanged
from longtable.memory.archive import ids_in_archive
from longtable.memory.call_config import CallConfig
from longtable.memory.stale import CHANGED
from longtable.memory.stamps import GIVEN, STAMP, STEERED, marked, marks_of, turn_number, unmarked
from longtable.memory.summary import language_of
from longtable.memory.thread import with_sent_name
from longtable.memory.tokens import PRIMING
from longtable.nodes.inbox import InboxMessage, receive, steered_event
from longtable.nodes.records.archive_store import StoreArchive
from longtable.nodes.records.thread_index import may_see, open_turn, owner_of, retitle, title_of
from longtable.nodes.state import InputRefusal, State, StoredConfig, Turn, call_config_of, thread_of, turn_of, with_last
from longtable.nodes.turns.failures import retry_update
from longtable.nodes.turns.rate_limit import RateLimit

ACCEPTED = (HumanMessage, AIMessage, ToolMessage)
"""What a caller may hand in: not what would stand beside the system prompt (a `ChatMessage` may be of its role, too)."""
NOTE_TOKENS = 32
"""Room for the line that says messages were left out."""

MADE_UP = "do-not-render-"
"""How agent-chat-ui begins the id of a message that it made up."""

Update = dict[str, Any]
Accepted = TypeVar("Accepted", bound=BaseMessage)


@dataclass(frozen=True)
class Ingest:
    """The node. A refused input is taken out of the thread again here; `settle` then raises its error."""

    brief: Callable[[Context, Mapping[str, Any]], tuple[StoredConfig, Mapping[str, Any] | None]]
    """Gives what surrounds each call, and the mark of a change of the database's schema."""
    clock: Callable[[], datetime]
    rate_limit: RateLimit | None = None
    limits: RequestLimits = field(default_factory=RequestLimits)

    def __call__(self, state: State, *, runtime: Runtime[Context]) -> Update:
        context = runtime.context or Context()
        brief, change = self.brief(context, state)
        before_brief = state.get("brief") or {}
        update: Update = {"brief": brief} if brief != before_brief else {}
        if before_brief.get("model") != brief.get("model") and state.get("learned"):
            update["learned"] = {}  # what one provider taught says nothing of another
        messages = thread_of(state).messages
        before = turn_of(state)
        embedded = runtime.execution_info is not None and "|" in runtime.execution_info.checkpoint_ns  # the thread is another graph's
        given = new_messages(messages, before, embedded=embedded)
        number = before.get("number", 0)
        owner = owner_of(before) if number else context.owner
        thread_id = (runtime.execution_info.thread_id if runtime.execution_info else None) or ""
        if not may_see(owner, context.owner):
            return _refused(given, before, ThreadNotFoundError(thread_id))
        if context.privacy == "types" and number and not before.get("private"):
            return _refused(given, before, NotPrivateError())
        said = [unmarked(message) for message in given if not is_made_up(message)]
        new = _not_retired(said, state, runtime.store, thread_id)
        if not given and messages and (messages[-1].type == "human" or "failure" in before):
            # The newest message was sent again, by its id, before it was answered, or its turn failed: answer it now.
            if change and messages[-1].type == "human":
                update["messages"] = [_told_of(change, messages[-1], runtime)]
            return {**update, **retry_update(state)}
        run = (runtime.execution_info.run_id if runtime.execution_info else None) or uuid.uuid4().hex[:16]
        try:
            learned = {"brief": brief, "learned": update.get("learned", state.get("learned"))}
            check_input(new, context, call_config_of(learned, context), None if embedded else self.limits)
            if self.rate_limit:
                self.rate_limit.check(context.owner, turn=f"{thread_id} {run}")
        except InputError as error:
            return _refused(given, before, error)
        now = self.clock().isoformat(timespec="seconds")
        # The breaker outlives the turn: a compaction that failed is not tried again at every message.
        opened = Turn(number=number + 1, status="running", calls=0, overflows=0, breaker=before.get("breaker"), run=run)
        if owner:
            opened["owner"] = owner
        if context.channel:
            opened["channel"] = context.channel
        if context.privacy == "types":
            opened["private"] = True
        if schema := brief.get("schema"):
            opened["schema"] = schema["hash"]
        if "bell" in before:
            opened["bell"] = before["bell"]
        if "joined" in before:
            opened["joined"] = before["joined"]
        received, opened = receive(opened, runtime)
        new, waited = _with_inbox(new, received, messages)
        stamped = [_taken_in(message, opened, now, steered=message.id in waited) for message in new]
        if change:
            stamped[-1] = _told_of(change, stamped[-1], runtime)
        for message in stamped:
            if message.id in waited:
                runtime.stream_writer(steered_event(message, number + 1))
        if runtime.store is not None and thread_id and not embedded:
            first, model = stamped[-1].text, str(brief.get("model") or "")
            open_turn(runtime.store, thread_id, first=first, owner=owner, model=model, turns=number + 1, now=now, project=context.project)
            refused = thread_of(state).refused
            if gone := {title_of(message.text) for message in messages if message.id in refused}:
                retitle(runtime.store, thread_id, gone=gone, first=first)
        # A forged stamp is in the transcript already: taken out with its message, and put back in without it. So is what
        # others said before.
        again, taken = bool(waited) or any(marks_of(message) for message in given), {message.id for message in new}
        removals = [RemoveMessage(id=str(message.id)) for message in given if again or message.id not in taken]
        return {**update, "messages": [*removals, *stamped], "turn": with_last(opened, stamped)}


def _with_inbox(
    new: Sequence[BaseMessage], received: Sequence[InboxMessage], messages: Sequence[BaseMessage]
) -> tuple[list[BaseMessage], set[str | None]]:
    """Return the input with what waited in the inbox before it, in the order it came, and the ids of what was steered."""
    given, known = {message.id for message in new}, {message.id for message in messages}
    others = [each.message for each in received if each.message.id not in known]
    places = {each.message.id: place for place, each in enumerate(received)}
    ordered = sorted([*others, *new], key=lambda message: places.get(message.id, len(places)))
    left = {each.message.id for each in received if each.detached}
    return ordered, {message.id for message in others} | (left & given)


def _told_of(change: Mapping[str, Any], message: BaseMessage, runtime: Runtime[Context]) -> BaseMessage:
    """Mark the message that opens the turn with what changed of the schema before it, and tell the person."""
    runtime.stream_writer(SchemaChanged(type="schema_changed", changed=change["changed"], new=change["new"], gone=change["gone"]))
    return marked(message, **{CHANGED: dict(change)})


def _not_retired(given: Sequence[BaseMessage], state: State, store: BaseStore | None, thread_id: str) -> list[BaseMessage]:
    """Return the messages that the archive does not have: a client may send the whole transcript again."""
    archived = thread_of(state).archived
    if not archived or store is None or not thread_id:
        return list(given)
    try:
        known = ids_in_archive(StoreArchive(store), thread_id, [str(message.id) for message in given], archived)
    except Exception:  # a store that fails never fails a turn: at worst a message stands in the transcript twice
        return list(given)
    return [message for message in given if message.id not in known]


def _refused(new: Sequence[BaseMessage], before: Turn, error: LongtableError) -> Update:
    """Take the input out again and keep why, for `settle` to raise."""
    numbers = {key: value for key, value in vars(error).items() if not key.startswith("_")}
    refusal = InputRefusal(code=error.code, numbers=numbers, language=language_of(new))
    turn: Turn = {**before, "number": before.get("number", 0), "status": "refused", "refusal": refusal}
    return {"messages": [RemoveMessage(id=str(message.id)) for message in new], "turn": turn}


def new_messages(messages: Sequence[BaseMessage], turn: Turn, *, embedded: bool = False) -> list[BaseMessage]:
    """Return the newest messages that no turn has accepted yet, oldest first: before the first turn all, then those behind `last`.

    Where that one is gone (a person took it out), or was never noted (a thread of an earlier version; `embedded` in a
    graph that keeps the messages and nothing else), stamps tell.
    """
    if not turn.get("number") and not embedded:
        return list(messages)
    last = turn.get("last")
    place = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].id == last), None) if last else None
    if place is not None:
        return list(messages[place + 1 :])
    new: list[BaseMessage] = []
    for message in reversed(messages):
        # Stamps can be forged: the newest message, where it is the user's, is looked at in any case.
        if turn_number(message) and (new or message.type != "human"):
            break
        new.append(message)
    return new[::-1]


def is_made_up(message: BaseMessage) -> bool:
    """Return whether a chat client made up a tool's answer (agent-chat-ui does for each open call): what did not run has no result."""
    return isinstance(message, ToolMessage) and str(message.id).startswith(MADE_UP)


def stamp(message: Accepted, *, turn: Turn, time: str, **marks: Any) -> Accepted:
    """Return the message marked as accepted in this turn (its record), with whose it is, its texts fit to be stored."""
    whose = {name: turn.get(name) for name in ("run", "owner", "channel") if turn.get(name)}
    stamped = {**marks_of(message), "turn": turn.get("number", 0), "time": time, **whose, **marks}
    changes: Update = {"additional_kwargs": {**message.additional_kwargs, STAMP: stamped}}
    for name in ("content", "tool_calls", "invalid_tool_calls", "additional_kwargs", "response_metadata", "name"):
        value = changes.get(name, getattr(message, name, None))
        if (clean := storable(value)) != value:
            changes[name] = clean
    usage = getattr(message, "usage_metadata", None)
    if storable(usage) != usage:
        changes["usage_metadata"] = None  # no count of tokens
    return message.model_copy(update=changes)


def _taken_in(message: Accepted, turn: Turn, time: str, *, steered: bool) -> Accepted:
    given: Update = {} if isinstance(message, HumanMessage) else {GIVEN: True}
    return stamp(message, turn=turn, time=time, **({"kind": STEERED} if steered else {}), **given)


def storable(value: Any) -> Any:
    """Return the value as a checkpoint (msgpack) takes it: half an emoji is replaced, an integer past 64 bits becomes text."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def check_input(new: Sequence[BaseMessage], context: Context, call_config: CallConfig | None, limits: RequestLimits | None = None) -> None:
    """Raise the `InputError` of an input that cannot be accepted; sizes in characters and tokens.

    Without `limits` each message is checked alone. With a `frame`, also refuse a message that could not
    be sent word for word beside system prompt and tools.
    """
    if not new:
        raise EmptyMessageError
    for message in new:
        if not isinstance(message, ACCEPTED):
            raise WrongRoleError(role=str(getattr(message, "role", message.type))[:40])
        if isinstance(message, HumanMessage):
            _check_human(message, context)
    if not isinstance(new[-1], HumanMessage):
        raise WrongRoleError(role=new[-1].type)
    if limits:
        _check_sizes(request_of(new), context, limits)
    if call_config:
        around = call_config.counter.message(SystemMessage(call_config.system)) + call_config.tool_tokens + PRIMING + NOTE_TOKENS
        if around >= call_config.threshold_tokens:
            raise ContextTooLargeError(need=around, budget=call_config.threshold_tokens, what=SYSTEM_AND_TOOLS)
        need = around + call_config.counter.message(with_sent_name(new[-1]))
        if need > call_config.threshold_tokens:
            raise ContextTooLargeError(need=need, budget=call_config.threshold_tokens)


def request_of(new: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return what is asked now: an earlier talk that a caller hands in, or put into the thread, ends with its last answer."""
    return new[next((i + 1 for i in range(len(new) - 1, -1, -1) if isinstance(new[i], AIMessage)), 0) :]


def _check_sizes(new: Sequence[BaseMessage], context: Context, limits: RequestLimits) -> None:
    longest = context.max_message_chars
    # Content that is no text (images) and calls count as the JSON they are sent as, with all else that would be kept.
    sent = sum(len(json.dumps(_kept(message), ensure_ascii=False, default=str).encode("utf-8", "replace")) for message in new)
    for size, limit, error in (
        (len(new), limits.messages, TooManyMessagesError),
        (sum(len(message.text) for message in new), max(limits.chars, longest), RequestTooLongError),
        (sent, max(limits.bytes, 4 * longest + 1_000), RequestTooLargeError),  # one message passes in any script
    ):
        if size > limit:
            raise error(size=size, limit=limit)


_BESIDE = ("name", "id", "tool_calls", "invalid_tool_calls", "tool_call_id", "artifact", "additional_kwargs", "response_metadata")


def _kept(message: BaseMessage) -> list[Any]:
    return [message.content, *(value for name in _BESIDE if (value := getattr(message, name, None)))]


def _check_human(message: HumanMessage, context: Context) -> None:
    text = message.text
    if storable(text) != text:
        raise InvalidTextError
    has_other = not isinstance(message.content, str) and any(isinstance(b, dict) and b.get("type") != "text" for b in message.content)
    if not has_other and not any(letter.isprintable() and not letter.isspace() for letter in text):
        raise EmptyMessageError
    if len(text) > context.max_message_chars:
        raise MessageTooLongError(size=len(text), limit=context.max_message_chars)
