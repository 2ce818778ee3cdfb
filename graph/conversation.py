"""One conversation: ask, stream, read the thread and change it."""

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
from longtable.graph.kept_queries import keep_query, query_of_turn, query_to_keep
from longtable.graph.ratings import Rating, Score, questions_of, ratings_in
from longtable.graph.reports import ALL, audit_of
from longtable.graph.running import turns
from longtable.graph.running.answers import Answer, CompactionEvent, answer_of, compaction_of
from longtable.graph.running.past_turns import PastTurn, past_turns
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
from longtable.graph.wiring.row_sources import reading_for
from longtable.knowledge.entries import VerifiedQuery
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

    from longtable.knowledge.folder import KnowledgeFolder
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
"""Methods of versions up to 0.1.0 that no longer exist, with their replacements. Their awaited
twins, with an `a` before the name, were replaced in the same way.
"""


def _a_from_locked(
    method: "Callable[Concatenate[Conversation, Params], Result]",
) -> "Callable[Concatenate[Conversation, Params], Coroutine[Any, Any, Result]]":
    """Return the awaited twin of a method during which nothing else may change the thread.

    The twin waits for the thread in the event loop. If the calls on one busy conversation waited in
    worker threads, no worker threads would be left for other work.
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

    `resume` finishes a turn that was interrupted (`pending`). A new message instead of `resume`
    loses nothing: the interrupted user message stays in the thread. A turn whose queries wait for
    approval ends with the status "approval_requested", and `resume(decisions)` finishes it; a new
    message instead rejects these queries. If the provider refuses a turn for its content,
    `ProviderRefusedError` is raised and the turn is over. Its messages stay in the transcript, but
    are no longer in the view. `resume` runs it again.

    Turns of one thread run one after the other, also if another process has opened the same file.
    `when_busy` says what a turn does while another one runs: "queue" waits, "reject" raises
    `ThreadBusyError` at once, and "steer" joins the running turn before its next model call. If
    that turn makes no further call, the message becomes the next turn. Read a stream to its end or
    close it, because it holds the thread until then.

    `results` and `archive` are the result store and the archive files given to `build_graph`. Some
    methods read from them.
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
        knowledge: "KnowledgeFolder | None" = None,
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
        self.knowledge = knowledge
        self.config: RunnableConfig = {"configurable": {"thread_id": self.thread_id}}
        if self.context.owner:
            # In each checkpoint: of a first message that no node has seen yet, nothing else says
            # whose it is.
            self.config["metadata"] = {OWNER: self.context.owner}
        self.database: Database | None = None
        """The database and the persistence that `open_conversation` opened, so that `close` can
        close them.
        """
        self.persistence: Persistence | None = None
        self.on_close = ExitStack()
        self._locked = self._closed = False

    def close(self) -> None:
        """Close what `open_conversation` opened. What the caller opened stays open. Closing twice
        does nothing.
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

        `id` is the id of the message. If a message is sent again with the same id, for example
        after a lost connection, its turn goes on, or the answer is returned if there is one. `name`
        says who speaks. `images` are URLs, or the bytes of PNG, JPEG, GIF or WebP files, within
        `RequestLimits.bytes`.
        """
        check_type("the text of a message", text, str)
        runner = replace(self._runner, live=False)
        question = Question(text, id, name, images)
        return self._answer_of(list(turns.iterate(turns.ask(runner, question, None, None))))

    async def aask(
        self,
        text: str,
        *,
        id: str | None = None,
        name: str | None = None,
        images: Sequence[str | bytes] = (),
    ) -> Answer:
        """Run one turn and return its answer, as `ask` does."""
        check_type("the text of a message", text, str)
        runner = replace(self._awaiting_runner, live=False)
        question = Question(text, id, name, images)
        return self._answer_of([event async for event in turns.ask(runner, question, None, None)])

    def _answer_of(self, events: Sequence[Event]) -> Answer:
        return answer_of(events).drawn_by(self.chart)

    def resume(self, answer: Any = None, *, waiting_id: str | None = None) -> Answer:
        """Continue a turn that waits: it was interrupted, it asked a person something, or it
        failed. A failed turn runs again.

        `answer` is either a list of decisions on the calls that wait, one for each call in order,
        or the answer to a question that a tool asked by `interrupt`. It answers the question
        `waiting_id`; without an id, the first one. A decision is `{"type": "approve"}`, `{"type":
        "reject", "message": "why"}` or `{"type": "edit", "edited_action": {"name": "run_sql",
        "args": {"sql": "..."}}}`. It may name who decided, as `"by"`. Without an answer the
        questions are asked again.

        Raises `WrongDecisionError` or `NothingAskedError` if the answer does not fit; then nothing
        has changed.
        """
        runner = replace(self._runner, live=False)
        return self._answer_of(list(turns.iterate(turns.ask(runner, None, answer, waiting_id))))

    async def aresume(self, answer: Any = None, *, waiting_id: str | None = None) -> Answer:
        """Continue a turn that waits, as `resume` does."""
        runner = replace(self._awaiting_runner, live=False)
        return self._answer_of(
            [event async for event in turns.ask(runner, None, answer, waiting_id)]
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
        """Run one turn and yield its events; the last event is an `answer`. Without `text`,
        continue a waiting turn as `resume` does; if no turn waits, there are no events.

        `id`, `name` and `images` are those of `ask`, `answer` and `waiting_id` those of `resume`.
        Raises the errors of `longtable.base.errors`.
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
        """Run one turn and yield its events, as `stream` does. Cancelling the task cancels running
        queries; the thread stays intact.

        `on_disconnect` says what happens to the turn if its reader closes the stream or is
        cancelled. "cancel" interrupts the turn, and `resume` can continue it. "finish" lets the
        turn run on in the event loop, so that its answer is in the thread.
        """
        if on_disconnect not in ("finish", "cancel"):
            raise ConfigError(
                f"on_disconnect must be 'finish' or 'cancel', found {on_disconnect!r}"
            )
        question = None if text is None else Question(text, id, name, images)
        events = turns.ask(self._awaiting_runner, question, answer, waiting_id)
        return turns.finishing(events) if on_disconnect == "finish" else events

    def steer(self, text: str, *, wait: bool = True) -> Answer:
        """Send a message to the running turn, in whatever process it runs. If no turn runs, the
        message becomes a turn of its own.

        Needs a store. With `wait=False`, return at once. Whoever runs the thread then takes the
        message into the running turn, or runs it as the next turn. See also `when_busy`.
        """
        return self._answer_of(list(turns.iterate(turns.steer(self._runner, text, wait=wait))))

    async def asteer(self, text: str, *, wait: bool = True) -> Answer:
        """Send a message to the running turn, as `steer` does."""
        return self._answer_of(
            [event async for event in turns.steer(self._awaiting_runner, text, wait=wait)]
        )

    # -- what a turn waits for ---------------------------------------------------------------------

    def pending(self) -> bool:
        """Return whether a turn was interrupted and can be resumed."""
        return is_pending(self._runner.state())

    def approvals(self) -> list[ActionRequest]:
        """Return the calls that wait for a decision, in order; empty if none waits."""
        return list(chain.from_iterable(waiting.actions for waiting in self.waiting()))

    def waiting(self) -> list[Waiting]:
        """Return all open questions of the turn: approvals, and questions that a tool of yours asks
        by `interrupt`.
        """
        return waiting_in(self._runner.state())

    # -- transcript and view -----------------------------------------------------------------------

    def history(self, *, start: int = 1, limit: int | None = None) -> list[BaseMessage]:
        """Return the messages of the transcript in order, whether they are live or archived.
        `start` is the number of the first message, counted from 1; `limit` is the most messages,
        None for all.

        Excluded messages are marked; `longtable.memory.messages.marks.kind_of` reads the mark.
        Raises `ThreadNotFoundError`.
        """
        thread = self._thread()
        first, last = changes.number_range(thread, start, limit)
        return changes.transcript(thread, self._archived(thread, first, last), first, last)

    def turns(self, *, start: int = 1, limit: int | None = None) -> list[PastTurn]:
        """Return the turns of the thread, oldest first, each with its lasting events. `start` is
        the number of the first turn, counted from 1; a negative one counts from the newest, so that
        `start=-20` is the last 20. `limit` is the most turns, None for all.

        The events are those that the turn's stream had: its queries with their first 200 rows, tool
        calls, charts, recalls, pins, compactions, material, fallbacks, voices, messages that
        joined, flagged figures, reasoning, the text of each answer as one `token`, and the final
        `answer` or `failed`. Of `context_usage` the count of each answer's own call is kept. An
        approval or a question is there while it waits; then the query says who decided. Of a
        model call that failed, only `failed` is kept, in the store, until the turn is answered.
        Rows come from the result store; if they are gone, `gone` says why.

        These events do not last: pieces of text, `model_retry`, `thread_waiting`,
        `context_compaction_skipped`, `messages_retired`, `audit_failed`, `team_turn` and
        `unknown_mentions`. Raises `ThreadNotFoundError`.
        """
        state = self._runner.state()
        self._runner.values(state)
        with reading_for(self.graph, self.context.owner):
            return past_turns(
                self._threads, self.thread_id, state, start=start, limit=limit, results=self.results
            )

    def view(self, voice: str | None = None) -> ViewMessages:
        """Return exactly the messages that the next model call would send if it were made now. A
        notebook shows them as a table of coloured parts with their tokens.

        `voice` is the persona of a team that makes the call. What the mode whispers to a persona is
        missing, because it is made only when the persona is asked. If a memory is being made in the
        background, this waits for it for at most 2 seconds. Raises `ThreadNotFoundError`.
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
        """Compact now, even below the threshold. With `preview=True`, only return what the
        compaction would do and cost, None if there is nothing to compact.

        Return the event `context_compressed`, which says who wrote the memory and what that cost,
        or `context_compaction_skipped`, which says why nothing was compacted. Raises
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
        """Compact now, or return what this would do and cost, as `compact` does."""
        if preview:
            return await in_thread(self._preview)
        return compaction_of([event async for event in turns.compaction(self._awaiting_runner)])

    def undo(self) -> str | None:
        """Drop the newest compaction, so that the view is as before this compaction. Return the id
        of the compaction, None if there is none.

        The next compaction waits until new messages have come. Raises `UndoTooFarError` if the
        original messages have retired to the archive.
        """
        return self._runner.change(lambda values: changes.undo(values, self.context))

    # -- knowledge ---------------------------------------------------------------------------------

    def keep(
        self,
        turn: int | None = None,
        question: str | None = None,
        *,
        sql: str | None = None,
        by: str = "",
        database: str = "",
    ) -> VerifiedQuery:
        """Write the question of a turn and the SQL that answers it into the knowledge folder. `by`:
        who checked them. If the folder has a query of this question and this SQL, return that one
        and write nothing. If the folder's files cannot be written, the store keeps the query for
        all its threads.

        `turn`: None for the newest turn with a query that gave a result; with `sql`, for the newest
        turn. `question`: other words than the turn's own. `sql`: the SQL that should have run, if
        another one ran; it is planned and not run. `database`: which of several it asks, if not the
        one that the turn asked. Raises `NothingToKeepError` if there is no such turn, and
        `ConfigError` if there is no knowledge folder, if the query cannot run, or if neither folder
        nor store can keep it.
        """
        if self.knowledge is None:
            raise ConfigError(
                "there is no knowledge folder: name one with --knowledge FOLDER, or in Python as"
                " Conversation(..., knowledge=KnowledgeFolder(path))"
            )
        now = datetime.now(UTC)
        history = self.history()
        query = query_to_keep(
            history, turn, question=question, sql=sql, by=by, now=now, database=database
        )
        store = self._threads.optional_store
        return keep_query(self.knowledge, query, store, now.isoformat())

    def kept_pair(self, turn: int | None = None) -> tuple[str, str]:
        """Return the question and the SQL that `keep` would write. Raises `NothingToKeepError` if
        there is no query that gave a result.
        """
        return query_of_turn(self.history(), turn)[:2]

    def rate(self, turn: int, score: Score, comment: str = "") -> None:
        """Rate the answer of a turn as right (1) or wrong (-1). The rating is kept with the thread
        and exported with it. A later rating of the turn replaces it.

        Raises `WrongRatingError` for a turn that is not there, another score, and a comment of more
        than 2,000 characters.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._runner.change(lambda values: changes.rate(values, turn, score, comment, now))

    def ratings(self) -> list[Rating]:
        """Return the newest rating of each turn, in the order of the turns."""
        thread = self._thread()
        return ratings_in(thread.edits, questions_of(thread))

    # -- pins and exclusions -----------------------------------------------------------------------

    def pins(self) -> list[Pin]:
        """Return the pins, which are the user's standing statements word for word, in the order in
        which they were said. In an ended pin, `ended` holds the words that ended it.
        """
        return current_pins(self._thread().pins, ended=True)

    def pin(self, text: str) -> Pin:
        """Keep a statement word for word in every view from now on, until `unpin`. If `text` is the
        id of an ended pin, this pin becomes active again.

        Raises `PinRefusedError` for a password or a key.
        """
        return self._runner.change(lambda values: changes.pin(values, text))

    def unpin(self, pin_id: str) -> None:
        """End a pin; it may also be one that the model set. Raises `UnknownPinError` if there is no
        such pin.
        """
        self._runner.change(lambda values: changes.unpin(values, pin_id))

    def exclude(self, message_id: str) -> None:
        """Leave a message out of views, summaries and recall from now on. It stays in the
        transcript, marked as excluded.

        From the next call on, the memory lacks the lines that cite the message, and the next
        compaction writes the memory anew. If the message opened a failed turn, all later messages
        are excluded too and the turn is over. Raises `UnknownMessageError` if there is no such
        message.
        """
        thread = self._thread()
        live = any(message.id == message_id for message in thread.messages)
        archived = [] if live else self._archived(thread, 1, thread.archived)
        self._runner.change(
            lambda values: changes.exclude(values, message_id, archived), mid_turn=True
        )

    def include(self, message_id: str) -> None:
        """Include an excluded message again. Raises `UnknownMessageError` if the message is not
        excluded.
        """
        self._runner.change(lambda values: changes.include(values, message_id), mid_turn=True)

    # -- topics ------------------------------------------------------------------------------------

    def topics(self) -> list[TopicHistory]:
        """Return the topics, each in its newest version and with all its versions. Empty if a
        strategy other than topics writes the memory. Sections that cite an excluded message are
        left out.
        """
        thread = self._thread()
        with readable(self.thread_id, "its archive"):
            retired = self._threads.retired_compactions(self.thread_id, thread)
        return changes.topic_histories(thread, retired)

    def find_section(self, keyword: str) -> SectionHit | None:
        """Return the topic section that fits a keyword best, None if none does. Titles count before
        contents. The sources of a section are message numbers.
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
        """Return the whole result of a handle (r1, r2 ...) as rows, as an Arrow table or as a
        pandas DataFrame.

        Raises `UnknownResultError` if there is no such result. Raises `ResultGoneError`, which has
        the SQL of the result, if its rows were deleted, and `OtherRowsError` if they were read
        under row parameters that do not hold now.
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
        with reading_for(self.graph, self.context.owner):
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
        """Return the whole result of a handle, as `result` does."""
        return in_thread(self.result, handle, form)

    def chart(
        self, handle: str, spec: Mapping[str, object] | None = None, *, wish: str = ""
    ) -> Chart:
        """Return a result as a chart, drawn by the spec of a `chart` event or by a wish such as
        "line by month". A notebook shows the chart.

        Raises `ChartSpecError` and the errors of `result`. Drawing a chart as a picture needs the
        extra `charts`; showing it as text does not.
        """
        return chart_of(handle, self.result(handle), spec=spec, wish=wish)

    # -- the whole thread --------------------------------------------------------------------------

    def rename(self, title: str) -> str:
        """Give the thread a new title. Return the title as it was stored: on one line, and cut if
        it is too long. Raises `ThreadNotFoundError`.
        """
        with storage_errors(), self._runner.alone():
            return threads.change(
                self._threads, self.thread_id, title=title, project=None, owner=self.context.owner
            ).title

    def fork(self, turn: int | None = None, *, thread_id: str | None = None) -> Self:
        """Copy the first turns of this thread to a new thread, up to and including `turn`, with the
        memory of that time. Return the conversation of the new thread.

        Without `turn`, all turns up to the last finished one are copied; of a damaged thread, all
        that can be read. Results and archive files are copied if this conversation was given their
        stores. Raises `UnknownTurnError`, `TurnPendingError` for a turn that is not finished, and
        `ThreadExistsError` if `thread_id` is taken.
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
        """Return the whole thread as a text. Raises `ThreadNotFoundError`.

        "jsonl" holds everything that is stored and can be read by `import_thread`. "markdown" and
        "html" hold the transcript for people; charts are drawn if the conversation was given its
        results.
        """
        whole, _ = load_thread(self._threads, self.thread_id, self.context.owner)
        with reading_for(self.graph, self.context.owner):
            return export_as(
                whole,
                form,
                language=self.context.language,
                draw=chart_drawer(self.results, self.thread_id),
            )

    def usage(self, prices: Mapping[str, Price] | None = None) -> list[Spent]:
        """Return the tokens that the thread's model calls took, by day, model, purpose and voice.
        Counts are as the provider reported them. Where it reported none, they are estimates
        and marked.

        With `prices`, each row also has its cost. `pandas.DataFrame` accepts the returned list.
        """
        whole, _ = load_thread(self._threads, self.thread_id, self.context.owner)
        spent = spent_in(whole)
        return added(spent if prices is None else price_rows(spent, prices), (*ALL, "project"))

    def audit(self) -> list[AuditEntry]:
        """Return every query that the model sent, the oldest first. Queries that were refused,
        failed or cancelled are included. `pandas.DataFrame` accepts the returned list.

        Raises `ThreadNotFoundError`, and `ConfigError` if the graph has no store.
        """
        return audit_of(self._threads, self.thread_id, self.context.owner)

    def archive_files(self) -> list[ArchiveFile]:
        """Return the files that were written before each compaction of the thread, the oldest
        first.

        Raises `ThreadNotFoundError`, and `ConfigError` if the conversation was not given the folder
        of these files.
        """
        return self._own_archive().files(self.thread_id)

    def archive_file(self, key: str) -> str:
        """Return one of the archive files as JSON text. Raises `UnknownArchiveError` if there is no
        such file.
        """
        return self._own_archive().read(self.thread_id, key)

    def delete(self) -> None:
        """Delete the thread with everything stored for it. Raises `ThreadNotFoundError`."""
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
    aturns = a_from(turns)
    aview = a_from(view)
    aundo = _a_from_locked(undo)
    arate = a_from(rate)
    aratings = a_from(ratings)
    akeep = a_from(keep)
    akept_pair = a_from(kept_pair)
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
        """Return a copy of the conversation for a caller that already holds the thread's lock."""
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
        """Return the messages `first` to `last`, as far as they are in the archive."""
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
