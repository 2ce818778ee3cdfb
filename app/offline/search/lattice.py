"""Cut a question into links in the cheapest ways: a beam over its words that keeps what may still turn out best."""

from collections import defaultdict

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.joins import Hints
from longtable.app.offline.joins import path as way
from longtable.app.offline.search import costs
from longtable.app.offline.search.model import Link, Path

WIDTH = 40
BEST = 14


class Distances:
    """Numbers of joins between tables, found once each."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.known: dict[tuple[str, str], int | None] = {}

    def between(self, first: str, second: str) -> int | None:
        """Return how many joins lead from one table to the other, None when none do."""
        if first == second:
            return 0
        key = (min(first, second), max(first, second))
        if key not in self.known:
            steps = way(self.catalog, (key[0],), key[1], Hints())
            self.known[key] = None if steps is None else len(steps)
        return self.known[key]

    def cost(self, tables: frozenset[str], table: str) -> float:
        """Return what a further table costs beside those there are."""
        if not tables or table in tables:
            return 0.0
        near = [far for other in tables if (far := self.between(other, table)) is not None]
        return costs.APART if not near else costs.TABLE + costs.STEP * (min(near) - 1)


def paths(links: list[Link], size: int, catalog: Catalog, width: int = WIDTH, best: int = BEST) -> list[Path]:
    """Return the cheapest ways to cut a question of `size` words into links, cheapest first."""
    starts: dict[int, list[Link]] = defaultdict(list)
    for link in links:
        starts[link.start].append(link)
    distances = Distances(catalog)
    beams: list[list[Path]] = [[] for _ in range(size + 1)]
    beams[0] = [Path()]
    for place in range(size):
        beams[place] = _pruned(beams[place], width)
        for known in beams[place]:
            for link in starts[place]:
                further = distances.cost(known.tables, link.table) if link.table else 0.0
                tables = known.tables | {link.table} if link.table else known.tables
                beams[link.end].append(Path((*known.links, link), known.cost + link.cost + further, tables))
    return _pruned(beams[size], best)


def _pruned(found: list[Path], width: int) -> list[Path]:
    return sorted(found, key=lambda path: (path.cost, len(path.links)))[:width]
