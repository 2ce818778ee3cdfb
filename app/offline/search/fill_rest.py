"""Read groups, and give every table and column that is left its part: shown, grouped by, or only spoken of."""

from longtable.app.offline.columns import is_for
from longtable.app.offline.lexicon import PARTICIPLES, PEOPLE, UNITS
from longtable.app.offline.logic import Col, Null
from longtable.app.offline.search import costs
from longtable.app.offline.search.model import Key, Link, Where
from longtable.app.offline.search.periods import Period, date_for, holds_years
from longtable.app.offline.search.scene import Scene
from longtable.app.offline.text import lemma

_BUCKETS = ("year", "month", "day", "quarter", "hour", "weekday", "decade")


def settle_groups(scene: Scene) -> None:
    """Turn 'per', 'each' and 'by' into keys."""
    head = scene.links[0] if len(scene.links) > 2 else None
    amount = head is not None and head.kind in ("filler", "unit") and head.unit and lemma(head.word) != head.word
    if amount and any(each.is_op("each", "by") or each.word == "by" for each in scene.links[1:4]):
        scene.slots.pay(costs.UNUSED, "no amount in a unit")  # miles run per make
    for place, link in list(scene.open("op")):
        if link.is_op("each"):
            _each(scene, place)
        elif link.is_op("by"):
            _by(scene, place)
    for place, link in list(scene.open("unit")):
        word = link.text.lower()
        computed = _is_agg_ahead(scene) or any(each.op for each in scene.links if each.kind in ("table", "column"))
        if (word in ("yearly", "annually", "monthly", "daily", "quarterly") and computed) or (
            place and scene.links[place - 1].text.lower() in ("which", "what") and scene.slots.ranks + scene.slots.measures
        ):
            scene.use(place)
            _bucket(scene, place, link)
        elif place and scene.links[place - 1].text.lower() in ("which", "what") and link.unit == "year":
            scene.use(place)
            found = date_for(scene, len(scene.links) - 1, len(scene.links), Period(year=1))
            if found is not None:
                scene.slots.pay(max(0.0, found[2]), f"year of {found[0].name}")
                scene.slots.shown.append(Link(place, place + 1, "column", 0, "year", found[0].table, found[0].name))
        elif place and scene.links[place - 1].kind == "filler" and scene.links[place - 1].text.lower() == "by":
            scene.slots.pay(costs.UNUSED, f"idle by {word}")


def _each(scene: Scene, place: int) -> None:
    following = scene.after(place, over=("distinct", "wh", "each"), most=4)
    link = scene.links[following] if following >= 0 else None
    if link is not None and following not in scene.used and link.kind in ("table", "column", "unit"):
        scene.use(place)
        _key(scene, following, link)
        _and_more(scene, following)
        return
    text = scene.links[place].text.lower()
    for unit in _BUCKETS:
        if f"{unit} by {unit}" == text:
            scene.use(place)
            _bucket(scene, place, Link(0, 0, "unit", 0, unit, unit=unit))
            return
    scene.use(place)
    beside = scene.links[place + 1] if place + 1 < len(scene.links) else None
    if beside is not None and (beside.unit or beside.kind == "unit"):
        scene.slots.pay(costs.ODD / 2, f"idle {text}")  # paid per hour
    elif text not in ("each", "of each", "respective", "apiece", "across"):  # how many does each have: the thing named before
        scene.slots.pay(costs.IDLE, f"idle {text}")


def _by(scene: Scene, place: int) -> None:
    following = scene.after(place, over=("distinct", "count"), most=4)
    link = scene.links[following] if following >= 0 else None
    if link is None or following in scene.used:
        return
    counted = any(scene.links[other].is_op("count") for other in range(place + 1, following))
    if (
        link.kind == "column"
        and link.op in ("sum", "count")
        and counted
        and sum(bool(each.op) for _, each in scene.open("column", "table")) > 1
    ):
        scene.become(following, op="")  # average area by number of rooms
        link = scene.links[following]
    if link.kind == "column" and link.op:
        return
    if _done(scene, place, link):
        return  # paid by visitors
    if link.kind == "unit" or (
        link.kind in ("table", "column")
        and (
            scene.slots.measures
            or any(each.op for each in scene.links if each.kind in ("table", "column"))
            or _is_agg_ahead(scene)
            or _leads(scene, place)
        )
    ):
        scene.use(place)
        _key(scene, following, link)
        _and_more(scene, following)


def _leads(scene: Scene, place: int) -> bool:
    """'charges by country', 'units sold by brand': a question that begins with what is given for each."""
    before = [each for each in scene.links[:place] if each.kind != "filler"]
    spoken = all(each.kind in ("table", "column", "value", "time") for each in before)
    return spoken and bool(before) and before[0].kind in ("table", "column")


def _done(scene: Scene, place: int, link: Link) -> bool:
    """Say whether 'by' follows a participle, and so names who did it: people, or the one whose column it is."""
    before = scene.tokens[scene.links[place].start - 1].word if scene.links[place].start else ""
    doer = link.kind == "table" or scene.is_people(link.table) or {lemma(word) for word in link.text.lower().split()} & PEOPLE
    return bool(doer) and (before.endswith("ed") or before in PARTICIPLES)


def _is_agg_ahead(scene: Scene) -> bool:
    return any(link.is_op("count", "agg", "percent") for link in scene.links)


def _and_more(scene: Scene, place: int) -> None:
    """'by city and type': a second key."""
    joiner = place + 1
    if joiner < len(scene.links) and scene.links[joiner].text.lower() == "and":
        following = scene.after(joiner, over=("each", "by"), most=3)
        link = scene.links[following] if following >= 0 else None
        if (
            link is not None
            and following not in scene.used
            and link.kind in ("column", "unit")
            and not link.op
            and not scene.measures(link)
        ):
            scene.use(following)
            _key(scene, following, link)


def _key(scene: Scene, place: int, link: Link) -> None:
    scene.use(place)
    if link.kind == "unit":
        _bucket(scene, place, link)
    elif link.kind == "table":
        scene.slots.keys.append(Key(link.table, place=place))
    else:
        column = scene.column(link)
        if column is not None and column.is_date:
            scene.slots.pay(0.3, "group by date")
        scene.slots.keys.append(Key(link.table, link.column, place=place))


def _bucket(scene: Scene, place: int, link: Link) -> None:
    unit = link.unit or UNITS.get(lemma(link.text.lower()), "")
    amounts = [column for each in scene.links if scene.measures(each) and (column := scene.column(each)) is not None]
    if len(amounts) == 1 and is_for(amounts[0], unit):
        return  # the rent per month, of a monthly rent
    dated = [each for each in scene.slots.where if each.op in ("=", "<", ">", ">=", "<=") and _is_date(scene, each.table, each.column)]
    if dated:
        scene.slots.keys.append(Key(dated[0].table, dated[0].column, unit, place))
        return
    period = Period(year=1) if unit in ("year", "decade") else Period(month=1)
    found = date_for(scene, place, place + 1, period)
    if found is None:
        scene.slots.pay(costs.UNUSED, f"no date for {link.text}")
        return
    column, plain, cost = found
    scene.slots.pay(cost, f"date {column.name}")
    scene.slots.keys.append(Key(column.table, column.name, "" if plain else unit, place))


def _is_date(scene: Scene, table: str, name: str) -> bool:
    column = scene.catalog.column(table, name)
    return column is not None and column.is_date


def settle_rest(scene: Scene) -> None:
    """Take the columns and tables that are left as shown and as heads."""
    for place, link in list(scene.open("column")):
        scene.use(place)
        column = scene.column(link)
        if link.arg == "dated" and column is not None and place and not holds_years(column):
            continue
        if link.arg == "key":
            scene.slots.keys.append(Key(link.table, link.column, place=place))
            continue
        scene.slots.shown.append(link)
        before = scene.words[max(0, link.start - 2) : link.start]
        if (
            before[1:] in (("a",), ("an",))
            and before[0] in ("have", "has", "with", "having")
            and column is not None
            and not column.is_number
        ):
            cond = Null(Col(link.table, link.column), negated=True)
            scene.slots.where.append(Where(link.table, cond, link.start, link.column, "null"))
    for place, link in list(scene.open("table")):
        scene.use(place)
        scene.slots.heads.append(link)
    for place, link in enumerate(scene.links):
        if link.kind == "filler" and link.word == "by" and not (scene.slots.measures or scene.slots.ranks or scene.slots.keys):
            following = scene.after(place, most=2)
            if (
                following >= 0
                and scene.links[following].kind in ("column", "unit", "table")
                and not _done(scene, place, scene.links[following])
            ):
                scene.slots.pay(costs.ODD, "by without a number")
        elif link.kind == "filler" and link.word in ("each", "every", "per") and _names_column(scene, place):
            scene.slots.pay(costs.ODD, f"{link.word} passed over")
    for place, link in list(scene.open("op")):
        if link.is_op("distinct"):
            scene.slots.distinct = True
        elif link.is_op("howold"):
            _asked(scene, link)
        elif link.is_op("pron") and not any(each.table for each in scene.links[:place]):
            scene.slots.pay(costs.UNUSED, f"nothing for {link.text}")
        elif link.is_op("percent", "difference", "ratio", "rest"):
            scene.slots.pay(costs.UNUSED, f"beyond this reader: {link.text}")
        elif link.is_op("by") and not (scene.slots.measures or scene.slots.ranks) and _names_column(scene, place):
            scene.slots.pay(costs.ODD, "by without a number")
        elif link.is_op("wh") and link.word == "when" and not any(_is_date(scene, each.table, each.column) for each in scene.slots.shown):
            _when(scene, place)
        elif _is_idle(scene, link):
            scene.slots.pay(costs.IDLE, f"idle {link.text}")
        scene.use(place)


def _is_idle(scene: Scene, link: Link) -> bool:
    """Say whether an operation that nothing used would have changed the answer."""
    averages = link.is_op("agg") and link.arg == "avg" and not any(each.func == "avg" for each in scene.slots.measures)
    return averages or link.is_op("time", "post", "between", "top", "most", "sup", "frequent", "like")


def _names_column(scene: Scene, place: int) -> bool:
    following = scene.after(place, most=3)
    return following >= 0 and scene.links[following].kind in ("column", "table", "unit")


def _when(scene: Scene, place: int) -> None:
    """'when was she hired': the date is shown."""
    if scene.slots.ranks or scene.slots.measures:
        return
    found = date_for(scene, len(scene.links) - 1, len(scene.links), Period(month=1))
    if found is None:
        scene.slots.pay(costs.UNUSED, "no date for when")
        return
    scene.slots.pay(max(0.0, found[2]), f"when is {found[0].name}")
    scene.slots.shown.append(Link(place, place + 1, "column", 0, "when", found[0].table, found[0].name))


def _asked(scene: Scene, link: Link) -> None:
    from longtable.app.offline.columns import by_dimension

    found = by_dimension(scene.scope(), link.arg, tuple(filter(None, (scene.head(),))))
    if found is None:
        scene.slots.pay(costs.UNUSED, f"no {link.arg}")
        return
    scene.slots.shown.append(Link(link.start, link.end, "column", 0, link.text, found[0].table, found[0].name))
