"""Read values, flags and patterns of texts, what is missing and what is denied."""

from longtable.app.offline.lexicon import PARTICIPLES
from longtable.app.offline.lexicon_events import events, events_of
from longtable.app.offline.logic import Among, Col, Compare, Cond, Like, Null, Value
from longtable.app.offline.search import costs
from longtable.app.offline.search.link_schema import dated_by, own_name
from longtable.app.offline.search.model import Link, Where
from longtable.app.offline.search.scene import Scene
from longtable.app.offline.search.vocabulary import NO
from longtable.app.offline.text import lemma, stem


def settle_patterns(scene: Scene) -> None:
    """'contains', 'starts with', 'with engineer in their occupation': a text that a column holds."""
    for place, link in list(scene.open("value", "unused")):
        _within_column(scene, place, link)
    for place, link in list(scene.open("op")):
        if link.is_op("like"):
            _like(scene, place, link)


def _within_column(scene: Scene, place: int, link: Link) -> None:
    """'with engineer in their occupation': a word of a column of texts."""
    joiner = place + 1
    if joiner + 1 >= len(scene.links) or scene.links[joiner].text.lower() != "in":
        return
    target = scene.after(joiner, over=("pron",), most=3)
    column = scene.column(scene.links[target]) if target >= 0 and scene.links[target].kind == "column" else None
    if column is None or column.is_number or column.is_date or column.is_id:
        return
    if link.kind == "value" and (column.table, column.name) != (link.table, link.column):
        return
    scene.use(place, target)
    scene.slots.pay(-link.cost + 0.2, "pattern")
    scene.slots.where.append(Where(column.table, Like(Col(column.table, column.name), "contains", link.text), place, column.name, "like"))


def _like(scene: Scene, place: int, link: Link) -> None:
    """'whose name contains', 'starting with': the column before it, or the name of what is spoken of."""
    text = next((other for other in range(place + 1, min(place + 4, len(scene.links))) if _quoted(scene, other)), -1)
    if text < 0:
        return
    before = scene.before(place, over=("wh",), most=4)
    column = scene.column(scene.links[before]) if before >= 0 and scene.links[before].kind == "column" else None
    if column is None:
        table = scene.table(scene.head())
        token = scene.tokens[scene.links[text].start]
        if table is None or not table.names or not (token.kind in ("quoted", "code") or token.is_name):
            return
        column = table.names[0]
    else:
        scene.use(before)
    scene.use(place, text)
    if scene.links[text].kind == "unused":
        scene.slots.pay(-scene.links[text].cost, "pattern")
    col = Col(column.table, column.name)
    cond = Like(col, link.arg, scene.links[text].text)  # type: ignore[arg-type]  # one of contains, starts, ends
    scene.slots.where.append(Where(column.table, cond, place, column.name, "like"))


def _quoted(scene: Scene, place: int) -> bool:
    token = scene.tokens[scene.links[place].start]
    return token.kind in ("quoted", "code") or token.is_name or scene.links[place].kind in ("value", "unused")


def settle_negations(scene: Scene) -> None:
    """Give every 'without', 'not', 'never' what it denies: a table, a column, a value, a flag."""
    for place, link in list(scene.open("op")):
        if link.is_op("missing", "present"):
            target = scene.before(place, over=("wh", "neg"), most=4)
            if target < 0 or scene.links[target].kind != "column":
                target = scene.after(place, most=4)
            idle = link.word in ("given", "known", "recorded", "present") and scene.after(place, most=3) >= 0
            if target >= 0 and scene.links[target].kind == "column" and not idle and target not in scene.used:
                scene.use(place, target)
                _null(scene, scene.links[target], negated=link.op == "present")
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
        elif each.kind == "flag" and not each.values and each.table != scene.head():
            scene.use(target)
            scene.slots.absent.append((each.table, target))  # never visited: no visit
        elif each.kind == "value" and _qualifies(scene, target):
            scene.slots.absent.append((each.table, target))
        elif each.kind in ("value", "flag"):
            scene.become(target, op="not")
            for other in range(target + 1, min(target + 5, len(scene.links))):
                if scene.links[other].kind == "value" and scene.links[other].column == each.column:
                    scene.become(other, op="not")
        else:
            _denied_verb(scene, place)


def _qualifies(scene: Scene, place: int) -> bool:
    """Say whether a denied value only tells which rows of another table there are none of: 'no cast iron pipes'."""
    value = scene.links[place]
    following = scene.after(place, most=3)
    link = scene.links[following] if following >= 0 else None
    return link is not None and link.kind == "table" and link.table == value.table and link.table != scene.head()


_AMOUNTS = frozenset(["stock", "unit", "quantity", "balance", "discount", "count"])


def _null(scene: Scene, link: Link, *, negated: bool) -> None:
    column = scene.column(link)
    if column is not None and column.truth is not None and not negated:
        scene.slots.where.append(Where(link.table, _flag(link, column.truth, denied=True), link.start, link.column))
        return
    col = Col(link.table, link.column)
    none = column is not None and column.has_number_type and not column.is_id and _AMOUNTS & set(map(lemma, column.words)) and not negated
    cond: Cond = Compare(col, "=", 0) if none else Null(col, negated=negated)
    scene.slots.where.append(Where(link.table, cond, link.start, link.column, "null"))


def _denied_verb(scene: Scene, place: int) -> None:
    """'have never been prescribed', 'not yet collected': a table or a date of the verb's family."""
    head = scene.table(scene.head())
    words = [scene.tokens[other].word for other in range(scene.links[place].end, min(len(scene.tokens), scene.links[place].end + 5))]
    for word in words:
        dates = [column for column in (head.columns if head is not None else ()) if column.is_date and dated_by(word, column)]
        recorded = [
            table for table in scene.catalog.tables.values() if head is not None and table.name != head.name and own_name(table, word)
        ]
        if recorded and not any(stem(word) in map(stem, column.words) for column in dates):
            dates = []  # never hired anything: no hire, whatever date somebody joined
        elif not dates and head is not None:
            dates = [column for column in head.columns if column.is_date and events(word) & events_of(column.words)]
        if len(dates) == 1 and head is not None:
            scene.slots.pay(0.2, f"no {dates[0].name}")
            scene.slots.where.append(Where(head.name, Null(Col(head.name, dates[0].name)), place, dates[0].name, "null"))
            return
        for table in scene.catalog.tables.values():
            if head is None or table.kind != "table" or table.name == head.name or not own_name(table, word):
                continue
            if scene.distances.between(head.name, table.name) is not None:
                scene.slots.pay(0.2, f"no {table.name}")
                scene.slots.absent.append((table.name, place))
                return
    scene.slots.pay(costs.UNUSED, "idle negation")


def settle_values(scene: Scene) -> None:
    """Turn values and flags into conditions; values of one column are alternatives."""
    groups: dict[tuple[str, str, bool], list[Link]] = {}
    named = {link.table for link in scene.links if link.kind == "table"}
    _drop_names(scene)
    for place, link in list(scene.open("value")):
        scene.use(place)
        if _is_verb(link) and link.table != scene.head() and link.table not in named:
            scene.slots.pay(costs.STRANGE_STATE, f"{link.text} of {link.table}")
        groups.setdefault((link.table, link.column, link.op == "not"), []).append(link)
    for (table, column, denied), links in groups.items():
        col = Col(table, column)
        values = tuple(dict.fromkeys(link.values[0] for link in links))
        cond: Cond = Compare(col, "<>" if denied else "=", values[0]) if len(values) == 1 else Among(col, values, negated=denied)
        scene.slots.where.append(Where(table, cond, links[0].start, column, "="))
    for place, link in list(scene.open("flag")):
        scene.use(place)
        denied = link.op == "not"
        col = Col(link.table, link.column)
        cond = _flag(link, link.values[0], denied=denied) if link.values else Null(col, negated=not denied)
        scene.slots.where.append(Where(link.table, cond, link.start, link.column))


def _is_verb(link: Link) -> bool:
    word = link.text.lower()
    return link.text.islower() and ((word.endswith("ed") and len(word) > 4) or word in PARTICIPLES)


def _drop_names(scene: Scene) -> None:
    """Take up a column that only names what a value beside it is: 'the PREMIER segment', 'status open'."""
    for place, link in list(scene.open("value")):
        for other in (scene.before(place, over=("neg",), most=3), scene.after(place, most=3)):
            beside = scene.links[other] if other >= 0 and other not in scene.used else None
            if (
                beside is not None
                and beside.kind == "column"
                and not beside.op
                and (beside.table, beside.column) == (link.table, link.column)
            ):
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


__all__ = ["settle_negations", "settle_patterns", "settle_values"]
