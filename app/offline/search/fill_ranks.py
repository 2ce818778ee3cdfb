"""Read superlatives, top lists and orders: by what the answer is ranked, which way, and how many are wanted."""

from dataclasses import replace

from longtable.app.offline.columns import by_dimension
from longtable.app.offline.search import costs
from longtable.app.offline.search.fill_measures import in_unit, unit_column
from longtable.app.offline.search.fill_orders import is_dated, marked_measure, settle_direction, settle_order
from longtable.app.offline.search.joining import NoReading
from longtable.app.offline.search.model import Link, Measure, Rank
from longtable.app.offline.search.periods import Period, date_for, holds_years
from longtable.app.offline.search.scene import Scene
from longtable.app.offline.text import lemma

_DIRECTIONS = {"max": True, "min": False}
_SPANS = frozenset(["age", "tenure", "experience"])
_TURNED = "turned"


def settle_ranks(scene: Scene) -> None:
    """Turn every superlative, 'top 5' and 'sorted by' into a rank."""
    for place, link in list(scene.open("op")):
        if place in scene.used:
            continue
        if link.is_op("sup", "most", "frequent"):
            _superlative(scene, place, link)
        elif link.is_op("top"):
            _top(scene, place, link)
        elif link.is_op("order"):
            settle_order(scene, place)
        elif link.is_op("first"):
            _first(scene, place, link)
    for place, link in list(scene.open("op")):
        if link.is_op("dir"):
            settle_direction(scene, place, link)


def _limit(scene: Scene, place: int) -> tuple[int | None, int]:
    """Return how many are wanted, by a number just before or after, and the place of that number."""
    for other in (place + 1, place - 1):
        if 0 <= other < len(scene.links) and other not in scene.used:
            link = scene.links[other]
            if link.kind == "number" and isinstance(link.number, int) and 0 < link.number <= 100 and link.arg != "ordinal":
                return link.number, other
    return None, -1


def _counted_things(scene: Scene, place: int) -> int | None:
    """'which three branches hold the highest ...': the number stands before the thing."""
    for other, link in scene.open("number"):
        following = scene.links[other + 1] if other + 1 < len(scene.links) else None
        operated = other and scene.links[other - 1].is_op("cmp", "time", "between")
        later = other + 1 < len(scene.links) and scene.links[other + 1].is_op("post")
        if (
            other < place
            and not operated
            and not later
            and following is not None
            and following.kind in ("table", "column")
            and isinstance(link.number, int)
        ):
            scene.use(other)
            return link.number
    return None


def _superlative(scene: Scene, place: int, link: Link) -> None:
    sign, _, dimension = link.arg.partition(":")
    desc = _DIRECTIONS.get(sign, True)
    limit, number = _limit(scene, place)
    ending = _ending(scene, place)
    skip = 0
    if place and scene.links[place - 1].kind == "number" and scene.links[place - 1].arg == "ordinal":
        skip = int(scene.links[place - 1].number) - 1
        scene.use(place - 1)
    target = scene.after(max(number, place), over=("agg", "count", "distinct"), most=5)
    thing = scene.links[target] if target >= 0 else None
    column = scene.column(thing) if thing is not None else None
    if column is not None and (column.is_date or holds_years(column)) and dimension in _SPANS:
        desc = not desc  # the longest-serving began first
    measure = _named(scene, link, target) or _by_measure(scene, place)
    if measure is None and dimension:
        measure = _by_date(scene, place) if dimension == "date" else None
        measure = measure or _by_dimension(scene, place, dimension)
    if measure is not None and measure.func == _TURNED:
        measure, desc = replace(measure, func=""), not desc
    measure = measure or _around(scene, place)
    if measure is None and (ending >= 0 or dimension in ("size", "", "money")):
        measure = marked_measure(scene)
    if measure is None:
        scene.slots.pay(costs.IDLE, f"idle {link.text}")
        return
    scene.use(place, number)
    if ending >= 0:
        scene.use(ending)
        scene.slots.ranks.append(Rank(measure, desc))
        return
    limit = limit if limit is not None else _counted_things(scene, place)
    if limit is None and _is_extreme(scene, place, link, measure):
        scene.slots.measures.append(Measure("max" if desc else "min", measure.table, measure.column, place))
        return
    scene.slots.ranks.append(Rank(measure, desc, limit or 1, skip))


def _ending(scene: Scene, place: int) -> int:
    """Return the place of 'first' or 'at the top' just after a superlative: it orders, and takes no single row."""
    for other in range(place + 1, min(place + 4, len(scene.links))):
        if scene.links[other].is_op("first") or scene.links[other].text.lower() in ("at the top", "on top"):
            return other
    return -1


def _named(scene: Scene, link: Link, target: int) -> Measure | None:
    """Return what a superlative stands before: a column of numbers or dates, or a thing that is counted."""
    if link.is_op("frequent"):
        return _frequent(scene, target)
    place = scene.links.index(link)
    beside = scene.links[place + 1] if place + 1 < len(scene.links) else None
    if beside is not None and beside.unit and beside.kind in ("unit", "filler") and (column := unit_column(scene, beside)) is not None:
        scene.use(place + 1)
        return Measure("sum" if scene.head() != column.table else "", column.table, column.name, place)
    if target < 0:
        return None
    thing = scene.links[target]
    if thing.kind == "column" and (scene.measures(thing) or is_dated(scene, thing)):
        func = thing.op.split("+")[0]
        if not func and _summed(scene, thing) and (link.is_op("most") or thing.text.lower().startswith("total ")):
            func = "sum"
        scene.use(target)
        return Measure(func, thing.table, thing.column, target)
    if thing.kind == "table" and (link.is_op("most") or "count" in thing.op):
        others = any(each.kind == "table" and each.table != thing.table for each in scene.links)
        if thing.table != scene.head() or not others:
            scene.use(target)
            return Measure("count", thing.table, "", target)
    return None


def _by_measure(scene: Scene, place: int) -> Measure | None:
    """'the biggest projects by contract amount': the words after 'by' say of what."""
    by = next((other for other in range(place + 1, min(place + 6, len(scene.links))) if scene.links[other].is_op("by")), -1)
    named = scene.after(by, over=("agg", "count"), most=4) if by >= 0 else -1
    if named < 0 or not (scene.measures(scene.links[named]) or "count" in scene.links[named].op):
        return None
    thing = scene.links[named]
    func = thing.op.split("+")[0] or ("sum" if thing.kind == "column" and _summed(scene, thing) else "")
    scene.use(by, named)
    return Measure(func, thing.table, thing.column, named)


def _summed(scene: Scene, thing: Link) -> bool:
    """Say whether the most of a column is the most when added up: it lies in another table than what is asked for."""
    head = scene.head()
    return bool(head) and head != thing.table


def _frequent(scene: Scene, target: int) -> Measure | None:
    head = scene.head()
    if target >= 0 and scene.links[target].kind in ("column", "table"):
        link = scene.links[target]
        if link.kind == "column":
            scene.become(target, arg="key")
        return Measure("count", link.table if link.kind == "column" else "", "", target)
    return Measure("count", head, "", -1) if head else None


def _by_date(scene: Scene, place: int) -> Measure | None:
    for other, link in scene.open("flag"):
        if not link.values:
            scene.use(other)
            return Measure("", link.table, link.column, place)  # hired most recently
    found = date_for(scene, place, place + 1, Period(month=1))
    if found is None:
        return None
    column, _, cost = found
    scene.slots.pay(max(0.0, cost), f"date {column.name}")
    return Measure("", column.table, column.name, place)


def _by_dimension(scene: Scene, place: int, dimension: str) -> Measure | None:
    head = scene.head()
    target = scene.after(place, over=("count",), most=3)
    near = scene.links[target].table if target >= 0 and scene.links[target].kind == "table" else head
    tables = tuple(dict.fromkeys(name for name in (near, head, *scene.tables()) if name))
    found = by_dimension(scene.scope(), dimension, tables)
    if found is None:
        return None
    column, turned = found
    scene.slots.pay(0.1 if column.table == near else 0.5, f"{dimension} is {column.name}")
    for other, link in scene.open("column"):
        if (link.table, link.column) == (column.table, column.name) and link.op:
            return Measure(link.op.split("+")[0], column.table, column.name, other)
    return Measure(_TURNED if turned else "", column.table, column.name, place)


def _around(scene: Scene, place: int) -> Measure | None:
    """'the team whose score is highest': the column stands before."""
    earlier = scene.before(place, over=("wh",), most=6)
    if earlier >= 0 and earlier not in scene.used:
        link = scene.links[earlier]
        if scene.measures(link) or (link.kind == "column" and is_dated(scene, link)):
            scene.use(earlier)
            return Measure(link.op.split("+")[0] if link.op else "", link.table, link.column, earlier)
    return None


def _is_extreme(scene: Scene, place: int, link: Link, measure: Measure) -> bool:
    """Say whether a superlative asks for the number itself and not for what has it: 'what is the highest price of ...'."""
    if not link.is_op("sup") or not measure.column or measure.func:
        return False
    if link.arg.partition(":")[2] and any(each.kind == "table" for each in scene.links):
        return False
    asked = {"which", "who", "whose", "whom"} & set(scene.words)
    before = [each for each in scene.links[:place] if each.kind in ("table", "column", "value")]
    if asked or _limit(scene, place)[0] is not None:
        return False
    following = [
        each for other, each in enumerate(scene.links) if other > place and each.kind in ("table", "column") and other != measure.place
    ]
    first = following[0] if following else None
    if first is not None and first.kind == "table" and measure.place < 0:
        return False
    if measure.place == place and first is not None:
        return False  # the cheapest book: the book
    return not before


def _top(scene: Scene, place: int, link: Link) -> None:
    limit, number = _limit(scene, place)
    desc = link.arg != "min"
    by = next(
        (
            other
            for other in range(place + 1, len(scene.links))
            if scene.links[other].text.lower() in ("by", "in terms of", "with", "ranked by")
            or scene.links[other].is_op("by", "order", "sup", "most")
        ),
        -1,
    )
    target = scene.after(by, over=("agg", "count", "most", "sup"), most=6) if by >= 0 else -1
    thing = scene.links[target] if target >= 0 else None
    if thing is not None and (scene.measures(thing) or (thing.kind == "column" and is_dated(scene, thing)) or "count" in thing.op):
        func = thing.op.split("+")[0] if thing.op else "sum" if _summed(scene, thing) and thing.kind == "column" else ""
        scene.slots.ranks.append(Rank(Measure(func, thing.table, thing.column, target), desc, limit or 1))
        scene.use(place, number, by, target)
        return
    if by >= 0 and scene.links[by].is_op("sup", "most"):
        scene.use(place)
        return  # the superlative takes the number
    if limit is not None:
        scene.slots.limit = limit
        scene.use(place, number)
        marked = marked_measure(scene) or _in_unit(scene, by)
        if marked is not None:
            scene.slots.ranks.append(Rank(marked, desc, limit))
        elif by >= 0 and scene.links[by].text.lower() != "with":
            raise NoReading  # the top three by what nothing measures
        return
    scene.slots.pay(costs.IDLE, f"idle {link.text}")


def _in_unit(scene: Scene, by: int) -> Measure | None:
    """'top 3 drivers by miles': the column in that unit, of what is named or of the one table next to it."""
    link = scene.links[by + 1] if 0 <= by < len(scene.links) - 1 else None
    if link is None or not link.unit:
        return None
    head = scene.head()
    beside = [each.many for each in scene.catalog.links if each.one == head]
    tables = [table for name in (head, *beside) if (table := scene.table(name)) is not None]
    found = [
        column
        for table in tables
        for column in table.columns
        if column.is_number and not column.is_id and in_unit(column, lemma(link.text.lower()))
    ]
    if len(found) != 1:
        return None
    return Measure("" if found[0].table == head else "sum", found[0].table, found[0].name, by + 1)


def _first(scene: Scene, place: int, link: Link) -> None:
    """'the first 5 orders', 'the last delivery': by date."""
    limit, number = _limit(scene, place)
    following = scene.after(number if number > place else place, most=3)
    if following < 0 and place and (measure := _by_date(scene, place)) is not None:
        scene.use(place)
        scene.slots.ranks.append(Rank(measure, link.arg == "desc", limit or 1))
        return  # which shop opened first
    table = scene.links[following].table if following >= 0 and scene.links[following].kind == "table" else scene.head()
    found = by_dimension(scene.scope(), "date", (table,)) if table else None
    if found is None or following < 0 or scene.links[following].kind not in ("table", "column"):
        scene.slots.pay(costs.IDLE, f"idle {link.text}")
        return
    scene.use(place, number)
    scene.slots.pay(0.2, f"first by {found[0].name}")
    scene.slots.ranks.append(Rank(Measure("", found[0].table, found[0].name, place), link.arg == "desc", limit or 1))
