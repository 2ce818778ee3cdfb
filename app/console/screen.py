"""Show a run, either on a console that draws events as they come, or as lines with one JSON object
each.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from longtable.app.console import render
from longtable.app.console.streams import (
    clean,
    clean_line,
    hidden_control_keys,
    print_json,
    writing,
)
from longtable.app.console.translations import say, system_language
from longtable.app.demo import OnStep, Step
from longtable.base.errors import LongtableError, MissingExtraError, Reason
from longtable.base.events import (
    AnswerEvent,
    ChartShown,
    Event,
    QueryFinished,
    VoiceStarted,
    largest_usage,
    verified_queries,
)
from longtable.base.extras import extra_command

if TYPE_CHECKING:
    from longtable.app.session import Session

PIPE_WIDTH = 140
"""The width in columns if the output is not a terminal, unless the variable COLUMNS is set."""
MOST_PROBLEMS = 5
"""Problems of a knowledge folder that are told when a chat begins."""
LONG_WAIT = 2.0
"""A person is told about waits of at least this many seconds."""


class Results:
    """The results of the newest turn that had results, for the command /table."""

    def __init__(self) -> None:
        self._kept: list[QueryFinished] = []
        self._old = False

    def next_turn(self) -> None:
        """Begin a turn. The first result of the turn replaces the earlier results."""
        self._old = True

    def add(self, event: QueryFinished) -> None:
        """Add the result of a query. A failed query is ignored."""
        if event["status"] != "success":
            return
        if self._old:
            self._kept = []
            self._old = False
        self._kept.append(event)

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, place: int) -> QueryFinished:
        return self._kept[place]


class Screen(Protocol):
    """Where a run is shown."""

    language: str
    results: "Results"
    reasoning: bool
    """Whether the person sees the model's reasoning while it comes."""

    def opened(self, session: "Session") -> None:
        """Tell which thread is open."""

    def asked(self, text: str) -> None:
        """Show the question with which a turn begins."""

    def event(self, event: Event) -> None:
        """Show one event."""

    def end(self) -> str:
        """Finish what is being drawn, and return the text of the unfinished answer."""
        ...

    def finish(self) -> None:
        """End a turn, in whatever way it ended, and draw everything that is left."""

    def error(self, error: Exception) -> None:
        """Show an error as a sentence with a hint."""

    def complain(self, sentence: str, code: str = "input") -> None:
        """Report an error in the input or in the turn. `code` is the error's code for programs."""

    def note(self, key: str, **values: object) -> None:
        """Show the sentence `key` of `translations`, filled in with `values`."""

    def show(self, command: str, drawn: RenderableType) -> None:
        """Show what a command returned."""

    def listing(
        self,
        command: str,
        draw: Callable[[], RenderableType],
        records: Sequence[Mapping[str, Any]],
        *,
        empty: str = "",
    ) -> None:
        """Show a list. For a person, `draw` draws it, or the note `empty` is shown if there are no
        records. In JSON, the records are printed.
        """


class ConsoleScreen:
    """Draws for a person. If the output is not a terminal, plain text is written."""

    def __init__(self, console: Console | None = None, errors: Console | None = None) -> None:
        self.console = console or make_console()
        self.errors = errors or make_console(stderr=True)
        self.language = system_language()
        self._told: list[Event] = []
        """Events of the turn that are told below its answer: token counts, compactions, queries."""
        self._names: dict[str, str] = {}
        """The names of the team's voices, by their ids."""
        self.results = Results()
        self.reasoning = self._thinking = False
        self._text = self._said = ""
        self._doubts: list[str] = []
        self._heading: VoiceStarted | None = None
        """The heading of a voice that has not said anything yet."""
        self._colors: dict[str, str] = {}
        self._waiting: list[QueryFinished] = []
        """Results whose rows are drawn later, unless the answer shows them in a table."""
        self._lookups: list[tuple[str, Mapping[str, Any]]] = []
        self._missing: set[str] = set()
        """Reasons for missing material that this chat was told."""
        self._ms = 0
        self._session: Session | None = None
        self._live: Live | None = None
        self._drawing = ExitStack()

    def opened(self, session: "Session") -> None:
        self._session = session
        self.note("new_thread" if session.new else "old_thread", id=session.thread_id)
        tell_guesses(self, session)
        problems = session.knowledge.current().problems if session.knowledge else ()
        for problem in problems[:MOST_PROBLEMS]:
            self.note("knowledge_problem", problem=clean_line(str(problem)))

    def asked(self, text: str) -> None:
        self.results.next_turn()
        self._doubts = []
        self._lookups = []
        self._ms = 0
        self._said = ""
        self._told = []
        if not self.console.is_terminal:  # in a terminal it stands there already, typed
            self._print(Text(f"> {clean(text)}", "bold"))

    def event(self, event: Event) -> None:
        if self._lookups and event["type"] not in (
            "tool_started",
            "tool_finished",
            "context_usage",
            "reasoning",
        ):
            self._print(render.lookups(self._lookups, self._ms))
            self._lookups = []
            self._ms = 0
        if event["type"] == "voice_started":
            self._names[event["voice"]] = event["name"]
        if event["type"] == "voice_started" and event.get("at_once"):
            # Nothing may come of it before another voice speaks.
            self._said = self.end() or self._said
            self._heading = event
            return
        if self._heading and event["type"] != "context_usage":
            heading = self._heading
            self._heading = None
            if event["type"] != "voice_started":
                self._start(heading)
        if event["type"] == "token":
            self._grow(event["text"])
            return
        if event["type"] == "reasoning":
            self._think(event["text"])
            return
        if event["type"] in ("context_usage", "context_compressed", "query_finished"):
            self._told.append(event)
        if event["type"] == "context_usage":
            return
        if event["type"] == "unsupported_numbers" and not event.get("voice"):
            # Said below the answer, which is still being drawn.
            self._doubts = event["figures"]
            return
        # What was drawn before another event (a pin that ended) is the answer all the same: it is
        # not drawn twice.
        self._said = self.end() or self._said
        if event["type"] in ("query_started", "approval_requested", "voice_started"):
            self._draw_rows()
        if not self._draw_tool(event) and not self._draw_memory(event):
            self._draw_turn(event)

    def _draw_tool(self, event: Event) -> bool:
        """Draw an event of a tool or a query. Return False if the event is another one."""
        plain = not self.console.is_terminal
        match event["type"]:
            case "tool_started":
                self._lookups.append((event["name"], event["args"]))
            case "tool_finished" if event["status"] == "error":
                self._print(render.tool_failed(event))
            case "tool_finished":
                self._ms += event["ms"]
            case "query_started":
                database = event.get("database", "")
                started = render.query_started(
                    event["name"], event["sql"], plain=plain, database=database
                )
                self._print(started)
            case "query_finished":
                self._query(event)
            case "chart":
                self._chart(event)
            case "approval_requested":
                self._print(render.approval(event, plain=plain))
            case _:
                return False
        return True

    def _draw_memory(self, event: Event) -> bool:
        """Draw an event of the memory. Return False if the event is another one."""
        match event["type"]:
            case "context_compressed":
                self._print(render.compressed(event, self.language))
            case "context_compaction_skipped":
                self._print(render.skipped(event, self.language))
            case "messages_retired":
                self._print(render.retired(event, self.language))
            case "recall":
                self._print(render.recalled(event, self.language))
            case "pins_changed":
                for end in event["ended"]:
                    self.note("pin_ended", id=end["id"], quote=clean_line(end["quote"]))
            case _:
                return False
        return True

    def _draw_turn(self, event: Event) -> None:
        """Draw an event of neither a tool nor the memory: voices, waiting, the answer."""
        match event["type"]:
            case "thread_waiting":
                self.note("thread_waiting")
            case "context_passed":
                self._tell_missing(event["left_out"])
            case "model_retry" if event["wait_s"] >= LONG_WAIT:
                self.note("model_retry", seconds=f"{event['wait_s']:g}")
            case "team_turn":
                tokens = ", ".join(f"{voice} {count:,}" for voice, count in event["tokens"].items())
                self.note("team_turn", mode=event["mode"], tokens=tokens, calls=event["most_calls"])
            case "voice_started":
                self._start(event)
            case "unknown_mentions":
                words = ", ".join(f"@{clean_line(word)}" for word in event["words"])
                self.note("unknown_mentions", words=words, known=", ".join(event["known"]))
            case "unsupported_numbers":
                self._print(render.unsupported(event["figures"], self.language))
            case "audit_failed":
                self.note("audit_failed", failure=event["failure"])
            case "answer":
                self._answer(event, self._said)

    def _tell_missing(self, reasons: Sequence[Reason]) -> None:
        """Tell why material did not go with the question, each reason once in a chat."""
        for reason in reasons:
            if reason["message"] not in self._missing:
                self._missing.add(reason["message"])
                self.note("material_missing", reason=clean_line(reason["message"]))

    def _start(self, event: VoiceStarted) -> None:
        """Print the name of the voice that speaks next."""
        self._draw_rows()
        color = event["color"] or self._colors.get(event["voice"], "")
        self._colors[event["voice"]] = color
        self._print(Text(f"{clean_line(event['name'])}:", render.style_of(color)))

    def _query(self, event: QueryFinished) -> None:
        self.results.add(event)
        one_value = event.get("row_count") == 1 and len(event.get("columns", [])) == 1
        self._print(render.query_finished(event, self.console.width, self.language, rows=one_value))
        if event.get("row_count") and not one_value:
            self._waiting.append(event)

    def _draw_rows(self) -> None:
        """Draw the waiting results that the answer has not shown in a table."""
        waiting = self._waiting
        self._waiting = []
        for event in waiting:
            self._print(render.first_rows(event, self.console.width, self.language))

    def _chart(self, event: ChartShown) -> None:
        if self._session is None:
            return
        from longtable.app.console.result_files import chart_in, write_png

        handle = clean_line(event["handle"], 20)
        try:
            chart = chart_in(self._session, event)
            self._print(Text(clean(chart.text(min(self.console.width, 100)))))
            for note in event["notes"]:
                self._print(Text(clean_line(note), "dim"))
            if self._session.lasts:
                self.note("charted", handle=handle, file=write_png(self._session, chart))
        except MissingExtraError as error:
            self.note("charted_as_text", handle=handle, command=extra_command(error.extra))
        except LongtableError as error:  # the answer goes on without it
            self.note("not_charted", handle=handle, reason=error)

    def _answer(self, event: AnswerEvent, streamed: str) -> None:
        # Each voice of a team has streamed below its name.
        if not event.get("voices") and streamed.strip() != event["text"].strip():
            self._grow(event["text"])
            self.end()
        if render.has_table(event["text"]):
            self._waiting = []
        self._draw_rows()
        if self._doubts:
            self._print(render.unsupported(self._doubts, self.language))
            self._doubts = []
        for query in verified_queries(self._told):
            self._print(render.verified(query, self.language))
        if usage := largest_usage(self._told):
            whose = self._names.get(usage.get("voice", ""), "")
            tokens = event.get("tokens")
            self._print(render.gauge(usage, self.language, whose, tokens))

    def _think(self, text: str) -> None:
        if not self.reasoning:
            return
        if self._text:  # it answers and thinks by turns
            self.end()
        self._thinking = True
        with writing():
            self.console.print(Text(clean(text), "dim italic"), end="", soft_wrap=True)

    def _rest(self) -> None:
        """End the line of reasoning that is being written."""
        if self._thinking:
            self._thinking = False
            self._print(Text(""))

    def _grow(self, text: str) -> None:
        self._rest()
        self._text += text
        with writing():
            if not self.console.is_terminal:
                self.console.file.write(clean(text))
                self.console.file.flush()
            elif self._live:
                self._live.update(render.answer(self._text))
            else:
                self._live = Live(
                    render.answer(self._text),
                    console=self.console,
                    refresh_per_second=8,
                    vertical_overflow="ellipsis",
                )
                self._drawing.enter_context(hidden_control_keys())
                self._live.start()

    def end(self) -> str:
        """Finish the text that is being written, and return it."""
        self._rest()
        text = self._text
        self._text = ""
        live = self._live
        self._live = None
        with writing():
            if live:
                with self._drawing:
                    live.stop()
            elif text:
                self.console.file.write("\n")
        return text

    def finish(self) -> None:
        self.end()
        self._draw_rows()

    def error(self, error: Exception) -> None:
        self.end()
        self.errors.print(render.error(error, self.language), soft_wrap=True)

    def complain(self, sentence: str, code: str = "input") -> None:  # noqa: ARG002  # the protocol's; JSON prints it
        self.end()
        self.errors.print(
            Text(f"{say('error', self.language)}: {clean(sentence)}", "red"), soft_wrap=True
        )

    def note(self, key: str, **values: object) -> None:
        self.end()
        self._print(Text(clean_line(say(key, self.language, **values)), "dim"))

    def show(self, command: str, drawn: RenderableType) -> None:  # noqa: ARG002  # the protocol's; JSON prints it
        self._print(drawn)

    def listing(
        self,
        command: str,
        draw: Callable[[], RenderableType],
        records: Sequence[Mapping[str, Any]],
        *,
        empty: str = "",
    ) -> None:
        if records:
            self.show(command, draw())
        else:
            self.note(empty)

    def _print(self, drawn: RenderableType) -> None:
        with writing():
            self.console.print(drawn, soft_wrap=isinstance(drawn, Text))


class JsonScreen:
    """Prints one JSON object for each event. Errors are also printed as a sentence on standard
    error.
    """

    def __init__(self) -> None:
        self.language = system_language()
        self.results = Results()
        self.reasoning = True  # a program leaves out what it does not want
        self._errors = ConsoleScreen()

    def opened(self, session: "Session") -> None:
        _emit(type="thread", thread_id=session.thread_id, new=session.new)
        tell_guesses(self, session)

    def asked(self, text: str) -> None:
        self.results.next_turn()
        _emit(type="question", text=text)

    def event(self, event: Event) -> None:
        if event["type"] == "query_finished":
            self.results.add(event)
        _emit(**event)

    def end(self) -> str:
        return ""

    def finish(self) -> None:
        """Do nothing, because every event was printed at once."""

    def error(self, error: Exception) -> None:
        sentence, hint = render.error_texts(error, self.language)
        _emit(type="error", code=getattr(error, "code", "internal"), message=sentence, hint=hint)
        self._errors.language = self.language
        self._errors.error(error)

    def complain(self, sentence: str, code: str = "input") -> None:
        _emit(type="error", code=code, message=sentence, hint="")
        self._errors.complain(sentence)

    def note(self, key: str, **values: object) -> None:
        _emit(type="note", note=key, text=say(key, self.language, **values))

    def show(self, command: str, drawn: RenderableType) -> None:
        with (console := make_console(plain=True)).capture() as capture:
            console.print(drawn)
        _emit(type="command", command=command, text=capture.get())

    def listing(
        self,
        command: str,  # noqa: ARG002  # the protocol's; the console shows it
        draw: Callable[[], RenderableType],  # noqa: ARG002
        records: Sequence[Mapping[str, Any]],
        *,
        empty: str = "",  # noqa: ARG002
    ) -> None:
        print_json(records)


def tell_guesses(screen: Screen, session: "Session") -> None:
    """Tell the person the guesses made when data files were loaded."""
    for name, database in session.databases.items():
        for note in database.notes:
            own = name if session.databases.are_several else ""
            screen.note(
                f"loaded_{note.code}",
                where=", ".join(filter(None, [own, note.file, note.column])),
                count=note.count,
                value=note.value,
            )


def _emit(**fields: object) -> None:
    print_json([fields])


def make_console(*, stderr: bool = False, plain: bool = False) -> Console:
    """Return a console that prints data unchanged: it interprets no markup, and makes no emoji,
    links or highlights.
    """
    console = Console(
        stderr=stderr,
        markup=False,
        emoji=False,
        highlight=False,
        force_terminal=False if plain else None,
    )
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


@contextmanager
def demo_progress() -> Iterator[OnStep]:
    """Show on standard error how the demo database is built: as a bar in a terminal, otherwise as
    one line.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    title = say("building", system_language())
    if not sys.stderr.isatty():
        print(f"{title} ...", file=sys.stderr, flush=True)
        yield lambda _: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=make_console(stderr=True)) as bar:
        task = bar.add_task(title, total=None)

        def on_step(step: Step) -> None:
            bar.update(
                task, description=f"{title}: {step.table}", completed=step.done, total=step.total
            )

        yield on_step
