"""The command `eval`: ask models one's own questions, and score their answers."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtable.app.console.streams import clean_line
from longtable.app.program import (
    CANCELLED,
    Config,
    Debug,
    Json,
    RunOptions,
    add_options,
    option,
    running,
)
from longtable.base.errors import ConfigError, LongtableError

if TYPE_CHECKING:
    from longtable.app.commands.eval_run import EvalRun, ReplacedRun
    from longtable.app.console.screen import Screen
    from longtable.app.settings.run_settings import Settings
    from longtable.evaluation.cost_estimate import Estimate
    from longtable.evaluation.evaluator import OnTurn
    from longtable.evaluation.reports.eval_report import Report
    from longtable.evaluation.turn_results import TurnResult
    from longtable.knowledge.entries import Problem

OUT = Path("longtable-eval")
MOST_PROBLEMS = 20
"""Problems that the screen shows; the report has all."""


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(name="eval")(evaluate)


def eval_options(
    database: Annotated[str | None, option("LONGTABLE_DATABASE")] = None,
    base_url: Annotated[str | None, option("LONGTABLE_BASE_URL")] = None,
    model_limit: Annotated[str | None, option("LONGTABLE_MODEL_LIMIT")] = None,
    approve_sql: Annotated[str | None, option("LONGTABLE_APPROVE_SQL")] = None,
    private: Annotated[bool, option("LONGTABLE_PRIVATE")] = False,
    policy: Annotated[str | None, option("LONGTABLE_POLICY")] = None,
    knowledge: Annotated[str | None, option("LONGTABLE_KNOWLEDGE")] = None,
    config: Config = None,
    json: Json = False,
    debug: Debug = False,
) -> RunOptions:
    """Return the settings of the command."""
    return {**locals()}


@add_options(eval_options)
def evaluate(
    options: RunOptions,
    questions: Annotated[
        list[Path] | None,
        typer.Argument(
            help=(
                "Files of questions (TOML), of Spider, BIRD, SParC or CoSQL (JSON), tests of nao"
                " (YAML), or knowledge folders. Default: the knowledge folder of the settings."
            )
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model, as in openai:gpt-4o-mini; may be given again."),
    ] = None,
    also_without_knowledge: Annotated[
        bool,
        typer.Option(
            "--also-without-knowledge", help="Ask each model without the knowledge folder, too."
        ),
    ] = False,
    databases: Annotated[
        Path | None,
        typer.Option(help="The folder with the databases of Spider, BIRD, SParC or CoSQL."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder of the run.")] = OUT,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the folder's run.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the folder's run.")] = False,
    against: Annotated[
        Path | None, typer.Option(help="report.json of an earlier run: show what changed.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Dialogues asked at once.")] = 1,
    copies: Annotated[
        int,
        typer.Option(
            min=0,
            max=20,
            help="Changed copies of a SQLite database on which a right answer must be right, too.",
        ),
    ] = 3,
    yes: Annotated[bool, typer.Option("--yes", help="Ask paid models at once.")] = False,
) -> None:
    """Ask models your questions, score the answers by their rows, and write a report. Ends with 1
    below the bar that a file sets.
    """
    with running(options) as (own, screen):
        from longtable.app.commands.eval_run import EvalRun, ReplacedRun
        from longtable.app.commands.eval_subjects import settings_of_models, subjects_of
        from longtable.evaluation.formats.question_sources import read_sources
        from longtable.evaluation.reports.comparing import read_results
        from longtable.evaluation.reports.eval_report import Report

        if resume and force:
            raise ConfigError("--resume continues a run and --force replaces it: give one of them")
        began = datetime.now(UTC).isoformat(timespec="seconds")
        earlier = read_results(against) if against else None
        sources = questions or _knowledge_folder(own)
        asked = read_sources(sources, databases=databases)
        problems = [*asked.problems]
        _tell(screen, asked.problems)
        if not asked.dialogues:
            raise ConfigError("there is no question to ask")
        settings = settings_of_models(options, model or [])
        subjects = subjects_of(settings, also_without=also_without_knowledge)
        if not questions and any(subject.knowledge for subject in subjects):
            screen.note("eval_shown")
        replaced = ReplacedRun(out) if force else None
        with ExitStack() as stack:
            opening = EvalRun.opened(out, settings, asked.dialogues, subjects, resume=resume)
            run = _begun(stack, opening, screen, replaced, yes=yes)
            with _told_how_to_go_on(screen), _progress(run.turns) as on_turn:
                of_gold = run.ask(
                    jobs=jobs, copies=copies, on_turn=on_turn, on_wait=partial(_tell_wait, screen)
                )
            results = run.results()
        _tell(screen, of_gold)
        report = Report(
            results=results,
            problems=[str(problem) for problem in [*problems, *of_gold]],
            bar=asked.bar,
            began=began,
            files=[str(path) for path in sources],
        )
        _write(out, report, earlier)
        _show(screen, report, out)
        if report.is_incomplete():
            screen.note("eval_incomplete")
        if report.below_bar() or report.is_incomplete() or not results:
            raise typer.Exit(1)


def _begun(
    stack: ExitStack,
    opening: "AbstractContextManager[EvalRun]",
    screen: "Screen",
    replaced: "ReplacedRun | None",
    *,
    yes: bool,
) -> "EvalRun":
    """Return the open run, once its cost is confirmed. If it does not begin, the run that it would
    have replaced is put back.
    """
    try:
        run = stack.enter_context(opening)
        estimate = run.estimate()
        if estimate is not None:
            _confirm(screen, estimate, yes=yes)
    except BaseException:
        stack.close()
        if replaced:
            replaced.put_back()
        raise
    if replaced:
        replaced.drop()
    return run


def _knowledge_folder(settings: "Settings") -> list[Path]:
    """Return the knowledge folder of the settings. Raises `ConfigError` if they name none."""
    folder = settings.knowledge.folder
    if not folder:
        raise ConfigError(
            "name a file of questions, as in `longtable eval questions.toml`, or a knowledge folder"
            " with --knowledge"
        )
    return [Path(folder)]


def _tell(screen: "Screen", problems: "Sequence[Problem]") -> None:
    for problem in problems[:MOST_PROBLEMS]:
        screen.note("eval_problem", problem=clean_line(str(problem)))
    if len(problems) > MOST_PROBLEMS:
        screen.note("eval_problems", count=f"{len(problems) - MOST_PROBLEMS:,}")


def _tell_wait(screen: "Screen", seconds: float) -> None:
    screen.note("eval_waits", seconds=f"{seconds:.0f}")


def _confirm(screen: "Screen", estimate: "Estimate", *, yes: bool) -> None:
    """Tell what the run will cost, and ask whether it shall begin. Raises `ConfigError` if nobody
    is there to answer.
    """
    screen.note("eval_estimate", estimate=estimate)
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(
            "a paid model is asked only with --yes, or after you confirm in a terminal"
        )
    try:
        agreed = typer.confirm("Ask?", default=False)
    except typer.Abort:
        raise typer.Exit(CANCELLED) from None
    if not agreed:
        raise typer.Exit(1)


@contextmanager
def _told_how_to_go_on(screen: "Screen") -> Iterator[None]:
    """If the run ends early, tell that it can go on."""
    try:
        yield
    except (LongtableError, KeyboardInterrupt):
        screen.note("eval_ended")
        raise


@contextmanager
def _progress(turns: int) -> "Iterator[OnTurn]":
    """Show on standard error how many turns are done, as a bar in a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    from longtable.app.console.screen import make_console

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=make_console(stderr=True)) as bar:
        task = bar.add_task("", total=turns)
        yield lambda _: bar.advance(task)


def _write(out: Path, report: "Report", earlier: "Sequence[TurnResult] | None") -> None:
    """Write the report as Markdown, JSON and JUnit XML. Raises `ConfigError`."""
    from longtable.evaluation.reports.comparing import changes_text, compare
    from longtable.evaluation.reports.junit import junit_xml

    changes = changes_text(compare(earlier, report)) if earlier is not None else ""
    texts = {
        "report.json": json.dumps(report.as_json(), ensure_ascii=True, indent=1) + "\n",
        "report.md": report.as_markdown(changes),
        "junit.xml": junit_xml(report),
    }
    for name, text in texts.items():
        try:
            (out / name).write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise ConfigError(f"{out / name} cannot be written: {error.strerror}") from error


def _show(screen: "Screen", report: "Report", out: Path) -> None:
    """Show a line for each model, what is below the bar, and where the report is."""
    from longtable.app.console import render
    from longtable.evaluation.reports.eval_report import percent
    from longtable.evaluation.turn_results import tally_of

    records: list[dict[str, Any]] = []
    for label, results in report.subjects.items():
        records.append({"type": "evaluation", "model": label, **tally_of(results).as_json()})
    figures = ("scored", "right", "lucky", "wrong", "failed", "unscored")
    shares = ("accuracy", "interaction_accuracy")
    cells: list[list[str]] = []
    for record in records:
        numbers = [f"{record[name]:,}" for name in figures]
        cells.append([record["model"], *numbers, *(percent(record[name]) for name in shares)])
    columns = ["model", *figures, "accuracy", "interactions"]
    screen.listing(
        "eval", lambda: render.listing(columns, cells, numeric=8), records, empty="eval_nothing"
    )
    for sentence in report.below_bar():
        screen.note("eval_below", sentence=clean_line(sentence))
    screen.note("eval_written", file=clean_line(str(out / "report.md")))
