"""Turn functions, counts, ranks, orders and groups of a question into slots, and decide about the
meanings that are left.
"""

from dataclasses import replace

from longtable.analyst.conditions import best_dimension, dimension_columns, money_measure
from longtable.analyst.lattice import Draft, Key, Meaning, Measure, NoReadingError, Rank, Where
from longtable.analyst.lexicon import costs, is_plural, lemma, stem, vocabulary
from longtable.analyst.query import Agg, Bucket, Col, Query, filled
from longtable.analyst.schema import Column
from longtable.analyst.times import unit_key

_ASKING = ("wh", "list", "distinct")
_ANY_SIZE = ("size", "height")
"""Dimensions of words that may describe any number, such as largest or highest."""


def _column_measure(draft: Draft, func: str, column: Column, text: str) -> Measure:
    """Return a function of a column as a measure. A sum of values such as prices or ages has a high
    price. Raises `NoReadingError` for sums and averages of dates and keys.
    """
    if func in ("sum", "avg") and (column.is_year or column.is_clock or not column.is_measure):
        raise NoReadingError(text)
    words = {lemma(word) for word in column.words}
    lists = vocabulary().lists
    if func == "sum" and words & lists["single_words"] and not words & lists["sum_words"]:
        draft.pay(costs.NOT_SUMMED, text)
    return Measure(func, column.table, column.name)


def _measure_at(draft: Draft, place: int) -> Measure | None:
    """Return the measure that begins at a place, and mark its words as used. It is a count,
    'average delay', 'total', 'sales', or a table. Return None if no measure begins there.
    """
    if not 0 <= place < len(draft.meanings):
        return None
    each = draft.meanings[place]
    column = draft.column(each) if each.kind == "column" else None
    if each.is_op("agg", "sup", "most"):
        target = draft.after(place, over=(*_ASKING, "count"), most=5)
        inner = (
            draft.column(draft.meanings[target])
            if target >= 0 and draft.meanings[target].kind == "column"
            else None
        )
        if inner is None:
            return None
        draft.use(
            place,
            target,
            *(n for n in range(place + 1, target) if draft.meanings[n].is_op("count", *_ASKING)),
        )
        return _column_measure(draft, each.arg if each.op == "agg" else "", inner, each.text)
    if each.is_op("count"):
        target = draft.after(place, over=_ASKING, most=5)
        measure = (
            _measure_at(draft, target)
            if target >= 0 and draft.meanings[target].kind in ("table", "column")
            else None
        )
        if measure is None:
            return None
        draft.use(place)
        return (
            measure
            if draft.is_measure(target) or not measure.column
            else Measure("count", measure.table, measure.column, distinct=True)
        )
    if not (each.is_op("money", "dimension") or each.kind in ("column", "table")):
        return None
    draft.use(place)
    if each.is_op("money"):
        return money_measure(draft, each)
    if each.is_op("dimension"):
        column = best_dimension(draft, each.arg, draft.spoken()[:2], each.text)[0]
    return (
        Measure("", column.table, column.name)
        if column is not None
        else Measure("count", each.table)
    )


# -- ranks and orders ------------------------------------------------------------------------------


def fill_ranks(draft: Draft) -> None:
    """Turn superlatives, 'most', 'top 5 ... by' and 'sorted by' into ranks."""
    rules = {
        "order": _order,
        "top": _top,
        "first": _first,
        "most": _most,
        "frequent": _frequent,
        "sup": _superlative,
    }
    for place, each in draft.open("op"):
        if each.op in rules and place not in draft.used:
            draft.use(place)
            draft.slots.ranks += rules[each.op](draft, place, each)
    for place, each in draft.open("op"):
        if each.is_op("dir"):
            draft.use(place)
            draft.slots.ranks = draft.slots.ranks or [Rank(Measure("again"), desc=True)]
            draft.slots.ranks[0] = replace(draft.slots.ranks[0], desc=each.arg == "desc")


def _of_groups_before(draft: Draft, place: int, each: Meaning) -> list[Rank]:
    """Return the rank for an extreme of the previous answer, as in 'and the fewest?' or 'which
    month had the most?'. Empty if the question is about something else.
    """
    prior = draft.prior
    if prior is None or len(prior.aggregates) != 1 or _closes(draft, place) is None:
        return []
    sign, _, dimension = each.arg.partition(":")
    if dimension not in ("", *_ANY_SIZE):
        return []
    asked = draft.asked()
    if asked < 0 and (not prior.group or draft.named()):
        return []
    known = asked < 0 or _is_group(draft, prior, asked)
    if not known and (prior.group or not _group(draft, asked)):
        return []
    limit = _limit(draft, place) or 1
    draft.use(asked, _closes(draft, place) or -1)
    return [Rank(Measure("again"), sign == "max", limit)]


def _closes(draft: Draft, place: int) -> int | None:
    """Return the place of the counted thing after a superlative. Return -1 if the superlative ends
    the question, None if it is about something else.
    """
    following = draft.after(place, over=("pron",), most=4)
    if following < 0 or following == draft.asked():
        return -1
    each = draft.meanings[following]
    return following if each.kind == "table" and each.table == draft.base else None


def _is_group(draft: Draft, prior: Query, place: int) -> bool:
    """Return whether the previous answer is grouped by the thing at a place."""
    thing = draft.meanings[place]
    if thing.kind == "unit":
        units = [item.unit for item in prior.group if isinstance(item, Bucket)]
        parts = [item.name.casefold() for item in prior.group if isinstance(item, Col)]
        return thing.arg in [name.partition("_")[0] for name in (*units, *parts)]
    groups = [(item.table, item.name) for item in prior.group if isinstance(item, Col)]
    if thing.kind == "table":
        return thing.table in [table for table, _ in groups]
    return (thing.table, thing.column) in groups


def _limit(draft: Draft, place: int) -> int | None:
    """Return the number beside a superlative, and mark it as used: top 5, the 3 longest, 最高的5个.
    Return None if there is no such number.
    """
    following = place + 1
    if draft.chinese and [each.text for each in draft.meanings[following : following + 1]] == [
        "的"
    ]:
        following += 1
    for other in (following, place - 1):
        number = (
            draft.meanings[other].number
            if 0 <= other < len(draft.meanings) and other not in draft.used
            else 0
        )
        compared = draft.before(other, most=1)
        if (
            isinstance(number, int)
            and 0 < number <= 1000
            and not (other + 1 < len(draft.meanings) and draft.meanings[other + 1].kind == "unit")
            and not (compared >= 0 and draft.meanings[compared].is_op("cmp"))
        ):
            draft.use(other)
            return number
    return None


def _by(draft: Draft, place: int) -> Measure | None:
    """Return the measure after 'by' or 'in terms of', for 'top' and 'most popular'. Return None if
    there is none.
    """
    for other in range(place + 1, len(draft.meanings)):
        if (
            draft.meanings[other].is_op("by", "order")
            and (measure := _measure_at(draft, draft.after(other, most=3))) is not None
        ):
            draft.use(other)
            return measure
    return None


def _order(draft: Draft, place: int, _: Meaning) -> list[Rank]:
    direction = next((n for n, other in draft.open("op") if other.is_op("dir")), -1)
    desc = direction >= 0 and draft.meanings[direction].arg == "desc"
    target = draft.after(place, most=4)
    pronoun = target >= 0 and draft.meanings[target].is_op("pron")
    draft.use(direction, target if pronoun else -1)
    again = pronoun and draft.meanings[target].text.lower() in ("that", "it")
    measure = (
        None if again else _measure_at(draft, draft.after(target, most=2) if pronoun else target)
    )
    return [Rank(measure or Measure("again"), desc if measure or direction >= 0 else True)]


def _top(draft: Draft, place: int, each: Meaning) -> list[Rank]:
    if not _cuts(draft) and (ranks := _of_groups_before(draft, place, each)):
        return ranks
    limit = _limit(draft, place) or 1
    following = draft.after(place, most=3)
    thing = draft.meanings[following] if following >= 0 else None
    if draft.prior is not None and _cuts(draft):
        return _cut(draft, draft.prior, each, limit)
    if draft.slots.ranks:  # 消费最多的前5位
        draft.slots.ranks[-1] = replace(draft.slots.ranks[-1], limit=limit)
        return []
    target = (
        following
        if thing is not None and (draft.is_measure(following) or thing.is_op("agg", "money"))
        else -1
    )
    money = next((n for n, op in draft.open("op") if op.is_op("money")), -1)
    measure = _by(draft, place) or _measure_at(draft, target) or _measure_at(draft, money)
    if measure is None:
        raise NoReadingError(each.text)  # what is best about them nobody said
    column = draft.catalog.column(measure.table, measure.column)
    if column is not None and not measure.func:
        measure = _averaged(draft, place, column)
    return [Rank(measure, _is_desc(each, column), limit)]


def _is_desc(each: Meaning, column: Column | None) -> bool:
    """Return whether the highest values come first. For "best" delays, the lowest come first."""
    worse = (
        set(map(lemma, column.words)) & vocabulary().lists["worse"] if column is not None else ()
    )
    return (each.arg == "max") != (bool(worse) and each.text.lower() in ("best", "worst"))


def _cuts(draft: Draft) -> bool:
    """Return whether 'the first 3' only takes rows of the previous answer."""
    return (
        bool(draft.base)
        and not draft.named()
        and not any(each.is_op("by", "sup") for each in draft.meanings)
    )


def _cut(draft: Draft, prior: Query, each: Meaning, limit: int) -> list[Rank]:
    """Take the first rows of the previous answer, or its last rows by reversing the order."""
    if not prior.group and each.text.lower() == "top":
        draft.slots.limit = limit
        return []
    by = (
        prior.aggregates[0]
        if prior.group and prior.aggregates
        else prior.order[0].by
        if prior.order
        else None
    )
    col = by.arg if isinstance(by, Agg) else by
    column = draft.catalog.column(col.table, col.name) if isinstance(col, Col) else None
    if (column is None and not prior.group) or (prior.group and len(prior.aggregates) != 1):
        raise NoReadingError(each.text)
    measure = (
        Measure("", column.table, column.name)
        if column is not None and not prior.group
        else Measure("again")
    )
    return [Rank(measure, _is_desc(each, column), limit)]


def _first(draft: Draft, place: int, each: Meaning) -> list[Rank]:
    """Return the rank for 'which of them was hired first' or 'the last invoice': by the date of the
    rows that were asked about.
    """
    limit = _limit(draft, place) or 1
    target = draft.after(place, most=2)
    if (
        _cuts(draft)
        and each.arg == "asc"
        and not (target >= 0 and draft.meanings[target].kind == "column")
    ):
        draft.slots.limit = limit
        return []
    head = draft.head()
    target = (
        draft.after(target, most=2)
        if target >= 0 and draft.meanings[target].kind == "number"
        else target
    )
    dates = [column for column in draft.table(head).columns if column.is_date] if head else []
    verbs = {stem(word) for word in draft.words}
    by_name = [
        column
        for column in dates
        if not verbs.isdisjoint(map(stem, set(column.words) - {"date", "time"}))
    ]
    columns = by_name if len(by_name) == 1 else dates
    if len(columns) != 1 or (target >= 0 and draft.meanings[target].table != head):
        raise NoReadingError(each.text)
    draft.pay(0.0 if by_name else costs.GUESSED, each.text)
    return [Rank(Measure("", head, columns[0].name), each.arg == "desc", limit)]


def _most(draft: Draft, place: int, each: Meaning) -> list[Rank]:
    if ranks := _of_groups_before(draft, place, each):
        return ranks
    limit = _limit(draft, place) or 1
    target = _counted_by_most(draft, place, each)
    counted = draft.meanings[target]
    column = draft.column(counted)
    if column is None:
        measure = _measure_at(draft, target)
    elif column.is_measure:
        measure = _most_of_a_measure(draft, target, column, each.text)
    else:
        measure = Measure("count", column.table, column.name, distinct=True)
    draft.use(target)
    if measure is None or (column is not None and target == draft.asked()):
        raise NoReadingError(each.text)
    return [Rank(measure, each.arg == "max", limit)]


def _counted_by_most(draft: Draft, place: int, each: Meaning) -> int:
    """Return the place of the thing that 'most' counts. It is after the word, otherwise before it.
    Raises `NoReadingError` if there is none.
    """
    following = draft.meanings[min(place + 1, len(draft.meanings) - 1)].text
    behind = draft.chinese and "的" in (each.text[-1:], following)  # 航班最多的机场
    target = -1 if behind else draft.after(place, over=("late", "distinct"), most=4)
    while target >= 0 and draft.meanings[target].kind in ("value", "part", "flag", "number"):
        target = draft.after(target, over=("late", "distinct"), most=3)
    counted = draft.meanings[target] if target >= 0 and target not in draft.used else None
    if counted is not None and (
        counted.kind in ("table", "column") or counted.is_op("money", "agg", "dimension")
    ):
        return target
    target = draft.before(place, over=("wh", "list"), most=4)
    counted = draft.meanings[target] if target >= 0 and target not in draft.used else None
    if counted is None or (
        counted.kind == "table" and counted.table == draft.head() and not draft.chinese
    ):
        raise NoReadingError(each.text)
    return target


def _most_of_a_measure(draft: Draft, target: int, column: Column, text: str) -> Measure:
    """Return the measure for 'most' and a column of numbers. It is the column's value or sum. If
    the word is a plural that only resembles the column's name, the table's rows are counted
    instead.
    """
    counted = draft.meanings[target]
    noun = counted.text.lower()
    loose = counted.cost > costs.LOOSE_MEASURE
    if loose and is_plural(noun):
        if lemma(noun) in vocabulary().lists["worse"]:
            raise NoReadingError(f"{text} {counted.text}")  # from which delay on is it one?
        draft.pay(costs.IMPLIED, counted.text)  # the most departures: the rows, not their delays
        draft.slots.roles = draft.roles(target + 1)
        return Measure("count", column.table)
    draft.pay(costs.ODD if loose and not draft.chinese else 0.0, counted.text)
    own = column.table == draft.head() or not draft.head()
    return _column_measure(draft, "" if own else "sum", column, counted.text)


def _frequent(draft: Draft, place: int, each: Meaning) -> list[Rank]:
    """Return the rank for 'the most popular genre' or 'busiest month for flights', by the number of
    rows that point at the thing, or by the rows that the question names.
    """
    limit = _limit(draft, place) or 1
    measure = _by(draft, place)
    target = draft.after(place, most=3)
    if target < 0 or draft.meanings[target].kind not in ("table", "column", "unit"):
        target = draft.asked()
    thing = draft.meanings[target]
    others = [name for name in draft.named() if name != thing.table]
    if thing.kind == "table" and not others:
        others = sorted({key.many for key in draft.catalog.references if key.one == thing.table})
        draft.pay(costs.GUESSED, each.text)
    elif thing.kind == "column" and not others:
        others = [thing.table]
    if target < 0 or (measure is None and len(others) != 1):
        raise NoReadingError(each.text)
    measure = measure or Measure("count", others[0])
    draft.use(target)
    draft.slots.keys.append(
        unit_key(draft, thing.arg, [measure.table])[0]
        if thing.kind == "unit"
        else Key(thing.table, thing.column)
    )
    return [Rank(measure, each.arg == "max", limit)]


def _dimension_meant(draft: Draft, dimension: str, thing: Meaning | None) -> tuple[str, list[str]]:
    """Return the dimension of a superlative and the tables to look in. The dimension is "" if no
    column measures it.
    """
    tables = [thing.table] if thing is not None and thing.kind == "table" else draft.spoken()[:1]
    for name in (dimension,) if dimension else ("size", "height", "price"):
        if dimension_columns(draft, name, tables):
            return name, tables
    if not dimension:
        return "", tables
    tables = [
        table.name
        for table in draft.catalog.plain
        if dimension_columns(draft, dimension, [table.name])
    ]
    return dimension if len(tables) == 1 else "", tables


def _superlative(draft: Draft, place: int, each: Meaning) -> list[Rank]:
    if ranks := _of_groups_before(draft, place, each):
        return ranks
    sign, _, dimension = each.arg.partition(":")
    limit = _limit(draft, place)
    target = draft.after(place, over=_ASKING, most=4)
    thing = draft.meanings[target] if target >= 0 and target not in draft.used else None
    column = draft.column(thing) if thing is not None else None
    measure: Measure | None = None
    if thing is not None and thing.is_op("agg", "money", "count"):
        measure = _measure_at(draft, target)
    elif (
        column is not None
        and (column.is_measure or column.is_date or column.is_year)
        and _is_of(column, dimension)
    ):
        draft.use(target)
        measure = _averaged(draft, place, column)
        if not limit and not measure.func and not _ranked(draft, place, target):
            draft.slots.measures.append(Measure(sign, column.table, column.name))
            return []
    elif column is None and (draft.chinese or thing is None or thing.kind not in ("table", "unit")):
        measure = _measure_before(draft, place, dimension, each)
    if measure is not None:
        return [Rank(measure, sign == "max", limit or 1)]
    if not dimension and (
        thing.is_op("agg")
        if thing is not None
        else any(m.is_op("agg", "count") for m in draft.meanings[:place])
    ):
        return [Rank(Measure("again"), sign == "max", limit or 1)]
    name, tables = _dimension_meant(draft, dimension, thing)
    if not name or column is not None:
        raise NoReadingError(each.text)
    found, way = best_dimension(draft, name, tables, each.text)
    if thing is not None and thing.kind == "unit":
        # The calmest month: not the month itself is more or less.
        key, price = unit_key(draft, thing.arg, [found.table])
        draft.use(target, price=price, text=thing.text)
        draft.slots.keys.append(key)
        func = "sum" if dimension in vocabulary().lists["summed"] else "avg"
        return [Rank(_column_measure(draft, func, found, each.text), sign == "max", limit or 1)]
    number = draft.prior is not None and draft.prior.aggregates and not draft.prior.group
    if not draft.head() and (number or found.table not in draft.spoken()) and not limit:
        # The hottest it ever got.
        draft.slots.measures.append(_column_measure(draft, sign, found, each.text))
        return []
    # The oldest was born first: what grows with a date gets less with its age.
    return [Rank(_averaged(draft, place, found), (sign == "max") == (way > 0), limit or 1)]


def _averaged(draft: Draft, place: int, column: Column) -> Measure:
    """Return the measure to rank by: the column, or its average if the question ends with 'on
    average'.
    """
    average = next(
        (
            n
            for n, each in draft.open("op")
            if n > place and each.is_op("agg") and each.arg == "avg"
        ),
        -1,
    )
    if average < 0 or draft.after(average, most=2) >= 0:
        return Measure("", column.table, column.name)
    draft.use(average)
    return _column_measure(draft, "avg", column, draft.meanings[average].text)


def _is_of(column: Column, dimension: str) -> bool:
    """Return whether a column measures a dimension. If `dimension` is empty, any column does."""
    return not dimension or bool(
        set(map(lemma, column.words))
        & {word.lstrip("-") for word in vocabulary().dimensions.get(dimension, ())}
    )


def _measure_before(draft: Draft, place: int, dimension: str, each: Meaning) -> Measure | None:
    """Return the measure before a superlative, with its function, as in 平均延误最高. Return None
    if there is none.
    """
    earlier = draft.before(place, over=("wh",), most=3)
    column = draft.column(draft.meanings[earlier]) if earlier >= 0 else None
    if earlier >= 0 and draft.meanings[earlier].is_op("dimension", "money"):
        return _measure_at(draft, earlier)
    if (
        column is None
        or not (column.is_measure or column.is_date)
        or not (draft.chinese or not dimension)
    ):
        return None
    function = draft.before(earlier, most=2)
    averaged = function >= 0 and draft.meanings[function].is_op("agg")
    draft.use(earlier, function if averaged else -1)
    return _column_measure(
        draft, draft.meanings[function].arg if averaged else "", column, each.text
    )


def _ranked(draft: Draft, place: int, target: int) -> bool:
    """Return whether the question asks for the rows with the highest value, and not for this value
    itself.
    """
    before = " ".join(draft.meanings[n].text for n in range(place))
    words = set(before.lower().split())
    asked = draft.asked()
    things = 0 <= asked < place and draft.meanings[asked].kind in ("table", "column", "unit")
    return (things and (bool(words & vocabulary().lists["shown_by"]) or draft.chinese)) or (
        draft.chinese and asked > target
    )


# -- functions and counts --------------------------------------------------------------------------


def fill_functions(draft: Draft) -> None:
    """Find the column that each function computes over. Functions are words such as average, total,
    how much and how long.
    """
    for place, each in reversed(draft.open("op")):
        if place in draft.used:
            continue
        if each.is_op("agg"):
            _function(draft, place, each)
        elif each.is_op("howmuch"):
            _how_much(draft, place, each)
        elif each.is_op("count"):
            _count(draft, place, each)
        elif each.is_op("money") and _measures_money(draft, each):
            draft.use(place)
            draft.slots.measures.append(money_measure(draft, each))
    for place, each in draft.open("op"):
        if each.is_op("howadj") and place not in draft.used:
            draft.use(place)
            draft.slots.shown.append(
                _dimension_key(
                    draft, each.arg, draft.named()[:1] or draft.spoken()[:1], each.text.split()[-1]
                )
            )


def _measures_money(draft: Draft, each: Meaning) -> bool:
    """Return whether a word such as "revenue" is what the question computes. A company's term for a
    measure always is; other words only if nothing else is.
    """
    orders_only = all(rank.measure.func == "again" for rank in draft.slots.ranks)
    return bool(each.column) or (orders_only and not draft.slots.measures)


def _function(draft: Draft, place: int, each: Meaning) -> None:
    func = each.arg
    target = draft.after(
        place,
        over=(*_ASKING, "present", "each") if not draft.chinese else (*_ASKING, "present"),
        most=5,
    )
    while target >= 0 and draft.meanings[target].is_op("agg", "sup") and target not in draft.used:
        target = draft.after(target, most=4)  # the lowest and the highest weight
    thing = draft.meanings[target] if target >= 0 else None
    if thing is not None and thing.is_op("money") and thing.column:
        if thing.arg != func:
            raise NoReadingError(f"{each.text} {thing.text}")  # the average of a total: per what?
        draft.use(place)
        return
    if thing is not None and thing.is_op("count"):
        _over_count(draft, place, target)
        return
    option = _column_for(draft, func, place, target)
    if option >= 0:
        draft.use(place, price=costs.FAR * max(0, abs(option - place) - 4), text=each.text)
        _compute(draft, func, option)
        return
    for other, op in draft.open("op"):
        if op.is_op("money", "howadj", "dimension") and abs(other - place) <= 6:
            _over_dimension(draft, func, place, other, op)
            return
    if func in ("sum", "avg") and any(op.is_op("count") for op in draft.meanings):
        draft.use(place)
        draft.slots.ratio = "average" if func == "avg" else ""
        return
    if thing is not None and thing.kind == "table":
        _over_table(draft, func, place, target, each)
        return
    known = (
        next((agg.arg for agg in draft.prior.aggregates if isinstance(agg.arg, Col)), None)
        if draft.prior is not None
        else None
    )
    if known is not None:
        draft.use(place)
        draft.slots.measures.append(Measure(func, known.table, known.name))


def _over_count(draft: Draft, place: int, target: int) -> None:
    """Find what a function of a count computes, such as the average number of orders. Raises
    `NoReadingError` if it is not clear.
    """
    func = draft.meanings[place].arg
    counted = draft.after(target, over=_ASKING, most=4)
    draft.use(place, target)
    if counted >= 0 and draft.is_measure(counted):
        _compute(draft, func, counted)
    elif func == "sum":
        draft.used.discard(target)
    elif func != "avg" or not draft.slots.measures:
        words = [draft.meanings[each].text for each in (place, target)]
        raise NoReadingError(" ".join(words))
    else:
        draft.slots.ratio = "average"


def _column_for(draft: Draft, func: str, place: int, target: int) -> int:
    """Return the place of the column that the function at `place` applies to, -1 if there is no
    such column.
    """
    options = [target, draft.before(place, over=("wh",), most=4)]
    options += [n for n, _ in draft.open("column") if draft.is_measure(n) and abs(n - place) <= 7]
    for option in options:
        meaning = draft.meanings[option] if option >= 0 else None
        if meaning is None or meaning.kind != "column" or (option in draft.used and not meaning.op):
            continue
        column = draft.column(meaning)
        if column is not None and (
            column.is_measure or (func in ("min", "max") and column.is_date) or option == target
        ):
            return option
    return -1


def _compute(draft: Draft, func: str, place: int) -> None:
    column = draft.column(draft.meanings[place])
    assert column is not None
    draft.use(place)
    draft.change(place, op=func)
    draft.slots.measures.insert(0, _column_measure(draft, func, column, draft.meanings[place].text))


def _over_dimension(draft: Draft, func: str, place: int, other: int, op: Meaning) -> None:
    """Add the measure for 'average length', 'total sales' or 'how old on average'. Only columns of
    tables that the question names are used.
    """
    draft.use(place, other)
    if op.is_op("money"):
        measure = money_measure(draft, op)
        draft.slots.measures.append(Measure(func, measure.table, measure.column))
        return
    key = _dimension_key(draft, op.arg, draft.named() or draft.spoken()[:1], op.text.split()[-1])
    column = draft.catalog.column(key.table, key.column)
    if column is not None:
        draft.slots.measures.append(_column_measure(draft, func, column, op.text))


def _over_table(draft: Draft, func: str, place: int, target: int, each: Meaning) -> None:
    """Add the measure for a function of a table. 'average invoice' and 'total payments' mean the
    only amount of the table; 'total flights' means the number of rows. Raises `NoReadingError` if
    neither fits.
    """
    name = draft.meanings[target].table
    amounts = [
        column
        for column in draft.table(name).columns
        if column.is_measure
        and not {"amount", "total", "payment"}.isdisjoint(map(lemma, column.words))
        and not column.is_year
    ]
    draft.use(place)
    if len(amounts) == 1:
        draft.use(target, price=costs.GUESSED, text=each.text)
        draft.slots.measures.append(Measure(func, name, amounts[0].name))
    elif func == "sum" and is_plural(draft.meanings[target].text.lower().split()[-1]):
        draft.use(target, price=costs.GUESSED, text=each.text)
        draft.slots.measures.append(Measure("count", name))
    else:
        raise NoReadingError(each.text)


def _dimension_key(draft: Draft, dimension: str, tables: list[str], text: str) -> Key:
    """Return the column that measures a dimension. Raises `NoReadingError` unless it is a column of
    numbers that grow with the dimension.
    """
    column, sign = best_dimension(draft, dimension, tables, text)
    if sign < 0 or not column.is_measure:
        raise NoReadingError(text)
    return Key(column.table, column.name)


def _how_much(draft: Draft, place: int, each: Meaning) -> None:
    draft.use(place)
    target = draft.after(place, most=4)
    measured = target >= 0 and draft.is_measure(target)
    if measured and not draft.slots.measures and not any(m.kind == "value" for m in draft.meanings):
        _compute(draft, "sum", target)
    elif not measured and not draft.slots.measures and not draft.chinese:
        raise NoReadingError(each.text)


def _count(draft: Draft, place: int, each: Meaning) -> None:
    target, distinct = _thing_counted(draft, place)
    thing = draft.meanings[target] if target >= 0 and target not in draft.used else None
    draft.use(place)
    draft.slots.ratio = "percent" if each.arg else draft.slots.ratio
    if each.arg and draft.slots.measures:
        return  # the share of the revenue
    about = draft.base or draft.head()
    had = (
        thing is not None
        and thing.kind == "column"
        and bool(vocabulary().lists["shown_by"] & set(draft.words[each.end : thing.start]))
    )
    if thing is not None and had:  # how many have a tail number
        odd = thing.table != about or thing.cost > costs.LOOSE_MEASURE
        draft.use(target, price=costs.UNKNOWN if odd else 0.0, text=thing.text)
        condition = filled(Col(thing.table, thing.column))
        draft.slots.where.append(Where(thing.table, thing.column, condition))
    if about and (had or any(each.is_op("pron") for each in draft.meanings[place + 1 : place + 3])):
        draft.slots.measures.append(Measure("count", about))  # how many of them
        return
    if draft.chinese and (draft.slots.measures or (thing is None and draft.slots.ranks)):
        return  # 多少 asks for the number that is computed already
    if thing is not None and _is_one_thing(draft, target):
        draft.use(target)
        draft.slots.measures.append(Measure("count", _held(draft, thing.table, each.text)))
        return
    if thing is not None and thing.kind == "table":
        draft.use(target)
        draft.change(target, op="count")
        draft.slots.measures.append(Measure("count", thing.table))
        # Different planes flew in 2013: not those of 2013.
        dated = any(each.kind == "time" for each in draft.meanings)
        draft.pay((costs.IDLE if dated else costs.ODD / 2) if distinct else 0.0, thing.text)
        return
    column = draft.column(thing) if thing is not None and thing.kind == "column" else None
    if thing is not None and column is not None:
        draft.use(target)
        draft.change(target, op="count")
        draft.slots.measures.append(_count_of_column(draft, thing, column, each.text))
        return
    if thing is not None and thing.kind == "unit":
        raise NoReadingError(thing.text)
    counted = _counted(draft, place)
    draft.slots.measures.append(Measure("count", counted))
    if not counted or not (
        draft.named() or draft.base or vocabulary().lists["rows"] & set(draft.words)
    ):
        draft.pay(costs.UNKNOWN if not counted else costs.IDLE, each.text)


def _thing_counted(draft: Draft, place: int) -> tuple[int, bool]:
    """Return the place of the thing that "how many" at `place` counts, -1 if there is none. Also
    return whether each thing counts only once.
    """
    target = draft.after(place, over=("distinct", "wh", "list", "late", "pron"), most=5)
    distinct = any(draft.meanings[n].is_op("distinct") for n in range(place, max(place, target)))
    while target >= 0 and draft.meanings[target].kind in ("value", "part", "flag"):
        target = draft.after(target, over=("distinct", "late"), most=3)
    while (
        target >= 0
        and target + 1 < len(draft.meanings)
        and draft.meanings[target].kind == draft.meanings[target + 1].kind == "table"
    ):
        target += 1
    return target, distinct


def _count_of_column(draft: Draft, thing: Meaning, column: Column, text: str) -> Measure:
    """Return the measure for "how many" and a column. It is the sum if the column holds amounts,
    otherwise the number of different values.
    """
    if not column.is_measure:
        return Measure("count", column.table, column.name, distinct=True)
    draft.pay(costs.GUESSED if thing.cost <= costs.LOOSE_MEASURE else costs.UNKNOWN, text)
    return _column_measure(draft, "sum", column, text)


def _is_one_thing(draft: Draft, place: int) -> bool:
    """Return whether a table is named in the singular beside one of its rows, as in 'in genre
    Rock'.
    """
    thing = draft.meanings[place]
    if thing.kind not in ("table", "column") or is_plural(thing.text.lower().split()[-1]):
        return False
    names = [column.name for column in draft.table(thing.table).names]
    if thing.kind == "column" and thing.column not in names:
        return False
    beside = [n for n in (place - 1, place + 1) if 0 <= n < len(draft.meanings)]
    values = [draft.meanings[n] for n in beside if draft.meanings[n].kind in ("value", "part")]
    return any(each.table == thing.table and each.column in names for each in values)


def _held(draft: Draft, name: str, text: str) -> str:
    """Return the table whose rows are counted in questions such as 'how many in genre Rock'. It is
    the table of the previous query, or else the only table that points at genres. Raises
    `NoReadingError` if there are several.
    """
    way = draft.catalog.path(draft.base, name) if draft.base else None
    if way and all(step.up for step in way):
        return draft.base
    pointing = {key.many for key in draft.catalog.references if key.one == name}
    if len(pointing) != 1:
        raise NoReadingError(text)
    return pointing.pop()


def _counted(draft: Draft, place: int) -> str:
    """Return the table whose rows are counted if no table is named after "how many". It is the last
    table named before, the table of the values, the table of the previous query, or the only table.
    Return "" if it is unknown.
    """
    before = [n for n, each in enumerate(draft.meanings[:place]) if each.kind == "table"]
    if before:
        draft.use(before[-1])
        name = draft.meanings[before[-1]].table
        if _is_one_thing(draft, before[-1]):
            return _held(draft, name, draft.meanings[place].text)
        return name
    only = [table.name for table in draft.catalog.plain if len(draft.catalog.plain) == 1]
    return draft.base or next(iter([*draft.spoken(), *only]), "")


# -- groups, and the rest --------------------------------------------------------------------------


def fill_groups(draft: Draft) -> None:
    """Turn 'per month', 'for each carrier and origin' and 'by genre' into group keys."""
    for place, each in draft.open("op"):
        if not each.is_op("each", "by") or place in draft.used:
            continue
        target = draft.after(place, over=("distinct", "wh", "list"), most=4)
        if target < 0 or not _group(draft, target):
            if each.is_op("each"):
                raise NoReadingError(each.text)
            continue
        if each.is_op("by") and not (draft.slots.measures or draft.slots.ranks or draft.base):
            draft.pay(costs.IMPLIED if is_plural(draft.words[0]) else costs.ODD, each.text)
        draft.use(place)
    for place, each in draft.open("unit"):
        if each.text.lower().endswith("ly"):
            _group(draft, place)  # monthly sales


def _group(draft: Draft, place: int) -> bool:
    each = draft.meanings[place]
    if place in draft.used or each.kind not in ("unit", "table", "column"):
        return False
    if each.kind == "unit":
        counted = [measure.table for measure in draft.slots.measures] + [
            rank.measure.table for rank in draft.slots.ranks
        ]
        key = unit_key(
            draft, each.arg, [name for name in dict.fromkeys((*counted, *draft.spoken())) if name]
        )
        draft.slots.keys.append(key[0])
        draft.pay(key[1], each.text)
    else:
        draft.slots.keys.append(Key(each.table, each.column))
    draft.use(place)
    return True


_DEAR = (
    "cmp",
    "most",
    "sup",
    "top",
    "frequent",
    "between",
    "time",
    "post",
    "like",
    "late",
    "agg",
    "dimension",
    "first",
    "order",
    "dir",
    "missing",
    "present",
)


def fill_rest(draft: Draft) -> None:
    """Use the meanings that are left: tables and columns are shown, and a leftover operation may
    raise `NoReadingError`.
    """
    asked = draft.asked()
    for place, each in draft.open("unit"):
        _show_unit(draft, place, each, asked)
    for place, each in draft.open("table"):
        _show_table(draft, place, each)
    events = [
        each.text
        for each in draft.meanings
        if each.kind == "filler" and draft.is_unread_sale(each.text.lower())
    ]
    draft.pay(costs.IDLE if events else 0.0, events[0] if events else "")
    for place, each in draft.open("column"):
        _show_column(draft, place, each, asked)
    for place, each in draft.open("op"):
        _pass_operation(draft, place, each)


def _show_unit(draft: Draft, place: int, each: Meaning, asked: int) -> None:
    slots = draft.slots
    if place != asked and not (slots.ranks and not slots.keys):
        raise NoReadingError(each.text)
    counted = [rank.measure.table for rank in slots.ranks] + draft.spoken()
    key, price = unit_key(draft, each.arg, [name for name in dict.fromkeys(counted) if name])
    if any(rank.measure.func for rank in slots.ranks):
        slots.keys.append(key)
    else:
        slots.shown.append(key)
        draft.pay(price, each.text)
    draft.use(place)


def _show_table(draft: Draft, place: int, each: Meaning) -> None:
    draft.use(place)
    pointer = draft.tokens[each.start - 1].word in ("that", "this")
    if pointer and not is_plural(each.text.lower()) and not draft.base:
        raise NoReadingError(each.text)  # that department: which?
    draft.slots.heads.append(each.table)


def _show_column(draft: Draft, place: int, each: Meaning, asked: int) -> None:
    draft.use(place)
    draft.slots.shown.append(Key(each.table, each.column))
    grouped = draft.tokens[each.start - 1].word == "by" and is_plural(draft.words[0])
    draft.pay(costs.ODD if grouped else 0.0, each.text)
    column = draft.column(each)
    if column is not None and column.truth is not None and place != asked:
        draft.pay(costs.ODD, each.text)  # rather a condition
    function = vocabulary().phrases.get((each.text.lower(),), ("",))[0] == "agg"
    following = draft.meanings[place + 1 : place + 2]
    if function and following and following[0].kind in ("column", "table"):
        raise NoReadingError(each.text)


def _pass_operation(draft: Draft, place: int, each: Meaning) -> None:
    slots = draft.slots
    text = each.text.lower()
    draft.use(place)
    if each.is_op("distinct"):
        slots.distinct = True
    elif each.is_op("pron"):
        idle = text == "it" and slots.measures  # the hottest it ever got
        before = [other for other in draft.meanings[:place] if other.table]
        if text in ("they", "them", "he", "she"):
            before = [other for other in before if other.kind != "column"]
        if not (draft.base or idle or before):
            raise NoReadingError(each.text)
    elif each.is_op("beyond", "money", "howmuch") or each.is_op(*_DEAR):
        raise NoReadingError(each.text)
    elif each.is_op("wh") and text in ("when", "where") and not (slots.shown or slots.measures):
        raise NoReadingError(each.text)  # 'when' and 'where' ask for what nothing shows
