"""Turn LangGraph's stream of one run into events."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langgraph.types import Interrupt

from longtable.base.events import (
    AnswerEvent,
    AnswerStatus,
    Event,
    ReasoningEvent,
    ReportedTokens,
    SpokenAnswer,
    Token,
    VoiceStarted,
    Wait,
)
from longtable.graph.thread_state import Update, waiting_of
from longtable.memory.counting.provider_reports import reported
from longtable.memory.messages.marks import mark_of, marks_of, turn_number
from longtable.memory.messages.reasoning import streamed_reasoning
from longtable.memory.messages.rounds import all_calls
from longtable.memory.voices import VOICE
from longtable.nodes.state import FOOTER, UNDER_WAY, VOICE_TASK, State, Turn, turn_of
from longtable.nodes.team.mode_hook import answer_text

INTERRUPT = "__interrupt__"
"""The key of the interrupts that stopped a run, in the updates of a stream."""


class RunReader:
    """Turns LangGraph's stream of one run into events. `settled` is True once the run has closed
    its turn.

    `values` are the values of the thread if the run continues a turn. The turn's `answer` also
    contains answers that voices gave before this run, but their texts are not sent again. `made`
    are the updates of voices that were asked at the same time, in a step that did not end because
    its run was killed.
    """

    def __init__(
        self, values: State | None = None, made: Mapping[str, Update] | None = None
    ) -> None:
        self.text = ""
        self.streams = self.settled = self.approval_sent = False
        self.waits: Wait | None = None
        self.turn: Turn = {}
        self.voices: list[SpokenAnswer] = []
        self.answers: list[AIMessage] = []
        """The answers of the voices, as they stand in the transcript."""
        self.tokens: ReportedTokens | None = None
        self.ahead: dict[str, Any] = {}
        self.speaking = ""
        """The voice whose heading was sent last."""
        self.made = made or {}
        self.headings: dict[str, VoiceStarted] = {}
        self.first = ""
        self.later = dict[str, list[Event]]()
        """Events that are held back, by voice. They belong to voices that were asked at the same
        time and come after the first unfinished voice.
        """
        self.writes_text = False
        """Whether a text of the first unfinished voice is being streamed."""
        self.done: set[str] = set()
        self.heard: set[str] = set()
        """Voices whose answer has been sent as events, in this run or an earlier one."""
        if values is not None and turn_of(values).get("status") in UNDER_WAY:
            self._go_on(values)

    def _go_on(self, values: State) -> None:
        self.turn = turn_of(values)
        number = self.turn.get("number")
        messages = values.get("messages") or []
        self.answers = answers_in([each for each in messages if turn_number(each) == number])
        self.voices = [*map(_spoken, self.answers)]
        self.ahead = values.get("ahead") or {}
        self.heard.update(each["voice"] for each in self._answered(self.ahead))
        for id_, voice in ((values.get("brief") or {}).get("voices") or {}).items():
            self.headings[id_] = _heading(id_, voice["name"])

    def begin(self) -> Iterator[Event]:
        """Yield the answers that voices had given when the previous run was killed."""
        for said in self._answered(self.made):
            yield from self._told(said)

    def _told(self, said: SpokenAnswer) -> Iterator[Event]:
        """Yield an answer that was not streamed in this run, unless it was already sent."""
        if said["voice"] in self.heard:
            return
        self.heard.add(said["voice"])
        yield _heading(said["voice"], said["name"])
        token = Token(type="token", text=said["text"])
        yield cast("Event", {**token, "voice": said["voice"]})

    def _answered(self, made: Mapping[str, Update]) -> list[SpokenAnswer]:
        """Return the answers in updates of voices that were asked at the same time, as far as they
        belong to this turn. These answers are made but not yet in the transcript.
        """
        results = [
            result
            for result in made.values()
            if turn_of(result).get("number") == self.turn.get("number")
        ]
        messages = chain.from_iterable(result.get("messages", ()) for result in results)
        return [*map(_spoken, answers_in(messages))]

    def read(self, mode: str, payload: Any) -> Iterator[Event]:
        """Yield the events of one part of the stream.

        If voices are asked at the same time, the events of the first unfinished voice are passed on
        at once. The events of another voice are passed on all together, once this voice is done and
        no text of the first voice is being streamed.
        """
        for event in self._events(mode, payload):
            queue = self.later.get(str(event.get("voice")))
            if queue is None:
                yield from self._headed(event)
            else:
                queue.append(event)
        while self.later and self.first in self.done:
            self.first = next(iter(self.later))
            self.writes_text = False
            yield from self._queued(self.first)
        if not self.writes_text:
            for voice in [voice for voice in self.later if voice in self.done]:
                yield from self._queued(voice)

    def _queued(self, voice: str) -> Iterator[Event]:
        """Yield the events of a voice that were held back."""
        for event in self.later.pop(voice):
            yield from self._headed(event)

    def _headed(self, event: Event) -> Iterator[Event]:
        """Yield an event. If another voice spoke last, the heading of this event's voice comes
        first.
        """
        voice = str(event.get("voice") or "")
        if voice == self.first:
            self.writes_text = event["type"] == "token"
        if event["type"] == "voice_started":
            self.speaking = voice
            self.headings[voice] = event
        elif event["type"] in UNDER_A_HEADING and voice not in ("", self.speaking):
            self.speaking = voice
            heading = self.headings.get(voice) or _heading(voice, voice)
            yield cast("Event", {**heading, "at_once": False} if "at_once" in heading else heading)
        yield event

    def _events(self, mode: str, payload: Any) -> Iterator[Event]:
        if mode == "custom":
            self.approval_sent |= payload["type"] == "approval_requested"
            if payload["type"] == "unsupported_numbers" and payload["figures"] and self.voices:
                self.voices[-1]["unsupported_numbers"] = payload["figures"]
            if payload.get("at_once"):
                self.done.discard(payload["voice"])
                self.first = self.first or payload["voice"]
                self.later |= {payload["voice"]: []} if payload["voice"] != self.first else {}
            yield payload
        elif mode == "messages":
            yield from self._model_output(*payload)
        else:
            for node, update in payload.items():
                if node == INTERRUPT:
                    yield from self._questions(update)
                    continue
                if node in (VOICE_TASK, "respond"):
                    self.done.add(turn_of(cast("Update", update or {})).get("voice", ""))
                if node == VOICE_TASK:
                    continue
                yield from self._update(node, update)
                if node == "settle":
                    # What a person is told of a voice that gave no answer; the last text is the
                    # answer's.
                    messages = update.get("messages", ()) if isinstance(update, Mapping) else ()
                    for message in messages:
                        yield from self._notice(message)
                # With a team settle closes each voice; what follows the last one prepares the next
                # turn.
                if node == "settle" and self.turn.get("status") not in UNDER_WAY:
                    self.settled = True
                    yield self._answer()

    def end(self) -> Iterator[Event]:
        # Of a run that stops before they are done.
        for event in chain.from_iterable(self.later.values()):
            yield from self._headed(event)
        if not self.settled:
            yield self._answer()

    def _model_output(self, message: Any, metadata: Mapping[str, Any]) -> Iterator[Event]:
        streamed = isinstance(message, AIMessageChunk)
        self.streams |= streamed
        # A server that repeats its ids has the streamed text once more as a whole message.
        is_wanted = streamed or (isinstance(message, AIMessage) and not self.streams)
        if metadata.get("langgraph_node") not in ("respond", VOICE_TASK) or not is_wanted:
            return
        whose = {"voice": metadata["voice"]} if "voice" in metadata else {}
        if reasoning := streamed_reasoning(message):
            yield cast("Event", {**ReasoningEvent(type="reasoning", text=reasoning), **whose})
        if message.text:
            self.heard.update(whose.values())
            yield cast("Event", {**Token(type="token", text=str(message.text)), **whose})

    def _questions(self, interrupts: Sequence[Interrupt]) -> Iterator[Event]:
        for waiting in waiting_of(interrupts):
            self.waits = self.waits or waiting.event["type"]
            if not (self.approval_sent and waiting.actions):
                whose = {"voice": voice} if (voice := self.turn.get("voice")) else {}
                yield cast("Event", {**waiting.event, **whose})

    def _notice(self, message: BaseMessage) -> Iterator[Event]:
        """Yield a notice that `settle` wrote for a voice or the mode. Without a team, nothing is
        yielded, because the notice is the answer.
        """
        voice = mark_of(message, VOICE)
        if voice is None:
            return
        name = message.name or str(voice).capitalize()
        self.headings.setdefault(voice, _heading(voice, name))
        text = str(mark_of(message, FOOTER) or message.text)
        yield cast("Event", {**Token(type="token", text=text), "voice": voice})

    def _update(self, node: str, update: Any) -> Iterator[Event]:
        if not isinstance(update, Mapping):
            return
        self.turn = update.get("turn", self.turn)
        self.ahead = update.get("ahead", self.ahead)
        if node in {"respond", "settle"}:
            for message in update.get("messages", ()):
                self.text = str(message.text)
                if node == "respond" and isinstance(message, AIMessage):
                    self.tokens = added_tokens(self.tokens, reported(message))
                if FOOTER in marks_of(message):
                    self._add_footer(message)
                    continue
                for answer in answers_in([message]):
                    said = _spoken(answer)
                    self.answers.append(answer)
                    self.voices.append(said)
                    if node == "respond":
                        yield from self._told(said)

    def _add_footer(self, message: BaseMessage) -> None:
        for answer in answers_in([message]):
            self.answers[-1:] = [answer]
            self.voices[-1:] = [{**self.voices[-1], "text": str(answer.text)}]

    def _answer(self) -> AnswerEvent:
        ended: AnswerStatus = self.turn.get("status", "")
        status = self.waits or ended
        number = int(self.turn.get("number", 0))
        text = self.text
        if self.answers and str(self.answers[-1].text) == text:
            text = answer_text(self.answers)
        event = AnswerEvent(type="answer", text=text, status=status, turn=number)
        if self.tokens is not None:
            event["tokens"] = self.tokens
        voices = [*self.voices, *(self._answered(self.ahead) if self.waits else ())]
        has_team = "calls_left" in self.turn
        return {**event, "voices": voices} if voices or has_team else event


UNDER_A_HEADING = (
    "token",
    "reasoning",
    "tool_started",
    "query_started",
    "approval_requested",
    "input_requested",
    "chart",
    "unsupported_numbers",
)
"""Events of a voice that people see below the name of the voice."""


def _heading(voice: str, name: str) -> VoiceStarted:
    return VoiceStarted(type="voice_started", voice=voice, name=name, color="")


def added_tokens(
    sum_so_far: ReportedTokens | None, call: ReportedTokens | None
) -> ReportedTokens | None:
    """Return the sum of two reports of tokens. None stands for a call without a report."""
    if sum_so_far is None or call is None:
        return sum_so_far or call
    return ReportedTokens(
        input=sum_so_far["input"] + call["input"],
        output=sum_so_far["output"] + call["output"],
        cached=sum_so_far["cached"] + call["cached"],
        cache_written=sum_so_far["cache_written"] + call["cache_written"],
        reasoning=sum_so_far["reasoning"] + call["reasoning"],
    )


def answers_in(messages: Iterable[BaseMessage]) -> list[AIMessage]:
    """Return the answers of a team's voices among these messages, in order."""
    return [
        message
        for message in messages
        if isinstance(message, AIMessage) and not all_calls(message) and mark_of(message, VOICE)
    ]


def _spoken(answer: AIMessage) -> SpokenAnswer:
    voice = str(mark_of(answer, VOICE))
    return SpokenAnswer(voice=voice, name=answer.name or "", text=str(answer.text))
