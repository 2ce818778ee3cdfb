"""Drop values that a word of the question meets only by chance, in a table far from all that the question speaks of."""

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.chunks import Chunk
from longtable.app.offline.joins import distance

_PART, _WHOLE = 1, 2  # how many joins away a value may be that a lower-case word is part of, or is


def far_values(chunks: list[Chunk], catalog: Catalog) -> None:
    """Make a word of a value again ('vineyard' is no 'Vineyard Walk' of the visits) where nothing named is near that value's table."""
    near = _named(chunks)
    near |= {match.table for each in chunks if each.kind == "value" and (each.name or _is_whole(each)) for match in each.matches}
    for each in chunks:
        if each.kind != "value" or each.name or each.quoted or not each.text.isascii():
            continue
        whole = _is_whole(each)
        others = near - {match.table for match in each.matches} if whole else near
        if not others or (whole and any(match.table in _named(chunks) for match in each.matches)):
            continue
        reach = _WHOLE if whole else _PART
        if not any(
            (far := distance(catalog, table, match.table)) is not None and far <= reach for table in others for match in each.matches
        ):
            each.kind, each.matches = "word", ()


def _is_whole(value: Chunk) -> bool:
    return bool(value.matches) and value.matches[0].how != "partial"


def _named(chunks: list[Chunk]) -> set[str]:
    """Return the tables that the mentions are of, where they could be of no other."""
    homes = [
        {hit.table for hit in each.hits if hit.score >= each.best - 0.05} for each in chunks if each.kind == "mention" and each.best >= 0.72
    ]
    return {table for home in homes if len(home) == 1 for table in home}
