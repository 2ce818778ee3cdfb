"""Ask each dialogue on a thread of its own, score each answer, and keep each result at once."""

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol

from longtable.base.errors import (
    DatabaseUnavailableError,
    LongtableError,
    ThreadNotFoundError,
)
from longtable.evaluation.asking import ask
from longtable.evaluation.gold import GoldResult, GoldRunner
from longtable.evaluation.journal import Journal
from longtable.evaluation.mutations import make_copies
from longtable.evaluation.question_set import Dialogue, Turn
from longtable.evaluation.scoring import Reply, Score, score
from longtable.evaluation.turn_results import TurnResult, tally_of
from longtable.knowledge.entries import Place, Problem

if TYPE_CHECKING:
    from longtable.graph import Conversation, Database, Price

OnTurn = Callable[[TurnResult], object]
"""Is told each result, also those of an earlier process."""
OnWait = Callable[[float], object]
"""Is told how many seconds a turn waits for its provider."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is evaluated: a model, with the knowledge folder or without. `label` names it among the
    subjects of a run.
    """

    model: str
    knowledge: bool = False
    paid: bool = False
    """Whether its calls may cost money."""
    prices: "dict[str, Price] | None" = None

    @property
    def label(self) -> str:
        """Return the model, and whether it had the knowledge folder."""
        return f"{self.model} with knowledge" if self.knowledge else self.model


class OpenDatabase(Protocol):
    """One open database, and the graphs that ask it."""

    @property
    def database(self) -> "Database":
        """Return the database, with its policy and limits."""
        ...

    @property
    def file(self) -> Path | None:
        """Return the file of a SQLite database, None for another database."""
        ...

    def conversation(self, subject: Subject, thread: str) -> "Conversation":
        """Return a conversation of a subject on a thread."""
        ...

    def reopened(self, file: Path) -> "Database":
        """Open a copy of the database with the same policy and limits."""
        ...


Wait = Callable[[threading.Event, float], object]
"""Waits for some seconds, or until the event is set."""
Open = Callable[[str], AbstractContextManager[OpenDatabase]]
"""Opens the database that a dialogue names, "" for the one of the settings."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A run: its questions, its subjects, and what it is given to work with."""

    dialogues: Sequence[Dialogue]
    subjects: Sequence[Subject]
    open: Open
    journal: Journal
    clock: Callable[[], float]
    wait: Wait = threading.Event.wait
    jobs: int = 1
    copies: int = 0
    """Changed copies of each SQLite database that a right answer must hold on, too."""
    seed: int = 1
    """That of the first copy; the next one has the next number."""
    on_turn: OnTurn = lambda _: None
    on_wait: OnWait = lambda _: None

    def run(self) -> list[Problem]:
        """Ask and score everything that the journal does not hold yet. Return the problems of gold.

        Raises an error that would meet every question, such as a refused key; results so far are in
        the journal.
        """
        problems: list[Problem] = []
        for name in dict.fromkeys(dialogue.database for dialogue in self.dialogues):
            asked = [dialogue for dialogue in self.dialogues if dialogue.database == name]
            with ExitStack() as stack:
                try:
                    opened = stack.enter_context(self.open(name))
                except LongtableError as error:
                    if not name:
                        raise
                    problems.append(Problem(asked[0].place, f"not asked: {error}"))
                    continue
                problems += self._run_database(opened, asked)
        return problems

    def _run_database(self, opened: OpenDatabase, asked: Sequence[Dialogue]) -> list[Problem]:
        problems: list[Problem] = []
        gold = GoldRunner(opened.database)
        for dialogue in asked:
            problems += _gold_problems(dialogue, gold)
        with ExitStack() as stack:
            try:
                changed = self._changed(opened, stack)
            except DatabaseUnavailableError as error:
                problems.append(Problem(Place(opened.database.name), str(error)))
                changed = []
            self._run_all(_Desk(self, opened, gold, changed), asked)
        return problems

    def _changed(self, opened: OpenDatabase, stack: ExitStack) -> list[GoldRunner]:
        """Return what runs queries on changed copies, which are there until the stack is closed."""
        if not self.copies or opened.file is None:
            return []
        folder = stack.enter_context(TemporaryDirectory(prefix="longtable-eval-"))
        seeds = range(self.seed, self.seed + self.copies)
        runners: list[GoldRunner] = []
        for copy in make_copies(opened.file, Path(folder), seeds=seeds):
            runners.append(GoldRunner(stack.enter_context(opened.reopened(copy))))
        return runners

    def _run_all(self, desk: "_Desk", asked: Sequence[Dialogue]) -> None:
        """Run the dialogues, some at once. After an error no further turn begins."""
        with ThreadPoolExecutor(self.jobs, thread_name_prefix="eval") as pool:
            running = [
                pool.submit(desk.run, subject, dialogue) for subject, dialogue in self._pairs(asked)
            ]
            try:
                done, _ = wait(running, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
            finally:
                desk.stopped.set()
                pool.shutdown(wait=True, cancel_futures=True)

    def _pairs(self, asked: Sequence[Dialogue]) -> Iterator[tuple[Subject, Dialogue]]:
        for subject in self.subjects:
            for dialogue in asked:
                yield subject, dialogue


class _StoppedError(Exception):
    """The run ends while a turn waits for its provider. The turn is asked when the run goes on."""


class _Desk:
    """Where the dialogues over one database are asked and scored."""

    def __init__(
        self,
        run: Evaluation,
        opened: OpenDatabase,
        gold: GoldRunner,
        changed: Sequence[GoldRunner],
    ) -> None:
        self._run = run
        self._opened = opened
        self._gold = gold
        self._changed = changed
        self.stopped = threading.Event()

    def run(self, subject: Subject, dialogue: Dialogue) -> None:
        """Ask the turns of a dialogue that the journal does not hold, in order. After an error no
        other dialogue goes on.
        """
        try:
            self._run_rest(subject, dialogue)
        except _StoppedError:
            return
        except BaseException:
            self.stopped.set()
            raise

    def _run_rest(self, subject: Subject, dialogue: Dialogue) -> None:
        key = (subject.model, subject.knowledge, dialogue.id, dialogue.fingerprint)
        known = self._run.journal.of_dialogue(key)
        done = {number: each for number, each in known.items() if each.verdict != "unscored"}
        for result in done.values():
            self._run.on_turn(result)
        if len(done) == len(dialogue.turns):
            return
        thread = thread_of(subject, dialogue)
        conversation = self._opened.conversation(subject, thread)
        askable = any(not self._gold.faults(turn) for turn in dialogue.turns)
        meter = _Meter(conversation, subject, done.values())
        for number, turn in enumerate(dialogue.turns, 1):
            if number in done or self.stopped.is_set():
                continue
            blank = _blank(subject, dialogue, number, thread)
            result = self._asked(blank, turn, conversation, meter) if askable else blank
            faults = self._gold.faults(turn)
            if faults:
                result = replace(result, verdict="unscored", check=faults[0])
            self._run.journal.add(result)
            self._run.on_turn(result)

    def _asked(
        self, blank: TurnResult, turn: Turn, conversation: "Conversation", meter: "_Meter"
    ) -> TurnResult:
        """Ask one turn and score the answer."""
        began = self._run.clock()
        reply = ask(conversation, turn.text, f"{blank.thread}-{blank.turn}", sleep=self._sleep)
        seconds = self._run.clock() - began
        answered = replace(
            blank,
            sql=reply.sql,
            status=reply.status,
            text=reply.text,
            error=reply.error,
            seconds=round(seconds, 3),
        )
        scored = self._scored(turn, reply)
        result = replace(
            answered,
            verdict=scored.verdict,
            check=scored.check,
            wanted=scored.wanted,
            found=scored.found,
            copies=len(self._changed),
        )
        return meter.measured(result)

    def _sleep(self, seconds: float) -> None:
        """Wait for a provider. Raises `_StoppedError` if the run ends meanwhile."""
        self._run.on_wait(seconds)
        self._run.wait(self.stopped, seconds)
        if self.stopped.is_set():
            raise _StoppedError

    def _scored(self, turn: Turn, reply: Reply) -> Score:
        """Score an answer on the database, and if it is right on its changed copies."""
        results = self._gold.results(turn)
        if any(result.fault for result in results):
            return Score(verdict="unscored")
        scored = score(turn, reply, results)
        if scored.verdict != "right" or turn.expects != "result":
            return scored
        if reply.sql.strip() in [result.sql.strip() for result in results]:
            return scored
        for number, copy in enumerate(self._changed, 1):
            other = _score_on_copy(replace(turn, figures=False), reply, copy)
            if other is not None and other.verdict != "right":
                return replace(other, verdict="lucky", check=f"copy {number}: {other.check}")
        return scored


def _score_on_copy(turn: Turn, reply: Reply, copy: GoldRunner) -> Score | None:
    """Return the score of a reply's SQL on a changed copy, None if gold fails there."""
    results = [result for result in copy.results(turn) if not result.fault]
    if not results:
        return None
    own = copy.result(reply.sql)
    if own.fault:
        return Score(verdict="wrong", check="the query fails", wanted=_shown(results))
    found = Reply(status=reply.status, sql=reply.sql, columns=own.columns, rows=own.rows)
    return score(turn, found, results)


def _shown(results: Sequence[GoldResult]) -> Sequence[Sequence[object]]:
    return [list(results[0].columns), *results[0].rows[:1]]


@dataclass(frozen=True, kw_only=True)
class _Spending:
    """Calls, tokens and money of a thread so far."""

    calls: int = 0
    input: int = 0
    output: int = 0
    estimated: int = 0
    cost: float | None = None


class _Meter:
    """Reads from a thread what each of its turns took. `done`: turns that are counted already.
    Calls of a turn that was cut off count with the turn when it is answered.
    """

    def __init__(
        self, conversation: "Conversation", subject: Subject, done: Iterable[TurnResult]
    ) -> None:
        self._conversation = conversation
        self._subject = subject
        before = tally_of(done)
        self._before = _Spending(
            calls=before.calls,
            input=before.input,
            output=before.output,
            estimated=before.estimated,
            cost=before.cost,
        )

    def measured(self, result: TurnResult) -> TurnResult:
        """Return a result with the calls, tokens and money since the turn before."""
        now = self._read()
        before = self._before
        self._before = now
        return replace(
            result,
            calls=now.calls - before.calls,
            input=now.input - before.input,
            output=now.output - before.output,
            estimated=now.estimated - before.estimated,
            cost=None if now.cost is None else now.cost - (before.cost or 0.0),
        )

    def _read(self) -> _Spending:
        try:
            rows = self._conversation.usage(self._subject.prices)
        except ThreadNotFoundError:  # a first turn that failed left no thread
            return self._before
        costs = [row.cost for row in rows if row.cost is not None]
        return _Spending(
            calls=sum(row.calls for row in rows),
            input=sum(row.input for row in rows),
            output=sum(row.output for row in rows),
            estimated=sum(row.estimated for row in rows),
            cost=sum(costs) if costs else None,
        )


def thread_of(subject: Subject, dialogue: Dialogue) -> str:
    """Return the id of a dialogue's thread, the same in each process of a run."""
    text = f"{subject.model}\n{subject.knowledge}\n{dialogue.id}\n{dialogue.fingerprint}"
    return f"eval-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:20]}"


def _blank(subject: Subject, dialogue: Dialogue, number: int, thread: str) -> TurnResult:
    turn = dialogue.turns[number - 1]
    return TurnResult(
        model=subject.model,
        knowledge=subject.knowledge,
        dialogue=dialogue.id,
        fingerprint=dialogue.fingerprint,
        turn=number,
        question=turn.text,
        tags=tuple(dialogue.tags),
        place=str(turn.place),
        verdict="unscored",
        gold=turn.gold[0] if turn.gold else "",
        thread=thread,
    )


def _gold_problems(dialogue: Dialogue, gold: GoldRunner) -> list[Problem]:
    problems: list[Problem] = []
    for turn in dialogue.turns:
        problems += [
            Problem(turn.place, f"{dialogue.id}: not scored: {fault}")
            for fault in gold.faults(turn)
        ]
    return problems
