"""Memory beside langchain's SummarizationMiddleware and langmem's SummarizationNode: facts kept, calls, views, overhead.

python -m benchmarks.memory draws docs/memory.png, for the README. All run in one process, interleaved, on the same
talks with the same models, which answer at once; times are medians, and the ratios are what holds on other machines.
"""

import logging
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import matplotlib as mpl
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from benchmarks.memories.models import ENCODING, facts_in, waited_for
from benchmarks.memories.systems import LangChain, LangMem, Longtable, Maker, Setting, System
from benchmarks.memories.talks import answer, fact, long_question, over_tables, plain, planting
from longtable.graph import open_persistence
from longtable.memory.search import Index, Original
from longtable.memory.tokens import counter

PICTURE = Path(__file__).parents[1] / "docs" / "memory.png"
FACTS, PLANTED_IN, FOLDS = 290, 32_000, 5
IMPORT_LIMIT = 24_000
TURNS, TALK_LIMIT = 200, 16_000
LENGTHS, REPEATS = (100, 1_000, 5_000), 11
ALL_IN_VIEW = 1_000_000
SHOWN = 160
"""Model calls in the picture."""
SETTLING = 35
"""Real turns before the first that is timed: by then each thread is stored as one is that grew turn by turn."""
OURS = "longtable"
SYSTEMS: Mapping[str, Maker] = {
    OURS: Longtable,
    "langchain": LangChain,
    "langchain, defaults": partial(LangChain, defaults=True),
    "langmem": LangMem,
    "langmem, defaults": partial(LangMem, defaults=True),
}


TIMED: Mapping[str, Maker] = {name: SYSTEMS[name] for name in (OURS, "langchain", "langmem")}
"""With their default counters, which estimate, the others' own work takes a little longer than with longtable's, cached."""


@contextmanager
def threads(makers: Mapping[str, Maker], setting: Setting, *, files: bool = False) -> Iterator[dict[str, System]]:
    """Open one thread in each framework: in memory, or each in a SQLite file of its own."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        opened: dict[str, System] = {}
        for number, (name, make) in enumerate(makers.items()):
            url = f"sqlite:///{folder}/{number}.db" if files else "memory://"
            opened[name] = make(setting, stack.enter_context(open_persistence(url)))
        yield opened


# -- facts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """How many of the planted facts: in the view after each compaction, in the thread word for word, found by search."""

    in_view: list[int]
    in_thread: int
    found: int


def grown() -> dict[str, Facts]:
    """Plant facts in the first turns, then talk on until there were enough compactions; look at the first view after each."""
    setting = Setting(PLANTED_IN)
    found: dict[str, Facts] = {}
    with threads(SYSTEMS, setting) as systems:
        for name, system in systems.items():
            system.load(_planted(fillers=1))
            in_view: list[int] = []
            turn = 0
            while len(in_view) < FOLDS:
                folds = system.folds()
                system.say(long_question(turn))
                if folds > len(in_view):
                    in_view.append(len(facts_in(system.fakes.answerer.sent[-1])))
                system.fakes.answerer.sent.clear()
                turn += 1
            found[name] = Facts(in_view, *_had_back(name, system))
    return found


def imported() -> dict[str, Facts]:
    """Give each framework a thread of 40,000 tokens at once, more than the summariser's window, and look at the next view."""
    setting = Setting(IMPORT_LIMIT)
    history = _planted(fillers=3)
    for n in range(12):
        history += [HumanMessage(plain(n), id=f"p{n}"), AIMessage(answer(plain(n)), id=f"r{n}")]
    found: dict[str, Facts] = {}
    with threads(SYSTEMS, setting) as systems:
        for name, system in systems.items():
            system.load(history)
            system.say(plain(12))
            found[name] = Facts([len(facts_in(system.fakes.answerer.sent[-1]))], *_had_back(name, system))
    return found


def _planted(*, fillers: int) -> list[BaseMessage]:
    history: list[BaseMessage] = []
    for n in range(FACTS):
        question = planting(n, fillers=fillers)
        history += [HumanMessage(question, id=f"q{n}"), AIMessage(answer(question) if fillers > 1 else "Noted.", id=f"a{n}")]
    return history


def _had_back(name: str, system: System) -> tuple[int, int]:
    originals = system.originals()
    there = facts_in(originals)
    if name != OURS:
        return len(there), 0  # neither has a search over what it keeps
    index = Index.build([Original(i + 1, message) for i, message in enumerate(originals)])
    hits = [index.search(f"fact {n}", 5) for n in range(FACTS)]
    return len(there), sum(any(fact(n) in hit.message.text for hit, _ in each) for n, each in enumerate(hits))


# -- calls and views ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Talk:
    """A talk's summariser calls per 100 turns, those that an answer waited for, the tokens they read, and the sizes of the views."""

    calls: float
    waited: float
    read: int
    unseen: float
    """Calls per 100 turns that did not hold the newest question word for word."""
    views: list[int]


def talked(question: Callable[[int], str], turn_messages: int) -> dict[str, Talk]:
    """Hold one talk in each framework."""
    setting, count = Setting(TALK_LIMIT, turn_messages), counter(ENCODING)
    found: dict[str, Talk] = {}
    with threads(SYSTEMS, setting) as systems:
        for name, system in systems.items():
            views: list[int] = []
            waited = unseen = 0
            for n in range(TURNS):
                system.fakes.log.clear()
                system.say(question(n))
                waited += waited_for(system.fakes.log)
                unseen += sum(all(question(n) not in message.text for message in sent) for sent in system.fakes.answerer.sent)
                views += [count.messages(sent) for sent in system.fakes.answerer.sent]
                system.fakes.answerer.sent.clear()
            inputs = system.fakes.summariser.inputs
            share = 100 / TURNS
            found[name] = Talk(len(inputs) * share, waited * share, round(sum(inputs) * share), unseen * share, views)
    return found


# -- overhead -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Overhead:
    """Milliseconds a turn: the framework's own work around the model call, and the whole turn with its checkpoints."""

    work: float
    turn: float


def overhead(length: int, *, folded: bool) -> dict[str, Overhead]:
    """Time a turn of plain talk at the end of a thread of `length` messages, with compactions on the way or all in view."""
    setting = Setting(TALK_LIMIT if folded else ALL_IN_VIEW)
    turns: dict[str, list[float]] = {name: [] for name in TIMED}
    work: dict[str, list[float]] = {name: [] for name in TIMED}
    with threads(TIMED, setting, files=True) as systems:
        for system in systems.values():
            _fill(system, length // 2, step=50 if folded else length // 2)
            for n in range(SETTLING if folded else 1):
                system.say(plain(n))
        for n in range(REPEATS):
            for name, system in systems.items():
                turns[name].append(_milliseconds(partial(system.say, plain(n))))
        for hook in [(name, system.hook()) for name, system in systems.items()] * REPEATS:
            work[hook[0]].append(_milliseconds(hook[1]))
    return {name: Overhead(statistics.median(work[name]), statistics.median(turns[name])) for name in TIMED}


def _fill(system: System, turns: int, *, step: int) -> None:
    """Bring a thread to so many turns; the last of each `step` is a real one, so that the framework can fold."""
    for first in range(0, turns, step):
        last = min(first + step, turns) - 1
        earlier: list[BaseMessage] = []
        for n in range(first, last):
            earlier += [HumanMessage(plain(n), id=f"q{n}"), AIMessage(answer(plain(n)), id=f"a{n}")]
        system.load(earlier)
        system.say(plain(last))


def _milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


# -- what is shown --------------------------------------------------------------------------------------------------


def main() -> None:
    """Measure, print, draw."""
    warnings.filterwarnings("ignore", message="the tokenizer of model")
    logging.getLogger("langgraph").setLevel(logging.ERROR)  # langmem keeps a dataclass in the state, which is told at each load
    facts, at_once = grown(), imported()
    talks = {"plain": talked(plain, 2), "tables": talked(over_tables, 4)}
    times = {(length, folded): overhead(length, folded=folded) for folded in (False, True) for length in LENGTHS}
    print(facts_table(facts, at_once))
    print(talks_table(talks))
    print(overhead_table(times))
    draw(facts, at_once, talks["tables"])


def facts_table(facts: Mapping[str, Facts], at_once: Mapping[str, Facts]) -> str:
    """Return the table of facts."""
    head = [f"of {FACTS} facts", *(f"after {k}" for k in range(1, FOLDS + 1)), "thread imported", "still in the thread", "found by search"]
    return table(head, [[name, *each.in_view, *at_once[name].in_view, each.in_thread, each.found or "-"] for name, each in facts.items()])


def talks_table(talks: Mapping[str, Mapping[str, Talk]]) -> str:
    """Return the table of summariser calls and views."""
    head = [""]
    rows: dict[str, list[object]] = {name: [name] for name in SYSTEMS}
    for kind, talk in talks.items():
        head += [f"{kind}: calls per 100 turns", "waited for", "tokens they read", "without the question", "mean view", "largest view"]
        for name, each in talk.items():
            sizes = [f"{statistics.mean(each.views):,.0f}", f"{max(each.views):,}"]
            rows[name] += [f"{each.calls:.1f}", f"{each.waited:.1f}", f"{each.read:,}", f"{each.unseen:.1f}", *sizes]
    return table(head, list(rows.values()))


def overhead_table(times: Mapping[tuple[int, bool], Mapping[str, Overhead]]) -> str:
    """Return the table of times, each with its ratio to longtable's."""
    head = ["ms a turn", *(f"{length:,}, {'folded' if folded else 'all in view'}" for length, folded in times)]
    rows: list[list[object]] = []
    for what in ("work", "turn"):
        for name in TIMED:
            row: list[object] = [f"{name}: {'own work' if what == 'work' else 'whole turn, SQLite'}"]
            for found in times.values():
                mine, ours = getattr(found[name], what), getattr(found[OURS], what)
                row.append(f"{mine:.2f}" if name == OURS else f"{mine:.2f} ({mine / ours:.2f} x)")
            rows.append(row)
    return table(head, rows)


def table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def draw(facts: Mapping[str, Facts], at_once: Mapping[str, Facts], talks: Mapping[str, Talk]) -> None:
    """Write the picture: the facts that views still held, and the views of the talk over tables."""
    mpl.use("agg")
    from matplotlib import pyplot

    colours = dict(zip(SYSTEMS, ("#2f7d95", "#b03030", "#d08a8a", "#7a6a2f", "#c9b458"), strict=True))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), dpi=80, width_ratios=(1, 1.3))
    width = 0.8 / len(SYSTEMS)
    for place, name in enumerate(SYSTEMS):
        kept = [facts[name].in_view[0], facts[name].in_view[-1], at_once[name].in_view[0]]
        bars = left.bar([group + (place - 2) * width for group in range(3)], kept, width, label=name, color=colours[name])
        left.bar_label(bars, fontsize=6)
    left.set(ylabel=f"facts in the view, of {FACTS}", ylim=(0, FACTS * 1.45), xticks=range(3))
    left.set_xticklabels(["after 1 fold", f"after {FOLDS}", "import"], fontsize=8)
    left.legend(fontsize=7, frameon=False, ncols=2, loc="upper center")
    for name in ("langchain, defaults", "langmem", OURS):
        right.plot(talks[name].views[:SHOWN], label=name, color=colours[name], linewidth=1)
    right.axhline(0.6 * TALK_LIMIT, color="#333333", linewidth=0.8, linestyle="--")
    right.text(1, 0.61 * TALK_LIMIT, "threshold", fontsize=7)
    right.set(xlabel="model call, talk over tables", ylabel="tokens sent", ylim=(0, TALK_LIMIT * 1.15))
    right.legend(fontsize=7, frameon=False, ncols=3, loc="upper center")
    figure.tight_layout()
    figure.savefig(PICTURE)


if __name__ == "__main__":
    main()
