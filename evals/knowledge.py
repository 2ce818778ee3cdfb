"""Measure what is found by a question: `python -m evals.knowledge` prints, over 1,000 verified
queries of twelve databases, how often the one that is meant is among the first five.

The sets in `blind/knowledge/` were written before the code, by somebody who did not read the
project. A question is searched among the queries of its own database (52 to 179), as they are used,
and among all of them, where some databases have questions of the same words.
"""

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from longtable.base.words import is_han
from longtable.knowledge.entries import Knowledge, VerifiedQuery
from longtable.knowledge.glossary import read_glossary
from longtable.knowledge.material import fitting, material_text, merged
from longtable.knowledge.query_search import QuerySearch
from longtable.memory.counting.tokens import counter

SETS = Path(__file__).parent / "blind" / "knowledge"
FIRST = 5


def rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a blind set."""
    return [json.loads(line) for line in (SETS / f"{name}.jsonl").read_text().splitlines()]


def searches(
    wordings: Mapping[str, list[str]], *, together: bool = False
) -> dict[str, QuerySearch]:
    """Return the search of each database; with `together` all of them are searched at once.
    `wordings`: further ones of some pairs, by id.
    """
    queries: dict[str, list[VerifiedQuery]] = defaultdict(list)
    for pair in rows("pairs"):
        query = VerifiedQuery(
            name=pair["id"],
            question=pair["question"],
            wordings=wordings.get(pair["id"], []),
            sql=pair["sql"],
        )
        queries[pair["db"]].append(query)
    if together:
        every = QuerySearch(Knowledge(queries=[*chain.from_iterable(queries.values())]))
        return dict.fromkeys(queries, every)
    return {db: QuerySearch(Knowledge(queries=each)) for db, each in queries.items()}


def share_found(
    asked: Iterable[Mapping[str, Any]],
    wordings: Mapping[str, list[str]],
    language: str,
    *,
    together: bool,
) -> tuple[int, int, float]:
    """Return how many questions of a language find their pair, how many there are, and the mean
    time of a search in milliseconds.
    """
    by_database = searches(wordings, together=together)
    databases = {pair["id"]: pair["db"] for pair in rows("pairs")}
    found = 0
    count = 0
    seconds = 0.0
    for each in asked:
        if ("zh" if any(map(is_han, each["question"])) else "en") != language:
            continue
        search = by_database[databases[each["pair"]]]
        started = time.perf_counter()
        names = [hit.query.name for hit in search.queries(each["question"], FIRST)]
        seconds += time.perf_counter() - started
        count += 1
        found += each["pair"] in names
    return found, count, 1_000 * seconds / max(1, count)


def material_sizes(pairs: Mapping[str, QuerySearch]) -> tuple[int, int, float]:
    """Return how many questions in a company's own words bring up a term of its glossary, how many
    there are, and the mean tokens that go with a call: terms and five of the pairs.
    """
    count = counter("o200k_base").text
    glossaries: dict[str, QuerySearch] = {}
    for name in ("chinook", "northwind"):
        terms, _ = read_glossary((SETS / f"{name}_glossary.toml").read_text())
        glossaries[name] = QuerySearch(Knowledge(terms))
    asked = rows("company_questions")
    named = 0
    tokens = 0
    for each in asked:
        terms = glossaries[each["db"]].terms(each["question"])
        queries = pairs[each["db"]].queries(each["question"], FIRST)
        named += bool(terms)
        tokens += count(material_text(fitting(terms, "", merged(queries))))
    return named, len(asked), tokens / len(asked)


def main() -> None:
    """Print the tables."""
    paraphrases = rows("paraphrases")
    further = {each["pair"]: each["wordings"] for each in paraphrases}
    sets = {
        "near wordings": (rows("near"), {}),
        "paraphrases": (paraphrases, {}),
        "paraphrases, with two further wordings a pair": (paraphrases, further),
    }
    print("| first five | among | en | zh | ms a search |\n|---|---|---:|---:|---:|")
    for together in (False, True):
        among = "all 1,000" if together else "its database's"
        for name, (asked, wordings) in sets.items():
            english = share_found(asked, wordings, "en", together=together)
            chinese = share_found(asked, wordings, "zh", together=together)
            cells = [f"{found} of {count}" for found, count, _ in (english, chinese)]
            slowest = max(english[2], chinese[2])
            print(f"| {name} | {among} | {cells[0]} | {cells[1]} | {slowest:.2f} |")
    named, count, tokens = material_sizes(searches({}))
    print(f"\n{named} of {count} questions in a company's words bring up a term of its glossary;")
    print(f"terms and five of the pairs add {tokens:.0f} tokens to a call.")


if __name__ == "__main__":
    main()
