"""Read comparisons: numbers, columns and dates compared, and give every number to a column or a count."""

from longtable.app.offline.catalog import Column
from longtable.app.offline.columns import CannotRead, by_dimension
from longtable.app.offline.conditions import converted
from longtable.app.offline.lexicon_measures import UNIT_DIMENSIONS, VERB_DIMENSIONS
from longtable.app.offline.logic import Between, Col, Compare, Cond, Value
from longtable.app.offline.search import costs
from longtable.app.offline.search.fill_compared import PASSED, compare_columns, compare_dates
from longtable.app.offline.search.fill_measures import in_unit
from longtable.app.offline.search.model import Having, Link, Measure, Where
from longtable.app.offline.search.periods import holds_years
from longtable.app.offline.search.scene import Scene
from longtable.app.offline.text import lemma


def settle_numbers(scene: Scene) -> None:
    """Give every number that is left to a column, or to a count."""
    for place, link in list(scene.open("op")):
        if link.is_op("between"):
            _between(scene, place)
    for place, link in list(scene.open("number")):
        if place in scene.used:
            continue
        op, places = _operator(scene, place)
        if op:
            scene.use(place, *places)
            _compare(scene, min((place, *places)), place, op, link)
        else:
            _bare(scene, place, link)
    for place, link in list(scene.open("op")):
        if link.is_op("cmp"):
            compare_columns(scene, place, link)
        elif link.is_op("time"):
            compare_dates(scene, place, link)


def _between(scene: Scene, place: int) -> None:
    numbers = [
        other
        for other in range(place + 1, min(place + 8, len(scene.links)))
        if scene.links[other].kind == "number" and other not in scene.used
    ]
    if len(numbers) < 2:
        return
    low, high = numbers[:2]
    scene.use(place, low, high)
    _compare(scene, place, high, "between", scene.links[low], high=scene.links[high].number)


def _operator(scene: Scene, place: int) -> tuple[str, tuple[int, ...]]:
    """Return the comparison of a number and the places of its words."""
    for other in range(place - 1, max(-1, place - 5), -1):
        link = scene.links[other]
        if link.is_op("cmp", "time") and other not in scene.used:
            return link.arg, (other,)
        if link.is_op("post") and other not in scene.used:
            return link.arg, (other,)
        if link.kind != "filler" and not (scene.measures(link) and other >= place - 3):
            break
    for other in range(place + 1, min(place + 4, len(scene.links))):
        link = scene.links[other]
        if link.is_op("post") and other not in scene.used:
            return link.arg, (other,)
        if link.kind not in ("filler", "unit", "column", "table"):
            break
    return "", ()


def _compare(scene: Scene, start: int, place: int, op: str, number: Link, high: float | int | None = None) -> None:
    op, _, dimension = op.partition(":")
    column_at = scene.before(start, over=PASSED, most=6)
    before = scene.links[column_at] if column_at >= 0 else None
    if (
        before is not None
        and before.kind == "column"
        and any((each.table, each.column) == (before.table, before.column) for each in scene.slots.where)
    ):
        before = None  # three or more bedrooms under 600k: another column
    after_at = scene.after(place, over=("post",), most=5)
    after = scene.links[after_at] if after_at >= 0 and after_at not in scene.used else None
    unit = next(
        (
            scene.links[other]
            for other in (place + 1, place + 2)
            if other < len(scene.links) and (scene.links[other].kind == "unit" or scene.links[other].unit)
        ),
        None,
    )
    value, top = _plain(number.number), None if high is None else _plain(high)
    inside = [other for other in range(start + 1, place) if scene.measures(scene.links[other]) and other not in scene.used]
    if inside and before is None:  # above age 40
        scene.use(inside[0])
        _on_column(scene, scene.links[inside[0]], op, value, top)
        return
    if inside:
        column_at, before = inside[0], scene.links[inside[0]]
    if before is not None and (scene.measures(before) or (before.kind == "column" and before.op)):
        scene.use(column_at)
        if unit is not None:
            scene.use(scene.links.index(unit))
            value, top = _in_own_unit(scene, before, unit, value, top)
        _on_column(scene, before, op, value, top)
        return
    if after is not None and after.kind == "column" and scene.measures(after) and not after.op:
        scene.use(after_at)
        _on_column(scene, after, op, value, top)
        return
    thing = after is not None and (after.kind == "table" or (after.kind == "column" and not scene.measures(after)))
    if after is not None and thing and (unit is None or unit.kind == "filler"):
        scene.use(after_at)
        if op in ("<", "<="):
            scene.slots.pay(costs.ODD / 2, "fewer leaves out those with none")
        scene.slots.havings.append(Having(Measure("count", after.table, "", after_at), op, value, top))
        return
    column = _by_words(scene, dimension, unit, start, place)
    if column is not None:
        at = Link(0, 0, "column", 0, "", column.table, column.name)
        if unit is not None:
            scene.use(scene.links.index(unit))
            value, top = _in_own_unit(scene, at, unit, value, top)
        _on_column(scene, at, op, value, top)
        return
    measured = [(abs(other - place), other) for other, link in scene.open("column") if scene.measures(link)]
    if measured:
        far, other = min(measured)
        scene.slots.pay(costs.FAR * far, "far column")
        taken = {(each.table, each.column) for each in scene.slots.where}
        if (scene.links[other].table, scene.links[other].column) in taken:
            scene.slots.pay(costs.IDLE, "a second number for one column")
        _on_column(scene, scene.links[other], op, value, top)
        return
    if before is not None and before.kind == "table" and "count" in before.op:
        scene.slots.havings.append(Having(Measure("count", before.table, "", column_at), op, value, top))
        return
    counted = [other for other, link in scene.open("table") if link.op == "count"]
    if len(counted) == 1 and any(link.is_op("each", "by") for link in scene.links) and dimension == "":
        scene.slots.havings.append(Having(Measure("count", scene.links[counted[0]].table, "", counted[0]), op, value, top))
        return  # staff per site, only sites with more than five
    scene.slots.pay(costs.UNUSED_NAME, f"no column for {number.text}")


def _plain(number: float | int) -> float | int:
    return int(number) if number == int(number) else number


def _in_own_unit(
    scene: Scene, link: Link, unit: Link, value: float | int, high: float | int | None
) -> tuple[float | int, float | int | None]:
    """Turn hours into the minutes that a column holds."""
    column = scene.catalog.column(link.table, link.column)
    if column is None or link.op:
        return value, high
    try:
        return converted(value, unit.text.lower(), column), None if high is None else converted(high, unit.text.lower(), column)
    except CannotRead:
        scene.slots.pay(costs.ODD, f"unit of {column.name}")
        return value, high


def _on_column(scene: Scene, link: Link, op: str, value: float | int, high: float | int | None) -> None:
    func = link.op.split("+")[0] if link.op else ""
    if func in ("avg", "sum", "min", "max", "count"):
        scene.slots.havings.append(Having(Measure(func, link.table, link.column), op, value, high))
        return
    column = scene.catalog.column(link.table, link.column)
    cast = column is not None and not column.has_number_type
    col = Col(link.table, link.column, cast=cast)
    cond: Cond = Between(col, value, high) if high is not None else Compare(col, op, value)
    scene.slots.where.append(Where(link.table, cond, link.start, link.column, op))


def _by_words(scene: Scene, dimension: str, unit: Link | None, start: int, place: int) -> Column | None:
    """Return the column that an adjective, a unit or a verb names: older than, 20 minutes, costs."""
    tables = tuple(dict.fromkeys(filter(None, (scene.head(), *scene.tables()))))
    if unit is not None:
        name = lemma(unit.text.lower())
        fits = [
            column
            for table in tables[:3]
            if (home := scene.table(table)) is not None
            for column in home.columns
            if column.is_number and not column.is_id and in_unit(column, name)
        ]
        if len(fits) == 1 or (fits and fits[0].table == tables[0] and (len(fits) < 2 or fits[1].table != tables[0])):
            scene.slots.pay(0.1, f"unit {name}")
            return fits[0]
    words = [scene.tokens[other].word for other in range(max(0, scene.links[start].start - 3), scene.links[place].start)]
    wanted = [dimension] if dimension else []
    wanted += [VERB_DIMENSIONS[word] for word in words if word in VERB_DIMENSIONS]
    if unit is not None and lemma(unit.text.lower()) in UNIT_DIMENSIONS:
        wanted.append(UNIT_DIMENSIONS[lemma(unit.text.lower())])
    for each in wanted:
        if (found := by_dimension(scene.scope(), each, tables[:2])) is not None and found[0].is_number and not found[1]:
            scene.slots.pay(0.2, f"{each} is {found[0].name}")
            return found[0]
    return None


def _bare(scene: Scene, place: int, number: Link) -> None:
    """A number without a comparison: a key, a label, or an equal number."""
    if number.arg == "word" and number.number == 1:
        scene.use(place)
        return
    earlier = scene.before(place, over=PASSED, most=3)
    before = scene.links[earlier] if earlier >= 0 else None
    later = scene.after(place, most=2)
    after = scene.links[later] if later >= 0 else None
    value = _plain(number.number)
    if before is not None and before.kind == "column" and earlier not in scene.used:
        scene.use(place, earlier)
        _equals(scene, before, value)
        return
    unit = (
        scene.links[place + 1]
        if place + 1 < len(scene.links) and (scene.links[place + 1].unit or scene.links[place + 1].kind == "unit")
        else None
    )
    if (
        before is not None
        and before.kind == "table"
        and unit is None
        and number.arg != "word"
        and _beside(scene, earlier, place)
        and (key := _key(scene, before.table)) is not None
    ):
        scene.use(place)
        _equals(scene, Link(0, 0, "column", 0, "", before.table, key), value)
        return
    if after is not None and after.kind == "column" and scene.measures(after):
        scene.use(place, later)
        _equals(scene, after, value)
        return
    if unit is not None and (column := _by_words(scene, "", unit, place, place)) is not None:
        scene.use(place, place + 1)
        _equals(scene, Link(0, 0, "column", 0, "", column.table, column.name), value)
        return
    if number.arg == "word":
        scene.slots.pay(costs.IDLE / 2, f"idle {number.text}")
        return
    scene.slots.pay(costs.UNUSED_NAME, f"no column for {number.text}")


def _beside(scene: Scene, first: int, second: int) -> bool:
    """Say whether a number stands at its noun: 'order 1045', 'order number 1045'."""
    return all(link.text.lower() in ("number", "no", "nr", "id", "the") for link in scene.links[first + 1 : second])


def _key(scene: Scene, name: str) -> str | None:
    table = scene.table(name)
    if table is None or len(table.key) != 1:
        return None
    labels = [column for column in table.columns if column.is_id and not column.references and column.words[-1:] == ("number",)]
    return (labels or [table.key[0]])[0].name


def _equals(scene: Scene, link: Link, value: float | int) -> None:
    column = scene.catalog.column(link.table, link.column)
    if 1900 <= value <= 2100 and column is not None and not holds_years(column):
        scene.slots.pay(costs.ODD / 2, f"{column.name} = {value}, which looks like a year")
    plain: Value = value if column is None or column.has_number_type else str(value)
    if column is not None and not column.is_number and not column.is_id:
        scene.slots.pay(costs.ODD, f"{column.name} = {plain}")
    scene.slots.where.append(Where(link.table, Compare(Col(link.table, link.column), "=", plain), link.start, link.column, "="))


__all__ = ["settle_numbers"]
