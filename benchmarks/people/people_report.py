"""Format the results of a run as Markdown tables."""

from collections.abc import Iterator, Sequence

from benchmarks.people.crowd import Crowd
from benchmarks.people.open_page import POLL_S

SHOWN_LOSSES = 10
KIB = 1024


def report(crowd: Crowd) -> str:
    """Return the whole report."""
    return "\n".join([*_talk_lines(crowd), "", *_time_lines(crowd), "", *_machine_lines(crowd)])


def _talk_lines(crowd: Crowd) -> Iterator[str]:
    taken = [turn for person in crowd.people for turn in person.taken]
    planned = sum(len(person.turns) for person in crowd.people)
    acts = [f"{act} {sum(turn.plan.act == act for turn in taken)}" for act in _acts(crowd)]
    yield f"| {len(crowd.people):,} people in {crowd.minutes:g} minutes, seed {crowd.seed} | |"
    yield "|---|---:|"
    yield f"| people at once, at most | {crowd.peaks.people} |"
    yield f"| turns acknowledged, of {planned:,} planned | {len(taken):,} |"
    yield f"| turns a second, on average | {len(taken) / crowd.seconds:.2f} |"
    yield f"| answers seen to their end | {sum(bool(turn.answer) for turn in taken):,} |"
    yield f"| queries that waited for an approval | {sum(turn.waited for turn in taken):,} |"
    yield f"| {', '.join(acts)} | |"
    yield f"| looks for news, every {POLL_S:g} s while a page is open | {sum(person.page.polls for person in crowd.people):,} |"
    yield f"| errors | {crowd.errors.total()} |"
    for kind, count in crowd.errors.most_common():
        yield f"| {kind}: {crowd.examples[kind]} | {count} |"
    yield f"| lines that the server printed | {len(crowd.complaints)} |"
    for line in crowd.complaints[:SHOWN_LOSSES]:
        yield f"| {line[:300]} | |"
    yield f"| messages lost, doubled or altered | {len(crowd.lost)} |"
    for loss in crowd.lost[:SHOWN_LOSSES]:
        yield f"| {loss} | |"


def _acts(crowd: Crowd) -> list[str]:
    return sorted({turn.plan.act for person in crowd.people for turn in person.taken})


def _time_lines(crowd: Crowd) -> Iterator[str]:
    yield "| seconds more than the model took | turns | p50 | p95 | p99 |"
    yield "|---|---:|---:|---:|---:|"
    taken = [turn for person in crowd.people for turn in person.taken]
    for kind in ("talk", "query", "costly"):
        same = [turn for turn in taken if turn.plan.kind == kind]
        first = [turn.first_s for turn in same if turn.first_s is not None]
        whole = [turn.whole_s for turn in same if turn.whole_s is not None]
        yield _percentiles(f"{kind}, to the first words", first)
        yield _percentiles(f"{kind}, whole turn", whole)


def _percentiles(what: str, seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    if not ordered:
        return f"| {what} | 0 | | | |"
    places = [min(len(ordered) - 1, int(len(ordered) * share)) for share in (0.5, 0.95, 0.99)]
    cells = " | ".join(f"{ordered[place]:.2f}" for place in places)
    return f"| {what} | {len(ordered)} | {cells} |"


def _machine_lines(crowd: Crowd) -> Iterator[str]:
    turns = max(1, sum(len(person.taken) for person in crowd.people))
    used = crowd.used
    idle = crowd.idle
    peaks = crowd.peaks
    rest = crowd.at_rest
    polls = max(1, crowd.idle_polls)
    grown = (peaks.server_mib - rest.server_mib) / max(1, peaks.people)
    yield "| the machine | |"
    yield "|---|---:|"
    yield _row("processor a turn: server, ms", 1000 * used.server_s / turns)
    yield _row("processor a turn: database workers, ms", 1000 * used.workers_s / turns)
    yield _row("processor a turn: PostgreSQL, ms", 1000 * used.postgres_s / turns)
    yield _row("processor of a look for news: server, ms", 1000 * idle.server_s / polls)
    yield _row("processor of a look for news: PostgreSQL, ms", 1000 * idle.postgres_s / polls)
    yield _row("memory of the server: at rest, peak, MiB", rest.server_mib, peaks.server_mib)
    yield _row("memory for 100 people at once more, MiB", 100 * grown)
    yield _row(
        "memory of database workers: at rest, peak, MiB", rest.workers_mib, peaks.workers_mib
    )
    yield _row("memory of PostgreSQL: at rest, peak, MiB", rest.postgres_mib, peaks.postgres_mib)
    yield f"| connections to PostgreSQL, at most | {peaks.connections} |"
    yield _row("the store: KiB a turn", used.store_bytes / turns / KIB)
    yield _row("PostgreSQL's log: KiB a turn", used.log_bytes / turns / KIB)
    yield _row("whole results: KiB a turn", used.results_bytes / turns / KIB)


def _row(what: str, *figures: float) -> str:
    cells = [f"{figure:.1f}" if figure < 10 else f"{figure:,.0f}" for figure in figures]
    return f"| {what} | {', '.join(cells)} |"
