"""What views still hold after many compactions, how large they are, and what summaries cost, beside
langchain's SummarizationMiddleware and langmem's SummarizationNode.

python -m benchmarks.memory draws docs/memory.png. All are given the same talks, and models that
answer at once. The last tables are our worst case: python -m benchmarks.memories.worst_case prints
them alone.
"""

import logging
import re
import sqlite3
import statistics
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import matplotlib as mpl
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import BaseMessage

from benchmarks.memories import worst_case
from benchmarks.memories.models import ENCODING, Character, waited_for
from benchmarks.memories.systems import LangChain, LangMem, Longtable, Maker, Setting
from benchmarks.memories.talks import (
    CARRIERS,
    FIGURE,
    Item,
    Language,
    items,
    long_question,
    mixed,
    over_tables,
)
from longtable.graph import Database, open_persistence
from longtable.memory.counting.tokens import counter

PICTURE = Path(__file__).parents[1] / "docs" / "memory.png"
LIMIT = 32_000
FILLER_TOKENS = 700
"""Of the talks in which things are planted: all of them fit before the first compaction."""
AFTER = (1, 5, 10)
MOST_TURNS = 600
TABLE_TURNS = 100
TABLE_LIMIT = 8_000
LIMITS = (8_000, 16_000, 64_000)
SHARES = (0.02, 0.04, 0.06, 0.09, 0.13)
GRID_COMPACTIONS = 3
"""Rounds of the grid take these shares of the limit."""
SMALL_ROUNDS = 0.15
SMALL_VIEW = 0.3
LARGE_VIEW = 0.45
"""A view after a compaction: at most 0.3 of the limit where the rounds kept take under 0.15."""
BY_CODE = "longtable, by code"
LANGUAGES: tuple[Language, ...] = ("en", "zh")
SYSTEMS: Mapping[str, Maker] = {
    "longtable": Longtable,
    "langchain": LangChain,
    "langchain, defaults": partial(LangChain, defaults=True),
    "langmem": LangMem,
    "langmem, defaults": partial(LangMem, defaults=True),
}
CHARACTERS: tuple[Character, ...] = ("honest", "lazy", "inventing")
MARKED = re.compile(r"corrected|superseded|replaced|更正|订正|取代", re.IGNORECASE)


# -- what views hold -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """How much of what was planted a view holds."""

    facts: int
    rules: int
    revocations: int
    corrections: int
    """Corrected figures, as corrected."""
    stale: int
    """Figures that were corrected, without a mark on their line."""
    ended: int
    """Rules that were ended or replaced and stand without the words that did it."""
    invented: int


def held(view: Sequence[BaseMessage], planted: Sequence[Item], invented: set[str]) -> Held:
    """Look for each planted thing in what a model is sent."""
    text = "\n".join(message.text for message in view)
    figures = set(FIGURE.findall(text))
    counts: Counter[str] = Counter()
    for item in planted:
        first = item.said[0].key
        last = item.said[-1].key
        counts[item.kind] += last in figures if FIGURE.fullmatch(last) else last in text
        if item.kind == "correction":
            lines = [line for line in text.splitlines() if first in FIGURE.findall(line)]
            counts["stale"] += any(last not in line and not MARKED.search(line) for line in lines)
        elif item.kind == "revocation":
            counts["ended"] += first in text and last not in text
    return Held(
        facts=counts["fact"],
        rules=counts["rule"],
        revocations=counts["revocation"],
        corrections=counts["correction"],
        stale=counts["stale"],
        ended=counts["ended"],
        invented=len(figures & invented),
    )


def grown(make: Maker, character: Character, language: Language) -> list[Held]:
    """Plant all, talk on, and look at the first view after each compaction."""
    planted = items(language)
    sayings = mixed(planted)
    setting = Setting(LIMIT, character=character, planted=tuple(sayings), language=language)
    views: list[Held] = []
    with open_persistence("memory://") as persistence:
        system = make(setting, persistence)
        system.plant([each.text for each in sayings])
        for n in range(MOST_TURNS):
            compactions = system.compactions()
            system.fakes.answerer.sent.clear()
            try:
                system.say(long_question(n, FILLER_TOKENS, language))
            except ContextOverflowError:
                # More than the summariser's window: no later turn comes through, either.
                break
            if compactions > len(views):
                sent = system.fakes.answerer.sent[-1]
                views.append(held(sent, planted, system.fakes.summariser.invented))
            if len(views) == AFTER[-1]:
                break
    return views


# -- sizes of views --------------------------------------------------------------------------------


@dataclass
class Sizes:
    """Compactions of a part of the grid: how many, how many in bounds, views' shares of the
    limit.
    """

    in_bounds: list[bool] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    """Rounds kept."""


@contextmanager
def flights() -> Iterator[Database]:
    """Open a small database of flights, in this process: walls are measured elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flights.db"
        with sqlite3.connect(path) as connection:
            columns = "year, carrier, flight, origin, dest, dep_delay, arr_delay"
            connection.execute(f"CREATE TABLE flights ({columns})")
            rows = [
                (1950 + i % 75, CARRIERS[i % 13], i, "JFK", "LAX", i % 90, i % 99)
                for i in range(500)
            ]
            connection.executemany("INSERT INTO flights VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        connection.close()
        with Database.open(f"sqlite:///{path}", isolation="none") as database:
            yield database


def sizes(limit: int, with_sql: bool, by_code: bool) -> Sizes:
    """Talk on in rounds of several sizes, or with SQL results of several sizes."""
    result = Sizes()
    count = counter(ENCODING)
    for share in (0.0,) if with_sql else SHARES:
        with ExitStack() as stack:
            persistence = stack.enter_context(open_persistence("memory://"))
            database = stack.enter_context(flights()) if with_sql else None
            system = Longtable(Setting(limit, database=database), persistence, by_code=by_code)
            for n in range(MOST_TURNS):
                before = system.compactions()
                system.say(long_question(n, int(share * limit) - 100) if share else over_tables(n))
                records = system.records()
                if len(records) > before:
                    rounds = system.kept_rounds()
                    small = count.messages(rounds) < SMALL_ROUNDS * limit
                    after = records[-1]["tokens_after"] / limit
                    result.in_bounds.append(after <= (SMALL_VIEW if small else LARGE_VIEW))
                    result.shares.append(after)
                    result.rounds.append(sum(message.type == "human" for message in rounds))
                if len(records) == GRID_COMPACTIONS * (len(SHARES) if with_sql else 1):
                    break
    return result


# -- calls -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Talk:
    """A talk's summariser calls, those that an answer waited for, the tokens they read, its
    views.
    """

    calls: int
    waited: int
    read: int
    unseen: int
    """Calls that did not hold the newest question word for word."""
    views: list[int]


def talked(make: Maker, with_sql: bool = False) -> Talk:
    """Hold a talk over tables, which a tool makes up or a database holds."""
    count = counter(ENCODING)
    views = list[int]()
    waited = 0
    unseen = 0
    with ExitStack() as stack:
        persistence = stack.enter_context(open_persistence("memory://"))
        database = stack.enter_context(flights()) if with_sql else None
        system = make(Setting(TABLE_LIMIT, 4, database=database), persistence)
        for n in range(TABLE_TURNS):
            system.fakes.log.clear()
            system.fakes.answerer.sent.clear()
            system.say(over_tables(n))
            waited += waited_for(system.fakes.log)
            for sent in system.fakes.answerer.sent:
                unseen += all(over_tables(n) not in message.text for message in sent)
                views.append(count.messages(sent))
        inputs = system.fakes.summariser.inputs
    return Talk(len(inputs), waited, sum(inputs), unseen, views)


# -- what is shown ---------------------------------------------------------------------------------


def main() -> None:
    """Measure, print, draw."""
    runs: list[tuple[str, Maker, Character]] = [
        (BY_CODE, partial(Longtable, by_code=True), "honest")
    ]
    for name, make in SYSTEMS.items():
        for character in CHARACTERS[:1] if "defaults" in name else CHARACTERS:
            runs.append((f"{name}, {character}", make, character))
    talks: dict[str, tuple[Maker, bool]] = {name: (make, False) for name, make in SYSTEMS.items()}
    talks["longtable, run_sql"] = Longtable, True
    grid = list(product((False, True), (True, False), LIMITS))
    with ProcessPoolExecutor(2, get_context("spawn"), _quiet) as pool:
        views = {
            language: {name: pool.submit(grown, make, who, language) for name, make, who in runs}
            for language in LANGUAGES
        }
        measured = {key: pool.submit(sizes, key[2], key[0], key[1]) for key in grid}
        calls = {name: pool.submit(talked, *each) for name, each in talks.items()}
        results = {
            language: {name: each.result() for name, each in of.items()}
            for language, of in views.items()
        }
        for language in LANGUAGES:
            print(held_table(results[language], language), flush=True)
        print(sizes_table({key: each.result() for key, each in measured.items()}))
        tables = {name: each.result() for name, each in calls.items()}
    print(talks_table(tables))
    draw(results["en"], tables)
    worst_case.report()


def _quiet() -> None:
    warnings.filterwarnings("ignore", message="the tokenizer of model")
    logging.getLogger("langgraph").setLevel(logging.ERROR)  # langmem keeps a dataclass in the state


def held_table(views: Mapping[str, Sequence[Held]], language: Language) -> str:
    """Return the table of what views hold after 1, 5 and 10 compactions."""
    totals = Counter(item.kind for item in items(language))
    heads = {
        "facts": f"of {totals['fact']} facts",
        "rules": f"of {totals['rule']} rules",
        "revocations": f"of {totals['revocation']} revocations",
        "corrections": f"of {totals['correction']} corrections",
        "stale": "corrected figures unmarked",
        "ended": "ended rules alone",
        "invented": "invented figures",
    }

    def cell(each: Sequence[Held], name: str) -> str:
        return " / ".join(str(getattr(each[k - 1], name)) if k <= len(each) else "-" for k in AFTER)

    rows = [[name, *(cell(each, head) for head in heads)] for name, each in views.items()]
    return table([f"{language}, after {' / '.join(map(str, AFTER))}", *heads.values()], rows)


def sizes_table(grid: Mapping[tuple[bool, bool, int], Sizes]) -> str:
    """Return the table of how large views are after a compaction."""
    rows: list[list[Any]] = []
    for (with_sql, by_code, limit), cell in grid.items():
        what = f"{'SQL results' if with_sql else 'plain talk'}, by {'code' if by_code else 'model'}"
        share = f"{statistics.mean(cell.in_bounds):.0%}"
        view = f"{min(cell.shares):.0%} to {max(cell.shares):.0%}"
        rounds = f"{min(cell.rounds)} to {max(cell.rounds)}"
        rows.append([what, f"{limit:,}", len(cell.in_bounds), share, view, rounds])
    every = [each for cell in grid.values() for each in cell.in_bounds]
    rows.append(["all", "", len(every), f"{statistics.mean(every):.0%}", "", ""])
    return table(
        ["after compactions", "limit", "how many", "in bounds", "view", "rounds kept"], rows
    )


def talks_table(talks: Mapping[str, Talk]) -> str:
    """Return the table of summariser calls and views in talks over tables."""
    head = [
        f"{TABLE_TURNS} turns over tables, limit {TABLE_LIMIT:,}",
        "summary calls",
        "waited for",
        "tokens read",
    ]
    rows: list[list[Any]] = []
    for name, each in talks.items():
        row: list[Any] = [name, each.calls, each.waited, f"{each.read:,}", each.unseen]
        rows.append([*row, f"{statistics.mean(each.views):,.0f}", f"{max(each.views):,}"])
    return table([*head, "calls without the question", "mean view", "largest view"], rows)


def table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def draw(views: Mapping[str, Sequence[Held]], talks: Mapping[str, Talk]) -> None:
    """Write the picture: what the last English views held, and the views of the talk over
    tables.
    """
    mpl.use("agg")
    from matplotlib import pyplot

    colours = dict(
        zip(SYSTEMS, ("#2f7d95", "#b03030", "#d08a8a", "#7a6a2f", "#c9b458"), strict=True)
    )
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), dpi=80, width_ratios=(1.2, 1.2))
    kinds = ("facts", "rules", "revocations", "corrections", "stale")
    for place, name in enumerate(SYSTEMS):
        last = views[f"{name}, honest"][-1]
        heights = [getattr(last, kind) for kind in kinds]
        bars = left.bar(
            [n + (place - 2) * 0.16 for n in range(len(kinds))],
            heights,
            0.16,
            label=name,
            color=colours[name],
        )
        left.bar_label(bars, fontsize=5)
    left.set(
        ylabel=f"in the view after {AFTER[-1]} compactions", ylim=(0, 60), xticks=range(len(kinds))
    )
    left.set_xticklabels([*kinds[:-1], "stale figures\nunmarked"], fontsize=7)
    left.legend(fontsize=7, frameon=False, ncols=2, loc="upper center")
    for name in ("langchain, defaults", "langmem", "longtable"):
        right.plot(talks[name].views, label=name, color=colours[name], linewidth=1)
    right.axhline(0.6 * TABLE_LIMIT, color="#333333", linewidth=0.8, linestyle="--")
    right.text(1, 0.61 * TABLE_LIMIT, "threshold", fontsize=7)
    right.set(
        xlabel="model call, talk over tables", ylabel="tokens sent", ylim=(0, TABLE_LIMIT * 1.3)
    )
    right.legend(fontsize=7, frameon=False, ncols=3, loc="upper center")
    figure.tight_layout()
    figure.savefig(PICTURE)


if __name__ == "__main__":
    main()
