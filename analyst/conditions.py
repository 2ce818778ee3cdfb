"""Turn numbers, values, flags, patterns and negations of a question into conditions."""

from longtable.analyst.lattice import Draft, Having, Meaning, Measure, NoReadingError, Where
from longtable.analyst.lexicon import (
    costs,
    is_plural,
    lemma,
    likeness,
    split_name,
    stem,
    vocabulary,
)
from longtable.analyst.query import Agg, Col, Condition
from longtable.analyst.schema import Column

_PRICE_WORDS = {"cost", "costs", "costing", "price"}
_PARTING = {"and", "from", "by", "in", "per", "with"}
"""Words that separate a number from a column after them. In 'over 60 and the average distance', 60
does not limit the distance.
"""
_PASSED = ("wh", "list", "distinct", "present", "pron", "count", "agg", "late", "neg")


def dimension_columns(
    draft: Draft, dimension: str, tables: list[str]
) -> list[tuple[float, Column, int]]:
    """Return the columns that measure a dimension, such as `age` or `born` for age, the best first.
    Each has a price, and a sign. The sign is -1 if the column runs the other way (a later birth is
    a lower age), otherwise 1.
    """
    candidates = vocabulary().dimensions.get(dimension, ())
    question_stems = {stem(word) for word in draft.words}
    scored: list[tuple[float, Column, int]] = []
    for rank, name in enumerate(dict.fromkeys(tables)):
        for column in draft.table(name).columns:
            words = {lemma(word) for word in column.words} | (
                {column.unit} if column.unit else set()
            )
            place = next(
                (n for n, word in enumerate(candidates) if word.lstrip("-") in words and word), -1
            )
            # A delay is no length, though in minutes.
            other = words & vocabulary().lists["worse"] - set(candidates)
            if (
                place < 0
                or other
                or column.is_id
                or column.is_clock
                or not (column.is_measure or column.is_date or column.is_year)
            ):
                continue
            turned = candidates[place].startswith("-")
            if column.is_date and not turned and dimension != "date":
                continue
            stems = {stem(word) for word in column.words}
            price = 0.2 * rank + 0.02 * place - (0.3 if stems & question_stems else 0.0)
            scored.append((price, column, -1 if turned else 1))
    return sorted(scored, key=lambda each: each[0])


def best_dimension(
    draft: Draft, dimension: str, tables: list[str], text: str
) -> tuple[Column, int]:
    """Return the column that best measures a dimension, with its sign, and add the price of this
    choice. Raises `NoReadingError` if no column does.
    """
    scored = dimension_columns(draft, dimension, tables)
    if not scored:
        raise NoReadingError(text)
    price, column, sign = scored[0]
    close = len(scored) > 1 and scored[1][0] - price < 0.05 and scored[1][1].table == column.table
    draft.pay(max(0.05, price + 0.1) + (costs.RIVAL if close else 0.0), text)
    return column, sign


# -- numbers ---------------------------------------------------------------------------------------


def fill_numbers(draft: Draft) -> None:
    """Turn each unused number into a condition on a column or on a measure."""
    for place, each in draft.open("op"):
        if each.is_op("between"):
            numbers = [
                n
                for n in range(place + 1, min(place + 6, len(draft.meanings)))
                if draft.meanings[n].kind == "number"
            ]
            if len(numbers) == 2:
                _between(draft, place, numbers)
    for place, _ in draft.open("number"):
        if place not in draft.used:
            _number(draft, place)
    for place, each in draft.open("op"):
        if each.is_op("cmp") and place not in draft.used:
            _average(draft, place, each)


def _between(draft: Draft, place: int, numbers: list[int]) -> None:
    target = _target(draft, place, numbers[-1])
    draft.use(place, *numbers)
    if isinstance(target, Measure):
        raise NoReadingError(draft.meanings[place].text)
    low, high = (_converted(draft, target, n, _unit_after(draft, numbers[-1])) for n in numbers)
    draft.slots.where.append(
        Where(
            target.table,
            target.name,
            Condition(Col(target.table, target.name), "between", (low, high)),
        )
    )


def _number(draft: Draft, place: int) -> None:
    each = draft.meanings[place]
    earlier = draft.before(place, most=3)
    op = "="
    dimension = ""
    begin = place
    if earlier >= 0 and draft.meanings[earlier].is_op("cmp"):
        op, _, dimension = draft.meanings[earlier].arg.partition(":")
        draft.use(earlier)
        begin = earlier
    later = draft.after(place, over=("late",), most=3)
    if later >= 0 and draft.meanings[later].is_op("post"):
        op = draft.meanings[later].arg
        draft.use(later)
    target = _target(draft, begin, place, dimension, bare=op == "=" and begin == place)
    draft.use(place)
    if isinstance(target, Measure):
        draft.slots.havings.append(Having(target, op, each.number))
        return
    # A code of digits.
    number = (
        _converted(draft, target, place, _unit_after(draft, place))
        if target.is_number
        else each.text
    )
    draft.slots.where.append(
        Where(target.table, target.name, Condition(Col(target.table, target.name), op, number))
    )


def _unit_after(draft: Draft, place: int) -> int:
    return (
        place + 1
        if place + 1 < len(draft.meanings) and draft.meanings[place + 1].kind == "unit"
        else -1
    )


def _target(
    draft: Draft, begin: int, place: int, dimension: str = "", *, bare: bool = False
) -> Column | Measure:
    """Return the column that a number limits, or the measure that it limits for each row of the
    answer. `begin` is the place where the words of the comparison begin, `place` that of the
    number.
    """
    unit = _unit_after(draft, place)
    nearby = range(max(0, begin - 3), min(len(draft.meanings), place + 4))
    late = [n for n in nearby if draft.meanings[n].is_op("late")]
    after = draft.after(unit if unit >= 0 else place, over=("distinct", "late", "post"), most=3)
    before = draft.before(begin, over=_PASSED, most=5)
    for other in (after, before):
        each = draft.meanings[other] if other >= 0 and other not in draft.used else None
        if each is None or (other == before and bare and each.kind != "column"):
            continue
        if each.kind == "column":
            target = _column_beside(draft, place, other, late, bare=bare)
        else:
            target = _table_after(draft, other, bare=bare) if other == after else None
        if target is not None:
            return target
    return _target_by_words(draft, place, unit, late, dimension, bare=bare)


def _is_bare_year(draft: Draft, place: int, *, bare: bool) -> bool:
    return bare and 1900 <= draft.meanings[place].number <= 2100


def _column_beside(
    draft: Draft, place: int, other: int, late: list[int], *, bare: bool
) -> Column | Measure | None:
    """Return the column beside a number, or the average of this column. Return None if the number
    does not limit it.
    """
    each = draft.meanings[other]
    column = draft.column(each)
    if column is None:
        return None
    if bare:
        if abs(other - place) > 2 or (not column.is_id and " of " in each.text):
            return None  # the freight of order 10248
        draft.pay(costs.IMPLIED, each.text)
    if not _takes_number(draft, column, place, other, bare=bare):
        return None
    averaged = draft.before(other, most=2)
    price = costs.FAR * max(0, abs(other - place) - 3)
    draft.use(other, *late, price=price, text=each.text)
    if averaged < 0 or averaged in draft.used or not draft.meanings[averaged].is_op("agg"):
        return column
    func = draft.meanings[averaged].arg
    draft.use(averaged)
    return Measure(func, column.table, column.name)


def _takes_number(draft: Draft, column: Column, place: int, other: int, *, bare: bool) -> bool:
    """Return whether the number at `place` may be compared with the column at `other`."""
    code = draft.meanings[place].text.isdigit()
    is_code = code and other == place - 1 and not column.is_date
    if not (column.is_measure or column.is_year or (bare and (column.is_number or is_code))):
        return False
    if _is_bare_year(draft, place, bare=bare) and not (column.is_year or column.is_id):
        return False
    between = {each.text.lower() for each in draft.meanings[place + 1 : other]}
    return not _PARTING & between


def _table_after(draft: Draft, other: int, *, bare: bool) -> Measure | None:
    """Return the count of rows of the table that is named after a number, as in "with more than 5
    orders". Return None if no table is.
    """
    each = draft.meanings[other]
    if each.kind != "table" or (bare and not {"exactly", "only"} & set(draft.words)):
        return None
    asked = draft.asked()
    if asked >= 0 and draft.meanings[asked].kind == "table" and each.table == draft.head():
        return None
    draft.use(other)
    return Measure("count", each.table)


def _target_by_words(
    draft: Draft, place: int, unit: int, late: list[int], dimension: str, *, bare: bool
) -> Column | Measure:
    """Return the column or measure that a number limits, by the unit of the number or by other
    words of the question. Raises `NoReadingError` if there is none.
    """
    text = draft.meanings[place].text
    if _is_bare_year(draft, place, bare=bare):
        raise NoReadingError(text)  # a year that no date takes is no amount
    if late:
        draft.use(*late)
        tables = draft.spoken() or [table.name for table in draft.catalog.plain]
        return best_dimension(draft, "delay", tables, text)[0]
    by_unit = _by_unit(draft, draft.meanings[unit].arg, dimension, text) if unit >= 0 else None
    if by_unit is not None:
        return by_unit
    if dimension:
        column, sign = best_dimension(draft, dimension, draft.spoken(), text)
        if sign > 0:
            return column
    words = set(draft.words)
    if _PRICE_WORDS & words or vocabulary().lists["money_verbs"] & words:
        own = dimension_columns(draft, "price", draft.spoken()[:1])
        if own and not {"spent", "spend"} & words:
            draft.pay(0.1, text)
            return own[0][1]
        return nearest_money(draft, draft.head(), text)
    return _limited_before(draft, text)


def _limited_before(draft: Draft, text: str) -> Column:
    """Return the column of numbers that the previous query limits, for questions such as 'and less
    than 1?'. Raises `NoReadingError` if there is none.
    """
    limits = (
        [cond.left for cond in draft.prior.where if isinstance(cond.left, Col)]
        if draft.prior is not None
        else []
    )
    columns = [draft.catalog.column(col.table, col.name) for col in limits]
    column_before = next(
        (column for column in columns if column is not None and column.is_measure), None
    )
    if column_before is None:
        raise NoReadingError(text)
    return column_before


def _by_unit(draft: Draft, unit: str, dimension: str, text: str) -> Column | None:
    """Return the column of numbers whose unit measures the same as `unit`, in the tables that the
    question uses. If several columns fit, the best is returned at a higher price. Return None if
    none fits.
    """
    units = vocabulary().units
    kind = units[unit].dimension if unit in units else ""
    dimension_of = {
        "duration": "length",
        "distance": "distance",
        "weight": "weight",
        "money": "price",
        "speed": "speed",
        "heat": "heat",
    }.get(kind, "")
    options = [
        (price, column)
        for price, column, sign in dimension_columns(
            draft, dimension or dimension_of, draft.spoken()
        )
        if sign > 0
    ]
    options = [
        each
        for each in options
        if not (kind and each[1].unit) or units[each[1].unit].dimension == kind
    ]
    spoken = draft.spoken()[:1]
    columns = draft.table(spoken[0]).columns if spoken else ()
    by_name = [c for c in columns if c.is_measure and not c.is_clock]
    fits = [
        (price, column)
        for price, column in options
        if column.unit and units[column.unit].dimension == kind
    ]
    fits = fits or [
        (0.1, column)
        for column in by_name
        if not (dimension and options) and column.unit and units[column.unit].dimension == kind
    ]
    ranked = sorted(fits or options, key=lambda each: each[0])
    if not ranked:
        return None
    draft.pay(
        max(0.0, ranked[0][0])
        + (costs.RIVAL if (len(ranked) > 1 and ranked[1][0] - ranked[0][0] < 0.05) else 0.1),
        text,
    )
    return ranked[0][1]


def _converted(draft: Draft, column: Column, place: int, unit: int) -> float | int:
    """Return the number converted to the unit of the column. If the column's unit is unknown or of
    another kind, the number is returned unchanged, and the reading of the question costs more.
    """
    number = draft.meanings[place].number
    units = vocabulary().units
    unit_in_question = units.get(draft.meanings[unit].arg) if unit >= 0 else None
    own = units.get(column.unit)
    draft.use(unit)
    if unit_in_question is None:
        return number
    if own is None or own.dimension != unit_in_question.dimension:
        draft.pay(costs.UNKNOWN_UNIT if own is None else costs.UNKNOWN, draft.meanings[unit].text)
        return number
    value = number * unit_in_question.factor / own.factor
    return int(value) if abs(value - round(value)) < 1e-9 else round(value, 6)


def _average(draft: Draft, place: int, each: Meaning) -> None:
    """Add a condition that compares a column with its own average: 'above the average price',
    'cheaper than average'.
    """
    op, _, dimension = each.arg.partition(":")
    function = next(
        (
            n
            for n in range(place + 1, min(place + 4, len(draft.meanings)))
            if draft.meanings[n].is_op("agg")
        ),
        -1,
    )
    if function < 0 or draft.meanings[function].arg != "avg":
        return
    target = next(
        (
            n
            for n in (draft.after(function, most=3), draft.before(place, over=_PASSED, most=4))
            if draft.is_measure(n)
        ),
        -1,
    )
    column = draft.column(draft.meanings[target]) if target >= 0 else None
    if column is None and dimension:
        column = best_dimension(draft, dimension, draft.spoken(), each.text)[0]
    if column is None:
        return
    draft.use(place, function, target)
    col = Col(column.table, column.name)
    draft.slots.where.append(Where(column.table, column.name, Condition(col, op, Agg("avg", col))))


def money_measures(draft: Draft, head: str) -> list[tuple[float, Measure]]:
    """Return the sums of money that belong to the table `head`, with their prices, the nearest
    first. The amounts are in this table or in tables that point at it.
    """
    order = [
        t.name
        for t in draft.catalog.plain
        if not head or t.name == head or draft.catalog.path(t.name, head) is not None
    ]
    lists = vocabulary().lists
    options: list[tuple[float, Measure]] = []
    for name in order:
        way = draft.catalog.path(name, head) if head else ()
        if way is None or not all(step.up for step in way):
            continue
        columns = [column for column in draft.table(name).columns if column.is_measure]
        for column in columns:
            words = {lemma(word) for word in column.words}
            if words & (lists["sum_words"] - lists["sum_or_value"]):
                options.append(
                    (
                        0.15 * len(way) + (0.0 if words & {"total", "amount"} else 0.1),
                        Measure("sum", name, column.name),
                    )
                )
    return sorted(options, key=lambda each: each[0])


def money_measure(draft: Draft, each: Meaning) -> Measure:
    """Return the measure that a word such as "revenue" stands for. It is the one that a company's
    term names, or the sum of money that is nearest to what the question is about.
    """
    if each.column:
        return Measure(each.arg, each.table, each.column)
    return nearest_money(draft, draft.head() or draft.base, each.text)


def nearest_money(draft: Draft, head: str, text: str) -> Measure:
    """Return the sum of money that is nearest to the table `head`, and add the price of this
    choice. Raises `NoReadingError` if there is none.
    """
    options = money_measures(draft, head)
    if not options:
        raise NoReadingError(text)
    rival = len(options) > 1 and options[1][0] - options[0][0] < 0.04
    draft.pay(costs.IMPLIED + options[0][0] + (costs.GUESSED if rival else 0.0), text)
    return options[0][1]


# -- values, patterns, negations -------------------------------------------------------------------


def fill_lateness(draft: Draft) -> None:
    """Add a condition for lateness without a number. For 'arrived late', the delay is over 0; for
    'on time', it is not.
    """
    for place, each in draft.open("op"):
        if each.is_op("late"):
            draft.use(place)
            column = best_dimension(draft, "delay", draft.spoken(), each.text)[0]
            draft.slots.where.append(
                Where(
                    column.table,
                    column.name,
                    Condition(Col(column.table, column.name), each.arg, 0),
                )
            )


def fill_patterns(draft: Draft) -> None:
    """Add conditions for patterns such as 'whose title starts with The' or 'containing love'. They
    are on the column before the pattern, or else on the name of the things asked about.
    """
    for place, each in draft.open("op"):
        if not each.is_op("like"):
            continue
        text = next(
            (
                n
                for n in range(place + 1, min(place + 4, len(draft.meanings)))
                if _is_text(draft, n)
            ),
            -1,
        )
        if text < 0:
            continue
        before = draft.before(place, over=("wh",), most=4)
        column = (
            draft.column(draft.meanings[before])
            if before >= 0 and draft.meanings[before].kind == "column"
            else None
        )
        names = draft.table(draft.head()).names if draft.head() else ()
        if column is None and not names:
            continue
        draft.use(place, text, before if column is not None else -1)
        draft.cost -= draft.meanings[text].cost
        draft.blamed = [blame for blame in draft.blamed if blame[1] != draft.meanings[text].text]
        target = column or next(iter(names))
        quoted = draft.meanings[text]
        cond = Condition(
            Col(target.table, target.name),
            each.arg,
            " ".join(t.text for t in draft.tokens[quoted.start : quoted.end]),
        )
        draft.slots.where.append(Where(target.table, target.name, cond))


def _is_text(draft: Draft, place: int) -> bool:
    token = draft.tokens[draft.meanings[place].start]
    return (
        token.kind in ("quoted", "code")
        or token.is_name
        or draft.meanings[place].kind in ("value", "part", "unknown")
    )


def fill_negations(draft: Draft) -> None:
    """Find what each 'without', 'not' or 'never' negates: a table, a column, a value or a flag.
    Raises `NoReadingError` if it is not clear.
    """
    for place, each in draft.open("op"):
        if not each.is_op("neg"):
            continue
        target = draft.after(
            place, over=("neg", "count", "distinct", "present", "pron", "agg", "wh", "list"), most=6
        )
        if (
            target >= 0
            and draft.meanings[target].kind == "table"
            and draft.meanings[target].table == draft.head()
        ):
            target = -1
        denied = draft.meanings[target] if target >= 0 and target not in draft.used else None
        if (target != place + 1 or denied is None or denied.cost > 0.3) and _denied_event(
            draft, place, target
        ):
            continue
        draft.use(place)
        if denied is None:
            raise NoReadingError(each.text)
        if denied.kind == "table" and denied.table != draft.head():
            draft.use(target)
            keys = [
                key.sure
                for key in draft.catalog.references
                if (key.many, key.one) == (denied.table, draft.head())
            ]
            if len(keys) > 1 and not all(keys):
                raise NoReadingError(each.text)  # not from there, or not to it?
            draft.slots.absent[denied.table] = frozenset()
        elif same := [
            other
            for other in range(target, min(target + 5, len(draft.meanings)))
            if draft.meanings[other].kind in ("value", "part", "flag")
            and draft.meanings[other].column == denied.column
        ]:
            for other in same:
                draft.change(other, op="not")
        elif denied.kind == "column":
            draft.use(target)
            roles = frozenset(map(stem, split_name(denied.column)))
            head = draft.head() or draft.base
            way = draft.catalog.path(head, denied.table, roles) if head else ()
            if way and not way[0].up:
                draft.slots.absent[denied.table] = roles
            else:
                _is_null(draft, denied)
        else:
            raise NoReadingError(each.text)


def _denied_event(draft: Draft, place: int, target: int) -> bool:
    """Add a condition for a negated verb, and return whether one was found. In 'have not been
    shipped', the date of the verb is missing; in 'nobody bought', the verb's table has no matching
    rows.
    """
    head = draft.head() or draft.base
    if not head:
        return False
    last = draft.meanings[place].end
    for n in range(last, min(last + 4, len(draft.tokens))):
        word = draft.tokens[n].word
        if len(word) < 3 or (target >= 0 and draft.meanings[target].end <= n):
            continue
        times = [
            c for c in draft.table(head).columns if c.is_date or {"date", "time"} & set(c.words)
        ]
        dates = sorted((len(c.words), c.name) for c in times if _speaks_of(word, c.words))
        rows = [key.many for key in draft.catalog.references if key.one == head and target < 0]
        absent = [name for name in rows if _speaks_of(word, draft.table(name).words)]
        if not (dates and (len(dates) == 1 or dates[0][0] < dates[1][0])) and len(absent) != 1:
            continue
        at = next(k for k, m in enumerate(draft.meanings) if m.start <= n < m.end)
        draft.use(place, at)
        draft.cost -= max(0.0, draft.meanings[at].cost - costs.VERB)
        draft.blamed = [blame for blame in draft.blamed if blame[1] != draft.meanings[at].text]
        if dates:
            draft.slots.where.append(
                Where(head, dates[0][1], Condition(Col(head, dates[0][1]), "null"))
            )
        else:
            draft.slots.absent[absent[0]] = frozenset()
        return True
    return False


def _speaks_of(verb: str, words: tuple[str, ...]) -> bool:
    """Return whether a verb and a word of a name have the same stem, or mean the same kind of
    event.
    """
    return any(
        max(likeness(verb, word), likeness(stem(verb), word)) > 0.85
        or vocabulary().events_of(verb) & vocabulary().events_of(word)
        for word in words
    )


def _is_null(draft: Draft, each: Meaning) -> None:
    column = draft.column(each)
    col = Col(each.table, each.column)
    cond = Condition(col, "null")
    if column is not None and column.truth is not None:
        cond = Condition(col, "<>", column.truth)
    elif (
        column is not None
        and column.is_measure
        and vocabulary().lists["in_store"] & {lemma(word) for word in column.words}
    ):
        cond = Condition(col, "=", 0)
    elif (
        column is not None
        and column.is_measure
        and vocabulary().lists["worse"] & {lemma(word) for word in column.words}
    ):
        raise NoReadingError(each.text)  # no delay: none known, or none had?
    draft.slots.where.append(Where(each.table, each.column, cond))


def fill_terms(draft: Draft) -> None:
    """Add the conditions of the company's terms that name rows. In "orders that are not late
    orders", the term is negated.
    """
    head = draft.head() or draft.base
    for place, each in enumerate(draft.meanings):
        if not each.must:
            continue
        cond = Condition(Col(each.table, each.must), "=", True)
        before = draft.before(place, over=("pron",), most=4)
        denied = before >= 0 and draft.meanings[before].is_op("neg") and each.table == head
        if denied:
            draft.use(before)
        draft.slots.where.append(Where(each.table, each.must, cond, denied=denied))


def fill_values(draft: Draft) -> None:
    """Turn values, parts of values and flags into conditions. Several values of one column are
    alternatives.
    """
    _drop_names(draft)
    groups: dict[tuple[str, str, bool, frozenset[str]], list[Meaning]] = {}
    for place, each in draft.open("value"):
        draft.use(place)
        _check_place(draft, place, each)
        own = (each.table, each.column, each.op == "not", draft.roles(place))
        slot = next(
            (slot for slot in groups if slot[:3] == own[:3] and own[3] in (frozenset(), slot[3])),
            own,
        )
        groups.setdefault(slot, []).append(each)
    for (table, column, denied, roles), matches in groups.items():
        col = Col(table, column)
        values = tuple(dict.fromkeys(each.value for each in matches))
        cond = Condition(col, "=", values[0]) if len(values) == 1 else Condition(col, "in", values)
        draft.slots.where.append(Where(table, column, cond, roles, denied))
    for place, each in draft.open("part"):
        cond = Condition(Col(each.table, each.column), "contains", str(each.value))
        draft.slots.where.append(
            Where(each.table, each.column, cond, draft.roles(place), each.op == "not")
        )
        draft.use(place, price=_part_price(draft, place, each), text=each.text)
    for place, each in draft.open("flag"):
        draft.use(place)
        cond = Condition(
            Col(each.table, each.column), "<>" if each.op == "not" else "=", each.value
        )
        draft.slots.where.append(Where(each.table, each.column, cond))


def _check_place(draft: Draft, place: int, each: Meaning) -> None:
    """Add a price if the words before a value do not fit its column: 'to JFK' read as an origin, or
    'the album X' read as a track. Raises `NoReadingError` for 'X or Y' if X and Y are values of
    different columns.
    """
    lists = vocabulary().lists
    column = draft.column(each)
    roles = draft.roles(place)
    stems = {stem(word) for word in column.words} if column is not None else set()
    to_names = set(map(stem, lists["to_names"]))
    from_names = set(map(stem, lists["from_names"]))
    if roles and stems & (to_names if roles & from_names else from_names) - roles:
        draft.pay(costs.ODD, each.text)
    before = draft.meanings[place - 1] if place else None
    if (
        before is not None
        and before.kind == "table"
        and before.table != each.table
        and not is_plural(before.text.lower().split()[-1])
    ):
        draft.pay(costs.ODD, each.text)
    earlier = draft.meanings[place - 2] if place > 1 else None
    joined = before is not None and before.text.lower() in ("or", "或", "或者")
    if (
        joined
        and earlier is not None
        and earlier.kind == "value"
        and (earlier.table, earlier.column) != (each.table, each.column)
    ):
        raise NoReadingError(each.text)


def _part_price(draft: Draft, place: int, each: Meaning) -> float:
    """Return the price of a part of a value. It is high if the question does not name the value's
    table, and this table is not next to the table that was asked about.
    """
    head = draft.head() or draft.base
    column = draft.column(each)
    if each.table in draft.named() or each.table == head or not head:
        return 0.0
    roles = draft.roles(place)
    way = draft.catalog.path(head, each.table, roles)
    names = column is not None and column in draft.table(each.table).names
    if not way or not names or not way[-1].up or way[-1].rivals:
        return costs.FAR_PART
    if roles & set(map(stem, split_name(way[-1].here_column))):
        return 0.1  # to Atlanta: the key says so
    return (
        costs.FAR_PART
        if len(way) > 1
        else 0.1
        if each.cost < costs.VALUE_PART
        else costs.UNNAMED_PART
    )


def _drop_names(draft: Draft) -> None:
    """Mark a column or table as used if it only tells the kind of the value beside it: 'carrier
    UA', 'the genre Rock', 'status open'.
    """
    for place, each in draft.open("value", "part"):
        for other in (draft.before(place, over=("neg",), most=3), draft.after(place, most=2)):
            beside = draft.meanings[other] if other >= 0 and other not in draft.used else None
            if (
                beside is None
                or beside.op
                or any(
                    m.text.lower() in ("and", "their", ",")
                    for m in draft.meanings[min(place, other) + 1 : max(place, other)]
                )
            ):
                continue
            same = (beside.table, beside.column) == (each.table, each.column)
            pointing = beside.kind == "column" and any(
                (key.many, key.column, key.one)
                in (
                    (beside.table, beside.column, each.table),
                    (each.table, each.column, beside.table),
                )
                or {(key.many, key.column), (key.one, key.target)}
                == {(beside.table, beside.column), (each.table, each.column)}
                for key in draft.catalog.references
            )
            if (beside.kind == "column" and same) or (
                pointing and not is_plural(beside.text.lower())
            ):
                draft.use(other)
