"""Link words of a question to everything that they may mean: names of the schema, values,
operations, numbers and times.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial

from longtable.analyst.lattice import Meaning, Period
from longtable.analyst.lexicon import (
    Token,
    abbreviates,
    costs,
    is_plural,
    lemma,
    likeness,
    split_name,
    stem,
    vocabulary,
)
from longtable.analyst.schema import Catalog, Column, Table, Value
from longtable.analyst.terms import term_meanings

LONGEST = 5
LONGEST_VALUE = 7
_MOST_NAMES = 8
_POSITIONS = ("sup", "most", "top", "frequent", "first")
"""Operations whose words more likely ask for a rank than begin a name."""


@dataclass(frozen=True)
class Match:
    """A value in the database that was found for a text of the question. `how` is "exact", "case",
    "plural" or "partial".
    """

    table: str
    column: str
    value: Value
    how: str


Values = Mapping[str, tuple[Match, ...]]


def all_meanings(tokens: list[Token], catalog: Catalog, values: Values) -> list[Meaning]:
    """Return every meaning of every run of words in the question."""
    meanings: list[Meaning] = []
    for start, first in enumerate(tokens):
        if first.kind in ("comma", "stop"):
            meanings.append(Meaning(start, start + 1, "mark", 0.0, first.text))
            continue
        for end in range(start + 1, min(start + LONGEST_VALUE, len(tokens)) + 1):
            part = tokens[start:end]
            if part[-1].kind in ("comma", "stop"):
                break
            text = _text(part)
            if end - start <= LONGEST:
                meanings += _operations(part, start, text)
                counted = tokens[start - 1].kind == "number" or tokens[start - 1].word in (
                    "a",
                    "an",
                )
                after_number = start > 0 and counted and first.word in vocabulary().units
                meanings += (
                    _names(part, start, text, catalog)
                    if not (after_number and len(part) == 1)
                    else []
                )
            meanings += _values(
                part, tokens[start - 1].word if start else "", start, text, values, catalog
            )
        meanings += _numbers(tokens, start)
    meanings += term_meanings(tokens, catalog)
    plain = [_plain(tokens, start, meanings) for start in range(len(tokens))]
    meanings += itertools.chain.from_iterable(plain)
    return [*meanings, *_dated_verbs(tokens, catalog, meanings)]


def _dated_verbs(
    tokens: list[Token], catalog: Catalog, meanings: list[Meaning]
) -> Iterator[Meaning]:
    """Yield fillers for verbs that name a date column, if the question gives a time: in 'shipped in
    2017' the verb only chooses the date.
    """
    if any(each.kind == "time" for each in meanings):
        stems = _date_stems(catalog)
        for start, token in enumerate(tokens):
            thing = any(
                each.start == start and each.end == start + 1 and each.kind == "table"
                for each in meanings
            )
            if (
                token.kind == "word"
                and len(token.word) > 3
                and stem(token.word) in stems
                and not thing
            ):
                yield Meaning(start, start + 1, "filler", costs.VERB, token.text)


@lru_cache(maxsize=16)
def _date_stems(catalog: Catalog) -> frozenset[str]:
    words: set[str] = set()
    for table in catalog.plain:
        words.update(*(column.words for column in table.columns if column.is_date))
    return frozenset(map(stem, words - {"date", "time", "day", "hour"}))


def _text(part: list[Token]) -> str:
    return ("" if any(not token.text.isascii() for token in part) else " ").join(
        dict.fromkeys(token.text for token in part)
    )


# -- grammar, numbers, times -----------------------------------------------------------------------


def _operations(part: list[Token], start: int, text: str) -> Iterator[Meaning]:
    if any(token.kind not in ("word", "symbol") for token in part):
        return
    operation = vocabulary().phrases.get(tuple(token.word for token in part))
    if operation is not None:
        yield Meaning(
            start, start + len(part), "op", costs.GRAMMAR, text, op=operation[0], arg=operation[1]
        )
    if (
        len(part) == 1
        and lemma(part[0].word) in vocabulary().dimensions
        and part[0].word not in ("date", "sale", "money")
    ):
        yield Meaning(
            start, start + 1, "op", costs.VERB, text, op="dimension", arg=lemma(part[0].word)
        )


def _numbers(tokens: list[Token], start: int) -> Iterator[Meaning]:
    token = tokens[start]
    maps = vocabulary().maps
    before = tokens[start - 1].word if start else ""
    word = token.word
    yield from _periods(tokens, start)
    following = tokens[start + 1].word if start + 1 < len(tokens) else ""
    one = (
        word in ("a", "an")
        and before in ("than", "over", "under", "above", "below", "least", "most")
        and following in vocabulary().units
    )
    value = token.number if token.kind == "number" else float(one or maps["numbers"].get(word, 0))
    if (
        value
        and not token.text.endswith("年")
        and not (word == "one" and before in ("which", "that", "the", "this"))
    ):
        number = int(value) if value == int(value) else value
        yield Meaning(start, start + 1, "number", costs.NUMBER, token.text, number=number)
    unit = vocabulary().units.get(word)
    if (
        unit is not None
        and start
        and (
            tokens[start - 1].kind == "number" or before in maps["numbers"] or before in ("a", "an")
        )
    ):
        yield Meaning(start, start + 1, "unit", costs.GRAMMAR, token.text, arg=unit.name)
    elif word in maps["periods"]:
        period = maps["periods"][word]
        yield Meaning(start, start + 1, "unit", costs.GRAMMAR, token.text, arg=period)


def _periods(tokens: list[Token], start: int) -> Iterator[Meaning]:
    """Yield the times that a word may mean: a date, a year, a day, a quarter, a month or a
    weekday.
    """
    token = tokens[start]
    maps = vocabulary().maps
    before = tokens[start - 1].word if start else ""
    word = token.word
    number = int(token.number)
    months = maps["months"]
    sure = (
        before in vocabulary().lists["year_before"] or before in months or token.text.endswith("年")
    )
    quarter = re.fullmatch(r"q([1-4])", word)
    beside = {each.word for each in tokens[max(0, start - 3) : start + 3]} & set(months)
    day = (token.kind == "number" and before in months) or (token.kind == "ordinal" and beside)
    periods = [
        Period(*map(int, word.split("-"))) if token.kind == "date" else None,
        (
            Period(year=number)
            if token.kind == "number" and 1900 <= token.number <= 2100 and len(word) == 4
            else None
        ),
        Period(day=number) if day and 0 < number <= 31 else None,
        Period(quarter=int(quarter[1])) if quarter else None,
        Period(month=int(months[word])) if word in months and _is_month(tokens, start) else None,
        Period(weekday=int(maps["weekdays"][word])) if word in maps["weekdays"] else None,
    ]
    for period in filter(None, periods):
        price = (
            0.0
            if token.kind != "number" or period.day
            else costs.YEAR
            if sure
            else costs.LOOSE_YEAR
        )
        yield Meaning(start, start + 1, "time", price, token.text, period=period)


def _is_month(tokens: list[Token], start: int) -> bool:
    """Return whether a word is used as a month. Only some words are doubtful, such as 'may' and
    'march'.
    """
    token = tokens[start]
    plain = (
        token.word not in ("may", "march", "mar", "sep", "dec", "jan") or not token.text.isascii()
    )
    return (
        plain
        or token.is_name
        or (start > 0 and tokens[start - 1].word in vocabulary().lists["year_before"])
    )


def _plain(tokens: list[Token], start: int, meanings: list[Meaning]) -> Iterator[Meaning]:
    """Yield the meanings that any single word may have: that it adds nothing (a filler), or that it
    is not understood.
    """
    token = tokens[start]
    lists = vocabulary().lists
    one = (start, start + 1)
    if token.kind in ("comma", "stop"):
        return
    linked = [
        each
        for each in meanings
        if each.start == start and each.end == start + 1 and each.kind in ("table", "column")
    ]
    price = (
        costs.UNKNOWN_NAME
        if token.is_name or token.kind not in ("word", "symbol")
        else costs.UNKNOWN
    )
    yield Meaning(*one, "unknown", price, token.text)
    if token.kind != "word":
        return
    if token.word == "may" and _is_month(tokens, start):
        return
    if token.word in lists["grammar"]:
        shouted = (
            token.text.isupper()
            and token.word in lists["shouted"]
            and not all(each.text.isupper() for each in tokens[:2])
        )
        yield Meaning(*one, "filler", costs.STATE if shouted else costs.GRAMMAR, token.text)
    elif token.word in lists["idle"] and not (
        is_plural(token.word) and any(each.cost < 0.2 for each in linked)
    ):
        longer = any(
            each.start < start < each.end
            and (each.op == "late" or (each.kind == "column" and each.cost < 0.1))
            for each in meanings
        )
        # On time, departure time.
        yield Meaning(*one, "filler", costs.STATE if longer else costs.IDLE_WORD, token.text)
    elif token.word in lists["verbs"]:
        own_table = any(each.kind == "table" and each.cost < 0.2 for each in linked) and is_plural(
            token.word
        )
        yield Meaning(
            *one,
            "filler",
            costs.DROPPED_TABLE if own_table else _verb_price(tokens, start, meanings),
            token.text,
        )


def _verb_price(tokens: list[Token], start: int, meanings: list[Meaning]) -> float:
    """Return the price of skipping a verb. It is high if the verb describes a state that no column
    stands for, as in 'paid invoices' or 'were paid'.
    """
    word = tokens[start].word
    if not (
        word.endswith("ed")
        or word
        in (
            "sold",
            "bought",
            "paid",
            "sent",
            "left",
            "open",
            "made",
            "lost",
            "written",
            "spent",
        )
    ):
        return costs.VERB
    earlier = next(
        (
            token.word
            for token in reversed(tokens[:start])
            if token.word not in ("still", "already", "ever", "yet", "never", "all")
        ),
        "",
    )
    closes = start + 1 >= len(tokens) or tokens[start + 1].kind in ("stop", "comma")
    noun = any(
        each.start == start + 1 and each.kind == "table" and each.cost < 0.3 for each in meanings
    )
    measured = any(
        each.end == start and each.kind == "column" and each.cost < 0.3 for each in meanings
    )
    is_asked = measured or {"who", "did", "does", "has", "have", "had"} & {
        token.word for token in tokens[:start]
    }
    return (
        costs.STATE
        if (noun and not is_asked)
        or (closes and (earlier in vocabulary().lists["be"] or word == "open" or not is_asked))
        else costs.VERB
    )


# -- names of the schema ---------------------------------------------------------------------------


def _names(part: list[Token], start: int, text: str, catalog: Catalog) -> Iterator[Meaning]:
    lists = vocabulary().lists
    if any(token.kind not in ("word", "quoted", "code") for token in part):
        return
    edges = {part[0].word, part[-1].word}
    if len(part) > 1 and (
        edges & lists["dropped"] or edges & (lists["grammar"] - {"time", "number"})
    ):
        return
    pieces = " ".join(token.word.replace("-", " ") for token in part).split()
    words = tuple(word for word in pieces if word not in lists["dropped"])
    if not words or (len(words) == 1 and words[0] in lists["grammar"]):
        return
    end = start + len(part)
    yield from (
        replace(each, start=start, end=end, text=text)
        for each in name_meanings(catalog, words, held="of" in pieces)
    )
    if len(words) > 1 and words[-1] in lists["tails"]:
        for each in name_meanings(catalog, words[:-1]):
            if each.kind == "column" and each.cost < 0.3:
                yield replace(each, start=start, end=end, text=text, cost=each.cost + costs.TAIL)


@lru_cache(maxsize=20_000)
def name_meanings(
    catalog: Catalog, words: tuple[str, ...], *, held: bool = False
) -> tuple[Meaning, ...]:
    """Return the tables, columns and flags that the words may name, the cheapest first. `held` is
    True if the first word belongs to the last, as in 'price of tracks'.
    """
    idle = len(words) == 1 and (
        words[0] in vocabulary().lists["idle"]
        or vocabulary().phrases.get(words, ("",))[0] in _POSITIONS
    )
    scored = _scored(catalog, words, held=held)
    if not scored:
        return ()
    own_name = len(words) == 1 and any(
        score >= 0.99 and named is None for score, _, named in scored
    )
    meanings: list[Meaning] = []
    near = [each for each in scored if each[0] >= scored[0][0] - costs.KEPT_NAME]
    for score, table, column in near[:_MOST_NAMES]:
        if (idle or own_name) and score < 0.97:
            continue
        price = (
            costs.LINK
            + costs.MISFIT * (1 - score)
            + (costs.VERB if idle and score < 0.99 and column is None else 0.0)
        )
        if column is None:
            meanings.append(Meaning(0, 0, "table", price, "", table.name))
            continue
        alike = sum(
            1
            for other, owner, rival in scored
            if rival is not None and owner is table and other > score - 0.011
        )
        if score < 0.97 and alike > 1:
            price += costs.RIVAL_NAME
        if words[-1].endswith("ed") and score < 0.97:
            continue  # a verb
        if column.is_date and vocabulary().lists["date_words"].isdisjoint(map(lemma, words)):
            price += 0.4 if len(words) == 1 else 0.1
            if len(words) == 1 and words[0].endswith("ed"):
                continue  # a verb: periods find its date
        if not table.names:
            price += 0.02  # rather a column of things that have names
        meanings += _of_column(catalog, words, table, column, price)
    return tuple(dict.fromkeys(meanings))


def _scored(
    catalog: Catalog, words: tuple[str, ...], *, held: bool
) -> list[tuple[float, Table, Column | None]]:
    """Return the tables and columns whose names are like the words, the most alike first. For a
    table, the column is None.
    """
    scored: list[tuple[float, Table, Column | None]] = []
    for table in catalog.plain:
        scored.append((_table_score(words, table), table, None))
        for column in table.columns:
            scored.append((_column_score(words, column, table, held=held), table, column))
    alike = [each for each in scored if each[0] >= costs.LEAST_LIKENESS]
    return sorted(alike, key=lambda each: -each[0])


def _of_column(
    catalog: Catalog, words: tuple[str, ...], table: Table, column: Column, price: float
) -> Iterator[Meaning]:
    """Yield the meanings of words that name a column: the column itself, the condition that its
    flag is true, or the table that the column points at.
    """
    name = column.name
    is_key = column.is_id and (column.is_number or "id" in column.words)
    if is_key and vocabulary().lists["keys"].isdisjoint(map(lemma, words)):
        # A number that is a key stands for the thing.
        keys = [
            key.one for key in catalog.references if (key.many, key.column) == (table.name, name)
        ]
        pointed = keys[0] if keys else table.name
        yield Meaning(0, 0, "table", price + 0.05, "", pointed)
        return
    dearer = 0.01 if column.references else 0.0
    yield Meaning(0, 0, "column", price + dearer, "", table.name, name)
    if column.truth is not None:
        flag = price - costs.LINK + costs.FLAG
        yield Meaning(0, 0, "flag", flag, "", table.name, name, column.truth)


def _most_like(words: Iterable[str], name: str) -> float:
    """Return how alike a name and the most similar word are."""
    return max(likeness(word, name) for word in words)


def _table_score(words: tuple[str, ...], table: Table) -> float:
    own = tuple(dict.fromkeys((*table.words, *split_name(table.name))))
    if not own:
        return 0.0  # a name without a letter or a digit
    joined = "".join(table.words)
    if "".join(map(lemma, words)) in (joined, lemma(joined)):
        return 1.0
    scores = [max(map(partial(likeness, word), own)) for word in words]
    if min(scores) < 0.8:
        return 0.0
    unsaid = sum(_most_like(words, name) < 0.8 for name in table.words)
    return (
        sum(scores) / len(scores) - 0.07 * unsaid - (0.05 if len(words) > len(table.words) else 0.0)
    )


def _column_score(words: tuple[str, ...], column: Column, table: Table, *, held: bool) -> float:
    """Return how well the words name a column, from 0 to 1. A word that only names the column's
    table lowers the value only a little.
    """
    lists = vocabulary().lists
    own = tuple(dict.fromkeys((*column.words, *split_name(column.name))))
    if not own:
        return 0.0  # a name without a letter or a digit
    compact = column.name.casefold()
    if "".join(words) == compact.replace("_", "") or abbreviates(words, compact):
        return 1.0 if len(column.words) == 1 else 0.98
    scores: list[float] = []
    context = 0
    stems: set[str] = set()
    for word in words:
        best = max(own, key=lambda name: likeness(word, name))
        if (score := likeness(word, best)) >= 0.78:
            scores.append(score)
            stems.add(best)
        elif max((likeness(word, name) for name in table.words), default=0.0) >= 0.85:
            context += 1
        else:
            return 0.0
    function = vocabulary().phrases.get((words[0],), ("",))[0] == "agg"
    if not scores or (function and context) or (held and context == 0 and len(words) > 1):
        return 0.0
    table_words = {lemma(word) for word in table.words}
    if (
        all(lemma(word) in table_words for word in words)
        and not column.is_name
        and not column.primary
    ):
        return 0.0  # the name of the table is no column of it
    unsaid = [name for name in column.words if _most_like(words, name) < 0.78]
    light = [
        name
        for name in unsaid
        if lemma(name) in table_words
        or name in lists["names"]
        or name in ("id", "code", "number", "is", "date", "flag")
    ]
    # A bare name is each table's own name; a key's number is not what its word stands for.
    return (
        sum(scores) / len(scores)
        - (0.06 * (len(unsaid) - len(light)) + 0.03 * len(light))
        - 0.01 * context
    )


# -- values ----------------------------------------------------------------------------------------


def _values(
    part: list[Token], before: str, start: int, text: str, values: Values, catalog: Catalog
) -> Iterator[Meaning]:
    phrase = " ".join(token.word for token in part)
    raw = "".join(token.text for token in part) if not text.isascii() else ""
    name = (
        any(token.is_name or token.kind in ("quoted", "code") for token in part)
        or not text.isascii()
    )
    end = start + len(part)
    parts: dict[tuple[str, str], list[Match]] = {}
    names = (phrase, raw.lower(), *vocabulary().aliases.get(phrase, ()))
    of_names = itertools.chain.from_iterable(values.get(each, ()) for each in names)
    matches = tuple(dict.fromkeys(of_names))
    placed = before in ("in", "at", "from", "near")  # a place, rather than who is called so
    exact = {each for each in matches if each.how in ("exact", "case")}
    row_names = {each for each in exact if _names_a_row(each, catalog) and not placed}
    written = " ".join(token.text for token in part)
    as_written = any(match.value == written for match in matches)
    makers = {each for each in exact if before == "by" and _is_a_person(each, catalog)}
    for match in matches:
        price = costs.VALUE
        if not name:
            capital = isinstance(match.value, str) and match.value[:1].isupper()
            price += costs.COMMON_WORD if capital else 0.05
        price += costs.RIVAL if row_names and match not in row_names and name else 0.0
        price += costs.RIVAL if makers and match not in makers else 0.0
        price += costs.VALUE_FORM if as_written and match.value != written else 0.0
        if match in exact:
            yield Meaning(start, end, "value", price, text, match.table, match.column, match.value)
        elif match.how == "plural" or "".join(phrase.split()) == "".join(
            str(match.value).lower().split()
        ):
            price += costs.VALUE_FORM
            yield Meaning(start, end, "value", price, text, match.table, match.column, match.value)
        elif match.how == "partial" and re.search(
            rf"(?<!\w){re.escape(phrase)}(?!\w)", str(match.value).lower()
        ):
            parts.setdefault((match.table, match.column), []).append(match)
    value = text if text.isascii() else phrase
    for (table, column), group in parts.items():
        first = any(str(match.value).lower().startswith(phrase) for match in group)
        price = costs.VALUE_PART
        price += costs.RIVAL if row_names else 0.0
        price += 0.0 if name else costs.COMMON_WORD
        # The whole value is meant, not a longer one.
        price -= 0.2 if first and len(group) == 1 and not exact else 0.0
        yield Meaning(start, end, "part", price, text, table, column, value)


def _is_a_person(match: Match, catalog: Catalog) -> bool:
    """Return whether a value belongs to a table of people. In albums "by X", X is such a value."""
    table = catalog.table(match.table)
    words = {lemma(word) for word in table.words} if table is not None else set()
    return bool(words & vocabulary().lists["people"])


def _names_a_row(match: Match, catalog: Catalog) -> bool:
    table = catalog.table(match.table)
    return table is not None and match.column in [column.name for column in table.names]


def texts_to_look_up(tokens: list[Token], catalog: Catalog, most: int) -> list[str]:
    """Return the texts of a question that may be values. Names and quoted texts come first, then
    words that nothing else explains.
    """
    candidates: list[tuple[bool, str]] = []

    def run_of(place: int) -> tuple[bool, str]:
        token = tokens[place]
        alone = token.kind == "quoted" or not token.text.isascii()
        return _is_explained(tokens, place, catalog), token.text if alone else ""

    for (explained, alone), places in itertools.groupby(range(len(tokens)), key=run_of):
        run = [tokens[place] for place in places]
        plain = not any(token.is_name or not token.text.isascii() for token in run)
        texts = [
            " ".join(token.word for token in run),
            *([alone.lower()] if alone else [token.word for token in run]),
        ]
        candidates += [] if explained else [(plain, text) for text in texts]
    for plain, text in list(candidates):
        candidates += [(plain, other) for other in vocabulary().aliases.get(text, ())[:4]]
    return list(dict.fromkeys(text for _, text in sorted(candidates, key=lambda each: each[0])))[
        :most
    ]


@cache
def _phrase_words() -> frozenset[str]:
    return frozenset(itertools.chain.from_iterable(vocabulary().phrases))


def _is_explained(tokens: list[Token], place: int, catalog: Catalog) -> bool:
    """Return whether a word needs no value to explain it, because it is grammar, a name of the
    schema, a number or a time.
    """
    token = tokens[place]
    lists = vocabulary().lists
    maps = vocabulary().maps
    if token.kind in ("code", "quoted"):
        return False
    name = (
        token.is_name
        and place > 0
        and token.word not in maps["months"]
        and token.word not in maps["weekdays"]
    )
    within = (
        token.word in ("of", "the", "and")
        and 0 < place < len(tokens) - 1
        and tokens[place - 1].is_name
        and tokens[place + 1].is_name
    )
    if token.kind != "word" or name or within:
        return token.kind != "word"
    small = token.word in lists["grammar"] | lists["idle"] | lists["verbs"] or any(
        token.word in table for table in maps.values()
    )
    known = small or token.word in vocabulary().units or token.word in _phrase_words()
    return known or any(each.cost < 0.3 for each in name_meanings(catalog, (token.word,)))
