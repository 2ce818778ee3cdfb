"""How many lasting rules the net finds, how many requests of the moment it takes for one, and
which messages are refused as secrets: over the blind sayings, totals only.

`python -m evals.sayings` prints them.
"""

import json
from collections import Counter
from pathlib import Path

from longtable.memory.pins.net import rules_in
from longtable.memory.pins.secrets import holds_secret

SAYINGS = Path(__file__).parent / "blind" / "sayings.jsonl"
LABELS = {
    "rule": "lasting rules found",
    "moment": "requests of the moment taken for a rule",
    "secret": "secrets refused",
    "no_secret": "harmless look-alikes refused",
}


def totals() -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Return how many messages there are by kind and language, and how many were caught."""
    messages: Counter[tuple[str, str]] = Counter()
    caught: Counter[tuple[str, str]] = Counter()
    for line in SAYINGS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        key = (row["kind"], row["lang"])
        looks_for_rules = row["kind"] in ("rule", "moment")
        is_caught = rules_in(row["text"]) if looks_for_rules else holds_secret(row["text"])
        messages[key] += 1
        caught[key] += bool(is_caught)
    return messages, caught


def main() -> None:
    """Print the totals."""
    messages, caught = totals()
    for kind, label in LABELS.items():
        parts = [f"{caught[kind, each]} of {messages[kind, each]} {each}" for each in ("en", "zh")]
        print(f"{label}: {', '.join(parts)}")


if __name__ == "__main__":
    main()
