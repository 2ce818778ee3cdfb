"""The result of one turn, as the journal and the report keep it."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from longtable.evaluation.matching import Rows
from longtable.evaluation.scoring import Verdict


@dataclass(frozen=True, kw_only=True)
class TurnResult:
    """One turn of one dialogue, as one subject answered it."""

    model: str
    knowledge: bool
    dialogue: str
    fingerprint: str
    """That of the dialogue: a changed question has another one."""
    turn: int
    """From 1."""
    question: str
    tags: tuple[str, ...] = ()
    place: str = ""
    """File and line of the question."""
    verdict: Verdict
    check: str = ""
    """What failed, such as "rows"; "" if nothing did."""
    wanted: Rows = ()
    found: Rows = ()
    copies: int = 0
    """Changed copies of the database that the answer was, or would have been, scored on, too."""
    gold: str = ""
    sql: str = ""
    """The newest query that gave a result, as it ran."""
    status: str = ""
    text: str = ""
    error: str = ""
    seconds: float = 0.0
    calls: int = 0
    input: int = 0
    output: int = 0
    estimated: int = 0
    """Calls whose tokens the provider did not report, so that they were counted here."""
    cost: float | None = None
    """None if no price of the model is known."""
    thread: str = ""

    @property
    def dialogue_key(self) -> tuple[str, bool, str, str]:
        """Return what tells the dialogue of a subject from all others of a run."""
        return self.model, self.knowledge, self.dialogue, self.fingerprint

    def as_json(self) -> dict[str, Any]:
        """Return the result as plain JSON."""
        return {**asdict(self), "tags": [*self.tags]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "TurnResult":
        """Read a result that `as_json` wrote. Raises `TypeError` or `KeyError` if it is none."""
        known = {each.name: data[each.name] for each in fields(cls) if each.name in data}
        return cls(**{**known, "tags": tuple(known.get("tags", ()))})


@dataclass
class Tally:
    """Counts of verdicts, and sums of what the turns took."""

    right: int = 0
    lucky: int = 0
    wrong: int = 0
    failed: int = 0
    unscored: int = 0
    seconds: float = 0.0
    calls: int = 0
    input: int = 0
    output: int = 0
    estimated: int = 0
    cost: float | None = None
    copies: int = 0
    _right_so_far: dict[str, bool] = field(default_factory=dict)
    """For each dialogue with a scored turn, whether all of them are right."""

    @property
    def scored(self) -> int:
        """Return the number of turns that were scored."""
        return self.right + self.lucky + self.wrong + self.failed

    @property
    def accuracy(self) -> float | None:
        """Return the share of scored turns that are right, None if none was scored."""
        return self.right / self.scored if self.scored else None

    @property
    def interactions(self) -> int:
        """Return the number of dialogues with a turn that was scored."""
        return len(self._right_so_far)

    @property
    def interactions_right(self) -> int:
        """Return the number of dialogues of which each scored turn is right."""
        return sum(self._right_so_far.values())

    @property
    def interaction_accuracy(self) -> float | None:
        """Return the share of dialogues that are right, None if there is none."""
        return self.interactions_right / self.interactions if self.interactions else None

    def add(self, result: TurnResult) -> None:
        """Count one turn."""
        setattr(self, result.verdict, getattr(self, result.verdict) + 1)
        for name in ("seconds", "calls", "input", "output", "estimated", "copies"):
            setattr(self, name, getattr(self, name) + getattr(result, name))
        if result.cost is not None:
            self.cost = (self.cost or 0.0) + result.cost
        if result.verdict != "unscored":
            before = self._right_so_far.get(result.dialogue, True)
            self._right_so_far[result.dialogue] = before and result.verdict == "right"

    def as_json(self) -> dict[str, Any]:
        """Return the counts, sums and shares as plain JSON."""
        counts = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return {
            **counts,
            "scored": self.scored,
            "accuracy": self.accuracy,
            "interactions": self.interactions,
            "interactions_right": self.interactions_right,
            "interaction_accuracy": self.interaction_accuracy,
        }


def tally_of(results: Iterable[TurnResult]) -> Tally:
    """Return the counts and sums of results."""
    tally = Tally()
    for result in results:
        tally.add(result)
    return tally
