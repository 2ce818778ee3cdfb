"""Run the graph on one thread: load and change its state, read a run's stream as events and their
answer.
"""

import asyncio
import hashlib
import html
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, aclosing, nullcontext, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
)
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.store.base.batch import AsyncBatchedBaseStore
from langgraph.types import Command, Interrupt, StateSnapshot

from longtable.base.concurrency import SYNC, Execution, in_thread
from longtable.base.context import Context
from longtable.base.errors import (
    DamagedThreadError,
    LongtableError,
    MissingExtraError,
    ThreadBusyError,
    ThreadNotFoundError,
    TurnPendingError,
)
from longtable.base.events import (
    AnswerEvent,
    AnswerStatus,
    ChartShown,
    ContextCompactionSkipped,
    ContextCompressed,
    ContextUsage,
    Event,
    QueryFinished,
    ReasoningEvent,
    SpokenAnswer,
    Token,
    VoiceStarted,
    Wait,
    largest_usage,
)
from longtable.graph.export.export_text import safe_html
from longtable.graph.thread_state import (
    Graph,
    StoredThreads,
    Update,
    Values,
    check_lost,
    has_unstored_work,
    is_at_rest,
    is_later,
    is_pending,
    is_stored,
    load_state,
    made_by_voices,
    owner_in,
    reading,
    rejection,
    state_owner,
    waiting_of,
    waits_for_the_model,
    writing_node,
)
from longtable.memory.messages.marks import mark_of, marks_of, turn_number
from longtable.memory.messages.reasoning import streamed_reasoning
from longtable.memory.messages.rounds import all_calls
from longtable.memory.voices import VOICE
from longtable.nodes.call_plans import next_view
from longtable.nodes.state import (
    FOOTER,
    UNDER_WAY,
    VOICE_TASK,
    Input,
    State,
    Turn,
    turn_of,
    values_of,
)
from longtable.nodes.team.team import answer_text
from longtable.store.damage import UNREADABLE, readable
from longtable.store.locks import Background, ThreadLocks, locks_of
from longtable.store.records.thread_index import entry_of, may_see, owner_of
from longtable.store.storage_errors import storage_errors
from longtable.tools.cells import clip, html_table
from longtable.tools.charts.pictures import Chart, embedded_svg

if TYPE_CHECKING:
    from longtable.graph.wiring.step import Step

CompactionEvent = ContextCompressed | ContextCompactionSkipped
INTERRUPT = "__interrupt__"
"""Key of what a run stopped with, among a stream's updates."""
PREPARE = "prepare"
"""The node that makes room for the next turn."""
MOST_AT_ONCE = 32
"""Tasks of one run that LangGraph has under way at the same time."""
MODES = ["messages", "custom", "updates"]
WhenBusy = Literal["queue", "reject", "steer"]
"""What a turn does where another one has the thread: wait, raise `ThreadBusyError`, or join it."""
Result = TypeVar("Result")
GraphInput = Input | Command[Any] | None
"""None resumes the turn where it stopped."""


class RunReader:
    """LangGraph's stream of one run as events. `settled`: the run has closed its turn.

    `values`: those of the thread, where the run goes on with a turn: what its voices have answered
    stands in its `answer`, too, and is not told twice. `made`: by voices whose step is not done,
    for their run was killed.
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
        """Of the voices, as the transcript has them."""
        self.ahead: dict[str, Any] = {}
        self.speaking = ""
        """The voice whose heading came last."""
        self.made = made or {}
        self.headings: dict[str, VoiceStarted] = {}
        self.first = ""
        self.later = dict[str, list[Event]]()
        """Of voices that are asked at once: the first that is not done, and the events of those
        after it.
        """
        self.writes_text = False
        """Whether the first one is in the middle of a text."""
        self.done: set[str] = set()
        self.heard: set[str] = set()
        """Voices whose answer was told, in this run or before."""
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
        """Yield what voices had answered when the run before was killed."""
        for said in self._answered(self.made):
            yield from self._told(said)

    def _told(self, said: SpokenAnswer) -> Iterator[Event]:
        """Yield an answer whose text did not stream in this run, unless it was told."""
        if said["voice"] in self.heard:
            return
        self.heard.add(said["voice"])
        yield _heading(said["voice"], said["name"])
        token = Token(type="token", text=said["text"])
        yield cast("Event", {**token, "voice": said["voice"]})

    def _answered(self, made: Mapping[str, Update]) -> list[SpokenAnswer]:
        """Return the answers of voices that were asked at once and whose turn it is not yet."""
        results = [
            result
            for result in made.values()
            if turn_of(result).get("number") == self.turn.get("number")
        ]
        messages = [message for result in results for message in result.get("messages", ())]
        return [*map(_spoken, answers_in(messages))]

    def read(self, mode: str, payload: Any) -> Iterator[Event]:
        """Yield the events of a part of the stream.

        Of voices that are asked at once, those of the first that is not done come as they are;
        those of another one stand together, once it is done and the first is not in the middle of a
        text.
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
        """Yield the events of a voice that have waited."""
        for event in self.later.pop(voice):
            yield from self._headed(event)

    def _headed(self, event: Event) -> Iterator[Event]:
        """Yield an event, before it the heading of its voice where another one spoke last."""
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
        """Yield what `settle` says for a voice or the mode; without a team the answer has it."""
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
"""Events of a voice that people see below its name."""


def _heading(voice: str, name: str) -> VoiceStarted:
    return VoiceStarted(type="voice_started", voice=voice, name=name, color="")


def answers_in(messages: Iterable[BaseMessage]) -> list[AIMessage]:
    """Return the answers of a team's voices among messages, in order."""
    return [
        message
        for message in messages
        if isinstance(message, AIMessage) and not all_calls(message) and mark_of(message, VOICE)
    ]


def _spoken(answer: AIMessage) -> SpokenAnswer:
    voice = str(mark_of(answer, VOICE))
    return SpokenAnswer(voice=voice, name=answer.name or "", text=str(answer.text))


@dataclass
class ThreadRunner:
    """One thread of a compiled graph, as one caller sees it."""

    graph: Graph
    thread_id: str
    config: RunnableConfig
    context: Context
    when_busy: WhenBusy
    locked: bool = False
    """The caller holds the thread already."""
    how: Execution = SYNC

    # -- the thread ---------------------------------------------------------------------------

    @property
    def locks(self) -> ThreadLocks:
        """Return the locks of the graph's checkpointer."""
        return locks_of(self.graph.checkpointer)

    @property
    def waits(self) -> bool:
        """Return whether a caller waits for a thread that another one has."""
        return self.when_busy != "reject"

    def alone(self) -> AbstractContextManager[None]:
        """Return a block in which no other turn or change of this thread runs, in any process."""
        if self.locked:
            return nullcontext()
        return self.locks.locked(self.thread_id, wait=self.waits)

    @storage_errors()
    def state(self) -> StateSnapshot:
        """Return the thread's state. Raises `ThreadNotFoundError` for another owner's thread, and
        `LostMessagesError`.
        """
        entry = self._entry()  # before the state: others may write while it is read
        state = load_state(self.graph, self.config)
        theirs = state_owner(state) if is_stored(state) else owner_of(entry)
        if not may_see(theirs, self.context.owner):
            raise ThreadNotFoundError(self.thread_id)
        check_lost(StoredThreads(self.graph), self.thread_id, state, entry)
        return state

    def _entry(self) -> Mapping[str, Any]:
        """Return the thread's item of the index, empty if there is none, or the store fails, or
        the thread is looked at as it was at a checkpoint.
        """
        if self.graph.store is not None and "checkpoint_id" not in self.config["configurable"]:
            with suppress(Exception):
                return entry_of(self.graph.store, self.thread_id)
        return {}

    def values(self, state: StateSnapshot | None = None) -> Values:
        """Return the thread's values. Raises `ThreadNotFoundError`."""
        state = state or self.state()
        if state.created_at is None:
            raise ThreadNotFoundError(self.thread_id)
        return values_of(state)

    def resting(self, state: StateSnapshot) -> Values:
        """Return the values of a thread without an unfinished turn. Raises `TurnPendingError`."""
        values = self.values(state)
        if is_pending(state):
            raise TurnPendingError(self.thread_id)
        return values

    def change(
        self, decide: Callable[[Values], tuple[Result, Update]], *, mid_turn: bool = False
    ) -> Result:
        """Write what `decide` makes of the thread's values, as a step of its own.

        Raises `TurnPendingError` in the middle of a turn. `mid_turn`: also allowed in a turn whose
        model call failed; that turn then counts again and asks again with the change.
        """
        with storage_errors(), self.alone():
            self.keep_interrupted()
            state = self.state()
            open_turn = mid_turn and waits_for_the_model(state)
            result, update = decide(self.values(state) if open_turn else self.resting(state))
            if update:
                self.write(update, writing_node(state, update))
            return result

    def keep_interrupted(self) -> None:
        """Store what a killed run had not stored yet, without calling model or tool.

        New input replaces what is still on its way in: a user message that `ingest` has not taken
        in, or the result of a finished step that has no checkpoint yet, would be dropped.
        """
        for _ in range(4):
            state = self.state()
            if not has_unstored_work(state):
                self._keep_voices(state)
                return
            self._go_on(interrupt_before="*")

    def _keep_voices(self, state: StateSnapshot) -> None:
        """Store what voices have made that were asked at once by a run that was killed: their step
        is not done, so new input would drop it.
        """
        if made := self.made_by_voices(state):
            ahead = {**(values_of(state).get("ahead") or {}), **made}
            self.write({"ahead": ahead}, "estimate")

    def made_by_voices(self, state: StateSnapshot) -> dict[str, Update]:
        """Return what voices have made that were asked at once, by voice, in a step that is not
        done; empty where no such step is next.
        """
        saver = self.graph.checkpointer
        if "respond" not in state.next or not isinstance(saver, BaseCheckpointSaver):
            return {}
        newest = saver.get_tuple(self.config)
        return made_by_voices(newest) if newest is not None else {}

    def _go_on(self, **until: Any) -> None:
        self.graph.invoke(
            cast("Any", None), self.config, context=self.context, durability="sync", **until
        )

    def write(self, update: Update, node: str) -> None:
        """Write an update as if the node had returned it."""
        self.graph.update_state(self.config, update, as_node=node)

    def _at_rest(self) -> bool:
        """Return whether no turn was interrupted, without loading the thread's messages.

        Raises `ThreadNotFoundError` for another owner's thread.
        """
        saver = self.graph.checkpointer
        if not isinstance(saver, BaseCheckpointSaver):
            return False
        with reading(self.graph, self.thread_id):
            entry = self._entry()  # before the checkpoint: others may write while it is read
            newest = saver.get_tuple(self.config)
            if is_later(entry, newest and newest.checkpoint["id"]):
                self.state()  # raises, and says how many messages are gone
            if newest is None:
                return True
            turn = newest.checkpoint["channel_values"].get("turn")
            if not may_see(owner_in(turn, newest.metadata), self.context.owner):
                raise ThreadNotFoundError(self.thread_id)
            return is_at_rest(self.graph, newest)

    def make_ready(self) -> None:
        """Bring the thread to rest; a new message rejects the queries that wait for approval."""
        if self._at_rest():
            return
        self.keep_interrupted()
        if update := rejection(self.state()):
            self.write(update, "approve")
            self._go_on(interrupt_after=["run_tools"])

    # -- after the answer -----------------------------------------------------------------------

    @property
    def step_after_answer(self) -> "Step | None":
        """Return the step that makes room for the next turn, where it may wait for a model and can
        go on after the answer.

        A saver or store that is bound to an event loop serves no work that outlives the loop.
        """
        from longtable.graph.wiring.step import Step

        node = self.graph.nodes.get(PREPARE)
        if node is None or not isinstance(node.bound, Step) or not node.bound.may_wait:
            return None
        bound = hasattr(self.graph.checkpointer, "loop") or isinstance(
            self.graph.store, AsyncBatchedBaseStore
        )
        return None if bound else node.bound

    def make_room(self, job: Background) -> None:
        """Take the step that a run has left, unless another turn came first or the work was
        dropped.
        """
        state = self.state()
        step = self.step_after_answer
        if state.next != (PREPARE,) or step is None:
            return
        info = ExecutionInfo(
            checkpoint_id="", checkpoint_ns="", task_id="", thread_id=self.thread_id
        )
        runtime = Runtime(
            context=self.context,
            store=self.graph.store,
            stream_writer=job.events.append,
            execution_info=info,
        )
        update = step.outside(cast("State", state.values), runtime)
        # A run of the bare graph takes no lock, and a process that slept has lost its own: a write
        # would end that run.
        newest = self.state().config["configurable"]["checkpoint_id"]
        if not job.dropped and newest == state.config["configurable"]["checkpoint_id"]:
            self.write(cast("Update", update), PREPARE)

    # -- runs ---------------------------------------------------------------------------------

    async def work(self, call: Callable[[], Result]) -> Result:
        """Make a call that blocks."""
        return await self.how.call(call, lambda: in_thread(call))

    async def run(self, graph_input: GraphInput, reader: RunReader) -> AsyncGenerator[Event, None]:
        """Run the graph and yield events, the last an `answer`."""
        run: Any = self.graph.astream if self.how.on_loop else self.graph.stream
        # LangGraph's own bound is the machine's cores and four: a team would wait for places.
        config = RunnableConfig(**{"max_concurrency": MOST_AT_ONCE, **self.config})
        until = (
            {"interrupt_before": [*self.graph.interrupt_before_nodes, PREPARE]}
            if self.step_after_answer
            else {}
        )
        stream = run(
            graph_input, config, context=self.context, stream_mode=MODES, durability="sync", **until
        )
        for event in reader.begin():
            yield event
        try:
            # The loop closes LangGraph's own generator; closed twice at a loop's end it is left
            # open.
            parts = (
                nullcontext(_cancel_once(stream))
                if self.how.on_loop
                else aclosing(_as_async(stream))
            )
            async with parts as items:
                async for mode, payload in items:
                    for event in reader.read(mode, payload):
                        yield event
        except UNREADABLE:
            await self.work(self._check_view)
            raise
        if not reader.settled and reader.waits is None:
            await self.work(self._check_end)
        for event in reader.end():
            yield event

    def _check_end(self) -> None:
        """Raise `DamagedThreadError` where nothing of a turn is left to run that has no end."""
        if not self.state().next:
            raise DamagedThreadError(
                self.thread_id, what="its newest checkpoint", why="a turn came to no end"
            )

    def _check_view(self) -> None:
        """Raise `DamagedThreadError` where no view can be made of the thread."""
        with readable(self.thread_id):
            next_view(self.state().values, self.context)


async def _as_async(parts: Iterable[Any]) -> AsyncGenerator[Any, None]:
    for part in parts:
        yield part


async def _cancel_once(parts: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
    """Yield a run's parts, each step in a task of its own: cancelled, it is cancelled once and then
    closes what it has open.

    A reader in a cancel scope of anyio, as Starlette's streams are, is cancelled again at each
    `await`. LangGraph's loop could not cancel its tasks so, and the run wrote on without the
    thread's lock.
    """
    context = copy_context()
    while True:
        step = asyncio.create_task(anext(parts, parts), context=context)
        try:
            part = await asyncio.shield(step)
        finally:
            step.cancel()  # one that is done takes no notice
            while not step.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([step])
        if part is parts:  # its end
            return
        yield part


DrawChart = Callable[[str, Mapping[str, object]], Chart]
"""Draws the result that a handle names by a spec: `Conversation.chart`."""


@dataclass(frozen=True)
class Answer:
    """One turn's result.

    `status`: "answered", the code of the notice that stands for an answer, or what the turn waits
    for, "approval_requested" or "input_requested", for `Conversation.resume`. Or "steered": the
    message joined `turn`, which another caller runs and whose answer goes to them. Empty where
    `resume` had nothing to go on with.
    """

    text: str
    status: AnswerStatus
    turn: int
    queries: list[QueryFinished] = field(default_factory=list)
    usage: ContextUsage | None = None
    """The newest count of a call; of a team that of the voice with the largest share of its
    limit.
    """
    recalls: int = 0
    """How often originals were brought back for this turn."""
    unsupported_numbers: list[str] = field(default_factory=list)
    """Figures of the turn's answers that no result of the turn gives, as written; of a team's those
    of each voice are in `voices`.
    """
    charts: list[ChartShown] = field(default_factory=list)
    """Charts of the turn: `Conversation.chart(handle, spec)` draws each."""
    voices: list[SpokenAnswer] = field(default_factory=list)
    """What each voice of a team answered, in order; `text` is the last one's, of a workflow whose
    last step judges with the first one's above it.
    """
    compactions: list[CompactionEvent] = field(default_factory=list)
    """What was compacted for this turn, or after it, or why not. What went on after an answer is
    told with the next one.
    """

    def __repr__(self) -> str:
        return (
            f"<Answer {self.status}, turn {self.turn}, {len(self.queries)} queries:"
            f" {clip(' '.join(self.text.split()), 80)}>"
        )

    def __str__(self) -> str:
        """Return the text, so that `print(answer)` prints it."""
        return self.text

    def drawn_by(self, draw: DrawChart) -> Self:
        """Remember how a notebook draws its charts: no field, for a copy or a pickle has no use for
        it.
        """
        vars(self)["_draw"] = draw
        return self

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_draw"}

    def _repr_html_(self) -> str:
        text = safe_html(self.text)
        return text + self._rows_html(shown="<table" in text) + "".join(self._pictures())

    def _rows_html(self, *, shown: bool) -> str:
        """Return the newest result as a table and its SQL; of rows that the text has `shown` in a
        table of its own, the SQL alone.
        """
        last = self.queries[-1] if self.queries else None
        if last is None or not last["columns"]:
            return ""
        if shown:
            return f"<p>{html.escape(last['sql'])}</p>"
        return html_table(last["columns"], last["rows"], below=last["sql"])

    def _pictures(self) -> Iterator[str]:
        """Yield each chart whose rows are there: as SVG, without the extra `charts` as text."""
        draw: DrawChart | None = vars(self).get("_draw")
        if draw is None:
            return
        for shown in self.charts:
            with suppress(LongtableError):
                yield _picture(draw(shown["handle"], shown["spec"]))


def _picture(chart: Chart) -> str:
    try:
        svg = chart.svg()
    except MissingExtraError:
        return f"<pre>{html.escape(chart.text())}</pre>"
    prefix = f"chart{hashlib.sha256(svg.encode()).hexdigest()[:12]}"
    return f"<figure>{embedded_svg(svg, prefix) or ''}</figure>"


def answer_of(events: Sequence[Event]) -> Answer:
    """Return the result of the first turn of a stream; later ones are of messages that others
    left.
    """
    answer = next((event for event in events if event["type"] == "answer"), None)
    before = events[: events.index(answer)] if answer is not None else events
    restarts = [place for place, event in enumerate(before) if _is_restart(event)]
    turn = before[restarts[-1] if restarts else 0 :]
    figures = [event["figures"] for event in turn if event["type"] == "unsupported_numbers"]
    return Answer(
        text=answer["text"] if answer is not None else "",
        status=answer["status"] if answer is not None else "",
        turn=answer["turn"] if answer is not None else 0,
        queries=[event for event in turn if event["type"] == "query_finished"],
        usage=largest_usage(turn),
        recalls=sum(event["type"] == "recall" for event in turn),
        unsupported_numbers=list(dict.fromkeys(chain.from_iterable(figures))),
        charts=[event for event in turn if event["type"] == "chart"],
        voices=answer.get("voices", []) if answer is not None else [],
        compactions=compactions_in(events),
    )


def compactions_in(events: Sequence[Event]) -> list[CompactionEvent]:
    """Return the compactions that a stream tells of, those that came to nothing as well."""
    return [
        event
        for event in events
        if event["type"] == "context_compressed" or event["type"] == "context_compaction_skipped"
    ]


def compaction_of(events: Sequence[Event]) -> CompactionEvent | None:
    """Return what became of a compaction that a person asked for, None if the thread is empty."""
    return next(iter(compactions_in(events)), None)


def _is_restart(event: Event) -> bool:
    """Return whether another run overtook the turn, so that what it had done before is void."""
    overtaken = event["type"] == "model_retry" and event["code"] == ThreadBusyError.code
    return overtaken and not event.get("in_place")
