"""What a thread keeps, compared with what its person sent and saw."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.people.open_page import words_of
from benchmarks.people.person import TakenTurn
from benchmarks.people.talk_model import answer_to


@dataclass
class StoredRound:
    """A question and the last words that stand below it."""

    question: str
    answer: str = ""


def rounds_of(export: str) -> list[StoredRound]:
    """Return the rounds of a thread from its export in JSON lines."""
    rounds: list[StoredRound] = []
    for line in export.splitlines():
        record = json.loads(line)
        if record["type"] != "message":
            continue
        fields: dict[str, Any] = record["message"]["fields"]
        if fields["type"] == "human":
            rounds.append(StoredRound(str(fields["content"])))
        elif fields["type"] == "ai" and fields["content"] and not fields["tool_calls"]:
            rounds[-1].answer = words_of(str(fields["content"]))
    return rounds


def lost(taken: Sequence[TakenTurn], export: str) -> list[str]:
    """Return what is missing, doubled, out of order or altered in a thread: an empty list if
    nothing is.
    """
    rounds = rounds_of(export)
    questions = [each.question for each in rounds]
    sent = [turn.question for turn in taken]
    if questions != sent:
        return [f"sent {sent}, kept {questions}"]
    faults: list[str] = []
    for turn, kept in zip(taken, rounds, strict=True):
        whole = words_of(answer_to(turn.plan.key))
        if turn.answer and not turn.answer.endswith(kept.answer or "nothing kept"):
            faults.append(f"saw {turn.answer!r}, kept {kept.answer!r}")
        elif not turn.is_cut and kept.answer != whole:
            faults.append(f"answered {whole!r}, kept {kept.answer!r}")
    return faults
