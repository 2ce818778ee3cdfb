"""Take in what the user sent: check it, stamp it, open the turn."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from longtable.base.context import Context, RequestLimits
from longtable.base.errors import (
    InputError,
    LongtableError,
    LostMessagesError,
    NotPrivateError,
    ThreadNotFoundError,
    UsedIdError,
)
from longtable.base.events import SchemaChanged
from longtable.base.stored import CHECKPOINT, thread_namespace
from longtable.memory.call_config import CallConfig
from longtable.memory.compaction.summary_text import language_of
from longtable.memory.messages.marks import (
    COLLEAGUE,
    GIVEN,
    STAMP,
    STEERED,
    marked,
    marks_of,
    turn_number,
    unmarked,
)
from longtable.memory.messages.rounds import CHANGED, all_calls, is_users
from longtable.memory.thread import Thread
from longtable.memory.view import CallPlan
from longtable.memory.voices import VOICE
from longtable.nodes.arriving.inbox import InboxMessage, receive, steered_event
from longtable.nodes.arriving.input_checks import check_input, storable
from longtable.nodes.arriving.rate_limit import RateLimit
from longtable.nodes.call_plans import CallSource, Readings
from longtable.nodes.closing.failures import FAILED, retry_update
from longtable.nodes.state import (
    ANSWERED,
    UNDER_WAY,
    InputRefusal,
    Now,
    SchemaChange,
    State,
    StoredConfig,
    Turn,
    Update,
    with_last,
)
from longtable.nodes.tally import check_whole
from longtable.nodes.team.team import Team, answers_ahead, first_voice
from longtable.store.records.retired import ids_in_archive, key_of_id, page
from longtable.store.records.retired_store import StoreArchive
from longtable.store.records.thread_index import (
    entry_of,
    may_see,
    open_turn,
    owner_of,
    retitle,
    title_of,
)

MOST_OF_A_TURN = 200
"""Retired messages that are read for the answer to one that is sent again."""
SENT = "__longtable_sent"
"""Key of a run's config: its newest message. The reducer has dropped one whose id is known."""
EACH_STORED = "__longtable_each_stored"
"""Key of a run's config: each of its checkpoints is stored before the next step."""
STATELESS = "__longtable_stateless"
"""Key of a run's config: no checkpointer keeps the thread."""
MADE_UP = "do-not-render-"
"""How agent-chat-ui begins the id of a message that it made up."""
WRITTEN_BY_OTHERS = (
    "content",
    "tool_calls",
    "invalid_tool_calls",
    "response_metadata",
    "name",
)
"""Fields of a message whose texts may not be fit to be stored."""

Accepted = TypeVar("Accepted", bound=BaseMessage)


@dataclass(frozen=True)
class Ingest:
    """The node. A refused input is taken out of the thread again here; `settle` then raises its
    error.
    """

    brief: Callable[[Now], tuple[StoredConfig, SchemaChange | None]]
    """Gives what surrounds each call, and the mark of a change of the database's schema."""
    clock: Callable[[], datetime]
    rate_limit: RateLimit | None = None
    limits: RequestLimits = field(default_factory=RequestLimits)
    team: Team | None = None
    readings: Readings = field(default_factory=Readings)

    def __call__(self, now: Now) -> Update:
        runtime = now.runtime
        arrival = _arrival(now)
        thread = arrival.thread
        before = arrival.before
        sent = arrival.sent
        try:
            brief, change = self.brief(now)
            arrival.check_access()
            arrival.check_whole(now.state)
            new = arrival.new()
        except (InputError, ThreadNotFoundError, LostMessagesError) as error:
            return _refused(sent, before, error)
        update = _configured(now, brief)
        newest = thread.messages[-1] if thread.messages else None
        if not sent and newest and (newest.type == "human" or "failure" in before):
            # The newest message was sent again, by its id, before it was answered, or its turn
            # failed: answer it now.
            if change and newest.type == "human":
                update["messages"] = [_with_schema_change(newest, change, runtime)]
            return {**update, **retry_update(thread, before)}
        if not new and arrival.is_answered:
            # A client that lost its connection sent again what the transcript has.
            return {
                "messages": [RemoveMessage(id=str(message.id)) for message in sent],
                "turn": {**before, "status": ANSWERED},
            }
        try:
            learned = update.get("learned", now.state.get("learned", {}))
            source = CallSource(
                config=brief,
                policy=self.readings.policy(brief),
                calibration=self.readings.calibration(learned),
                context=now.context,
            )
            self._check(new, arrival, source.call_config())
        except InputError as error:
            return _refused(sent, before, error)
        time = self.clock().isoformat(timespec="seconds")
        received, turn = receive(arrival.next_turn(brief), runtime)
        ordered, steered = _with_inbox(new, received, thread.messages)
        stamped = [
            _accepted(message, turn, time, steered=message.id in steered) for message in ordered
        ]
        if change:
            stamped[-1] = _with_schema_change(stamped[-1], change, runtime)
        for message in stamped:
            if message.id in steered:
                runtime.stream_writer(steered_event(message, turn["number"]))
        arrival.note_in_index(stamped[-1].text, str(brief.get("model") or ""), time)
        left = answers_ahead(now, self.team)
        answers = left.get("messages", ())
        stamped = [*answers, *stamped]
        if self.team:
            turn = first_voice(self.team, [*thread.messages, *stamped], turn, runtime.stream_writer)
        messages = [*_removals(sent, ordered, again=bool(steered or answers)), *stamped]
        return {**update, **left, "messages": messages, "turn": with_last(turn, stamped)}

    def _check(
        self,
        new: Sequence[BaseMessage],
        arrival: "_Arrival",
        config: CallConfig,
    ) -> None:
        """Raise an `InputError` for what cannot be accepted, or came too soon."""
        limits = None if arrival.embedded else self.limits
        check_input(new, arrival.context, CallPlan(arrival.thread, config), limits)
        if self.rate_limit:
            owner = arrival.context.owner
            thread_id = arrival.inner_thread_id
            self.rate_limit.check(owner, thread_id, arrival.run, arrival.store)


@dataclass(frozen=True)
class _Arrival:
    """What came into a thread, before it is accepted. `embedded`: the thread is another graph's."""

    context: Context
    thread: Thread
    before: Turn
    sent: list[BaseMessage]
    run: str
    thread_id: str
    inner_thread_id: str
    """The thread's own, below that of the graph around it."""
    embedded: bool
    store: BaseStore | None
    kept: bool
    """Whether a checkpointer keeps the thread; a stateless run of a server has none."""

    @property
    def owner(self) -> str | None:
        """Return the thread's owner; the first turn decides."""
        return owner_of(self.before) if self.before.get("number") else self.context.owner

    @property
    def index(self) -> BaseStore | None:
        """Return the store that has the thread in its index, None where none has."""
        return self.store if self.thread_id and self.kept and not self.embedded else None

    @property
    def is_answered(self) -> bool:
        """Return whether the newest turn is closed, and no answer came that a client made up."""
        if self.embedded or not self.before.get("number") or any(map(is_made_up, self.sent)):
            return False
        status = self.before.get("status")
        if status == "refused":  # what came is known, so its turn is over
            return SENT in _configurable()
        return status not in (*UNDER_WAY, FAILED)

    def check_access(self) -> None:
        """Raise `ThreadNotFoundError` for another owner's or project's thread, `NotPrivateError`
        where cells are to be withheld that the model was shown.
        """
        project = self.context.project
        if not may_see(self.owner, self.context.owner):
            raise ThreadNotFoundError(self.thread_id)
        if project and self.index is not None:
            stored = entry_of(self.index, self.thread_id).get("project", "")
            if stored not in ("", project):
                raise ThreadNotFoundError(self.thread_id)
        withholds = self.context.privacy == "types"
        if withholds and self.before.get("number") and not self.before.get("private"):
            raise NotPrivateError

    def check_whole(self, state: State) -> None:
        """Raise `LostMessagesError` where rows of the thread have vanished from the store."""
        if self.embedded:
            return
        try:
            check_whole(self.thread_id, state)
        except LostMessagesError as error:
            found = error.found - len(self.sent)
            raise LostMessagesError(self.thread_id, wanted=error.wanted, found=found) from None
        if self.index is None or self.before.get("number"):
            return
        entry = entry_of(self.index, self.thread_id)
        found = sum(turn_number(message) > 0 for message in self.thread.messages)
        if entry.get(CHECKPOINT) and found:  # it had turns, and its state knows of none
            wanted = entry.get("messages", 0)
            raise LostMessagesError(self.thread_id, wanted=wanted, found=found)

    def new(self) -> list[BaseMessage]:
        """Return what came without marks, without answers that a client made up, and without what
        has retired. Raises `UsedIdError`.
        """
        if not self.embedded:
            _refuse_other_text(self)
        messages = [
            _taken_in(message, embedded=self.embedded)
            for message in self.sent
            if not is_made_up(message)
        ]
        new = _not_retired(messages, self.thread, self.store, self.thread_id)
        newest = messages[-1] if messages else None
        if newest is not None and newest.type == "human" and newest not in new:
            retired = replace(self.thread, messages=[])
            known, _ = answer_to(str(newest.id), retired, self.store, self.thread_id)
            if known is not None and known.text != storable(newest.text):
                raise UsedIdError(message_id=str(newest.id))
        return new

    def next_turn(self, brief: StoredConfig) -> Turn:
        """Return the record of the turn that begins."""
        before = self.before
        optional = Turn(
            owner=self.owner,
            channel=self.context.channel or "",
            private=self.context.privacy == "types",
            schema=(brief.get("schema") or {}).get("hash", ""),
            bell=before.get("bell", ""),
            joined=before.get("joined", []),
            footers="footers" in before,
        )
        turn = Turn(
            number=before.get("number", 0) + 1,
            status="running",
            calls=0,
            overflows=0,
            # It outlives the turn: a compaction that failed is not tried again at every message.
            breaker=before.get("breaker"),
            run=self.run,
        )
        return {**turn, **cast("Turn", {name: value for name, value in optional.items() if value})}

    def note_in_index(self, first: str, model: str, now: str) -> None:
        """Write the turn into the index of threads. `first`: the text that a new thread is named
        after.
        """
        if self.index is None:
            return
        open_turn(
            self.index,
            self.thread_id,
            first=first,
            owner=self.owner,
            model=model,
            turns=self.before.get("number", 0) + 1,
            now=now,
            project=self.context.project,
        )
        refused = self.thread.refused
        titles = {title_of(each.text) for each in self.thread.messages if each.id in refused}
        if titles:
            retitle(self.index, self.thread_id, titles=titles, first=first)


def _arrival(now: Now) -> _Arrival:
    info = now.runtime.execution_info
    embedded = info is not None and "|" in info.checkpoint_ns
    return _Arrival(
        context=now.context,
        thread=now.thread,
        before=now.turn,
        sent=new_messages(now.thread.messages, now.turn, embedded=embedded),
        run=(info.run_id if info else None) or uuid.uuid4().hex[:16],
        thread_id=(info.thread_id if info else None) or "",
        inner_thread_id=now.thread_id or "",
        embedded=embedded,
        store=now.runtime.store,
        kept=_is_kept(now.runtime),
    )


def _is_kept(runtime: Runtime[Context]) -> bool:
    """Return whether the thread of a run is there after it; only a server runs without one."""
    return runtime.server_info is None or not _configurable().get(STATELESS)


def _refuse_other_text(arrival: _Arrival) -> None:
    """Raise `UsedIdError` if the run's newest message has the id of an accepted one and another
    text. With the stamp of that message it is an edit, which the reducer has taken in.
    """
    sent = _configurable().get(SENT)
    if sent is None:
        return
    for message in arrival.thread.messages:
        same = message.id == sent.id and turn_number(message)
        if same and storable(sent.text) != message.text:
            raise UsedIdError(message_id=sent.id)


def _configurable() -> Mapping[str, Any]:
    """Return what the run's config holds, nothing outside a run."""
    try:
        return get_config().get("configurable", {})
    except RuntimeError:
        return {}


def is_sync() -> bool:
    """Return whether the checkpoint that a node runs on is stored by now."""
    return bool(_configurable().get(EACH_STORED))


def _configured(now: Now, brief: StoredConfig) -> Update:
    """Return the update of what surrounds the calls, if it has changed."""
    before = now.config
    update: Update = {"brief": brief} if brief != before else {}
    if now.state.get("ahead"):  # of a turn that was left
        update["ahead"] = {}
    if before.get("model") != brief.get("model") and now.state.get("learned"):
        update["learned"] = {}  # what one provider taught says nothing of another
    return update


def _removals(
    sent: Sequence[BaseMessage], ordered: Sequence[BaseMessage], *, again: bool
) -> list[RemoveMessage]:
    """Return the removals of what is not accepted, and of all that came where it is to stand in
    another place or bears a forged mark: `again` it goes in after that.
    """
    again = again or any(marks_of(message) for message in sent)
    accepted = {message.id for message in ordered}
    return [RemoveMessage(id=str(each.id)) for each in sent if again or each.id not in accepted]


def _with_inbox(
    new: Sequence[BaseMessage], received: Sequence[InboxMessage], messages: Sequence[BaseMessage]
) -> tuple[list[BaseMessage], set[str | None]]:
    """Return the input with what waited in the inbox before it, in the order it came, and the ids
    of what was steered.
    """
    ids = {message.id for message in new}
    known = {message.id for message in messages}
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
            place = item["number"]
            last = min(thread.archived, item["number"] + MOST_OF_A_TURN)
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
    newest = _configurable().get(SENT)
    language = language_of(new or [newest] if newest else new)
    refusal = InputRefusal(code=error.code, numbers=numbers, language=language)
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
    fields: dict[str, Any] = {name: getattr(message, name, None) for name in WRITTEN_BY_OTHERS}
    fields["additional_kwargs"] = {**message.additional_kwargs, STAMP: stamped}
    fields["usage_metadata"] = getattr(message, "usage_metadata", None)
    clean: dict[str, Any] = storable(fields)
    changes = {name: clean[name] for name in fields if clean[name] != fields[name]}
    if "usage_metadata" in changes:
        changes["usage_metadata"] = None  # no count of tokens
    return message.model_copy(update={"additional_kwargs": fields["additional_kwargs"], **changes})


def _accepted(message: Accepted, turn: Turn, time: str, *, steered: bool) -> Accepted:
    marks = {
        **({"kind": STEERED} if steered else {}),
        **({} if isinstance(message, HumanMessage) else {GIVEN: True}),
    }
    return stamp(message, turn=turn, time=time, marks=marks)
