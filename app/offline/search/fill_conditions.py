"""Read conditions: comparisons of numbers, values, flags, what is missing and what is denied."""

from longtable.app.offline.catalog import Column
from longtable.app.offline.columns import by_dimension
from longtable.app.offline.lexicon_events import events, events_of
from longtable.app.offline.lexicon_measures import UNIT_DIMENSIONS, UNITS_OF, VERB_DIMENSIONS
from longtable.app.offline.logic import Agg, Among, Beats, Between, Col, ColumnsCompare, Compare, Cond, Like, Null, Value
from longtable.app.offline.search import costs
from longtable.app.offline.search.link_schema import dated_by, own_name
from longtable.app.offline.search.model import Having, Link, Measure, Where
from longtable.app.offline.search.scene import Scene
from longtable.app.offline.search.vocabulary import NO
from longtable.app.offline.text import lemma

_TURNED = {"=": "<>", "<>": "=", ">": "<=", "<": ">=", ">=": "<", "<=": ">"}
_PASSED = ("wh", "list", "distinct", "present", "pron")


def settle_patterns(scene: Scene) -> None:
    """'contains', 'starts with', 'with engineer in their occupation': a text that a column holds."""
    for place, link in list(scene.open("value", "unused")):
        joiner = place + 1
        if joiner + 1 >= len(scene.links) or scene.links[joiner].text.lower() not in ("in", "as part of"):
            continue
        target = scene.after(joiner, most=3)
        column = scene.column(scene.links[target]) if target >= 0 and scene.links[target].kind == "column" else None
        if column is None or column.is_number or column.is_date or column.is_id:
            continue
        at = scene.links[target]
        if link.kind == "value" and (at.table, at.column) != (link.table, link.column):
            continue
        scene.use(place, target)
        scene.slots.pay(-link.cost + 0.2, "pattern")
        scene.slots.where.append(Where(at.table, Like(Col(at.table, at.column), "contains", link.text), place, at.column, "like"))
    for place, link in list(scene.open("op")):
        if not link.is_op("like"):
            continue
        text = next((other for other in range(place + 1, min(place + 4, len(scene.links)))
                     if scene.tokens[scene.links[other].start].kind in ("quoted", "code") or scene.tokens[scene.links[other].start].is_name), -1)
        column = scene.before(place, over=("wh",), most=4)
        if text < 0:
            continue
        at = scene.links[column] if column >= 0 and scene.links[column].kind == "column" else None
        if at is None:
            table = scene.table(scene.head())
            if table is None or not table.names:
                continue
            name = table.names[0].name
            at = Link(0, 0, "column", 0, "", table.name, name)
        else:
            scene.use(column)
        scene.use(place, text)
        words = scene.links[text].text
        if scene.links[text].kind == "unused":
            scene.slots.pay(-scene.links[text].cost, "pattern")
        cond = Like(Col(at.table, at.column), link.arg, words)  # type: ignore[arg-type]  # one of contains, starts, ends
        scene.slots.where.append(Where(at.table, cond, place, at.column, "like"))


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
            _columns(scene, place, link)
        elif link.is_op("time"):
            _dates(scene, place, link)


def _between(scene: Scene, place: int) -> None:
    numbers = [other for other in range(place + 1, min(place + 8, len(scene.links))) if scene.links[other].kind == "number" and other not in scene.used]
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
        if link.kind not in ("filler",):
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
    column_at = scene.before(start, over=_PASSED, most=6)
    before = scene.links[column_at] if column_at >= 0 else None
    after_at = scene.after(place, over=("post",), most=5)
    after = scene.links[after_at] if after_at >= 0 and after_at not in scene.used else None
    unit = next((scene.links[other] for other in (place + 1, place + 2) if other < len(scene.links) and
                 (scene.links[other].kind == "unit" or scene.links[other].unit)), None)
    value, top = _plain(number.number), None if high is None else _plain(high)
    if before is not None and (scene.measures(before) or (before.kind == "column" and before.op)):
        scene.use(column_at)
        if unit is not None:
            scene.use(scene.links.index(unit))
        _on_column(scene, before, op, value, top)
        return
    if after is not None and after.kind == "column" and scene.measures(after) and not after.op:
        scene.use(after_at)
        _on_column(scene, after, op, value, top)
        return
    if after is not None and after.kind in ("table", "column") and (unit is None or unit.kind == "filler"):
        if after.kind == "table" or not scene.measures(after):
            scene.use(after_at)
            counted = Measure("count", after.table, "", after_at)
            scene.slots.havings.append(Having(counted, op, value, top))
            return
    column = _by_words(scene, dimension, unit, start, place)
    if column is not None:
        if unit is not None:
            scene.use(scene.links.index(unit))
        _on_column(scene, Link(0, 0, "column", 0, "", column.table, column.name), op, value, top)
        return
    measured = [(abs(other - place), other) for other, link in scene.open("column") if scene.measures(link)]
    if measured:
        far, other = min(measured)
        scene.slots.pay(costs.FAR * far, "far column")
        _on_column(scene, scene.links[other], op, value, top)
        return
    if before is not None and before.kind == "table" and "count" in before.op:
        scene.slots.havings.append(Having(Measure("count", before.table, "", column_at), op, value, top))
        return
    scene.slots.pay(costs.UNUSED_NAME, f"no column for {number.text}")


def _plain(number: float | int) -> float | int:
    return int(number) if number == int(number) else number


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
        fits = [column for table in tables[:3] if (home := scene.table(table)) is not None for column in home.columns
                if column.is_number and not column.is_id and _in_unit(column, name)]
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


def _in_unit(column: Column, unit: str) -> bool:
    parts = {lemma(word) for word in column.words}
    short = {"minute": "min", "hour": "hr", "kilometer": "km", "percent": "pct", "day": "day", "month": "month"}
    return unit in parts or short.get(unit, unit) in parts or any(unit in UNITS_OF.get(part, ()) for part in parts)


def _bare(scene: Scene, place: int, number: Link) -> None:
    """A number without a comparison: a key, a label, or an equal number."""
    if number.arg == "word" and number.number == 1:
        scene.use(place)
        return
    earlier = scene.before(place, over=_PASSED, most=3)
    before = scene.links[earlier] if earlier >= 0 else None
    later = scene.after(place, most=2)
    after = scene.links[later] if later >= 0 else None
    value = _plain(number.number)
    if before is not None and before.kind == "column" and earlier not in scene.used:
        scene.use(place, earlier)
        _equals(scene, before, value)
        return
    unit = scene.links[place + 1] if place + 1 < len(scene.links) and (scene.links[place + 1].unit or scene.links[place + 1].kind == "unit") else None
    if before is not None and before.kind == "table" and unit is None and place - earlier <= 2 and (key := _key(scene, before.table)) is not None:
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


def _key(scene: Scene, name: str) -> str | None:
    table = scene.table(name)
    if table is None or len(table.key) != 1:
        return None
    labels = [column for column in table.columns if column.is_id and not column.references and column.words[-1:] == ("number",)]
    return (labels or [table.key[0]])[0].name


def _equals(scene: Scene, link: Link, value: float | int) -> None:
    column = scene.catalog.column(link.table, link.column)
    plain: Value = value if column is None or column.has_number_type else str(value)
    if column is not None and not column.is_number and not column.is_id:
        scene.slots.pay(costs.ODD, f"{column.name} = {plain}")
    scene.slots.where.append(Where(link.table, Compare(Col(link.table, link.column), "=", plain), link.start, link.column, "="))


def _columns(scene: Scene, place: int, link: Link) -> None:
    """Two columns compared, or one with its average."""
    left, right = scene.before(place, over=_PASSED, most=5), scene.after(place, over=("agg",), most=6)
    op = link.arg.partition(":")[0]
    first = scene.links[left] if left >= 0 else None
    second = scene.links[right] if right >= 0 else None
    average = any(each.is_op("agg") and each.arg == "avg" for each in scene.links[place : place + 5]) or (second is not None and second.op == "avg")
    if average:
        target = first if first is not None and scene.measures(first) else second if second is not None and scene.measures(second) else None
        if target is not None:
            col = Col(target.table, target.column)
            scene.use(place, left if target is first else -1, right)
            for other in range(place, min(place + 5, len(scene.links))):
                if scene.links[other].is_op("agg"):
                    scene.use(other)
            scene.slots.where.append(Where(target.table, Beats(col, op, Agg("avg", col)), place, target.column, op))
            return
    if first is None or second is None or first.kind != "column" or second.kind != "column":
        if not link.is_op("cmp") or link.word not in ("more", "less", "under", "over", "up", "below"):
            scene.slots.pay(costs.IDLE, f"idle {link.text}")
        elif link.word in ("more", "less", "below"):
            scene.slots.pay(costs.IDLE, f"idle {link.text}")
        scene.use(place)
        return
    kinds = scene.column(first), scene.column(second)
    same = kinds[0] is not None and kinds[1] is not None and (kinds[0].is_date == kinds[1].is_date) and first.table == second.table
    if not same or (first.column == second.column):
        scene.slots.pay(costs.IDLE, f"idle {link.text}")
        return
    scene.use(place, left, right)
    cond = ColumnsCompare(Col(first.table, first.column), op, Col(second.table, second.column))
    scene.slots.where.append(Where(first.table, cond, place, first.column, op))


def _dates(scene: Scene, place: int, link: Link) -> None:
    """'finished after their due date': two dates of one row."""
    right = scene.after(place, most=4)
    second = scene.column(scene.links[right]) if right >= 0 and scene.links[right].kind == "column" else None
    table = scene.table(second.table) if second is not None else None
    if second is None or table is None or not second.is_date:
        return
    before = [scene.tokens[other].word for other in range(max(0, link.start - 5), link.start)]
    left = scene.before(place, most=3)
    first = scene.column(scene.links[left]) if left >= 0 and scene.links[left].kind == "column" else None
    if first is None or not first.is_date:
        fits = [column for column in table.columns if column.is_date and column != second and any(dated_by(word, column) for word in before)]
        first = fits[0] if len(fits) == 1 else None
        left = -1
    if first is None or first.table != second.table or first == second:
        return
    scene.use(place, left, right)
    cond = ColumnsCompare(Col(first.table, first.name), link.arg, Col(second.table, second.name))
    scene.slots.where.append(Where(first.table, cond, place, first.name, link.arg))


# -- values, flags, what is missing -----------------------------------------------------------------------------------


def settle_negations(scene: Scene) -> None:
    """Give every 'without', 'not', 'never' what it denies: a table, a column, a value, a flag."""
    for place, link in list(scene.open("op")):
        if link.is_op("missing", "present"):
            target = scene.before(place, over=("wh", "neg"), most=4)
            if target < 0 or scene.links[target].kind != "column":
                target = scene.after(place, most=4)
            idle = link.word in ("given", "known", "recorded", "present") and scene.after(place, most=3) >= 0
            if target >= 0 and scene.links[target].kind == "column" and not idle:
                each = scene.links[target]
                scene.use(place, target)
                _null(scene, each, negated=link.op == "present")
            elif link.is_op("missing"):
                scene.slots.pay(costs.IDLE, f"idle {link.text}")
            continue
        if not link.is_op("neg"):
            continue
        target = scene.after(place, over=("neg", "count", "distinct", "post", "present", "pron"), most=7)
        each = scene.links[target] if target >= 0 else None
        scene.use(place)
        if each is None:
            _denied_verb(scene, place)
        elif each.kind == "table":
            if each.table == scene.head():
                _denied_verb(scene, place)
            else:
                scene.use(target)
                scene.slots.absent.append((each.table, target))
        elif each.kind == "column":
            scene.use(target)
            _null(scene, each, negated=False)
        elif each.kind in ("value", "flag"):
            scene.become(target, op="not")
            for other in range(target + 1, min(target + 5, len(scene.links))):
                if scene.links[other].kind == "value" and scene.links[other].column == each.column:
                    scene.become(other, op="not")
        else:
            _denied_verb(scene, place)


def _null(scene: Scene, link: Link, *, negated: bool) -> None:
    column = scene.column(link)
    if column is not None and column.truth is not None and not negated:
        scene.slots.where.append(Where(link.table, _flag(link, column.truth, denied=True), link.start, link.column))
        return
    scene.slots.where.append(Where(link.table, Null(Col(link.table, link.column), negated=negated), link.start, link.column, "null"))


def _denied_verb(scene: Scene, place: int) -> None:
    """'have never been prescribed', 'not yet collected': a table or a date of the verb's family."""
    head = scene.table(scene.head())
    words = [scene.tokens[other].word for other in range(scene.links[place].end, min(len(scene.tokens), scene.links[place].end + 5))]
    for word in words:
        dates = [column for column in (head.columns if head is not None else ()) if column.is_date and dated_by(word, column)]
        if not dates and head is not None:
            dates = [column for column in head.columns if column.is_date and events(word) & events_of(column.words)]
        if len(dates) == 1 and head is not None:
            scene.slots.pay(0.2, f"no {dates[0].name}")
            scene.slots.where.append(Where(head.name, Null(Col(head.name, dates[0].name)), place, dates[0].name, "null"))
            return
        for table in scene.catalog.tables.values():
            if table.kind == "table" and head is not None and table.name != head.name and own_name(table, word):
                if scene.distances.between(head.name, table.name) is not None:
                    scene.slots.pay(0.2, f"no {table.name}")
                    scene.slots.absent.append((table.name, place))
                    return
    scene.slots.pay(costs.UNUSED, "idle negation")


def settle_values(scene: Scene) -> None:
    """Turn values and flags into conditions; values of one column are alternatives."""
    groups: dict[tuple[str, str, bool], list[Link]] = {}
    _drop_names(scene)
    for place, link in list(scene.open("value")):
        scene.use(place)
        groups.setdefault((link.table, link.column, link.op == "not"), []).append(link)
    for (table, column, denied), links in groups.items():
        col = Col(table, column)
        values = tuple(dict.fromkeys(link.values[0] for link in links))
        cond: Cond = Compare(col, "<>" if denied else "=", values[0]) if len(values) == 1 else Among(col, values, negated=denied)
        scene.slots.where.append(Where(table, cond, links[0].start, column, "="))
    for place, link in list(scene.open("flag")):
        scene.use(place)
        scene.slots.where.append(Where(link.table, _flag(link, link.values[0], denied=link.op == "not"), link.start, link.column))


def _drop_names(scene: Scene) -> None:
    """Take up a column that only names what a value beside it is: 'the PREMIER segment', 'status open'."""
    for place, link in list(scene.open("value")):
        for other in (scene.before(place, over=("neg",), most=3), scene.after(place, most=3)):
            beside = scene.links[other] if other >= 0 and other not in scene.used else None
            if beside is not None and beside.kind == "column" and not beside.op and (beside.table, beside.column) == (link.table, link.column):
                between = scene.links[min(place, other) + 1 : max(place, other)]
                if not any(each.text.lower() in ("and", "their", "with", ",") for each in between):
                    scene.use(other)


def _flag(link: Link, truth: Value, *, denied: bool) -> Cond:
    col = Col(link.table, link.column)
    if not denied:
        return Compare(col, "=", truth)
    if isinstance(truth, bool):
        return Compare(col, "=", not truth)
    other = NO.get(str(truth))
    return Compare(col, "<>", truth) if other is None else Compare(col, "=", int(other) if isinstance(truth, int) else other)


__all__ = ["settle_negations", "settle_numbers", "settle_patterns", "settle_values"]
_ = _TURNED
