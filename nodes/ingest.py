"""Take in what the user sent: check the messages, stamp them, and open the turn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage
from langgraph.runtime import Runtime

from longtable.base.context import Context, RequestLimits
from longtable.base.errors import (
    InputError,
    LongtableError,
    LostMessagesError,
    ThreadNotFoundError,
)
from longtable.base.events import SchemaChanged
from longtable.memory.call_config import CallConfig
from longtable.memory.messages.marks import (
    GIVEN,
    STEERED,
    marked,
    marks_of,
)
from longtable.memory.messages.rounds import CHANGED
from longtable.memory.summary.summary_text import language_of
from longtable.memory.view import CallPlan
from longtable.nodes.arriving.inbox import InboxMessage, receive, steered_event
from longtable.nodes.arriving.incoming import SENT, Arrival, arrival_of, run_settings
from longtable.nodes.arriving.input_checks import check_input
from longtable.nodes.arriving.rate_limit import RateLimit
from longtable.nodes.arriving.stamps import Accepted, stamp
from longtable.nodes.call_plans import CallSource, Readings
from longtable.nodes.closing.failures import noted_failure, retry_update
from longtable.nodes.state import (
    ANSWERED,
    InputRefusal,
    Now,
    SchemaChange,
    StoredConfig,
    Turn,
    Update,
    with_last,
)
from longtable.nodes.team.team import Team
from longtable.nodes.team.turn_order import answers_ahead, first_voice


@dataclass(frozen=True)
class Ingest:
    """The node. If an input is refused, this node removes it from the thread again, and the node
    `settle` raises the error.
    """

    brief: Callable[[Now], tuple[StoredConfig, SchemaChange | None]]
    """Function that returns the config to store, and the change of the database's schema (None if
    it did not change).
    """
    clock: Callable[[], datetime]
    rate_limit: RateLimit | None = None
    limits: RequestLimits = field(default_factory=RequestLimits)
    team: Team | None = None
    readings: Readings = field(default_factory=Readings)

    def __call__(self, now: Now) -> Update:
        runtime = now.runtime
        arrival = arrival_of(now)
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
        return {**update, **self._opened(now, arrival, new, brief, change)}

    def _opened(
        self,
        now: Now,
        arrival: Arrival,
        new: Sequence[BaseMessage],
        brief: StoredConfig,
        change: SchemaChange | None,
    ) -> Update:
        """Return the update that opens a turn with the new messages and those of the inbox."""
        runtime = now.runtime
        thread = arrival.thread
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
        again = bool(steered or answers)
        messages = [*_removals(arrival.sent, ordered, again=again), *stamped]
        update: Update = {**left, "messages": messages, "turn": with_last(turn, stamped)}
        if failed := noted_failure(now):
            update["edits"] = [*left.get("edits", ()), *failed]
        return update

    def _check(
        self,
        new: Sequence[BaseMessage],
        arrival: "Arrival",
        config: CallConfig,
    ) -> None:
        """Raise an `InputError` if the input cannot be accepted, or comes too soon."""
        limits = None if arrival.embedded else self.limits
        check_input(new, arrival.context, CallPlan(arrival.thread, config), limits)
        if self.rate_limit:
            owner = arrival.context.owner
            thread_id = arrival.inner_thread_id
            self.rate_limit.check(owner, thread_id, arrival.run, arrival.store)


def _configured(now: Now, brief: StoredConfig) -> Update:
    """Return the update that stores the call config if it has changed. It also clears what other
    channels hold of an unfinished turn or another model.
    """
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
    """Return the removals of messages that were sent but are not accepted.

    If the order of messages changes (`again`) or if a message bears a forged mark, all messages
    that were sent are removed; the caller then adds the accepted messages again.
    """
    again = again or any(marks_of(message) for message in sent)
    accepted = {message.id for message in ordered}
    return [RemoveMessage(id=str(each.id)) for each in sent if again or each.id not in accepted]


def _with_inbox(
    new: Sequence[BaseMessage], received: Sequence[InboxMessage], messages: Sequence[BaseMessage]
) -> tuple[list[BaseMessage], set[str | None]]:
    """Return the messages of the inbox followed by the new input, in order of arrival. Also return
    the ids of those that count as steered (they joined a turn from the inbox).
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
    """Return the message that opens the turn with a mark of the schema's change, and send the event
    `schema_changed`.
    """
    runtime.stream_writer(
        SchemaChanged(
            type="schema_changed", changed=change["changed"], new=change["new"], gone=change["gone"]
        )
    )
    return marked(message, **{CHANGED: dict(change)})


def _refused(new: Sequence[BaseMessage], before: Turn, error: LongtableError) -> Update:
    """Return the update that removes a refused input, and notes the error for `settle` to raise."""
    numbers = {key: value for key, value in vars(error).items() if not key.startswith("_")}
    newest = run_settings().get(SENT)
    language = language_of(new or [newest] if newest else new)
    refusal = InputRefusal(code=error.code, numbers=numbers, language=language)
    turn: Turn = {
        **before,
        "number": before.get("number", 0),
        "status": "refused",
        "refusal": refusal,
    }
    return {"messages": [RemoveMessage(id=str(message.id)) for message in new], "turn": turn}


def _accepted(message: Accepted, turn: Turn, time: str, *, steered: bool) -> Accepted:
    marks = {
        **({"kind": STEERED} if steered else {}),
        **({} if isinstance(message, HumanMessage) else {GIVEN: True}),
    }
    return stamp(message, turn=turn, time=time, marks=marks)
