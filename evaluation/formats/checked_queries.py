"""Turn checked queries into questions: those of a knowledge folder, and nao's tests."""

import re
from collections.abc import Sequence
from pathlib import Path

from longtable.evaluation.question_set import Dialogue, QuestionSet, Turn
from longtable.knowledge.entries import Place, Problem, VerifiedQuery
from longtable.knowledge.exchange.nao import read_nao
from longtable.knowledge.folder_reading import read_folder

_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_PARAMETER = re.compile(r"(?<![:\w]):[A-Za-z_]\w*")


def read_knowledge(folder: Path) -> QuestionSet:
    """Return the checked queries of a knowledge folder as questions; another wording is a question
    of its own. A query with parameters has no answer of its own, and is told.

    Raises `ConfigError` if there is no such folder.
    """
    knowledge = read_folder(folder)
    problems = [_inside(folder, problem) for problem in knowledge.problems]
    dialogues: list[Dialogue] = []
    for query in knowledge.queries:
        place = Place(f"{folder}/{query.place.file}", query.place.line)
        if has_parameters(query.sql):
            problems.append(Problem(place, "a query with parameters is not asked"))
        else:
            dialogues += _dialogues(query, place)
    return QuestionSet(dialogues=dialogues, problems=problems)


def read_nao_test(text: str, file: str) -> QuestionSet:
    """Return the question of a test of nao. Raises `MissingExtraError` without PyYAML."""
    query = read_nao(text, file)
    if isinstance(query, Problem):
        return QuestionSet(problems=[query])
    return QuestionSet(dialogues=_dialogues(query, query.place))


def has_parameters(sql: str) -> bool:
    """Return whether SQL has parameters such as :month outside texts and comments."""
    return bool(_PARAMETER.search(_QUOTED.sub(" ", sql)))


def _dialogues(query: VerifiedQuery, place: Place) -> Sequence[Dialogue]:
    dialogues: list[Dialogue] = []
    for number, question in enumerate(query.questions):
        dialogues.append(
            Dialogue(
                id=f"{query.name}/{number}" if number else query.name,
                turns=[Turn(text=question, gold=[query.sql], place=place)],
                tags=["other wording"] if number else ["first wording"],
                place=place,
            )
        )
    return dialogues


def _inside(folder: Path, problem: Problem) -> Problem:
    return Problem(Place(f"{folder}/{problem.place.file}", problem.place.line), problem.message)
