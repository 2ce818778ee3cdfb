"""Link spans of words to tables, columns and flags: by name, by synonym, by what their letters abbreviate."""

from dataclasses import replace
from functools import lru_cache

from longtable.app.offline.catalog import Catalog, Column, Table
from longtable.app.offline.lexicon import FILLERS, PARTICIPLES, PEOPLE, PREPOSITIONS
from longtable.app.offline.linking import hits
from longtable.app.offline.search import costs
from longtable.app.offline.search.model import Link
from longtable.app.offline.search.vocabulary import DROPPED, EVERYONE, FLAG_WORDS, FUNCTION, TAILS
from longtable.app.offline.states import is_state
from longtable.app.offline.text import Token, lemma, likeness, parts_of, stem

LONGEST = 5
_KEPT = 0.16
_MOST = 8
_LOOSE = 0.72
_BREAKS = frozenset(
    ["and", "or", "with", "their", "its", "whose", "who", "which", "that", "have", "has", "had", "are", "is", "was", "were", "along"]
)
_KEY_WORDS = frozenset(["id", "ids", "number", "numbers", "no", "code", "codes", "key", "identifier", "nr", "num", "ref", "reference"])
_TIMES = frozenset(
    ["date", "day", "time", "when", "year", "month", "birthday", "dob", "since", "start", "end", "expiry", "due", "deadline"]
)
_STOPS = frozenset(
    ["per", "each", "every", "by", "than", "most", "least", "more", "less", "fewer", "many", "much", "how", "no", "not", "without"]
)


def schema_links(tokens: list[Token], catalog: Catalog) -> list[Link]:
    """Return every link of a span to a table, a column or a flag."""
    found: list[Link] = []
    for start, first in enumerate(tokens):
        if first.kind not in ("word", "quoted", "code", "number"):
            continue
        for end in range(start + 1, min(start + LONGEST, len(tokens)) + 1):
            part = tokens[start:end]
            if part[-1].kind not in ("word", "number", "code", "quoted"):
                break
            if end - start > 1 and (part[-1].word in _STOPS or part[-1].word in _BREAKS):
                break
            found += _span(part, start, end, catalog)
    return found


def _span(part: list[Token], start: int, end: int, catalog: Catalog) -> list[Link]:
    text = " ".join(token.text for token in part)
    spoken = tuple(piece for token in part for piece in token.word.replace("-", " ").split())
    edges = part[0].word in PREPOSITIONS | DROPPED | _STOPS or part[-1].word in PREPOSITIONS | DROPPED
    words = tuple(word for word in spoken if word not in DROPPED)
    numbers = all(token.kind == "number" for token in part)
    found: list[Link] = []
    if words and not edges and not numbers and part[0].kind != "number":
        found += _named(words, text, start, end, catalog)
        if not found and len(words) > 1 and words[-1] in TAILS:
            named = _named(words[:-1], text, start, end, catalog)
            found += [replace(link, cost=link.cost + costs.ADDED_WORD) for link in named if link.kind == "column"]
        if len(words) == 1 and words[0] in EVERYONE:
            found += [Link(start, end, "table", costs.LINK + 0.1, text, table.name) for table in _people(catalog)]
    if not numbers and part[-1].word not in DROPPED:
        found += _spelled(spoken, text, start, end, catalog, {(link.table, link.column) for link in found}, edges=edges)
    return found


def _people(catalog: Catalog) -> list[Table]:
    return [table for table in catalog.tables.values() if table.kind == "table" and any(lemma(word) in PEOPLE for word in table.words)]


def _named(words: tuple[str, ...], text: str, start: int, end: int, catalog: Catalog) -> list[Link]:
    linked = hits(words, text, catalog)
    if not linked:
        return []
    idle = all(word in FILLERS or word in FUNCTION for word in words)
    found: list[Link] = []
    kept = 0.3 if len(words) == 1 and words[0] in TAILS else _KEPT
    for hit in [hit for hit in linked if hit.score >= linked[0].score - kept and hit.score >= _LOOSE][:_MOST]:
        if idle and hit.score < 0.95:
            continue
        if hit.is_table and len(words) > 1 and hit.score < 0.95 and words[-1] in FILLERS:
            continue
        cost = costs.LINK + costs.MISFIT * max(0.0, 1 - hit.score) + (costs.VERB if idle and hit.score < 0.97 else 0.0)
        if hit.is_table and len(words) > 1 and hit.score < 0.97:
            cost += 0.25
        if not hit.is_table and hit.own < len(words) and len(words) > 1:
            cost += 0.03  # part of the name is the table's
        column = catalog.column(hit.table, hit.column) if hit.column else None
        if column is not None and column.is_date and not _TIMES & set(map(lemma, words)):
            cost += 0.3  # a publication is no date of it
        if column is None:
            found.append(Link(start, end, "table", cost, text, hit.table))
            continue
        if column.is_date and (words[-1].endswith("ed") or words[-1] in PARTICIPLES) and hit.own < 2:
            continue  # a verb: periods find its date
        if column.is_id and not column.is_date and not _KEY_WORDS & set(words):
            found += _as_table(start, end, cost, text, column, catalog)
            continue
        flagged = column.truth is not None
        found.append(Link(start, end, "column", cost + (costs.FLAG if flagged else 0.0), text, hit.table, hit.column))
        if flagged and column.truth is not None:
            found.append(Link(start, end, "flag", cost, text, hit.table, hit.column, values=(column.truth,)))
    return found


def _as_table(start: int, end: int, cost: float, text: str, column: Column, catalog: Catalog) -> list[Link]:
    """Let the name of a key stand for the table that it points at, or that it is the key of."""
    for link in catalog.links:
        if link.many == column.table and link.many_columns == (column.name,):
            return [Link(start, end, "table", cost + 0.02, text, link.one, role=(column.table, column.name))]
    table = catalog.table(column.table)
    if table is not None and table.key == (column,):
        return [Link(start, end, "table", cost + 0.02, text, table.name)]
    return [Link(start, end, "column", cost, text, column.table, column.name)]


def _spelled(
    words: tuple[str, ...], text: str, start: int, end: int, catalog: Catalog, known: set[tuple[str, str]], *, edges: bool
) -> list[Link]:
    """Link words to names whose letters abbreviate them in a way that no dictionary holds: 'open access' to oa_flg."""
    found: list[Link] = []
    for table in catalog.tables.values():
        if table.kind != "table":
            continue
        for column in table.columns:
            if (table.name, column.name) in known or (column.is_id and not column.is_date):
                continue
            bare = _bare(column.name, table.name)
            flag = column.truth is not None
            solid = flag and "".join(words) == "".join(bare)
            if not solid and (edges or not spells(words, bare)):
                continue
            if column.is_date and (words[-1].endswith("ed") or words[-1] in PARTICIPLES):
                continue
            cost = costs.LINK + (0.1 if solid else costs.NEAR_NAME)
            found.append(Link(start, end, "column", cost + (costs.FLAG if flag else 0.0), text, table.name, column.name))
            if flag and column.truth is not None:
                found.append(Link(start, end, "flag", cost, text, table.name, column.name, values=(column.truth,)))
    return found


@lru_cache(maxsize=20_000)
def _bare(name: str, table: str) -> tuple[str, ...]:
    parts = parts_of(name)
    own = set(parts_of(table))
    bare = tuple(part for part in parts if part not in FLAG_WORDS)
    merged: list[str] = []
    for part in bare:  # 24h, 5g: a number goes with what follows it
        if merged and merged[-1].isdigit():
            merged[-1] += part
        else:
            merged.append(part)
    return tuple(part for part in merged if part not in own) or tuple(merged)


@lru_cache(maxsize=200_000)
def spells(words: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Say whether the parts of a name abbreviate the words in order: each a beginning of one word, or the initials of several."""
    if not words or not parts:
        return not words and not parts
    part = parts[0]
    for size in range(1, len(words) + 1):
        head = words[:size]
        if size == 1 and _short_for(head[0], part) and spells(words[1:], parts[1:]):
            return True
        if size > 1 and _initials(head) == part and spells(words[size:], parts[1:]):
            return True
    return False


def _initials(words: tuple[str, ...]) -> str:
    return "".join(word if word.isdigit() else word[0] for word in words)


def _short_for(word: str, part: str) -> bool:
    if likeness(word, part) >= 0.8:
        return True
    if word in FUNCTION or word in FILLERS:
        return False
    return len(part) >= 3 and len(word) >= len(part) + 2 and word.startswith(part)


def dated_by(verb: str, column: Column) -> bool:
    """Say whether the name of a date column is of the family of a verb: act_dt of 'activated'."""
    root = stem(verb)
    return any(stem(word) == root or (len(word) >= 3 and verb.startswith(word)) for word in (*column.words, *parts_of(column.name)))


def state_links(tokens: list[Token], catalog: Catalog) -> list[Link]:
    """Link verbs that stand as a state to the date that tells when it came about: 'returned rentals' have a return date."""
    found: list[Link] = []
    for place, token in enumerate(tokens):
        if not is_state(tokens, place, catalog):
            continue
        for table in catalog.tables.values():
            for column in table.columns if table.kind == "table" else ():
                if column.is_date and stem(token.word) in {stem(word) for word in column.words}:
                    found.append(Link(place, place + 1, "flag", costs.LINK + costs.FLAG, token.text, table.name, column.name))
    return found


def own_name(table: Table, word: str) -> bool:
    """Say whether a word is of the family of a table's name: 'rented' of rentals."""
    return len(word) > 3 and any(stem(word) == stem(part) or lemma(word) == lemma(part) for part in table.words)
