"""Ratings: whether a person found a turn's answer right, for the owner of the data to read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from longtable.base.concurrency import a_from
from longtable.base.errors import WrongRatingError
from longtable.graph.listing.thread_list import MOST_THREADS, list_threads
from longtable.graph.thread_state import StoredThreads, threads_in
from longtable.graph.transcripts import load_thread
from longtable.memory.messages.marks import turn_number
from longtable.memory.messages.rounds import is_users
from longtable.memory.thread import Edit, Thread
from longtable.store.damage import Report, log_damaged, skip_unreadable
from longtable.store.persistence import Persistence

RATE: Literal["rate"] = "rate"
MOST_COMMENT_CHARS = 2_000
Score = Literal[1, -1]


@dataclass(frozen=True, kw_only=True)
class Rating:
    """What a person said of one turn's answer. `time` is in ISO 8601."""

    turn: int
    score: int
    """1 for right, -1 for wrong."""
    comment: str
    question: str
    """The turn's question, "" if its message has been deleted."""
    time: str


def checked_rating(turn: int, newest: int, score: int, comment: str) -> dict[str, Any]:
    """Return the fields of a rating. Characters that cannot be stored are replaced.

    Raises `WrongRatingError` for a turn that is not there, a score that is neither 1 nor -1, and a
    comment that is too long.
    """
    if isinstance(turn, bool) or not isinstance(turn, int) or not 1 <= turn <= newest:
        raise WrongRatingError(f"turn must be from 1 to {newest}, the newest turn, found {turn!r}")
    if score not in (1, -1) or isinstance(score, bool):
        raise WrongRatingError(f"a score is 1 (right) or -1 (wrong), found {score!r}")
    if not isinstance(comment, str) or len(comment) > MOST_COMMENT_CHARS:
        _refuse_comment(comment)
    text = comment.replace("\0", " ").encode("utf-8", "replace").decode()
    return {"turn": turn, "score": score, "comment": text}


def _refuse_comment(comment: object) -> NoReturn:
    found = f"{len(comment):,} characters" if isinstance(comment, str) else type(comment).__name__
    raise WrongRatingError(
        f"a comment is a text of at most {MOST_COMMENT_CHARS:,} characters, found {found}"
    )


def ratings_in(edits: Sequence[Edit], questions: dict[int, str]) -> list[Rating]:
    """Return the newest rating of each turn, in the order of the turns. `questions`: by turn. An
    entry that is no rating, as a file made by hand may hold, is ignored.
    """
    newest: dict[int, Rating] = {}
    for edit in edits:
        fields: dict[str, Any] = {**edit}
        if fields.get("op") != RATE or not _is_sound(fields):
            continue
        turn = fields["turn"]
        newest[turn] = Rating(
            turn=turn,
            score=fields["score"],
            comment=fields["comment"],
            question=questions.get(turn, ""),
            time=str(fields.get("time", "")),
        )
    return [newest[turn] for turn in sorted(newest)]


def _is_sound(fields: dict[str, Any]) -> bool:
    is_number = isinstance(fields.get("turn"), int)
    return is_number and fields.get("score") in (1, -1) and isinstance(fields.get("comment"), str)


def questions_of(thread: Thread) -> dict[int, str]:
    """Return the question of each turn."""
    questions: dict[int, str] = {}
    for message in thread.messages:
        if is_users(message):
            questions.setdefault(turn_number(message), str(message.text))
    return questions


def ratings_of_threads(
    persistence: Persistence | StoredThreads,
    *,
    owner: str | None = None,
    all_owners: bool = False,
    on_damaged: Report = log_damaged,
) -> list[tuple[str, Rating]]:
    """Return the ratings of all threads that an owner may see, the oldest first, each with the id
    of its thread.

    `on_damaged` is called for each thread that cannot be read; by default it writes to the log.
    """
    threads = threads_in(persistence)
    found: list[tuple[str, Rating]] = []
    for info in list_threads(threads, limit=MOST_THREADS, owner=owner, all_owners=all_owners):
        with skip_unreadable(on_damaged):
            whole, _ = load_thread(threads, info.thread_id, info.owner, all_owners=all_owners)
            ratings = ratings_in(whole.edits, questions_of(whole.thread))
            found += [(info.thread_id, rating) for rating in ratings]
    return sorted(found, key=lambda pair: (pair[1].time, pair[0], pair[1].turn))


aratings_of_threads = a_from(ratings_of_threads)
