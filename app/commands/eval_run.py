"""The folder of one run of `longtable eval`: its journal, its threads and their results."""

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from longtable.app.commands.eval_subjects import EvalHost
from longtable.app.settings.run_settings import Settings, database_url, key_for
from longtable.base.errors import ConfigError, DatabaseError
from longtable.base.redaction import redacted
from longtable.evaluation.cost_estimate import Estimate, estimated
from longtable.evaluation.evaluator import Evaluation, OnTurn, OnWait, Subject
from longtable.evaluation.journal import Journal
from longtable.evaluation.question_set import Dialogue
from longtable.evaluation.turn_results import TurnResult
from longtable.knowledge.entries import Problem

JOURNAL = "journal.jsonl"
THREADS = "threads.db"
RESULTS = f"{THREADS}.results"
FILES = (JOURNAL, THREADS, f"{THREADS}-wal", f"{THREADS}-shm", RESULTS)
ASIDE = ".replaced"
LEASE_SECONDS = 2.0
"""The journal keeps other processes off, so the threads of a killed run are free soon."""


@dataclass(frozen=True, kw_only=True)
class EvalRun:
    """One run: what is asked of whom, and what was answered so far."""

    host: EvalHost
    journal: Journal
    dialogues: Sequence[Dialogue]
    subjects: Sequence[Subject]

    @classmethod
    @contextmanager
    def opened(
        cls,
        folder: Path,
        settings: Mapping[str, Settings],
        dialogues: Sequence[Dialogue],
        subjects: Sequence[Subject],
        *,
        resume: bool,
    ) -> "Iterator[EvalRun]":
        """Open the folder of a run. Raises `ConfigError` if it holds a run that is not to be
        resumed, or if a model cannot be opened.
        """
        from longtable.graph import open_persistence

        with ExitStack() as stack:
            is_own = any(not dialogue.database for dialogue in dialogues)
            about = _about(next(iter(settings.values())), is_own=is_own)
            journal = stack.enter_context(Journal(folder / JOURNAL, resume=resume, about=about))
            key = key_for("LONGTABLE_STORE_KEY")
            url = f"sqlite:///{folder.absolute() / THREADS}"
            persistence = stack.enter_context(
                open_persistence(url, lease_seconds=LEASE_SECONDS, key=key)
            )
            # Results are plain files: an encrypted store has none beside it.
            plain = folder / RESULTS
            results = plain if key is None else stack.enter_context(_temporary_folder())
            host = EvalHost.in_folder(settings, persistence, results)
            yield cls(host=host, journal=journal, dialogues=dialogues, subjects=subjects)

    @property
    def turns(self) -> int:
        """Return the number of turns of the whole run."""
        return len(self.subjects) * sum(len(dialogue.turns) for dialogue in self.dialogues)

    def estimate(self) -> Estimate | None:
        """Return what the turns of paid models that are still to be asked will cost, None if there
        is none.
        """
        parts: list[Estimate] = []
        for subject in self.subjects:
            turns: list[int] = []
            for dialogue in self.dialogues:
                turns.append(len(dialogue.turns) - self._done(subject, dialogue))
            price = self.host.price(subject)
            is_free = price is not None and not price.input and not price.output
            left = sum(turns)
            if subject.paid and left > 0 and not is_free:
                first = self._first_call(subject)
                parts.append(estimated(turns, first, price))
        if not parts:
            return None
        costs = [part.cost for part in parts if part.cost is not None]
        return Estimate(
            turns=sum(part.turns for part in parts),
            input=sum(part.input for part in parts),
            output=sum(part.output for part in parts),
            cost=sum(costs) if len(costs) == len(parts) else None,
        )

    def _first_call(self, subject: Subject) -> int:
        """Return the tokens of the first call on the first database that can be opened, 0 if none
        can: the run tells why.
        """
        of_database = {dialogue.database: dialogue for dialogue in reversed(self.dialogues)}
        for dialogue in reversed(of_database.values()):
            try:
                return self.host.first_call(subject, dialogue)
            except DatabaseError:
                continue
        return 0

    def ask(self, *, jobs: int, copies: int, on_turn: OnTurn, on_wait: OnWait) -> list[Problem]:
        """Ask and score all that is left. Return the problems of gold."""
        evaluation = Evaluation(
            dialogues=self.dialogues,
            subjects=self.subjects,
            open=self.host.open,
            journal=self.journal,
            clock=time.monotonic,
            jobs=jobs,
            copies=copies,
            on_turn=on_turn,
            on_wait=on_wait,
        )
        return evaluation.run()

    def results(self) -> list[TurnResult]:
        """Return all results, by subject and in the order of the questions."""
        results: list[TurnResult] = []
        for subject in self.subjects:
            for dialogue in self.dialogues:
                found = self.journal.of_dialogue(_key(subject, dialogue))
                results += [found[number] for number in sorted(found)]
        return results

    def _done(self, subject: Subject, dialogue: Dialogue) -> int:
        """Return how many turns of a dialogue were asked."""
        results = self.journal.of_dialogue(_key(subject, dialogue)).values()
        return sum(bool(result.status or result.error) for result in results)


class ReplacedRun:
    """The files of a run that another one is to replace. They stand aside until it is certain that
    the other one begins.
    """

    def __init__(self, folder: Path) -> None:
        """Put the files aside. Raises `ConfigError` if the run is in progress, or they cannot be
        moved.
        """
        self._folder = folder
        self._aside = folder / ASIDE
        if not (folder / JOURNAL).exists():
            return
        Journal.check_free(folder / JOURNAL)
        try:
            shutil.rmtree(self._aside, ignore_errors=True)
            self._aside.mkdir()
            self._move(folder, self._aside)
        except OSError as error:
            raise ConfigError(f"{folder} cannot be emptied: {error.strerror}") from error

    def drop(self) -> None:
        """Delete the files."""
        shutil.rmtree(self._aside, ignore_errors=True)

    def put_back(self) -> None:
        """Put the files back, in place of those of a run that did not begin."""
        if self._aside.is_dir():
            for name in FILES:
                _delete(self._folder / name)
            self._move(self._aside, self._folder)
            self._aside.rmdir()

    @staticmethod
    def _move(source: Path, target: Path) -> None:
        for name in FILES:
            if (source / name).exists():
                (source / name).rename(target / name)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _about(settings: Settings, *, is_own: bool) -> dict[str, str]:
    """Return the settings that all results of a run depend on. `is_own`: whether a question is
    about the database of the settings.
    """
    return {
        "database": redacted(database_url(settings)) if is_own else "",
        "policy": settings.policy.file or "",
        "private": str(settings.policy.private),
        "knowledge": settings.knowledge.folder or "",
    }


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="longtable-eval-") as folder:
        yield Path(folder)


def _key(subject: Subject, dialogue: Dialogue) -> tuple[str, bool, str, str]:
    return subject.model, subject.knowledge, dialogue.id, dialogue.fingerprint
