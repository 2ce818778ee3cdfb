"""Questions with the SQL that answers them, and the dialogues that they stand in."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from longtable.knowledge.entries import Place, Problem

Expectation = Literal["result", "refusal", "question"]
"""What a good answer is: the rows of gold, a refusal, or a question back."""
EXPECTATIONS: tuple[str, ...] = get_args(Expectation)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One question of a dialogue, and what a good answer to it is."""

    text: str
    gold: Sequence[str] = ()
    """SQL that answers the question. The rows of one of them are enough."""
    expects: Expectation = "result"
    ordered: bool | None = None
    """Whether the order of rows counts. None: where gold orders."""
    figures: bool = False
    """Whether the answer's text must hold the numbers of gold's rows."""
    extra_columns: bool = False
    """Whether the answer may have further columns."""
    says: Sequence[str] = ()
    """Texts of which the answer's text must hold one, in upper or lower case."""
    place: Place = field(default=Place(), compare=False)


@dataclass(frozen=True, kw_only=True)
class Dialogue:
    """Turns that are asked on one thread, in order. A single question is a dialogue of one turn."""

    id: str
    turns: Sequence[Turn]
    tags: Sequence[str] = ()
    database: str = ""
    """The URL or path of its database, "" for the one of the settings."""
    database_name: str = ""
    """The database as the file of the question names it, "" for `database`. The fingerprint holds
    this name, so that it is the same in whatever folder the files are.
    """
    place: Place = field(default=Place(), compare=False)

    @property
    def fingerprint(self) -> str:
        """Return a hash of all that an answer and its score depend on."""
        turns: list[list[object]] = []
        for turn in self.turns:
            marks = [turn.expects, turn.ordered, turn.figures, turn.extra_columns]
            turns.append([turn.text, [*turn.gold], *marks, *turn.says])
        text = json.dumps([self.database_name or self.database, turns])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Bar:
    """The least shares, from 0 to 1, that a model must reach. None: no bar."""

    questions: float | None = None
    interactions: float | None = None
    is_wrong: bool = False
    """Whether a file sets a bar that cannot be read."""


@dataclass(frozen=True, kw_only=True)
class QuestionSet:
    """All questions of a run, and the problems of questions that are left out."""

    dialogues: Sequence[Dialogue] = ()
    problems: Sequence[Problem] = ()
    bar: Bar = field(default=Bar())


def merged(sets: Sequence[QuestionSet]) -> QuestionSet:
    """Return several sets as one. An id that was taken gets a number. The strictest bar holds."""
    dialogues: list[Dialogue] = []
    problems: list[Problem] = []
    taken: Counter[str] = Counter()
    for each in sets:
        problems += each.problems
        for dialogue in each.dialogues:
            taken[dialogue.id] += 1
            number = taken[dialogue.id]
            dialogues.append(dialogue if number == 1 else _renamed(dialogue, number))
    bar = Bar(
        questions=_strictest([each.bar.questions for each in sets]),
        interactions=_strictest([each.bar.interactions for each in sets]),
        is_wrong=any(each.bar.is_wrong for each in sets),
    )
    return QuestionSet(dialogues=dialogues, problems=problems, bar=bar)


def _renamed(dialogue: Dialogue, number: int) -> Dialogue:
    return replace(dialogue, id=f"{dialogue.id}#{number}")


def _strictest(bars: Sequence[float | None]) -> float | None:
    return max((bar for bar in bars if bar is not None), default=None)
