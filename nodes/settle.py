"""Close the turn: add a notice if there is no answer, raise the error if the input or the call was
refused, and decide whether `prepare` must run.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage

from longtable.base.concurrency import BoundedCache
from longtable.base.errors import (
    ContextTooLargeError,
    EmptyMessageError,
    HistoryMessageTooLongError,
    InvalidTextError,
    LongtableError,
    LostMessagesError,
    MessageTooLongError,
    NotPrivateError,
    RateLimitedError,
    RequestTooLargeError,
    RequestTooLongError,
    ThreadNotFoundError,
    TooManyMessagesError,
    UnknownModelError,
    UsedIdError,
    WrongRoleError,
)
from longtable.base.events import TurnStatus, UnsupportedNumbers
from longtable.base.redaction import redacted
from longtable.memory.messages.marks import marked, turn_number
from longtable.memory.pins.pins import pins_in_passing
from longtable.memory.thread import Edit
from longtable.memory.voices import NARRATOR
from longtable.nodes.arriving.inbox import receive
from longtable.nodes.arriving.incoming import is_sync
from longtable.nodes.arriving.stamps import stamp
from longtable.nodes.closing.failures import FAILED, failure_of
from longtable.nodes.closing.notices import CUT_SHORT, NOTICES
from longtable.nodes.closing.number_flags import KEPT_MESSAGES, NumberCache, Whole, unsupported_in
from longtable.nodes.estimate import CallPlans
from longtable.nodes.prepare import worth_preparing
from longtable.nodes.state import (
    FOOTER,
    NOBODY,
    Now,
    Turn,
    Update,
    is_ahead,
    pin_changes,
    refresh_update,
    with_last,
)
from longtable.nodes.team.team import Team
from longtable.nodes.team.turn_order import asked_next, mode_mark, next_voice, scene_of
from longtable.store.records.thread_index import close_turn
from longtable.tools.database import QueryResult

if TYPE_CHECKING:
    from longtable.tools.results.result_store import ResultStore

_REFUSALS: dict[str, Callable[..., LongtableError]] = {
    EmptyMessageError.code: EmptyMessageError,
    HistoryMessageTooLongError.code: HistoryMessageTooLongError,
    InvalidTextError.code: InvalidTextError,
    LostMessagesError.code: LostMessagesError,
    MessageTooLongError.code: MessageTooLongError,
    RateLimitedError.code: RateLimitedError,
    TooManyMessagesError.code: TooManyMessagesError,
    RequestTooLongError.code: RequestTooLongError,
    RequestTooLargeError.code: RequestTooLargeError,
    WrongRoleError.code: WrongRoleError,
    ContextTooLargeError.code: ContextTooLargeError,
    ThreadNotFoundError.code: ThreadNotFoundError,
    NotPrivateError.code: NotPrivateError,
    UnknownModelError.code: UnknownModelError,
    UsedIdError.code: UsedIdError,
}


FooterText = Callable[[str, Sequence[BaseMessage]], str]
"""Function of the thread's id and the messages of the turn. It returns the text that people read
below an answer, "" for no text.
"""


@dataclass(frozen=True)
class Settle:
    """The node, which closes the turn. See the module."""

    clock: Callable[[], datetime]
    plans: CallPlans
    results: "ResultStore | None" = None
    said: NumberCache = field(default_factory=lambda: BoundedCache(KEPT_MESSAGES), repr=False)
    team: Team | None = None
    footer: FooterText | None = None

    def __call__(self, now: Now) -> Update:
        turn = now.turn
        status = turn.get("status", "")
        if status == "refused":
            refusal = turn["refusal"]
            raise _REFUSALS[refusal["code"]](**refusal["numbers"])
        _, turn = receive(turn, now.runtime, look=False)
        if status == FAILED:
            _close(now, now.thread.length)
            raise failure_of(turn)
        closing = self._closing(now) if status == NOBODY else []
        messages = closing or ([self._notice(status, now)] if status in NOTICES else [])
        flags = self._flags(now) if not messages else []
        cut_short: list[AIMessage] = []
        if self.team and turn.get("voice") and status != "compacting":
            scene = scene_of(self.team, [*now.thread.messages, *messages], turn)
            following = next_voice(self.team, scene)
            next_turn = with_last(asked_next(turn, following or ""), messages)
            left = turn.get("calls_left") or is_ahead(now.state, next_turn)
            if following in now.config.get("voices", {}):
                # One that joined since is asked from the next turn on.
                if left:
                    flagged = Update(edits=flags) if flags else Update()
                    return {**flagged, "messages": messages, "turn": next_turn}
                cut_short = [self._cut_short(str(following), now)]
            messages += [*self._closing(now, messages), *cut_short]
        footed = [] if messages or status == "compacting" else self._footed(now)
        passing = self._passing(now) if status != "compacting" else Update()
        prepare = status != "compacting" and worth_preparing(now, self.plans)
        if not prepare:
            self.plans.drop(now.thread_id)
        again = refresh_update(now.state, turn.get("number", 0))
        _close(now, now.thread.length + len(messages))
        last_status: TurnStatus = (
            turn["status"] if status in {*NOTICES, "cut_off"} and not closing else "answered"
        )
        if cut_short:
            last_status = "call_budget"
        closed: Turn = {
            **turn,
            "status": last_status,
            "prepare": prepare,
            **_unsupported(flags),
            **(Turn(footers=True) if footed else Turn()),
        }
        edits = [*flags, *passing.get("edits", ())]
        if edits:
            again["edits"] = [*again.get("edits", ()), *edits]
        update = Update(messages=[*messages, *footed]) if messages or footed else Update()
        return {**again, **update, "turn": with_last(closed, messages)}

    def _footed(self, now: Now) -> list[BaseMessage]:
        """Return the answer with the operator's footer, as a list of one message. The list is empty
        if there is no footer. People see the footer; no view includes it.
        """
        if not self.footer or not now.thread_id:
            return []
        texts = _of_turn(now)
        if (
            not texts
            or not isinstance(texts[-1], AIMessage)
            or not isinstance(texts[-1].content, str)
        ):
            return []
        footer = self.footer(now.thread_id, texts)
        return (
            [
                marked(
                    texts[-1].model_copy(update={"content": texts[-1].content + footer}),
                    **{FOOTER: footer},
                )
            ]
            if footer
            else []
        )

    def _closing(self, now: Now, answers: Sequence[AIMessage] = ()) -> list[AIMessage]:
        """Return the message for everybody with which the team's mode ends the turn, as a list of
        one message. The list is empty if the mode gives none.
        """
        if self.team is None:
            return []
        scene = scene_of(self.team, [*now.thread.messages, *answers], now.turn)
        text = self.team.mode.close(scene)
        # A game may end before anybody has answered.
        marks = mode_mark(self.team, scene)
        return [self._stamped(text, {**now.turn, "voice": NARRATOR}, marks)] if text else []

    def _cut_short(self, voice: str, now: Now) -> AIMessage:
        """Return the notice that the team has no model call left for this voice."""
        assert self.team is not None, "only a team shares its model calls"
        name = self.team.names.get(voice, voice)
        text = CUT_SHORT[now.language].format(calls=self.team.max_calls, name=name)
        return self._stamped(text, {**now.turn, "voice": NARRATOR}, {"notice": "call_budget"})

    def _notice(self, status: str, now: Now) -> AIMessage:
        """Return the notice that takes the place of an answer."""
        turn = now.turn
        searched = ", ".join(f"“{keyword}”" for keyword in turn.get("searched", ()))
        name = (
            self.team.names.get(turn.get("voice", ""), turn.get("voice", ""))
            if self.team
            else turn.get("voice", "")
        )
        words = {
            "calls": turn.get("calls", 0),
            "searched": searched,
            "name": name,
            "reason": turn.get("reason", ""),
        }
        text = NOTICES[status][now.language].format(**words)
        return self._stamped(text, turn, {"notice": status})

    def _stamped(self, text: str, turn: Turn, marks: Mapping[str, Any]) -> AIMessage:
        name = self.team.names.get(turn.get("voice", "")) if self.team else None
        notice = AIMessage(text, id=str(uuid.uuid4()), name=name)
        return stamp(
            notice, turn=turn, time=self.clock().isoformat(timespec="seconds"), marks=marks
        )

    def _passing(self, now: Now) -> Update:
        """Return the update that pins what the user said in passing in this turn. It is empty if
        code does not look for such statements (see `CallConfig.pins_by_code`).
        """
        if not self.plans.of(now).call_config.pins_by_code:
            return {}
        known_pins = now.thread.pins
        pins = pins_in_passing(_of_turn(now), known_pins)
        known = {pin.id for pin in known_pins}
        new = [pin for pin in pins if pin.id not in known]
        edits, event = pin_changes(new, [], now.thread.messages[-1])
        if not edits:
            return {}
        now.runtime.stream_writer(event)
        return {"edits": edits}

    def _flags(self, now: Now) -> list[Edit]:
        """Check the figures of the answer. Return a list of one edit that keeps those that no
        result supports, and send an event about them, because the answer has already streamed. The
        list is empty if there are none.
        """
        turn = now.turn
        if turn.get("status") == "compacting" or now.context.check_numbers == "off":
            return []
        number = turn.get("number", 0)
        failure = ""
        try:
            figures = unsupported_in(now.thread, number, self._whole(now.thread_id), self.said)
        except Exception as error:  # a check that fails is told, and fails no turn
            figures = []
            failure = f"{type(error).__name__}: {redacted(' '.join(str(error).split()))[:200]}"
        if not figures and not failure:
            return []
        event = UnsupportedNumbers(type="unsupported_numbers", turn=number, figures=figures)
        flag = Edit(id=uuid.uuid4().hex, op="flag", turn=number, figures=figures)
        flag["answer"] = str(now.thread.messages[-1].id)
        if failure:
            event["failure"] = flag["failure"] = failure
        if voice := turn.get("voice"):
            flag["voice"] = voice
        now.runtime.stream_writer({**event, "voice": voice} if voice else event)
        return [flag]

    def _whole(self, thread_id: str | None) -> Whole:
        def whole(handle: str) -> QueryResult | None:
            if self.results is None or not thread_id:
                return None
            try:
                return self.results.get(thread_id, handle)
            except LongtableError:  # gone: it is not known what it held
                return None

        return whole


def _unsupported(flags: Sequence[Edit]) -> Turn:
    figures = list(chain.from_iterable(flag["figures"] for flag in flags))
    return {"unsupported_numbers": figures} if figures else {}


def _of_turn(now: Now) -> list[BaseMessage]:
    """Return the messages of the present turn."""
    number = now.turn.get("number", 0)
    newest = takewhile(
        lambda message: turn_number(message) == number, reversed(now.thread.messages)
    )
    return list(newest)[::-1]


def _close(now: Now, length: int) -> None:
    runtime = now.runtime
    thread_id = now.thread_id
    if runtime.store is not None and thread_id:
        info = runtime.execution_info
        checkpoint = info.checkpoint_id if info is not None and is_sync() else ""
        with suppress(Exception):  # the answer has streamed: the next turn writes the count again
            close_turn(runtime.store, thread_id, messages=length, checkpoint=checkpoint)
