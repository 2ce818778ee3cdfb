"""Measure the number check: true answers flagged, and changed digits caught.

`blind/answers.jsonl` was written before the code by somebody who had not seen it. `numbers.jsonl`
holds answers that the check was made with; an invented figure stands in ⟦ ⟧ there.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from longtable.checks.number_check import unsupported
from longtable.memory.counting.figures import Source

HERE = Path(__file__).parent
BLIND, LABELLED = HERE / "blind" / "answers.jsonl", HERE / "numbers.jsonl"
Case = tuple[str, str, list[Source], str, tuple[tuple[int, int], ...]]
"""The kind of answer, the question, its results, the answer, and the places of its wrong
figures.
"""


def blind(path: Path = BLIND) -> Iterator[Case]:
    """Yield each true answer, and the same answer with one changed digit."""
    for case in (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()):
        sources = [Source(t["columns"], t["rows"], len(t["rows"])) for t in case["tables"]]
        text = case["answer"]
        yield "true", case["question"], sources, text, ()
        for change in case["digits"]:
            at, old, new = change["at"], change["from"], change["to"]
            if text[at : at + len(old)] != old:
                raise ValueError(f"{case['id']}: {old!r} does not stand at {at}")
            kind = "names a row or a total" if change["names_row"] else "names none"
            yield (
                kind,
                case["question"],
                sources,
                text[:at] + new + text[at + len(old) :],
                ((at, at + len(new)),),
            )


def labelled(path: Path = LABELLED) -> Iterator[Case]:
    """Yield the answers of the labelled file."""
    for case in (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()):
        sources = [
            Source(s["columns"], s["rows"], s["row_count"], s["sql"]) for s in case["sources"]
        ]
        for marked in case["answers"]:
            text, spans = "", []
            for piece in re.split(r"⟦([^⟧]*)⟧", marked):
                spans.append((len(text), len(text) + len(piece)))
                text += piece
            wrong = tuple(spans[1::2])
            yield "invented" if wrong else "true", case["question"], sources, text, wrong


def rates(cases: Iterator[Case], *, show: bool = False) -> dict[str, tuple[int, int]]:
    """Return for each kind how many were flagged (true) or caught (wrong figures), and how many
    there are.
    """
    hits, all_of = Counter[str](), Counter[str]()
    for kind, question, sources, text, wrong in cases:
        flagged = [(figure.start, figure.end) for figure in unsupported(text, sources, question)]
        results = (
            [any(a < end and start < b for a, b in flagged) for start, end in wrong]
            if wrong
            else [bool(flagged)]
        )
        hits[kind] += sum(results)
        all_of[kind] += len(results)
        if show and (not all(results) if wrong else results[0]):
            print(kind, repr(text), [text[a:b] for a, b in flagged])
    return {kind: (hits[kind], all_of[kind]) for kind in all_of}


def main() -> None:
    """Print the rates of both files."""
    for name, cases in (("labelled", labelled()), ("blind", blind())):
        for kind, (hits, count) in rates(cases).items():
            verb = "flagged" if kind == "true" else "caught"
            print(f"{name}: {kind}: {hits} of {count} {verb} ({100 * hits / count:.1f} %)")


if __name__ == "__main__":
    main()
