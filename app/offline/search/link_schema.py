"""Link spans of words to tables, columns and flags: by name, by synonym, by what their letters abbreviate."""

from dataclasses import replace
from functools import lru_cache

from longtable.app.offline.catalog import Catalog, Column, Table
from longtable.app.offline.lexicon import FILLERS, PARTICIPLES, PEOPLE, PREPOSITIONS, REVENUE
from longtable.app.offline.lexicon_abbreviations import EXPANDED
from longtable.app.offline.lexicon_events import ENDS, events, events_of
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
            if end - start > 2 and first.word.endswith("ed") and part[1].word in ("the", "a", "an"):
                break  # guided the departure: a verb and its object
            found += _span(part, start, end, catalog)
    return [*found, *_again(tokens, found)]


def _again(tokens: list[Token], links: list[Link]) -> list[Link]:
    """Let a lone word stand for the column that a longer name with it named before: 'payment terms over 30 days: show the terms'."""
    found: list[Link] = []
    long = [link for link in links if link.kind == "column" and link.end - link.start > 1 and link.cost < 0.3]
    linked = {link.start for link in links if link.end == link.start + 1 and link.cost < 0.2}
    for place, token in enumerate(tokens):
        if token.kind != "word" or token.word in FUNCTION or place in linked:
            continue
        for link in long:
            if not link.start <= place < link.end and lemma(token.word) in {lemma(each.word) for each in tokens[link.start : link.end]}:
                found.append(replace(link, start=place, end=place + 1, text=token.text, cost=costs.LINK + costs.ADDED_WORD))
    return list(dict.fromkeys(found))


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
        if len(words) == 1 and lemma(words[0]) in ("date", "day", "time"):
            known = {(link.table, link.column) for link in found}
            dates = [column for table in catalog.tables.values() if table.kind == "table" for column in table.columns if column.is_date]
            found += [
                Link(start, end, "column", costs.LINK + 0.2, text, column.table, column.name)
                for column in dates
                if (column.table, column.name) not in known
            ]
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
    first, last, several = words[0], words[-1], len(words) > 1
    idle = all(word in FILLERS or word in FUNCTION for word in words)
    found: list[Link] = []
    kept = 0.3 if not several and first in TAILS else _KEPT
    for hit in [hit for hit in linked if hit.score >= linked[0].score - kept and hit.score >= _LOOSE][:_MOST]:
        if idle and hit.score < 0.95:
            continue
        if hit.is_table and several and hit.score < 0.95 and last in FILLERS:
            continue
        cost = costs.LINK + costs.MISFIT * max(0.0, 1 - hit.score) + (costs.VERB if idle and hit.score < 0.97 else 0.0)
        column = catalog.column(hit.table, hit.column) if hit.column else None
        if hit.is_table and several and hit.score < 0.97:
            cost += 0.25
        if column is not None and (home := catalog.table(hit.table)) is not None:
            cost += (0.0 if home.names else 0.01) + (0.02 if column.references else 0.0)
            if "of" in text.lower().split() and lemma(first) in set(map(lemma, home.words)) - set(map(lemma, column.words)):
                continue  # trucks of brand: the truck
        if not hit.is_table and hit.own < len(words) and several:
            cost += 0.03  # part of the name is the table's
        if column is not None and column.is_date and not _TIMES & set(map(lemma, words)):
            cost += 0.3  # a publication is no date of it
        if column is None and lemma(last) in REVENUE and hit.score < 0.97 and not _of_name(last, catalog.table(hit.table)):
            continue
        if column is None:
            found.append(Link(start, end, "table", cost, text, hit.table))
            continue
        if column.is_date and (last.endswith("ed") or last in PARTICIPLES) and hit.own < 2:
            continue  # a verb: periods find its date
        if column.is_id and not column.is_date and not _KEY_WORDS & set(words):
            found += _as_table(start, end, cost, text, column, catalog)
            continue
        flagged = column.truth is not None
        found.append(Link(start, end, "column", cost + (costs.FLAG if flagged else 0.0), text, hit.table, hit.column))
        if flagged and column.truth is not None:
            found.append(Link(start, end, "flag", cost, text, hit.table, hit.column, values=(column.truth,)))
    return found


def _of_name(word: str, table: Table | None) -> bool:
    return table is not None and lemma(word) in set(map(lemma, table.words))


def _as_table(start: int, end: int, cost: float, text: str, column: Column, catalog: Catalog) -> list[Link]:
    """Let the name of a key stand for the table that it points at, or that it is the key of."""
    for link in catalog.links:
        if link.many == column.table and link.many_columns == (column.name,):
            kin = costs.KIN if link.one == column.table else 0.02
            return [Link(start, end, "table", cost + kin, text, link.one, role=(column.table, column.name))]
    table = catalog.table(column.table)
    if table is not None and table.key == (column,):
        return [Link(start, end, "table", cost + 0.02, text, table.name)]
    return [Link(start, end, "column", cost, text, column.table, column.name)]


def _spelled(
    words: tuple[str, ...], text: str, start: int, end: int, catalog: Catalog, known: set[tuple[str, str]], *, edges: bool
) -> list[Link]:
    """Link words to names whose letters abbreviate them in a way that no dictionary holds: 'open access' to oa_flg."""
    found: list[Link] = []
    last, several = words[-1], len(words) > 1
    for table in catalog.tables.values():
        if table.kind != "table":
            continue
        for column in table.columns:
            if (table.name, column.name) in known or (column.is_id and not column.is_date):
                continue
            bare = _bare(column.name, table.name)
            flag = column.truth is not None
            solid = flag and "".join(words) == "".join(bare)
            if not solid and (edges or not spells(words, bare, loose=several)):
                continue
            if column.is_date and (last.endswith("ed") or last in PARTICIPLES):
                continue
            cost = 0.02 if solid and several else costs.LINK + (0.1 if solid else costs.NEAR_NAME)
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
def spells(words: tuple[str, ...], parts: tuple[str, ...], *, loose: bool = False) -> bool:
    """Say whether the parts of a name abbreviate the words in order: each a beginning of one word, or the initials of several."""
    if not words or not parts:
        return not words and not parts
    part = parts[0]
    for size in range(1, len(words) + 1):
        head = words[:size]
        if size == 1 and _short_for(head[0], part, loose=loose) and spells(words[1:], parts[1:], loose=loose):
            return True
        known = EXPANDED.get(part, " ")  # nm is a name, no New Mexico
        if size > 1 and _initials(head) == part and " " in known and spells(words[size:], parts[1:], loose=loose):
            return True
    return False


def _initials(words: tuple[str, ...]) -> str:
    return "".join(word if word.isdigit() else word[0] for word in words)


def _short_for(word: str, part: str, *, loose: bool) -> bool:
    if likeness(word, part) >= 0.8:
        return True
    if loose and len(part) >= 3 and word[0] == part[0] and not set(part[1:]) & set("aeiou"):
        rest = iter(word[: len(part) + 4])
        return all(letter in rest for letter in part)  # awd of awarded
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
        gone = token.word == "left" and place > 0 and tokens[place - 1].word in ("have", "has", "had", "who", "that")
        if not gone and not (is_state(tokens, place, catalog) and (token.word.endswith("ed") or token.word in PARTICIPLES)):
            continue
        for table in catalog.tables.values():
            for column in table.columns if table.kind == "table" else ():
                said = stem(token.word) in {stem(word) for word in column.words} or (
                    gone and events("left") & events_of(column.words) & ENDS
                )
                if column.is_date and said:
                    cost = costs.LINK + (0.0 if gone else costs.FLAG)
                    found.append(Link(place, place + 1, "flag", cost, token.text, table.name, column.name))
    return found


def own_name(table: Table, word: str) -> bool:
    """Say whether a word is of the family of a table's name: 'rented' of rentals."""
    return len(word) > 3 and any(
        stem(word) == stem(part) or lemma(word) == lemma(part) or (len(word) > 7 and part[:7] == word[:7]) for part in table.words
    )
