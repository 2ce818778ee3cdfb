"""The thread facade: ask, stream, look at and change one conversation."""

import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from itertools import chain
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    NoReturn,
    ParamSpec,
    Self,
    TypeVar,
    overload,
)

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph

from longtable.base.concurrency import ASYNC, SYNC, a_from, complete, in_thread
from longtable.base.context import Context
from longtable.base.errors import ConfigError, PersistenceError, check_type
from longtable.base.events import ActionRequest, Event
from longtable.base.stored import NODE
from longtable.graph import changes, compaction_preview, threads
from longtable.graph.changes import TopicHistory
from longtable.graph.compaction_preview import CompactionPreview
from longtable.graph.export.thread_file import Form, chart_drawer, export_as
from longtable.graph.reports import ALL, audit_of
from longtable.graph.running import turns
from longtable.graph.running.answers import Answer, CompactionEvent, answer_of, compaction_of
from longtable.graph.running.thread_runner import ThreadRunner, WhenBusy
from longtable.graph.thread_state import (
    OWNER,
    Graph,
    StoredThreads,
    Waiting,
    is_pending,
    waiting_in,
)
from longtable.graph.transcripts import find_thread, fork_thread, load_thread, spent_in
from longtable.graph.view_messages import ViewMessages
from longtable.memory.counting.prices import Price, price_rows
from longtable.memory.counting.usage import Spent, added
from longtable.memory.pins.pins import Pin, current_pins
from longtable.memory.search import Original
from longtable.memory.thread import Thread
from longtable.memory.topics.topics import SectionHit, find_section, visible_topics
from longtable.nodes.arriving.input_checks import Question
from longtable.nodes.call_plans import call_plan_of
from longtable.nodes.state import thread_of, turn_of
from longtable.nodes.tooling.audit import AuditEntry
from longtable.store.damage import readable
from longtable.store.locks import WAIT_SECONDS
from longtable.store.persistence import Persistence
from longtable.store.records.archive_files import ArchiveFile, ArchiveFiles, archive_from
from longtable.store.records.retired import page
from longtable.store.records.retired_store import StoreArchive
from longtable.store.storage_errors import storage_errors
from longtable.tools.charts.chart_tool import Chart, chart_of
from longtable.tools.database import Database, QueryResult

if TYPE_CHECKING:
    from pathlib import Path

    import pandas
    import pyarrow

    from longtable.tools.results.result_store import ResultStore

ResultForm = Literal["rows", "arrow", "pandas"]
Params = ParamSpec("Params")
Result = TypeVar("Result")
RENAMED = {
    "decide": "resume(decisions)",
    "reply": "resume(answer)",
    "retry": "resume()",
    "stream_decisions": "stream(answer=decisions)",
    "stream_reply": "stream(answer=answer)",
    "topic": "topics(), each with its id",
    "artifact": "topics(), each with its artifact",
    "versions": "topics(), each with its versions",
}
"""Methods of versions up to 0.1.0, and their replacements; the same holds for their awaited
twins.
"""


def _a_from_locked(
    method: "Callable[Concatenate[Conversation, Params], Result]",
) -> "Callable[Concatenate[Conversation, Params], Coroutine[Any, Any, Result]]":
    """Return the awaited twin of a method that needs the thread alone.

    It waits in the event loop. If calls on one busy conversation waited in worker threads, no
    worker threads would be left for others.
    """

    @wraps(method)
    async def twin(self: "Conversation", /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        with storage_errors():
            runner = self._awaiting_runner
            async with runner.locks.alone(self.thread_id, runner.how, wait=runner.waits):
                return await in_thread(method, self._holding_lock(), *args, **kwargs)

    return twin


class Conversation:
    """One thread of a compiled graph. Each method has an awaited twin, with an `a` before its name.

    A turn that was interrupted (`pending`) is finished by `resume`; a new message instead of a
    resume drops nothing: the interrupted user message stays in the thread. A turn whose queries
    wait for approval ends with the status "approval_requested" and is finished by
    `resume(decisions)`; a new message instead rejects them. A turn that the provider refuses for
    its content raises `ProviderRefusedError` and is over: its messages stay in the transcript and
    leave the view; `resume` runs it again.

    Turns of one thread follow one another, in this process and in others that opened the same file:
    `when_busy` is "queue" (wait), "reject" (`ThreadBusyError` at once) or "steer" (join the turn
    under way before its next model call; if there is no further call, become the next turn). Read a
    stream to its end, or close it: it holds the thread until then.

    `results` and `archive`: the result store and archive files of `build_graph`, for the methods
    that read them.
    """

    def __init__(
        self,
        graph: Graph,
        thread_id: str | None = None,
        *,
        context: Context | None = None,
        when_busy: WhenBusy = "queue",
        results: "ResultStore | None" = None,
        archive: "ArchiveFiles | Path | str | None" = None,
    ) -> None:
        check_type("graph", graph, CompiledStateGraph)
        check_type("thread_id", thread_id, str, optional=True)
        check_type("context", context, Context, optional=True)
        if graph.checkpointer is None:
            raise ConfigError(
                "a Conversation needs a graph compiled with a checkpointer:"
                " graph.compile(checkpointer=...)"
            )
        if when_busy not in ("queue", "reject", "steer"):
            raise ConfigError(
                f"when_busy must be 'queue', 'reject' or 'steer', found {when_busy!r}"
            )
        if thread_id and NODE in thread_id:
            # What is kept under such an id is a node's of another thread.
            raise ConfigError(
                f"a thread id holds no {NODE!r}, found {thread_id[:80]!r}: take the id of the"
                " thread itself"
            )
        self.graph = graph
        self.when_busy = when_busy
        self.thread_id = thread_id or uuid.uuid4().hex[:12]
        self.context = context or Context()
        self.results = results
        self.archive = archive_from(archive)
        self.config: RunnableConfig = {"configurable": {"thread_id": self.thread_id}}
        if self.context.owner:
            # In each checkpoint: of a first message that no node has seen yet, nothing else says
            # whose it is.
            self.config["metadata"] = {OWNER: self.context.owner}
        self.database: Database | None = None
        """The database and the persistence that `open_conversation` opened, for `close`."""
        self.persistence: Persistence | None = None
        self.on_close = ExitStack()
        self._locked = self._closed = False

    def close(self) -> None:
        """Close what `open_conversation` opened. Parts that the caller opened stay open. Closing
        twice is no error.
        """
        self._closed = self.persistence is not None
        self.on_close.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Conversation {self.thread_id!r}>"

    # -- one turn ----------------------------------------------------------------------------------

    def ask(
        self,
        text: str,
        *,
        id: str | None = None,
        name: str | None = None,
        images: Sequence[str | bytes] = (),
    ) -> Answer:
        """Run one turn and return its answer.

        `id`: the message's own id. If a message is sent again with the same id after a lost
        connection, its answer is returned, or its turn goes on. `name`: who speaks. `images`: URLs,
        or the bytes of PNG, JPEG, GIF or WebP files, within `RequestLimits.bytes`.
        """
        check_type("the text of a message", text, str)
        return self._answer_of(list(self.stream(text, id=id, name=name, images=images)))

    async def aask(
        self,
        text: str,
        *,
        id: str | None = None,
        name: str | None = None,
        images: Sequence[str | bytes] = (),
    ) -> Answer:
        """Run one turn and return its answer: see `ask`."""
        check_type("the text of a message", text, str)
        return self._answer_of(
            [event async for event in self.astream(text, id=id, name=name, images=images)]
        )

    def _answer_of(self, events: Sequence[Event]) -> Answer:
        return answer_of(events).drawn_by(self.chart)

    def resume(self, answer: Any = None, *, waiting_id: str | None = None) -> Answer:
        """Continue a waiting turn: one that was interrupted, one that asked a person, or one that
        failed, which runs again.

        `answer`: the decisions on the calls that wait, one for each in order, or what a tool asked
        for by `interrupt`: the question `waiting_id`, else the first. A decision is `{"type":
        "approve"}`, `{"type": "reject", "message": "why"}` or `{"type": "edit", "edited_action":
        {"name": "run_sql", "args": {"sql": "..."}}}`. Without an answer the waiting questions are
        asked again. Raises `WrongDecisionError` and `NothingAskedError`; then nothing has changed.
        """
        return self._answer_of(list(self.stream(answer=answer, waiting_id=waiting_id)))

    async def aresume(self, answer: Any = None, *, waiting_id: str | None = None) -> Answer:
        """Continue a waiting turn: see `resume`."""
        return self._answer_of(
            [event async for event in self.astream(answer=answer, waiting_id=waiting_id)]
        )

    def stream(
        self,
        text: str | None = None,
        *,
        id: str | None = None,
        name: str | None = None,
        images: Sequence[str | bytes] = (),
        answer: Any = None,
        waiting_id: str | None = None,
    ) -> Iterator[Event]:
        """Run one turn and yield its events, the last an `answer`; without `text` the events of
        `resume`, or no events if no turn waits.

        `id`, `name`, `images`: see `ask`. Raises the typed errors of `longtable.base.errors`.
        """
        question = None if text is None else Question(text, id, name, images)
        return turns.iterate(turns.ask(self._runner, question, answer, waiting_id))

    def astream(
        self,
        text: str | None = None,
        *,
        id: str | None = None,
        name: str | None = None,
        images: Sequence[str | bytes] = (),
        answer: Any = None,
        waiting_id: str | None = None,
        on_disconnect: Literal["finish", "cancel"] = "cancel",
    ) -> AsyncGenerator[Event, None]:
        """Run one turn and yield its events: see `stream`. Cancelling the task cancels queries, not
        the thread.

        `on_disconnect`: what becomes of the turn when its reader closes the stream or is cancelled:
        "cancel" interrupts it (`resume` goes on), "finish" lets it go on in the event loop, and its
        answer is in the thread.
        """
        if on_disconnect not in ("finish", "cancel"):
            raise ConfigError(
                f"on_disconnect must be 'finish' or 'cancel', found {on_disconnect!r}"
            )
        question = None if text is None else Question(text, id, name, images)
        events = turns.ask(self._awaiting_runner, question, answer, waiting_id)
        return turns.finishing(events) if on_disconnect == "finish" else events

    def steer(self, text: str, *, wait: bool = True) -> Answer:
        """Hand a message to the running turn, in whatever process it runs. If no turn runs, the
        message becomes a turn of its own.

        Needs a store. Without `wait` return at once: the caller who has the thread takes the
        message in, or runs it as the next turn. See `when_busy`.
        """
        return self._answer_of(list(turns.iterate(turns.steer(self._runner, text, wait=wait))))

    async def asteer(self, text: str, *, wait: bool = True) -> Answer:
        """Say something to the turn under way: see `steer`."""
        return self._answer_of(
            [event async for event in turns.steer(self._awaiting_runner, text, wait=wait)]
        )

    # -- what a turn waits for ---------------------------------------------------------------------

    def pending(self) -> bool:
        """Return whether a turn was interrupted and waits to be resumed."""
        return is_pending(self._runner.state())

    def approvals(self) -> list[ActionRequest]:
        """Return the calls that wait for a decision, in order; empty if no call waits."""
        return list(chain.from_iterable(waiting.actions for waiting in self.waiting()))

    def waiting(self) -> list[Waiting]:
        """Return all questions that the turn waits with: approvals, and questions that a tool of
        yours asks by `interrupt`.
        """
        return waiting_in(self._runner.state())

    # -- transcript and view -----------------------------------------------------------------------

    def history(self, *, start: int = 1, limit: int | None = None) -> list[BaseMessage]:
        """Return the transcript in order, live and archived alike: `limit` messages from number
        `start` (from 1), or all.

        An excluded message is marked: `longtable.memory.messages.marks.kind_of`. Raises
        `ThreadNotFoundError`.
        """
        thread = self._thread()
        first, last = changes.number_range(thread, start, limit)
        return changes.transcript(thread, self._archived(thread, first, last), first, last)

    def view(self, voice: str | None = None) -> ViewMessages:
        """Return exactly what the next model call would be sent, as the thread is now. Raises
        `ThreadNotFoundError`.

        `voice`: the persona of a team as which the call is made. The mode's whisper is made only
        when the persona is asked, so it is not shown. A list of messages, which a notebook shows as
        a table of coloured parts with their tokens. If a memory is being made ahead, this waits for
        it, at most 2 seconds.
        """
        complete(self._runner.locks.wait_for_job(self.thread_id, SYNC, most=WAIT_SECONDS))
        values = self._runner.values()
        if voice is not None:
            if voice not in (voices := (values.get("brief") or {}).get("voices", {})):
                raise ConfigError(
                    f"no persona {voice!r} has a voice on this thread; found"
                    f" {', '.join(voices) or 'none'}"
                )
            values = {**values, "turn": {**turn_of(values), "voice": voice, "status": "running"}}
        with readable(self.thread_id):
            plan = call_plan_of(values, self.context) if values.get("brief") else None
            return ViewMessages(plan.view, plan.call_config) if plan else ViewMessages()

    # -- compaction --------------------------------------------------------------------------------

    @overload
    def compact(self, *, preview: Literal[False] = False) -> CompactionEvent | None: ...
    @overload
    def compact(self, *, preview: Literal[True]) -> CompactionPreview | None: ...
    def compact(self, *, preview: bool = False) -> CompactionEvent | CompactionPreview | None:
        """Compact now, also under the threshold. `preview`: only say what it would do and cost;
        None if there is nothing to compact.

        Return the event `context_compressed`, which says who wrote the memory and what that cost,
        or `context_compaction_skipped`, which says why there was no compaction. Raises
        `ThreadNotFoundError`, and `TurnPendingError` while an interrupted turn waits.
        """
        if preview:
            return self._preview()
        return compaction_of(list(turns.iterate(turns.compaction(self._runner))))

    @overload
    def acompact(
        self, *, preview: Literal[False] = False
    ) -> Coroutine[Any, Any, CompactionEvent | None]: ...
    @overload
    def acompact(
        self, *, preview: Literal[True]
    ) -> Coroutine[Any, Any, CompactionPreview | None]: ...
    async def acompact(
        self, *, preview: bool = False
    ) -> CompactionEvent | CompactionPreview | None:
        """Compact now, or say what that would do and cost: see `compact`."""
        if preview:
            return await in_thread(self._preview)
        return compaction_of([event async for event in turns.compaction(self._awaiting_runner)])

    def undo(self) -> str | None:
        """Drop the newest compaction, so that the view before it holds again; return its id, None
        if there is none.

        The next compaction waits until new messages have come. Raises `UndoTooFarError` if its
        originals have retired.
        """
        return self._runner.change(lambda values: changes.undo(values, self.context))

    # -- pins and exclusions -----------------------------------------------------------------------

    def pins(self) -> list[Pin]:
        """Return the user's standing statements, word for word, in the order they were said. An
        ended pin has `ended`, the words that ended it.
        """
        return current_pins(self._thread().pins, ended=True)

    def pin(self, text: str) -> Pin:
        """Keep a statement word for word in every view from now on, until `unpin`. The id of an
        ended pin restores it.

        Raises `PinRefusedError` for a password or a key.
        """
        return self._runner.change(lambda values: changes.pin(values, text))

    def unpin(self, pin_id: str) -> None:
        """End a pin, also one that the conversation itself made. Raises `UnknownPinError`."""
        self._runner.change(lambda values: changes.unpin(values, pin_id))

    def exclude(self, message_id: str) -> None:
        """Leave a message out of views, summaries and recall from now on; it stays in the
        transcript, marked.

        From the next call on, the memory lacks the lines that cite the message, and the next
        compaction writes it anew. If the message opened a failed turn, all later messages are
        excluded too, and the turn is over. Raises `UnknownMessageError`.
        """
        thread = self._thread()
        live = any(message.id == message_id for message in thread.messages)
        archived = [] if live else self._archived(thread, 1, thread.archived)
        self._runner.change(
            lambda values: changes.exclude(values, message_id, archived), mid_turn=True
        )

    def include(self, message_id: str) -> None:
        """Include an excluded message again. Raises `UnknownMessageError` if it is not excluded."""
        self._runner.change(lambda values: changes.include(values, message_id), mid_turn=True)

    # -- topics ------------------------------------------------------------------------------------

    def topics(self) -> list[TopicHistory]:
        """Return the topics, each in its newest version and with all its versions; empty if another
        strategy keeps the memory. Sections that cite an excluded message are left out.
        """
        thread = self._thread()
        with readable(self.thread_id, "its archive"):
            retired = self._threads.retired_compactions(self.thread_id, thread)
        return changes.topic_histories(thread, retired)

    def find_section(self, keyword: str) -> SectionHit | None:
        """Return the topic section that answers a keyword, titles before contents; its sources are
        message numbers.
        """
        return find_section(visible_topics(self._thread()), keyword)

    # -- results -----------------------------------------------------------------------------------

    @overload
    def result(self, handle: str, form: Literal["rows"] = "rows") -> QueryResult: ...
    @overload
    def result(self, handle: str, form: Literal["arrow"]) -> "pyarrow.Table": ...
    @overload
    def result(self, handle: str, form: Literal["pandas"]) -> "pandas.DataFrame": ...
    def result(
        self, handle: str, form: ResultForm = "rows"
    ) -> "QueryResult | pyarrow.Table | pandas.DataFrame":
        """Return the whole result that a handle (r1, r2 ...) names: its rows, or an Arrow table, or
        a DataFrame.

        Raises `UnknownResultError`, `ResultGoneError` with its SQL.
        """
        self._runner.values()
        if self.results is None:
            raise ConfigError(
                "this conversation has no result store: give it the one of build_graph,"
                " Conversation(..., results=...)"
            )
        whole = {
            "rows": self.results.get,
            "arrow": self.results.arrow,
            "pandas": self.results.frame,
        }
        if form not in whole:
            raise ConfigError(f"a result is returned as {', '.join(whole)}, found {form!r}")
        return whole[form](self.thread_id, handle)

    @overload
    def aresult(
        self, handle: str, form: Literal["rows"] = "rows"
    ) -> Coroutine[Any, Any, QueryResult]: ...
    @overload
    def aresult(
        self, handle: str, form: Literal["arrow"]
    ) -> Coroutine[Any, Any, "pyarrow.Table"]: ...
    @overload
    def aresult(
        self, handle: str, form: Literal["pandas"]
    ) -> Coroutine[Any, Any, "pandas.DataFrame"]: ...
    def aresult(self, handle: str, form: Any = "rows") -> Coroutine[Any, Any, Any]:
        """Return the whole result that a handle names: see `result`."""
        return in_thread(self.result, handle, form)

    def chart(
        self, handle: str, spec: Mapping[str, object] | None = None, *, wish: str = ""
    ) -> Chart:
        """Return a result as a chart, by the spec of a `chart` event or by a wish ("line by
        month"); notebooks show it.

        Raises `ChartSpecError` and what `result` raises. Drawing it as a picture needs the optional
        extra `charts`; showing it as text does not.
        """
        return chart_of(handle, self.result(handle), spec=spec, wish=wish)

    # -- the whole thread --------------------------------------------------------------------------

    def rename(self, title: str) -> str:
        """Give the thread another title and return it, on one line and clipped. Raises
        `ThreadNotFoundError`.
        """
        with storage_errors(), self._runner.alone():
            return threads.change(
                self._threads, self.thread_id, title=title, project=None, owner=self.context.owner
            ).title

    def fork(self, turn: int | None = None, *, thread_id: str | None = None) -> Self:
        """Return a new thread that begins with this one's transcript up to and with `turn`, and the
        memory it had then.

        Without `turn`, up to the last finished turn; in a damaged thread, up to the last turn that
        can be read. Results and archive files are copied if the conversation was given them.

        Raises `UnknownTurnError`, `TurnPendingError` for a turn that is not finished,
        `ThreadExistsError`.
        """
        new_id = thread_id or uuid.uuid4().hex[:12]
        now = datetime.now(UTC).isoformat(timespec="seconds")
        compactions = fork_thread(
            self._threads, self.thread_id, new_id, turn, self.context.owner, now
        )
        if self.results is not None:
            self.results.copy(self.thread_id, new_id)
        if self.archive is not None:
            self.archive.copy(self.thread_id, new_id, compactions)
        other = copy(self)
        other.thread_id = new_id
        other.on_close = ExitStack()
        other.config = {**self.config, "configurable": {"thread_id": new_id}}
        return other

    def export(self, form: Form = "jsonl") -> str:
        """Return the thread whole. Raises `ThreadNotFoundError`.

        "jsonl": all that is stored, for `import_thread`; "markdown" and "html": the transcript, for
        people, with its charts drawn if the conversation was given its results.
        """
        whole, _ = load_thread(self._threads, self.thread_id, self.context.owner)
        return export_as(
            whole,
            form,
            language=self.context.language,
            draw=chart_drawer(self.results, self.thread_id),
        )

    def usage(self, prices: Mapping[str, Price] | None = None) -> list[Spent]:
        """Return the tokens the thread's model calls took, by day, model, purpose and voice: as
        reported, or estimated and marked.

        With `prices` also what they cost. `pandas.DataFrame` takes the list.
        """
        whole, _ = load_thread(self._threads, self.thread_id, self.context.owner)
        spent = spent_in(whole)
        return added(spent if prices is None else price_rows(spent, prices), (*ALL, "project"))

    def audit(self) -> list[AuditEntry]:
        """Return every query the model sent, the oldest first, also those refused, failed or
        cancelled; `pandas.DataFrame` takes it.

        Raises `ThreadNotFoundError`, `ConfigError` for a graph without a store.
        """
        return audit_of(self._threads, self.thread_id, self.context.owner)

    def archive_files(self) -> list[ArchiveFile]:
        """Return the files that were written before the thread's compactions, the oldest first.

        Raises `ThreadNotFoundError`, `ConfigError` if the conversation was not given their folder.
        """
        return self._own_archive().files(self.thread_id)

    def archive_file(self, key: str) -> str:
        """Return one of these files as JSON text. Raises `UnknownArchiveError`."""
        return self._own_archive().read(self.thread_id, key)

    def delete(self) -> None:
        """Delete the thread with all that is stored of it. Raises `ThreadNotFoundError`."""
        with storage_errors(), self._runner.alone():
            threads.delete(
                self._threads,
                self.thread_id,
                self.context.owner,
                results=self.results,
                archive=self.archive,
            )

    # -- awaited twins -----------------------------------------------------------------------------

    aclose = a_from(close)
    apending = a_from(pending)
    aapprovals = a_from(approvals)
    awaiting = a_from(waiting)
    ahistory = a_from(history)
    aview = a_from(view)
    aundo = _a_from_locked(undo)
    apins = a_from(pins)
    apin = _a_from_locked(pin)
    aunpin = _a_from_locked(unpin)
    aexclude = _a_from_locked(exclude)
    ainclude = _a_from_locked(include)
    atopics = a_from(topics)
    afind_section = a_from(find_section)
    achart = a_from(chart)
    arename = _a_from_locked(rename)
    afork = a_from(fork)
    aexport = a_from(export)
    ausage = a_from(usage)
    aaudit = a_from(audit)
    aarchive_files = a_from(archive_files)
    aarchive_file = a_from(archive_file)
    adelete = _a_from_locked(delete)

    # -- inside ------------------------------------------------------------------------------------

    @property
    def _runner(self) -> ThreadRunner:
        if self._closed:  # what was in memory would still answer
            raise PersistenceError(
                "this conversation was closed: open it again with open_conversation(...)"
            )
        return ThreadRunner(
            self.graph, self.thread_id, self.config, self.context, self.when_busy, self._locked
        )

    @property
    def _awaiting_runner(self) -> ThreadRunner:
        return replace(self._runner, how=ASYNC)

    @property
    def _threads(self) -> StoredThreads:
        return StoredThreads(self._runner.graph)

    def _holding_lock(self) -> Self:
        """Return the conversation for a caller that holds the thread."""
        other = copy(self)
        other._locked = True
        return other

    def _thread(self) -> Thread:
        return thread_of(self._runner.values())

    @storage_errors()
    def _preview(self) -> CompactionPreview | None:
        return compaction_preview.preview_of(
            self._runner.resting(self._runner.state()), self.context
        )

    def _archived(self, thread: Thread, first: int, last: int) -> list[Original]:
        """Return the retired messages of a range of numbers."""
        last = min(last, thread.archived)
        with readable(self.thread_id, "its archive"):
            return (
                page(StoreArchive(self._threads.store), self.thread_id, first, last)
                if first <= last
                else []
            )

    def _own_archive(self) -> ArchiveFiles:
        find_thread(self._threads, self.thread_id, self.context.owner)
        if self.archive is None:
            raise ConfigError(
                "the archive's files lie in a folder: give it to the conversation as well,"
                " Conversation(..., archive=...)"
            )
        return self.archive

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            new = RENAMED.get(name) or (
                f"a{twin}" if (twin := RENAMED.get(name.removeprefix("a"))) else None
            )
            raise AttributeError(
                f"'Conversation' has no {name!r}" + (f": use {new}" if new else "")
            )
