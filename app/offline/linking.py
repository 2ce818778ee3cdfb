"""Link spans of words to tables and columns of the catalogue."""

from dataclasses import dataclass, replace
from functools import lru_cache

from longtable.app.offline.catalog import Catalog, Column, Table
from longtable.app.offline.lexicon import PREPOSITIONS, SYNONYMS_OF
from longtable.app.offline.lexicon_abbreviations import ALTERNATIVES, EXPANDED
from longtable.app.offline.lexicon_measures import UNIT_NAMES, UNITS_OF
from longtable.app.offline.text import abbreviates, lemma, likeness, parts_of, skeleton, split_name, stem

LEAST = 0.69  # below this a name is not meant
_LIGHT = {
    "of": 0.0, "the": 0.0, "data": 0.2, "list": 0.25, "info": 0.2, "detail": 0.3, "table": 0.0, "record": 0.2, "tbl": 0.0, "dim": 0.0,
    "fact": 0.0, "ref": 0.3, "master": 0.2, "is": 0.0, "number": 0.2, "num": 0.2, "no": 0.3, "count": 0.2, "total": 0.3, "id": 0.45,
    "code": 0.5, "name": 0.6, "by": 0.3, "value": 0.3, "in": 0.0, "m": 0.2, "has": 0.2, "date": 0.8,
    "per": 0.0, "yn": 0.0, "flag": 0.1, "indicator": 0.1,
    **dict.fromkeys(UNIT_NAMES - {"time", "day", "week", "hour", "minute", "second"}, 0.3),
}  # fmt: skip


@dataclass(frozen=True)
class Hit:
    """A table (column empty) or column that a span may mean; `score` 0 to 1, `words` used."""

    table: str
    column: str
    score: float
    words: int = 1
    numeric: bool = False
    dated: bool = False
    own: int = 1  # words that match the name itself, not the name of its table

    @property
    def is_table(self) -> bool:
        """Say whether the hit is a table."""
        return not self.column


def date_hit(column: Column) -> Hit:
    """Return the certain hit of a date column that a rule found."""
    return Hit(column.table, column.name, 1.0, dated=True)


def hits(words: tuple[str, ...], raw: str, catalog: Catalog) -> tuple[Hit, ...]:
    """Return what the span may mean, best first. `words` are content words, `raw` the text as typed."""
    if any("-" in word for word in words) and (parted := tuple(part for word in words for part in word.split("-") if part)):
        whole, apart = _hits(words, raw, catalog), _hits(parted, raw, catalog)
        return whole if whole and (not apart or whole[0].score >= apart[0].score) else apart
    return _hits(words, raw, catalog)


def _hits(words: tuple[str, ...], raw: str, catalog: Catalog) -> tuple[Hit, ...]:
    found: list[Hit] = []
    real = any(table.kind == "table" for table in catalog.tables.values())
    for table in catalog.tables.values():
        score = _table_score(words, raw, table)
        if table.kind == "view" and real:  # a view repeats what tables hold: only its own whole name brings it in
            if score >= 0.9:
                found.append(Hit(table.name, "", score, len(words)))
            continue
        if score >= LEAST:
            found.append(Hit(table.name, "", score, len(words)))
        for column in table.columns:
            score = _column_score(words, raw, column.name, column.comment, table.name)
            if score >= LEAST:
                own = sum(1 for word in words if any(likeness(word, part) >= 0.75 for part in column.words))
                found.append(
                    Hit(
                        table.name,
                        column.name,
                        score,
                        len(words),
                        column.is_number and not column.is_id,
                        column.is_date,
                        own,
                    )
                )
    found = _things(words, found, catalog)
    return tuple(sorted([*found, *_by_key(words, found, catalog)], key=lambda hit: (-hit.score, not hit.is_table)))


def _things(words: tuple[str, ...], found: list[Hit], catalog: Catalog) -> list[Hit]:
    """Let 'passes' be the types of passes themselves, not their key pass_type_id, which comes closer by its words."""
    if lemma(words[-1]) in _KEY_WORDS or words[-1].endswith("ed"):
        return found
    keys = {
        hit.table: hit.score
        for hit in found
        if not hit.is_table and hit.score < 0.95 and (column := catalog.column(hit.table, hit.column)) is not None and column.primary
    }
    best = max((hit.score for hit in found), default=0.0)
    return [
        replace(hit, score=keys[hit.table]) if hit.is_table and hit.score < keys.get(hit.table, 0.0) and keys[hit.table] >= best else hit
        for hit in found
    ]


def _by_key(words: tuple[str, ...], found: list[Hit], catalog: Catalog) -> list[Hit]:
    """Let 'services' be the table whose key is a service code, where no table has that name."""
    if len(words) != 1 or lemma(words[0]) in _KEY_WORDS or any(hit.is_table and hit.score >= 0.8 for hit in found):
        return []
    keys = [(hit, column) for hit in found if (column := catalog.column(hit.table, hit.column)) is not None and column.primary]
    own = [hit for hit, column in keys if set(column.words[1:]) <= _KEY_WORDS and likeness(words[0], column.words[0]) >= 0.97]
    own = [hit for hit in own if not _happened(words, split_name(hit.column))]
    return [Hit(own[0].table, "", own[0].score, 1)] if len(own) == 1 else []


QUALIFIERS = frozenset(["payment", "contact", "home", "personal", "mailing", "job"])
_AREAS = frozenset(["area", "space"])
_KEY_WORDS = frozenset(["id", "code", "no", "number", "key", "nr"])


_JOINING = frozenset(["per", "by", "each", "every", "with", "are", "is", "was", "were", "have", "has", "had"])


def _initials(raw: str, name: str) -> float:
    """Score a name made of first letters: lob of line of business, oa_flg of open access; two letters need a light word beside them."""
    words = raw.lower().replace("-", " ").split()
    parts = parts_of(name)
    short = "".join(word[0] for word in words)
    if not 2 <= len(words) <= 5 or short not in parts or "_" in raw:
        return 0.0
    if {"or", "and"} & set(words) or {words[0], words[-1]} & (PREPOSITIONS | _JOINING):
        return 0.0
    known = short in UNIT_NAMES or short in EXPANDED or short in ALTERNATIVES  # dep is a department, whatever else begins so
    if known or min(map(len, (words[0], words[-1]))) < 3:
        return 0.0
    rest = [part for part in split_name(name) if part != short]
    light = all(_LIGHT.get(lemma(part), 1.0) <= 0.5 for part in rest)
    return 0.93 if light and (len(short) > 2 or rest) else 0.0


_SPANS = frozenset(["hours", "days", "weeks", "months", "nights", "minutes"])
_PAID = frozenset(["rate", "wage", "price", "cost", "pay", "fee", "rent", "charge", "salary"])


def is_rate(name: tuple[str, ...]) -> bool:
    """Say whether a name tells what is paid for a time, and no time: an hourly rate."""
    return any(likeness(word, name[-1]) >= 0.95 for word in _PAID)


_TRUTHS = ("is", "has", "can", "was")


def _happened(words: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Say whether a participle reads the abbreviation of a thing as what was done: cmplt as a thing is a complaint."""
    return len(words) == 1 and words[0].endswith("ed") and words[0] in ALTERNATIVES.get(name[0], ())


def _table_score(words: tuple[str, ...], raw: str, table: Table) -> float:
    if raw.casefold() == table.name.casefold():
        score = 1.05
    else:
        score = max(_name_score(words, table.words, frozenset(), _compact(table.name)), _comment_score(words, raw, table.comment))
    if len(table.words) == 1 and _happened(words, table.words):
        return 0.0
    if len(words) > 1 and lemma(words[-1]) == "number" and any(column.words == (*table.words, "no") for column in table.columns):
        score = min(score, 0.8)  # the receipt number is a column of the receipts, where there is one
    if not score and len(words) == len(table.words) == 1 and len(words[0]) > 4 and lemma(table.words[0]).endswith(lemma(words[0])):
        score = 0.86  # works: artworks
    if 0 < score < 0.84 and len(words) == 1 and len(table.words) > 1 and lemma(words[0]) == lemma(table.words[-1]):
        score = 0.84  # office: agency_offices
    if len(words) == 2 and lemma(words[0]) in SYNONYMS_OF.get(lemma(words[1]), ()):
        score = max(score, _name_score(words[1:], table.words, frozenset(), _compact(table.name)) - 0.02)  # grape varieties
    if 0 <= score < 0.78 and len(words) == 1 and len(table.words) > 1 and lemma(table.words[-1]) in SYNONYMS_OF.get(lemma(words[0]), ()):
        score = 0.78  # firms: client_company
    return score - (0.06 if table.kind == "view" else 0.0)


@lru_cache(maxsize=100_000)
def _column_score(words: tuple[str, ...], raw: str, name: str, comment: str, table: str) -> float:
    if raw.casefold() == name.casefold():
        return 1.05
    free = frozenset(map(lemma, split_name(table)))
    if len(words) == 1 and name.lower().startswith(_TRUTHS) and "".join(parts_of(name)[1:]) == words[0] and parts_of(name)[0] in _TRUTHS:
        return 0.97  # 5G: is_5g
    if (score := _initials(raw, name)) > 0:
        return score
    parts = split_name(name)
    if len(words) > 1 and words[-1] == "date" and tuple(map(stem, words[:-1])) == tuple(map(stem, parts[-len(words) + 1 :])):
        return 0.97 if len(parts) < len(words) else 0.9  # end date: ended, contract_end
    score = max(_name_score(words, parts, free, _compact(name)), _comment_score(words, raw, comment))
    if score < 0.9 and len(words) > 1 and lemma(words[-1]) in ("number", "no") and parts[-1] == "id":
        as_key = _name_score((*words[:-1], "id"), parts, free, _compact(name))
        return max(score, 0.9 if as_key >= 0.97 else 0.0)  # the order number is order_id where nothing else is
    return score


def _comment_score(words: tuple[str, ...], raw: str, comment: str) -> float:
    if not comment:
        return 0.0
    if raw.casefold() == comment.casefold():
        return 1.0
    parts = split_name(comment)
    return 0.95 * _name_score(words, parts, frozenset(), _compact(comment)) if len(parts) <= 5 else 0.0


def _compact(name: str) -> str:
    return "".join(parts_of(name))


@lru_cache(maxsize=500_000)
def _name_score(words: tuple[str, ...], name: tuple[str, ...], free: frozenset[str], compact: str) -> float:
    if not name or (len(words) == 1 and len(name) > 1 and lemma(words[0]) == "unit" != lemma(name[-1])):
        return 0.0  # units are no unit price
    if len(words) == 1 < len(name) and words[0] in _SPANS and is_rate(name):
        return 0.0  # hours are no hourly rate
    joined = "".join(words).replace("-", "")
    if len(words) > 1 and lemma(words[-1]) == "number" and tuple(map(lemma, words[:-1])) == tuple(map(lemma, name)):
        return 0.97  # phone number: phone
    if len(words) == 1 < len(name) and len(joined) > 5 and (joined == "".join(name) or skeleton(lemma(joined)) == compact):
        return 0.98  # headcount: hd_cnt
    if joined == compact or "".join(map(lemma, words)) == compact or "".join(words[:-1]) + lemma(words[-1]) == lemma(compact):
        return 1.0
    aligned = _aligned(words, name, free)
    if aligned:
        return aligned
    if len(words) > 1 and lemma(compact) == lemma(words[0]):
        return 0.0  # bottles scoring 94: no letters of 'scoring' are in the name
    tail = compact
    for word in sorted(free, key=len, reverse=True):
        if compact.startswith(word) and len(compact) > len(word) + 1:
            tail = compact.removeprefix(word)
            break
    singular = tuple(map(lemma, words))
    return 0.9 if abbreviates(singular, compact) or (tail != compact and abbreviates(singular, tail)) else 0.0


def _aligned(words: tuple[str, ...], name: tuple[str, ...], free: frozenset[str]) -> float:
    """Match every word with a word of the name (or of its table); weigh what of the name stays unmatched."""
    left = list(range(len(name)))
    total = 0.0
    own = units = 0
    for word in words:
        best = max(left, key=lambda index: likeness(word, name[index]) or 0.5 * _as_unit(word, name[index]), default=-1)
        score = likeness(word, name[best]) if best >= 0 else 0.0
        if best >= 0 and score < 0.75 and _as_unit(word, name[best]):
            score, units = 0.9, units + 1
        table_score = max((likeness(word, other) for other in free), default=0.0)
        if score >= max(table_score - 0.05, 0.75):
            left.remove(best)
            own += 1
            total += score
        elif table_score >= 0.88:
            total += 0.97 * table_score
        elif len(words) > 1 and ((word in QUALIFIERS and free) or (word == "floor" and words[-1] in _AREAS)):
            total += 0.85  # the payment method, where the column is only called method
        else:
            return 0.0
    if own == 0:
        return 0.0
    rest = sum(0.0 if lemma(name[index]) in free else _LIGHT.get(lemma(name[index]), 1.0) for index in left)
    if own == units and rest > 0.3:
        return 0.0  # a weight is not the stock, though both are in kg
    return (total / len(words)) * (0.55 + 0.45 * own / (own + rest))


def _as_unit(word: str, part: str) -> float:
    return 0.9 if lemma(part) in UNITS_OF.get(lemma(word), ()) else 0.0


def find_column(catalog: Catalog, hit: Hit) -> Column | None:
    """Return the column of a hit."""
    return catalog.column(hit.table, hit.column)
