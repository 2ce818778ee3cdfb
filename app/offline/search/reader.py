"""Search for the cheapest whole reading of a question."""

from dataclasses import replace

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.chunks import Values
from longtable.app.offline.joins import Hints
from longtable.app.offline.search import costs
from longtable.app.offline.search.assemble import assemble
from longtable.app.offline.search.fill_measures import collect_measures, settle_functions
from longtable.app.offline.search.fill_numbers import settle_numbers
from longtable.app.offline.search.fill_ranks import settle_ranks
from longtable.app.offline.search.fill_rest import settle_groups, settle_rest
from longtable.app.offline.search.fill_values import settle_negations, settle_patterns, settle_values
from longtable.app.offline.search.joining import NoReading
from longtable.app.offline.search.lattice import Distances, paths
from longtable.app.offline.search.link_schema import schema_links, state_links
from longtable.app.offline.search.link_values import value_links
from longtable.app.offline.search.link_words import word_links
from longtable.app.offline.search.model import Link, Path, Reading
from longtable.app.offline.search.periods import settle_periods
from longtable.app.offline.search.scene import Scene
from longtable.app.offline.text import Token, lemma, stem

_RULES = (
    settle_functions, settle_patterns, settle_periods, settle_ranks, settle_numbers, settle_groups, settle_negations, settle_values,
    collect_measures, settle_rest,
)  # fmt: skip


def readings(tokens: list[Token], catalog: Catalog, values: Values) -> list[Reading]:
    """Return whole readings of a question, cheapest first."""
    links = [
        *schema_links(tokens, catalog),
        *value_links(tokens, catalog, values),
        *word_links(tokens, catalog),
        *state_links(tokens, catalog),
    ]
    links = _with_company(_without_idle_tables(links), tokens, catalog)
    distances = Distances(catalog)
    stems = frozenset(stem(token.word) for token in tokens if len(token.word) > 2)
    found: list[Reading] = []
    for path in paths(links, len(tokens), catalog):
        roles = frozenset((link.role[0].casefold(), link.role[1].casefold()) for link in path.links if link.role[0])
        reading = _read(path, tokens, catalog, distances, Hints(stems, roles))
        if reading is not None:
            found.append(reading)
    return sorted(found, key=lambda reading: reading.cost)


def _without_idle_tables(links: list[Link]) -> list[Link]:
    """A plural noun that is a table's own name is not passed over."""
    exact = {
        link.start
        for link in links
        if link.kind == "table" and link.end == link.start + 1 and link.cost <= costs.LINK + 0.07 and lemma(link.word) != link.word
    }
    return [
        replace(link, cost=max(link.cost, costs.DROPPED_TABLE)) if link.kind == "filler" and link.start in exact else link for link in links
    ]


_ADJECTIVES = ("al", "ic", "ive", "ous", "ful", "less", "ble", "ed", "ary", "ern", "ish", "est", "ly", "ent", "ant")


def _with_company(links: list[Link], tokens: list[Token], catalog: Catalog) -> list[Link]:
    """Let an unknown word pass that only goes with the column beside it: *parking* spots, crates *picked*."""
    said = {place for link in links if link.kind not in ("unused", "filler") for place in range(link.start, link.end)}
    nouns = {link.start for link in links if link.kind == "column" and link.end == link.start + 1 and link.cost <= 0.12}
    ends = [(link.end, catalog.column(link.table, link.column)) for link in links if link.kind == "column"]
    measures = {end for end, column in ends if column is not None and column.is_number}
    summed = {"total", "most", "fewest", "top", "many", "sum"} & {token.word for token in tokens}

    def passing(link: Link) -> float:
        word, after = link.word, tokens[link.end] if link.end < len(tokens) else None
        if link.kind != "unused" or link.start in said or tokens[link.start].is_name or tokens[link.start].kind != "word":
            return 0.0
        if link.end in nouns and after is not None and lemma(after.word) != after.word and len(word) > 5 and not word.endswith(_ADJECTIVES):
            return costs.MODIFIER
        closes = after is None or after.kind in ("comma", "stop") or after.word in ("by", "with", "per", "and", "in")
        return costs.VERB if word.endswith("ed") and link.start in measures and closes and summed else 0.0

    return [replace(link, kind="filler", cost=cost) if (cost := passing(link)) else link for link in links]


def _read(path: Path, tokens: list[Token], catalog: Catalog, distances: Distances, hints: Hints) -> Reading | None:
    scene = Scene(path, tokens, catalog, distances)
    try:
        for rule in _RULES:
            rule(scene)
        query = assemble(scene, hints)
    except NoReading:
        return None
    return Reading(query, path.cost + scene.slots.cost, path, tuple(scene.slots.notes))


def search(tokens: list[Token], catalog: Catalog, values: Values) -> Reading | None:
    """Return the best reading if it is good and clearly better than one of another shape."""
    found = readings(tokens, catalog, values)
    if not found or found[0].cost > costs.GOOD:
        return None
    best = found[0]
    for other in found[1:]:
        if other.cost - best.cost >= costs.MARGIN:
            break
        if other.query != best.query and len(other.query.group) != len(best.query.group):
            return None
    return best
