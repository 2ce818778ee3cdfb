"""Put the times of a question together into periods, and periods into conditions on a column of dates or years."""

from calendar import monthrange
from dataclasses import dataclass, replace

from longtable.app.offline.catalog import Column
from longtable.app.offline.columns import date_column, dated_whole
from longtable.app.offline.lexicon_events import events, events_of
from longtable.app.offline.logic import Between, Bucket, Col, Compare, Cond, Scalar
from longtable.app.offline.search import costs
from longtable.app.offline.search.link_schema import dated_by
from longtable.app.offline.search.model import Where
from longtable.app.offline.search.scene import Scene


@dataclass(frozen=True)
class Period:
    """A year, quarter, month, day or part of them; 0 where it says nothing."""

    year: int = 0
    quarter: int = 0
    month: int = 0
    day: int = 0
    weekday: int = -1
    decade: int = 0

    @property
    def first(self) -> str:
        """Return its first day."""
        return f"{self.year:04d}-{self.month or 1:02d}-{self.day or 1:02d}"

    @property
    def last(self) -> str:
        """Return its last day."""
        month = self.month or 12
        return f"{self.year:04d}-{month:02d}-{self.day or monthrange(self.year, month)[1]:02d}"


def settle_periods(scene: Scene) -> None:
    """Turn every time of the question into a condition."""
    place = 0
    while place < len(scene.links):
        link = scene.links[place]
        if place in scene.used or link.kind != "time":
            place += 1
            continue
        start, period, end = _period(scene, place)
        low, high, last = period, None, end
        joiner = end
        if joiner < len(scene.links) and (
            scene.links[joiner].is_op("until") or scene.links[joiner].word in ("and", "to", "through", "until", "-")
        ):
            following = joiner + 1
            while following < len(scene.links) and scene.links[following].kind == "filler":
                following += 1
            begun = scene.before(start, most=3)
            between = any(scene.links[other].is_op("between") for other in range(max(0, start - 3), start))
            ranged = between or scene.links[joiner].word != "and"
            if ranged and following < len(scene.links) and scene.links[following].kind in ("time", "number"):
                _, high, last = _period(scene, following)
                if not low.year:
                    low = replace(low, year=high.year)
                scene.use(joiner, begun if between else -1)
            for other in range(max(0, start - 3), start):
                if scene.links[other].is_op("between"):
                    scene.use(other)
        scene.use(*range(start, last))
        _bear(scene, start, last, low, high)
        place = last


def _period(scene: Scene, place: int) -> tuple[int, Period, int]:
    """Return the period that begins at or just before `place`, with where it begins and ends."""
    parts: dict[str, int] = {}
    links = scene.links
    start = place
    before = place - 1
    if links[place].kind == "number" and place + 1 < len(links) and links[place + 1].unit == "month" and 1 <= links[place].number <= 31:
        parts["day"], place = int(links[place].number), place + 1
    elif links[place].unit == "month" and before >= 0 and links[before].kind == "number" and 1 <= links[before].number <= 31:
        parts["day"] = int(links[before].number)
        start = before
    end = place
    while end < len(links):
        link = links[end]
        if link.kind == "time" and link.unit == "date":
            year, month, day = (int(part) for part in link.arg.split("-"))
            return start, Period(year, 0, month, day), end + 1
        if link.kind == "time" and link.unit not in parts:
            parts[link.unit] = int(link.number)
        elif link.kind == "number" and "month" in parts and "day" not in parts and 1 <= link.number <= 31 and isinstance(link.number, int):
            parts["day"] = link.number
        elif link.kind == "number" and isinstance(link.number, int) and 1900 <= link.number <= 2100 and not parts:
            parts["year"] = link.number
        elif not (
            link.text in (",", "of", "in", "year", "the")
            and end + 1 < len(links)
            and links[end + 1].kind == "time"
            and parts
            and links[end + 1].unit not in parts
        ):
            break
        end += 1
    return start, Period(**parts), max(end, place + 1)


_SINCE = {"since": ">=", "until": "<=", "till": "<=", "before": "<", "after": ">", "from": ">=", "by": "<="}


def _bear(scene: Scene, start: int, end: int, low: Period, high: Period | None) -> None:
    op = "="
    for other in range(start - 1, max(-1, start - 4), -1):
        link = scene.links[other]
        if link.is_op("time", "cmp") and link.arg[:1] in "<>=" and link.arg.partition(":")[0] in ("<", ">", "<=", ">="):
            op = link.arg.partition(":")[0]
            scene.use(other)
            break
        if link.is_op("until"):
            op = "<="
            scene.use(other)
            break
        if link.kind not in ("filler", "unit"):
            break
    if end < len(scene.links) and scene.links[end].is_op("post"):
        op = scene.links[end].arg
        scene.use(end)
    found = date_for(scene, start, end, low)
    if found is None:
        scene.slots.pay(costs.UNUSED_NAME, f"no date for {scene.links[start].text}")
        return
    column, plain, cost = found
    scene.slots.pay(cost, f"date {column.name}")
    if plain and sum(map(bool, (low.year, low.month, low.day))) > 1:
        scene.slots.pay(costs.UNUSED_NAME, "parts of a date in columns of their own")
    for cond in conditions(column, plain, op, low, high):
        scene.slots.where.append(Where(column.table, cond, start, column.name, op))


def date_for(scene: Scene, start: int, end: int, low: Period) -> tuple[Column, bool, float] | None:
    """Return the column that a period bears on, whether it holds years as numbers, and what choosing it costs."""
    for place in (scene.before(start, over=("time", "cmp", "between"), most=5), scene.after(end - 1, most=2)):
        link = scene.links[place] if place >= 0 else None
        column = scene.column(link) if link is not None and link.kind == "column" else None
        if column is not None and column.is_date:
            listed = place and scene.links[place - 1].text in (",", "and") and scene.links[place].start < scene.links[start].start
            scene.become(place, arg="" if listed else "dated")
            return column, False, 0.0
        if column is not None and low.year and not low.month and (holds_years(column)):
            scene.become(place, arg="dated")
            return column, True, 0.0
    unit = "year" if low.year else "month" if low.month else "day"
    near = _verbs(scene, max(0, scene.links[start].start - 6), scene.links[start].start)
    later = _verbs(scene, scene.links[end - 1].end, scene.links[end - 1].end + 4)
    tables = scene.tables()
    head = scene.head()
    whole = dated_whole(scene.catalog, scene.fact() or head)
    order = tuple(dict.fromkeys([name for name in (scene.fact(), head, *tables, *whole) if name]))
    earlier = scene.before(start, over=("time", "cmp", "between"), most=2)
    beside = scene.links[earlier].table if earlier >= 0 and scene.links[earlier].kind == "table" else ""
    options: list[tuple[float, Column, bool]] = []
    for rank, name in enumerate(order):
        table = scene.table(name)
        for column in table.columns if table is not None else ():
            plain = (holds_years(column) and not (low.month or low.day)) or _holds_months(column, low)
            if not (column.is_date or plain):
                continue
            cost = 0.12 * rank + 0.01 * len(options) - (0.3 if name == beside else 0.0)
            cost -= 0.1 if plain and not (near and near[-1] in ("in", "since", "before", "after", "during")) else 0.0
            kinds = events_of(column.words)
            verbs = [word for word in (*near, *later) if events(word) & kinds or dated_by(word, column)]
            told = [word for word in near if dated_by(word, column)]
            cost -= 0.5 if told else 0.3 if verbs else 0.0
            cost += 0.25 if kinds and any(kind in ("birth", "death") for kind in kinds) and not verbs else 0.0
            own = set(table.words) if table is not None else set()
            cost -= 0.1 if own & set(column.words) or len(column.words) == 1 else 0.0
            options.append((cost, column, plain))
    if not options:
        found = date_column(scene.scope(), unit, order, near)
        return (found[0], found[1], costs.GUESSED_COLUMN) if found else None
    options.sort(key=lambda option: option[0])
    best = options[0]
    close = len(options) > 1 and options[1][0] - best[0] < 0.1 and best[0] > -0.3
    return best[1], best[2], max(0.0, best[0]) + (0.25 if close else 0.0)


def _verbs(scene: Scene, start: int, end: int) -> tuple[str, ...]:
    """Return the words of a stretch that name no table and no value."""
    named = {place for link in scene.links if link.kind in ("table", "value") for place in range(link.start, link.end)}
    return tuple(scene.tokens[place].word for place in range(start, min(end, len(scene.tokens))) if place not in named)


def holds_years(column: Column) -> bool:
    """Say whether a column holds years, as far as its name and samples tell."""
    seen = [value for value in column.samples if value is not None]
    years = bool(seen) and all(str(value).isdigit() and 1500 <= int(str(value)) <= 2100 for value in seen)
    return years and not column.is_id and not column.is_date


def _holds_months(column: Column, period: Period) -> bool:
    """Say whether a period is a month alone, and a column of numbers is called by that very word."""
    return period == Period(month=period.month) and column.words == ("month",) and column.has_number_type and not column.is_id


def conditions(column: Column, plain: bool, op: str, low: Period, high: Period | None) -> list[Cond]:
    """Return the conditions that put a column into a period."""
    col = Col(column.table, column.name)
    if high is not None:
        if plain:
            return [Between(_number(column), low.year or low.decade or low.month, high.year or high.month)]
        if low.year and high.year and not (low.month or high.month):
            return [Between(Bucket(col, "year"), low.year, high.year)]
        if low.month and high.month and not high.year:
            return [Between(Bucket(col, "month_of_year"), low.month, high.month)]
        return [Between(_day(column), low.first, high.last)]
    if low.decade:
        return [Between(_number(column) if plain else Bucket(col, "year"), low.decade, low.decade + 9)]
    if plain:
        return [Compare(_number(column), op, low.year or low.month or low.day)]
    if low.day and low.year:
        return [Compare(_day(column), op, low.first)]
    if op != "=" and low.month and low.year:
        return [Compare(_day(column), op, low.first if op in ("<", ">=") else low.last)]
    conds: list[Cond] = []
    if low.month:
        conds.append(Compare(Bucket(col, "month_of_year"), op, low.month))
    if low.quarter:
        conds.append(Compare(Bucket(col, "quarter"), op, low.quarter))
    if low.year:
        conds.append(Compare(Bucket(col, "year"), op, low.year))
    if low.weekday >= 0:
        conds.append(Compare(Bucket(col, "weekday"), op, low.weekday))
    return conds


def _number(column: Column) -> Scalar:
    return Col(column.table, column.name, cast=not column.has_number_type)


def _day(column: Column) -> Scalar:
    timed = "TIME" in column.type.upper() or any(len(str(value)) > 10 for value in column.samples if value is not None)
    col = Col(column.table, column.name)
    return Bucket(col, "day") if timed else col


__all__ = ["Period", "conditions", "date_for", "holds_years", "settle_periods"]
