"""Close the turn: give a notice where there is no answer, raise where the input or the call was
refused, see what is to prepare.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.runtime import Runtime

from longtable.base.concurrency import BoundedCache
from longtable.base.context import Context
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
from longtable.memory.voices import NARRATOR
from longtable.nodes.arriving.inbox import receive
from longtable.nodes.closing.failures import FAILED, failure_of
from longtable.nodes.closing.number_flags import KEPT_MESSAGES, NumberCache, Whole, unsupported_in
from longtable.nodes.estimate import CallPlans
from longtable.nodes.ingest import is_sync, stamp
from longtable.nodes.prepare import worth_preparing
from longtable.nodes.state import (
    FOOTER,
    NOBODY,
    State,
    Turn,
    Update,
    is_ahead,
    newest_language,
    pin_changes,
    refresh_update,
    thread_of,
    turn_of,
    with_last,
)
from longtable.nodes.team.team import Team, asked_next, mode_mark, next_voice, scene_of
from longtable.store.records.thread_index import close_turn, thread_id_of
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

NOTICES: dict[str, dict[str, str]] = {
    "call_budget": {
        "en": (
            "I stopped after {calls} model calls without reaching an answer. You can ask me to go"
            " on, or ask in smaller steps."
        ),
        "zh": "我在 {calls} 次模型调用后仍未得出答案，已停止。您可以让我继续，或把问题拆小。",
    },
    "empty_answer": {
        "en": (
            "The model returned an empty answer twice. Please ask again or put the question"
            " differently."
        ),
        "zh": "模型两次返回了空答案。请重试，或换一种问法。",
    },
    "recall_exhausted": {
        "en": (
            "The model searched the earlier conversation for {searched} and found no answer. Please"
            " say it again, or ask otherwise."
        ),
        "zh": "模型在之前的会话中查找了{searched}，仍未得出答案。请重新说明，或换一种问法。",
    },
    "content_filter": {
        "en": (
            "The model's provider withheld the answer (content filter). Please put the question"
            " differently."
        ),
        "zh": "模型服务的内容过滤器拦截了答案。请换一种问法。",
    },
    "voice_failed": {"en": "{name} could not answer: {reason}", "zh": "{name} 未能回答：{reason}"},
    "voice_gone": {
        "en": "{name} has left the team and did not answer.",
        "zh": "{name} 已不在团队中，没有回答。",
    },
    "nobody": {
        "en": "Nobody in the team was to answer this message.",
        "zh": "团队中没有人需要回答这条消息。",
    },
}
"""What a person reads where there is no answer, by the status of the turn."""
CUT_SHORT = {
    "en": (
        "The team has made its {calls} model calls of this turn, and {name} was not asked any more."
        " You can ask the team to go on."
    ),
    "zh": "团队本轮的 {calls} 次模型调用已用完，没有再询问 {name}。您可以让团队继续。",
}
"""What a person reads where a team has no model call left for the voice that is next."""


Footer = Callable[[str, Sequence[BaseMessage]], str]
"""Returns what people read below an answer, from the thread's id and the messages of the turn; ""
for nothing.
"""


@dataclass(frozen=True)
class Settle:
    """The node."""

    clock: Callable[[], datetime]
    plans: CallPlans
    results: "ResultStore | None" = None
    said: NumberCache = field(default_factory=lambda: BoundedCache(KEPT_MESSAGES), repr=False)
    team: Team | None = None
    footer: Footer | None = None

    def __call__(self, state: State, *, runtime: Runtime[Context]) -> Update:
        turn = turn_of(state)
        status = turn.get("status", "")
        if status == "refused":
            refusal = turn["refusal"]
            raise _REFUSALS[refusal["code"]](**refusal["numbers"])
        _, turn = receive(turn, runtime, look=False)
        if status == FAILED:
            _close(runtime, thread_of(state).length)
            raise failure_of(turn)
        closing = self._closing(state) if status == NOBODY else []
        messages = closing or ([self._notice(status, state, runtime)] if status in NOTICES else [])
        doubts = self._doubts(state, runtime) if not messages else Turn()
        cut_short: list[AIMessage] = []
        if self.team and turn.get("voice") and status != "compacting":
            scene = scene_of(self.team, [*thread_of(state).messages, *messages], turn)
            following = next_voice(self.team, scene)
            next_turn = with_last(asked_next(turn, following or ""), messages)
            left = turn.get("calls_left") or is_ahead({**state, "turn": next_turn})
            if following in (state.get("brief") or {}).get("voices", {}):
                # One that joined since is asked from the next turn on.
                if left:
                    return {"messages": messages, "turn": next_turn}
                cut_short = [self._cut_short(str(following), state, runtime)]
            messages += [*self._closing(state, messages), *cut_short]
        footed = (
            [] if messages or status == "compacting" else self._footed(state, thread_id_of(runtime))
        )
        passing = self._passing(state, runtime) if status != "compacting" else Update()
        prepare = status != "compacting" and worth_preparing(state, runtime, self.plans)
        if not prepare:
            self.plans.drop(runtime)
        again = refresh_update(state, turn.get("number", 0))
        _close(runtime, thread_of(state).length + len(messages))
        last_status: TurnStatus = (
            turn["status"] if status in {*NOTICES, "cut_off"} and not closing else "answered"
        )
        if cut_short:
            last_status = "call_budget"
        closed: Turn = {
            **turn,
            "status": last_status,
            "prepare": prepare,
            **doubts,
            **(Turn(footers=True) if footed else Turn()),
        }
        update = Update(messages=[*messages, *footed]) if messages or footed else Update()
        return {**again, **passing, **update, "turn": with_last(closed, messages)}

    def _footed(self, state: State, thread_id: str | None) -> list[BaseMessage]:
        """Return the answer with what the operator puts below it for people, if anything; no view
        has it.
        """
        number = turn_of(state).get("number", 0)
        texts = [
            *takewhile(
                lambda message: turn_number(message) == number, reversed(thread_of(state).messages)
            )
        ][::-1]
        if (
            not self.footer
            or not thread_id
            or not texts
            or not isinstance(texts[-1], AIMessage)
            or not isinstance(texts[-1].content, str)
        ):
            return []
        footer = self.footer(thread_id, texts)
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

    def _closing(self, state: State, answers: Sequence[AIMessage] = ()) -> list[AIMessage]:
        """Return what the team's mode tells everybody at the end of the turn, if anything."""
        if self.team is None:
            return []
        turn = turn_of(state)
        scene = scene_of(self.team, [*thread_of(state).messages, *answers], turn)
        text = self.team.mode.close(scene)
        # A game may end before anybody has answered.
        marks = mode_mark(self.team, scene)
        return [self._stamped(text, {**turn, "voice": NARRATOR}, marks)] if text else []

    def _cut_short(self, voice: str, state: State, runtime: Runtime[Context]) -> AIMessage:
        """Return what a person is told where the team has no model call left for this voice."""
        assert self.team is not None, "only a team shares its model calls"
        turn = turn_of(state)
        context = runtime.context or Context()
        language = context.language or newest_language(thread_of(state).messages)
        text = CUT_SHORT[language].format(
            calls=self.team.max_calls, name=self.team.names.get(voice, voice)
        )
        return self._stamped(text, {**turn, "voice": NARRATOR}, {"notice": "call_budget"})

    def _notice(self, status: str, state: State, runtime: Runtime[Context]) -> AIMessage:
        """Return what stands for an answer."""
        turn = turn_of(state)
        context = runtime.context or Context()
        language = context.language or newest_language(thread_of(state).messages)
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
        return self._stamped(NOTICES[status][language].format(**words), turn, {"notice": status})

    def _stamped(self, text: str, turn: Turn, marks: Mapping[str, Any]) -> AIMessage:
        name = self.team.names.get(turn.get("voice", "")) if self.team else None
        notice = AIMessage(text, id=str(uuid.uuid4()), name=name)
        return stamp(
            notice, turn=turn, time=self.clock().isoformat(timespec="seconds"), marks=marks
        )

    def _passing(self, state: State, runtime: Runtime[Context]) -> Update:
        """Return the pins of what the user said in passing in this turn, where code looks for
        them.
        """
        thread = thread_of(state)
        number = turn_of(state).get("number", 0)
        if not self.plans.of(state, runtime).call_config.pins_by_code:
            return {}
        newest = [
            *takewhile(lambda message: turn_number(message) == number, reversed(thread.messages))
        ]
        pins = pins_in_passing(newest[::-1], thread.pins)
        known = {pin.id for pin in thread.pins}
        edits, event = pin_changes([pin for pin in pins if pin.id not in known], [])
        if not edits:
            return {}
        runtime.stream_writer(event)
        return {"edits": edits}

    def _doubts(self, state: State, runtime: Runtime[Context]) -> Turn:
        """Return the figures of the answer that nothing vouches for, and tell of them; the answer
        has streamed already.
        """
        turn = turn_of(state)
        if (
            turn.get("status") == "compacting"
            or (runtime.context or Context()).check_numbers == "off"
        ):
            return {}
        number = turn.get("number", 0)
        failure = ""
        try:
            figures = unsupported_in(
                thread_of(state), number, self._whole(thread_id_of(runtime)), self.said
            )
        except Exception as error:  # a check that fails is told, and fails no turn
            figures = []
            failure = f"{type(error).__name__}: {redacted(' '.join(str(error).split()))[:200]}"
        if not figures and not failure:
            return {}
        event = UnsupportedNumbers(type="unsupported_numbers", turn=number, figures=figures)
        whose = {"voice": turn["voice"]} if turn.get("voice") else {}
        runtime.stream_writer({**event, **whose, **({"failure": failure} if failure else {})})
        return {"unsupported_numbers": figures} if figures else {}

    def _whole(self, thread_id: str | None) -> Whole:
        def whole(handle: str) -> QueryResult | None:
            if self.results is None or not thread_id:
                return None
            try:
                return self.results.get(thread_id, handle)
            except LongtableError:  # gone: it is not known what it held
                return None

        return whole


def _close(runtime: Runtime[Context], length: int) -> None:
    if runtime.store is not None and (thread_id := thread_id_of(runtime)):
        info = runtime.execution_info
        checkpoint = info.checkpoint_id if info is not None and is_sync() else ""
        with suppress(Exception):  # the answer has streamed: the next turn writes the count again
            close_turn(runtime.store, thread_id, messages=length, checkpoint=checkpoint)
