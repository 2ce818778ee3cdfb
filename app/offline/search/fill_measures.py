"""Read what is computed: counts, sums, averages, extremes, and what 'how much' stands for."""

import itertools

from longtable.app.offline.catalog import Column
from longtable.app.offline.columns import by_dimension
from longtable.app.offline.lexicon_measures import DIMENSIONS, UNITS_OF, VERB_DIMENSIONS
from longtable.app.offline.linking import is_rate
from longtable.app.offline.search import costs
from longtable.app.offline.search.model import Link, Measure
from longtable.app.offline.search.scene import Scene
from longtable.app.offline.text import lemma, stem

_MONEY = frozenset(["amount", "total", "value", "price", "cost", "paid", "payment", "revenue", "fee", "sum", "spend", "spent"])
_SIGNS = {"max": "max", "min": "min"}
_JOINED = frozenset([",", "and", "&"])


def settle_functions(scene: Scene) -> None:
    """Let 'average', 'total', 'number of' and the like mark the link that they compute over, and pass on to it from a list of them."""
    for place, link in enumerate(scene.links):
        told = any(each.kind == "table" for each in scene.links[:place]) or {"their", "its"} & set(
            scene.words[max(0, link.start - 2) : link.start]
        )
        if link.kind == "column" and scene.measures(link) and link.text.lower().startswith("total ") and not told:
            scene.become(place, op="sum")
    _listed_extremes(scene)
    for place in range(len(scene.links) - 1, -1, -1):
        link = scene.links[place]
        if link.is_op("agg") and place not in scene.used:
            _aggregate(scene, place, link.arg)
        elif link.is_op("count"):
            _count(scene, place)
        elif link.is_op("howmuch"):
            _how_much(scene, place)


def _listed_extremes(scene: Scene) -> None:
    """'the lowest and the highest weight' asks for both numbers; 'from best paid to worst paid' is an order."""
    places = [place for place, link in enumerate(scene.links) if link.is_op("sup", "agg")]
    for first, second in itertools.pairwise(places):
        between = scene.links[first + 1 : second]
        left, right = scene.links[first], scene.links[second]
        if any(each.kind not in ("filler", "mark") and not each.is_op("until", "agg", "sup") for each in between):
            continue
        if any(each.is_op("until") for each in between) and left.op == right.op == "sup":
            scene.become(first, op="dir", arg="desc" if left.arg.startswith("max") else "asc", text=f"{left.text} first")
            scene.use(second, *range(first + 1, second))
            scene.become(second, kind="filler", op="")
        elif {"which", "who"}.isdisjoint(scene.words):
            for place in (first, second):
                if scene.links[place].op == "sup":
                    scene.become(place, op="agg", arg=scene.links[place].arg.partition(":")[0])


def _aggregate(scene: Scene, place: int, func: str) -> None:
    target = scene.after(place, over=("wh", "list", "distinct", "present", "count", "each"), most=6)
    target = _through_list(scene, place, target)
    while target >= 0 and scene.links[target].is_op("agg"):
        target = scene.after(target, most=4)
    if target >= 0 and scene.measures(scene.links[target]):
        _mark(scene, place, target, func)
        return
    earlier = scene.before(place, over=("wh",), most=6)
    if earlier >= 0 and scene.measures(scene.links[earlier]) and not scene.links[earlier].op:
        _mark(scene, place, earlier, func)
        return
    measures = [other for other, link in scene.open("column") if scene.measures(link) and not link.op and abs(other - place) <= 8]
    if len(measures) == 1:
        _mark(scene, place, measures[0], func)
        scene.slots.pay(costs.FAR * abs(measures[0] - place) / 2, "far measure")
        return
    if func == "sum" and any(link.is_op("count") for link in scene.links):
        scene.use(place)  # how many in total
        return
    for other, link in scene.open("op"):
        if link.is_op("howold") and (known := by_dimension(scene.scope(), link.arg, tuple(filter(None, (scene.head(),))))) is not None:
            scene.use(place, other)
            scene.slots.measures.append(Measure(func, known[0].table, known[0].name, place))
            return  # how long does it take on average
    if (found := implied(scene, place, func)) is not None:
        scene.use(place)
        scene.slots.measures.append(found)


def _through_list(scene: Scene, place: int, target: int) -> int:
    """Pass over further functions of a list: 'the smallest, the largest and the average amount'."""
    for _ in range(3):
        if target < 0:
            for other in range(place + 1, min(place + 4, len(scene.links))):
                if scene.links[other].is_op("agg", "sup"):
                    return _through_list(scene, other, scene.after(other, most=3))
            return -1
        link = scene.links[target]
        if link.is_op("agg") or (link.is_op("sup") and link.arg.partition(":")[0] in _SIGNS):
            target = scene.after(target, most=4)
        else:
            break
    return target


def _mark(scene: Scene, place: int, target: int, func: str) -> None:
    """Note that `func` is computed over the column at `target`."""
    link = scene.links[target]
    scene.use(place)
    known = [each for each in link.op.split("+") if each]
    scene.become(target, op="+".join(dict.fromkeys([*known, func])))


def implied(scene: Scene, place: int, func: str) -> Measure | None:
    """Return the one measure of the table spoken of that the words around imply: money for 'paid', a price for 'cost'."""
    words = [token.word for token in scene.tokens]
    options: list[tuple[float, str, str]] = []
    dimensions = {VERB_DIMENSIONS[word] for word in words if word in VERB_DIMENSIONS}
    names = {name for dimension in dimensions for name in DIMENSIONS.get(dimension, ())}
    for rank, name in enumerate(scene.tables()):
        table = scene.table(name)
        for column in table.columns if table is not None else ():
            if not column.is_number or column.is_id:
                continue
            parts = {lemma(word) for word in column.words}
            said = {stem(word) for word in words if len(word) > 3} & {stem(part) for part in parts if len(part) > 3}
            cost = 0.3 * rank + (0.0 if said else 0.2 if parts & names else 0.35 if parts & _MONEY else 0.9)
            if parts & {"year", "month", "day"}:
                cost += 0.6
            options.append((cost, name, column.name))
    if not options:
        return None
    options.sort()
    if options[0][0] > 0.8 or (len(options) > 1 and options[1][0] - options[0][0] < 0.05):
        return None
    scene.slots.pay(costs.IMPLIED_SUM + options[0][0], f"implied {options[0][2]}")
    return Measure(func, options[0][1], options[0][2], place)


def _count(scene: Scene, place: int) -> None:
    target = scene.after(place, over=("distinct", "wh", "list", "each"), most=5)
    if target >= 0 and scene.links[target].kind == "table":
        target = scene.owned(target)
    link = scene.links[target] if target >= 0 else None
    beside = scene.links[place + 1] if place + 1 < len(scene.links) else None
    if beside is not None and beside.unit and beside.kind in ("unit", "filler") and (column := unit_column(scene, beside)) is not None:
        averaged = [other for other, each in scene.open("op") if each.is_op("agg") and each.arg == "avg"]
        scene.use(place, place + 1, *averaged)
        scene.slots.measures.append(Measure("avg" if averaged else "sum", column.table, column.name, place))
        return  # how many metres of pipe; how many days on average
    if link is not None and link.kind == "unit":
        scene.slots.pay(costs.ODD, f"counted {link.text}")
    following = scene.after(target, most=3) if link is not None and link.kind == "column" else -1
    if following >= 0 and link is not None and scene.links[following].kind == "value":
        valued = scene.links[following]
        if (valued.table, valued.column) == (link.table, link.column):
            scene.use(place, target)
            scene.slots.measures.append(Measure("count", link.table, "", place))
            return  # how many of style X: the rows
    if link is not None and link.kind == "table" and any(each.is_op("distinct") for each in scene.links[place:target]):
        scene.slots.pay(costs.ODD / 2, "different rows")  # how many different vets: rather a column
    if link is not None and link.kind in ("table", "column"):
        column = scene.column(link)
        if column is not None and _amount(scene, link):
            _mark(scene, place, target, "sum")
            return
        _mark(scene, place, target, "count")
        return
    if link is not None and link.kind in ("value", "flag"):
        following = scene.after(target, over=("distinct",), most=3)
        if following >= 0 and scene.links[following].kind == "table":
            following = scene.owned(following)
            _mark(scene, place, following, "count")
            return
    scene.use(place)
    counted = _counted(scene, place)
    crowd = by_dimension(scene.scope(), "crowd", (counted,)) if beside is not None and beside.word == "people" else None
    if crowd is not None and crowd[0].table == counted:
        scene.slots.measures.append(Measure("sum", counted, crowd[0].name, place))
        return  # how many people came to our tours: those who attended them
    scene.slots.measures.append(Measure("count", counted, "", place))


def _counted(scene: Scene, place: int) -> str:
    """Return the table whose rows are counted where no table follows: that of the next value or flag, or the one spoken of."""
    following = scene.after(place, most=5)
    named = [link.table for link in scene.links if link.kind == "table"]
    if not named and following >= 0 and scene.links[following].table:
        table = scene.table(scene.links[following].table)
        if table is not None and scene.links[following].column in {column.name for column in table.names}:
            scene.slots.pay(costs.GUESSED_COLUMN, "counted by its name")  # how many lions: of the kind, or of the animals
        return scene.links[following].table
    return scene.head()


def unit_column(scene: Scene, link: Link) -> Column | None:
    """Return the one column of the tables spoken of that is measured in a unit."""
    name = lemma(link.text.lower())
    for table in dict.fromkeys(filter(None, (scene.head(), *scene.tables()))):
        home = scene.table(table)
        fits = [column for column in (home.columns if home is not None else ()) if column.is_number and not column.is_id]
        fits = [column for column in fits if in_unit(column, name) and not is_rate(column.words)]
        if fits:
            return fits[0] if len(fits) == 1 else None
    return None


_SHORT = {"minute": "min", "hour": "hr", "kilometer": "km", "mile": "mi", "percent": "pct"}


def in_unit(column: Column, unit: str) -> bool:
    """Say whether a column's name holds a unit."""
    parts = {lemma(word) for word in column.words}
    return unit in parts or _SHORT.get(unit, unit) in parts or any(unit in UNITS_OF.get(part, ()) for part in parts)


def _amount(scene: Scene, link: Link) -> bool:
    """Say whether 'how many' of a column adds it up: hours, bottles, units."""
    column = scene.column(link)
    if column is None or not column.is_number or column.is_id:
        return False
    parts = {lemma(word) for word in column.words}
    return not parts & {"year", "month", "day", "age", "grade", "level", "rank", "price", "rate", "cost", "fee"}


def _how_much(scene: Scene, place: int) -> None:
    target = scene.after(place, over=("wh", "agg"), most=7)
    measures = [other for other, link in scene.open("column") if scene.measures(link)]
    chosen = target if target in measures else measures[0] if measures else -1
    scene.use(place)
    if chosen >= 0:
        if not scene.links[chosen].op:
            scene.become(chosen, op="much")
        return
    if (found := implied(scene, place, "sum")) is not None:
        scene.slots.measures.append(found)
    else:
        scene.slots.pay(costs.IDLE, "how much")


def collect_measures(scene: Scene) -> None:
    """Put what was marked and nothing else took (a rank, a condition) among the measures."""
    for place, link in list(scene.open("column", "table")):
        if not link.op or link.arg in ("key", "dated"):
            continue
        for func in link.op.split("+"):
            if func == "much":
                func = "sum" if _sums_up(scene) else "show"
            if func == "show":
                scene.slots.shown.append(link)
            else:
                scene.slots.measures.append(Measure(func, link.table, link.column, place))
        scene.use(place)


def _sums_up(scene: Scene) -> bool:
    """Say whether 'how much' adds up: not where one row is named by a value."""
    plural = any(link.kind == "table" and lemma(link.word) != link.word for link in scene.links)
    named = any(
        link.kind == "value" and (table := scene.table(link.table)) is not None and link.column in {column.name for column in table.names}
        for link in scene.links
    )
    return plural or not named
