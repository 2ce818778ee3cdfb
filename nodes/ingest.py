"""Take in what the user sent: check it, stamp it, open the turn."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, TypeVar

from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from longtable.graph.context import Context
from longtable.graph.errors import (
    SYSTEM_AND_TOOLS,
    ContextTooLargeError,
    EmptyMessageError,
    InputError,
    InvalidTextError,
    LongtableError,
    MessageTooLongError,
    ThreadNotFoundError,
    WrongRoleError,
)
from longtable.graph.state import State, frame_of, thread_of, turn_of
from longtable.memory.archive import archived_among
from longtable.memory.frame import Frame
from longtable.memory.stamps import STAMP, marks_of, turn_number
from longtable.memory.tokens import PRIMING
from longtable.nodes.shelf import StoreShelf
from longtable.nodes.thread_index import may_see, open_turn, owner_of

NOTE_TOKENS = 32
"""Room for the line that says messages were left out."""

MADE_UP = "do-not-render-"
"""How agent-chat-ui begins the id of a message that it made up."""

Update = dict[str, Any]
Accepted = TypeVar("Accepted", bound=BaseMessage)


@dataclass(frozen=True)
class Refusal:
    """Why an input was refused, as plain JSON that `settle` turns back into the typed error."""

    code: str
    numbers: dict[str, Any]


@dataclass(frozen=True)
class Ingest:
    """The node. A refused input is taken out of the thread again here; `settle` then raises its error."""

    brief: Callable[[Context], dict[str, Any]]
    clock: Callable[[], datetime]

    def __call__(self, state: State, *, runtime: Runtime[Context]) -> Update:
        context = runtime.context or Context()
        brief = self.brief(context)
        before_brief = state.get("brief") or {}
        update: Update = {"brief": brief} if brief != before_brief else {}
        if before_brief.get("model") != brief.get("model") and state.get("learned"):
            update["learned"] = {}  # what one provider taught says nothing of another
        messages = thread_of(state).messages
        before = turn_of(state)
        number = before.get("number", 0)
        owner = owner_of(before) if number else context.owner
        thread_id = (runtime.execution_info.thread_id if runtime.execution_info else None) or ""
        given = unstamped(messages)
        if not may_see(owner, context.owner):
            return _refused(given, before, ThreadNotFoundError(thread_id))
        said = [message for message in given if not is_made_up(message)]
        new = _not_retired(said, state, runtime.store, thread_id)
        if not given and messages and messages[-1].type == "human":
            # The newest message was sent again, by its id, before it was answered: answer it now.
            return {**update, "turn": {**before, "status": "running", "calls": 0, "overflows": 0}}
        try:
            check_input(new, context, frame_of({"brief": brief, "learned": update.get("learned", state.get("learned"))}, context))
        except InputError as error:
            return _refused(given, before, error)
        now = self.clock().isoformat(timespec="seconds")
        stamped = [stamp(message, turn=number + 1, time=now) for message in new]
        embedded = runtime.execution_info is not None and "|" in runtime.execution_info.checkpoint_ns  # the thread is another graph's
        if runtime.store is not None and thread_id and not embedded:
            first, model = stamped[-1].text, str(brief.get("model") or "")
            open_turn(runtime.store, thread_id, first=first, owner=owner, model=model, turns=number + 1, now=now)
        # The breaker outlives the turn: a fold that failed is not tried again at every message.
        opened = {"number": number + 1, "status": "running", "calls": 0, "overflows": 0, "breaker": before.get("breaker")}
        again = [RemoveMessage(id=str(message.id)) for message in given if message.id not in {kept.id for kept in new}]
        return {**update, "messages": [*again, *stamped], "turn": {**opened, "owner": owner} if owner else opened}


def _not_retired(given: Sequence[BaseMessage], state: State, store: BaseStore | None, thread_id: str) -> list[BaseMessage]:
    """Return the messages that the archive does not have: a client may send the whole transcript again."""
    archived = thread_of(state).archived
    if not archived or store is None or not thread_id:
        return list(given)
    try:
        known = archived_among(StoreShelf(store), thread_id, [str(message.id) for message in given], archived)
    except Exception:  # a store that fails never fails a turn: at worst a message stands in the transcript twice
        return list(given)
    return [message for message in given if message.id not in known]


def _refused(new: Sequence[BaseMessage], before: Update, error: LongtableError) -> Update:
    """Take the input out again and keep why, for `settle` to raise."""
    refusal = Refusal(error.code, {key: value for key, value in vars(error).items() if not key.startswith("_")})
    turn = {**before, "number": before.get("number", 0), "status": "refused", "refusal": asdict(refusal)}
    return {"messages": [RemoveMessage(id=str(message.id)) for message in new], "turn": turn}


def unstamped(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the newest messages that no turn has accepted yet, oldest first."""
    new: list[BaseMessage] = []
    for message in reversed(messages):
        if turn_number(message):
            break
        new.append(message)
    return new[::-1]


def is_made_up(message: BaseMessage) -> bool:
    """Tell whether a chat client made up a tool's answer (agent-chat-ui does for each open call): what did not run has no result."""
    return isinstance(message, ToolMessage) and str(message.id).startswith(MADE_UP)


def stamp(message: Accepted, *, turn: int, time: str) -> Accepted:
    """Return the message marked as accepted in this turn, its texts fit to be stored."""
    changes: Update = {"additional_kwargs": {**message.additional_kwargs, STAMP: {**marks_of(message), "turn": turn, "time": time}}}
    for name in ("content", "tool_calls", "invalid_tool_calls", "additional_kwargs", "response_metadata", "name"):
        value = changes.get(name, getattr(message, name, None))
        if (clean := storable(value)) != value:
            changes[name] = clean
    usage = getattr(message, "usage_metadata", None)
    if storable(usage) != usage:
        changes["usage_metadata"] = None  # no count of tokens
    return message.model_copy(update=changes)


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


def check_input(new: Sequence[BaseMessage], context: Context, frame: Frame | None) -> None:
    """Raise the `InputError` of an input that cannot be accepted; sizes in characters and tokens.

    With a `frame`, also refuse a message that could not be sent word for word beside system prompt and tools.
    """
    if not new:
        raise EmptyMessageError
    for message in new:
        if isinstance(message, SystemMessage):
            raise WrongRoleError(role="system")
        if isinstance(message, HumanMessage):
            _check_human(message, context)
    if not isinstance(new[-1], HumanMessage):
        raise WrongRoleError(role=new[-1].type)
    if frame:
        around = frame.counter.message(SystemMessage(frame.system)) + frame.tool_tokens + PRIMING + NOTE_TOKENS
        if around >= frame.threshold_tokens:
            raise ContextTooLargeError(need=around, budget=frame.threshold_tokens, what=SYSTEM_AND_TOOLS)
        need = around + frame.counter.message(new[-1])
        if need > frame.threshold_tokens:
            raise ContextTooLargeError(need=need, budget=frame.threshold_tokens)


def _check_human(message: HumanMessage, context: Context) -> None:
    text = message.text
    if storable(text) != text:
        raise InvalidTextError
    has_other = not isinstance(message.content, str) and any(isinstance(b, dict) and b.get("type") != "text" for b in message.content)
    if not text.strip() and not has_other:
        raise EmptyMessageError
    if len(text) > context.max_message_chars:
        raise MessageTooLongError(size=len(text), limit=context.max_message_chars)
