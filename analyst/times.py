"""Convert the times in a question into conditions: choose the date column of each period, and make
the conditions on it.
"""

import calendar
from dataclasses import fields
from itertools import chain

from longtable.analyst.conditions import money_measures
from longtable.analyst.lattice import Draft, Key, NoReadingError, Period, Where
from longtable.analyst.lexicon import costs, stem, vocabulary
from longtable.analyst.query import Bucket, Col, Condition, Scalar, Unit
from longtable.analyst.schema import Column, Table


def fill_periods(draft: Draft) -> None:
    """Turn each period of the question into conditions on a date. Raises `NoReadingError` if a
    period cannot be used.
    """
    for place, _ in draft.open("time"):
        if place in draft.used:
            continue
        low, end = _period(draft, place)
        high: Period | None = None
        joined = draft.after(end - 1, most=3)
        link = next(
            (draft.meanings[n] for n in range(end, min(end + 2, len(draft.meanings)))), None
        )
        opener = draft.before(place, most=3)
        ranged = opener >= 0 and draft.meanings[opener].is_op("between")
        words = draft.words[max(0, draft.meanings[place].start - 1) : draft.meanings[place].start]
        if (
            joined >= 0
            and draft.meanings[joined].kind == "time"
            and link is not None
            and link.text.lower()
            in ("and", "to", "through", "until", "-", "or", "至", "到", "和", "或")
        ):
            high, end = _period(draft, joined)
            apart = high.month - low.month != 1 or low.day or high.day or low.year
            until = link.text.lower() in ("through", "to", "到", "至") or (
                words == ["from"] and link.text.lower() == "until"
            )
            if not (ranged or until) and apart:
                raise NoReadingError(draft.meanings[joined].text)
            draft.use(opener if ranged else -1)
        _bear(draft, place, end, low, high)


def _period(draft: Draft, place: int) -> tuple[Period, int]:
    """Return the period that several times form together, such as July 4th, 2013, and the place
    where it ends. Mark its words as used.
    """
    parts: dict[str, int] = {}
    end = place
    while end < len(draft.meanings):
        each = draft.meanings[end]
        if each.kind == "time" and each.period is not None:
            parts_stated = _stated(each.period)
            if set(parts_stated) & set(parts):
                break
            parts |= parts_stated
            draft.use(end)
        else:
            following = draft.meanings[end + 1] if end + 1 < len(draft.meanings) else None
            joins = each.text in (",", "of", "in", "the", "年", "月") or (
                each.kind == "unit" and each.arg == "year"
            )
            if (
                not joins
                or following is None
                or following.kind != "time"
                or set(parts) & set(_stated(following.period))
            ):
                break
            draft.use(end)
        end += 1
    return Period(**parts), max(end, place + 1)


def _stated(period: Period | None) -> dict[str, int]:
    """Return the parts of a period that the question names, such as its year."""
    return {
        f.name: getattr(period, f.name)
        for f in fields(Period)
        if period is not None and getattr(period, f.name) != f.default
    }


def _bear(draft: Draft, start: int, end: int, low: Period, high: Period | None) -> None:
    op = "="
    for other in range(start - 1, max(-1, start - 4), -1):
        each = draft.meanings[other]
        if each.is_op("time") or (
            each.is_op("cmp") and not each.arg[1:].strip("=").startswith(":")
        ):
            op = each.arg.partition(":")[0]
            draft.use(other)
            break
        if each.kind not in ("filler", "unit"):
            break
    if end < len(draft.meanings) and draft.meanings[end].is_op("post", "time") and draft.chinese:
        op = draft.meanings[end].arg
        draft.use(end)
    text = " ".join(dict.fromkeys(draft.meanings[n].text for n in range(start, end)))
    column, price = date_for(draft, start, low)
    draft.pay(price, text)
    for cond in _conditions(draft.table(column.table), column, op, low, high):
        name = (
            cond.left.col.name
            if isinstance(cond.left, Bucket)
            else cond.left.name
            if isinstance(cond.left, Col)
            else column.name
        )
        if op == "=" and any(
            each.cond.left == cond.left and each.cond != cond and each.cond.op in ("=", "between")
            for each in draft.slots.where
        ):
            raise NoReadingError(text)  # no row is of two months
        draft.slots.where.append(Where(column.table, name, cond))


def _tables_for_dates(draft: Draft) -> list[str]:
    """Return the tables whose date columns a period may be about, the most likely first."""
    columns = [draft.column(each) for each in draft.meanings if each.kind == "column"]
    measured = [column.table for column in columns if column is not None and column.is_measure]
    order = list(dict.fromkeys([*draft.named()[:1], *measured, *draft.spoken()]))
    if order:
        return order
    if any(each.is_op("money") for each in draft.meanings):
        paid = money_measures(draft, "")
        if paid:
            return [paid[0][1].table]
    plain = draft.catalog.plain
    return [plain[0].name] if len(plain) == 1 else []


def date_for(draft: Draft, place: int, period: Period) -> tuple[Column, float]:
    """Return the date column that the period at `place` is about, and the price of this choice.
    Raises `NoReadingError` if there is none.
    """
    for other in (
        draft.before(place, over=("time", "cmp", "between"), most=4),
        draft.after(place, most=2),
    ):
        column = (
            draft.column(draft.meanings[other])
            if other >= 0 and draft.meanings[other].kind == "column"
            else None
        )
        if column is not None and (column.is_date or (column.is_year and period.year)):
            draft.use(other)
            return column, 0.0
    start = draft.meanings[place].start
    verbs = [token.word for token in draft.tokens[max(0, start - 5) : start + 5]]
    beside = draft.before(place, over=("time", "cmp", "between"), most=3)
    neighbour = draft.meanings[beside] if beside >= 0 else None
    options: list[tuple[float, int, Column]] = []
    for rank, name in enumerate(_tables_for_dates(draft)):
        table = draft.table(name)
        near = neighbour is not None and (neighbour.kind, neighbour.table) == ("table", name)
        for column in table.columns:
            if (price := _fit(table, column, period, verbs)) is not None:
                options.append((price + 0.2 * rank - (0.3 if near else 0.0), len(options), column))
    if not options:
        raise NoReadingError(draft.meanings[place].text)
    options.sort(key=lambda option: option[:2])
    best = options[0]
    close = (
        len(options) > 1 and options[1][0] - best[0] < 0.09 and options[1][2].table == best[2].table
    )
    return best[2], max(0.0, best[0]) + (costs.GUESSED if close else 0.0)


def _fit(table: Table, column: Column, period: Period, verbs: list[str]) -> float | None:
    """Return the price of choosing a column as the date that is meant. Return None if the column
    does not hold such dates.
    """
    vocab = vocabulary()
    part = "year" if period.year else "month" if period.month else "day" if period.day else ""
    plain = part and table.part(part) is column and _has_parts(table, period)
    if not (
        column.is_date
        or plain
        or (column.is_year and period.year and not (period.month or period.day))
    ):
        return None
    kinds = set(chain.from_iterable(map(vocab.events_of, column.words)))
    events = set(chain.from_iterable(map(vocab.events_of, verbs)))
    roots = {stem(word) for word in column.words if word not in ("date", "time")}
    price = 0.15 if plain else 0.2
    price -= 0.3 if roots & {stem(word) for word in verbs} else 0.2 if kinds & events else 0.0
    price += 0.5 if "events.birth" in kinds and "events.birth" not in events else 0.0
    price -= (
        0.1
        if set(column.words) & {*table.words, *map(stem, table.words)}
        or len(column.words) == 1
        or "events.order" in kinds
        else 0.0
    )
    return price


def _has_parts(table: Table, period: Period) -> bool:
    """Return whether a table has a separate column for each part of a period."""
    parts = [part for part in ("year", "month", "day") if getattr(period, part)]
    return (
        bool(parts)
        and all(table.part(part) is not None for part in parts)
        and not period.quarter
        and period.weekday < 0
    )


def _item(table: Table, column: Column, unit: Unit) -> Scalar:
    """Return a part of a date. If the table has a separate column for this part, return the
    column.
    """
    if column.is_date:
        return Bucket(Col(table.name, column.name), unit)
    part = table.part("month" if unit == "month_of_year" else unit)
    return Col(table.name, part.name if part is not None else column.name)


def _conditions(
    table: Table, column: Column, op: str, low: Period, high: Period | None
) -> list[Condition]:
    """Return the conditions that a date lies in a period, or between the periods `low` and `high`.
    Raises `NoReadingError` if the table cannot express them.
    """
    if high is not None:
        high = (
            Period(high.year, high.month, high.day)
            if high.year or not low.year
            else Period(low.year, high.month, high.day)
        )
        if low.year and not low.month and high.year and not high.month:
            return [Condition(_item(table, column, "year"), "between", (low.year, high.year))]
        if (
            low.month
            and not low.day
            and not high.day
            and not low.year
            and not high.year
            and low.month <= high.month
        ):
            return [
                Condition(_item(table, column, "month_of_year"), "between", (low.month, high.month))
            ]
        low = low if low.year else Period(high.year, low.month, low.day)
        return [Condition(_day(column), "between", (_days(low)[0], _days(high)[1]))]
    if op != "=" and ((low.year and low.month) or low.day):
        return [Condition(_day(column), op, _days(low)[op not in ("<", ">=")])]
    conditions: list[Condition] = []
    units: tuple[tuple[Unit, int], ...] = (
        ("year", low.year),
        ("month_of_year", low.month),
        ("quarter", low.quarter),
    )
    if low.day and low.year and column.is_date and not _has_parts(table, low):
        return [Condition(_day(column), op, _days(low)[0])]
    for unit, value in units:
        if value:
            conditions.append(Condition(_item(table, column, unit), op, value))
    if low.day:
        if not _has_parts(table, low):
            raise NoReadingError
        conditions.append(Condition(_item(table, column, "day"), op, low.day))
    if low.weekday >= 0:
        if not column.is_date:
            raise NoReadingError
        conditions.append(
            Condition(Bucket(Col(table.name, column.name), "weekday"), op, low.weekday)
        )
    return conditions


def _day(column: Column) -> Scalar:
    if not column.is_date:
        raise NoReadingError
    timed = "TIME" in column.type.upper() or any(len(str(value)) > 10 for value in column.seen)
    col = Col(column.table, column.name)
    return Bucket(col, "day") if timed else col


def _days(period: Period) -> tuple[str, str]:
    """Return the first and the last day of a period. Raises `NoReadingError` if it has no year."""
    if not period.year:
        raise NoReadingError
    month = period.month or 12
    last = (
        f"{period.year:04}-{month:02}-{period.day or calendar.monthrange(period.year, month)[1]:02}"
    )
    return f"{period.year:04}-{period.month or 1:02}-{period.day or 1:02}", last


def unit_key(draft: Draft, unit: str, tables: list[str]) -> tuple[Key, float]:
    """Return the group key for 'per month', and its price. It is a column named after the unit, or
    a date, in the first of `tables` that has one of them. Raises `NoReadingError` if no table has.
    """
    vocab = vocabulary()
    events = set(chain.from_iterable(map(vocab.events_of, draft.words)))
    for rank, name in enumerate(tables):
        table = draft.table(name)
        part = table.part(unit)
        if part is not None and unit != "day":
            return Key(name, part.name), 0.2 * rank
        dates = sorted(
            (price, n)
            for n, c in enumerate(table.columns)
            if c.is_date and (price := _fit(table, c, Period(), draft.words)) is not None
        )
        if dates:
            price, place = dates[0]
            close = len(dates) > 1 and dates[1][0] - price < 0.09 and not events
            return Key(name, table.columns[place].name, unit), max(0.0, price) + 0.2 * rank + (
                costs.GUESSED if close else 0.0
            )
        if part is not None:
            return Key(name, part.name), 0.2 * rank
    raise NoReadingError(unit)
