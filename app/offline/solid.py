"""Cut names that are written together, as old systems have them: CUSTNAME, ORDDATE, QTYOH, UNITPRC."""

# ruff: noqa: SIM905 - word lists read best as plain words

from collections.abc import Iterable
from functools import lru_cache

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.lexicon_abbreviations import ALTERNATIVES, EXPANDED
from longtable.app.offline.text import Token, lemma, parts_of, skeleton

_TAILS = frozenset(
    """no nbr num nm name dt date amt amount qty cd code id desc dsc stat status typ type prc price pct rate lim time city phone
    addr""".split()
)
_PIECES = _TAILS | frozenset(
    """item line order unit cost sale sales rep area zip state birth hire open close start end due paid pay ship work job part bin lot
    max min avg tot net tax last first full short list base day days year month hour count flag note key ref group class size tel email
    user owner store shop bank card loan bill room seat bed car truck trip stop lead stock""".split()
)
_LEAST = 5  # letters of a name that may be several words
_SHARE = 0.3  # of the columns: what ends in such a tail, in a schema that writes its names together


def cuts(tokens: list[Token], catalog: Catalog) -> dict[str, tuple[str, ...]]:
    """Return the pieces of each solid name, where most of a schema's names are solid; the words of the question are known pieces too."""
    names = [column.name for table in catalog.tables.values() for column in table.columns]
    solid = [parts[0] for name in names if len(parts := parts_of(name)) == 1 and parts[0].isascii()]
    if len(solid) < 0.8 * len(names):
        return {}
    said = {form for token in tokens if token.kind == "word" and token.word.isascii() for form in (token.word, lemma(token.word))}
    pieces = _pieces(said)
    found = {part: cut for part in {*solid, *(part for name in catalog.tables for part in parts_of(name))} if (cut := _cut(part, pieces))}
    tailed = sum(1 for part in solid if part in found and found[part][-1] in _TAILS)
    return found if tailed >= _SHARE * len(names) else {}


def _pieces(said: Iterable[str]) -> frozenset[str]:
    """Return what a piece may be: a known abbreviation or word, or a word of the question, its beginning or its consonants."""
    own = {word[:size] for word in said for size in range(3, len(word) + 1)} | {skeleton(word) for word in said if len(skeleton(word)) > 2}
    return frozenset(own) | _PIECES | {*EXPANDED, *ALTERNATIVES} - {"ment"}


@lru_cache(maxsize=20_000)
def _cut(part: str, pieces: frozenset[str]) -> tuple[str, ...]:
    """Return the fewest pieces that make up a part, those with the longest first; none where it is a word or two letters remain."""
    if len(part) < _LEAST or not part.isalpha() or part in EXPANDED or part in ALTERNATIVES or part in EXPANDED.values():
        return ()
    best: list[tuple[str, ...] | None] = [(), *[None] * len(part)]
    for end in range(2, len(part) + 1):
        for start in range(end - 1):
            head, piece = best[start], part[start:end]
            if head is not None and piece in pieces and (best[end] is None or len(head) + 1 < len(best[end] or ())):
                best[end] = (*head, piece)
    found = best[-1] or ()
    return found if 2 <= len(found) <= 3 and max(map(len, found)) > 2 else ()
