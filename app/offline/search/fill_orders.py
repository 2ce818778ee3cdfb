"""Read orders: 'sorted by', 'highest first', and the column that such words mean."""

from longtable.app.offline.columns import by_dimension
from longtable.app.offline.search import costs
from longtable.app.offline.search.model import Link, Measure, Rank
from longtable.app.offline.search.scene import Scene


def is_dated(scene: Scene, link: Link) -> bool:
    """Say whether a link is a column of dates."""
    column = scene.column(link)
    return column is not None and column.is_date


def marked_measure(scene: Scene) -> Measure | None:
    """Return the one measure that is computed anyway."""
    for place, link in enumerate(scene.links):
        if link.op and link.kind in ("column", "table") and link.op != "much":
            return Measure(link.op.split("+")[0], link.table, link.column, place)
    return scene.slots.measures[0] if scene.slots.measures else None


def settle_order(scene: Scene, place: int) -> None:
    """Read 'sorted by': the key that follows, and which way."""
    target = scene.after(place, over=("agg", "count", "wh"), most=6)
    link = scene.links[target] if target >= 0 else None
    desc = next((each.arg == "desc" for other, each in scene.open("op") if each.is_op("dir")), None)
    for other, each in list(scene.open("op")):
        if each.is_op("dir"):
            scene.use(other)
    scene.use(place)
    if link is None or link.kind not in ("column", "table"):
        marked = marked_measure(scene)
        if marked is not None:
            scene.slots.ranks.append(Rank(marked, bool(desc)))
        elif desc is None:
            scene.slots.pay(costs.IDLE, "idle order")
        else:
            _by_shown(scene, bool(desc))
        return
    func = link.op.split("+")[0] if link.op else ""
    if link.kind == "table" and not func:
        table = scene.table(link.table)
        if table is None or not table.names:
            scene.slots.pay(costs.IDLE, "idle order")
            return
        link = Link(link.start, link.end, "column", 0, link.text, link.table, table.names[0].name)
    scene.slots.ranks.append(Rank(Measure(func, link.table, link.column, target), bool(desc)))
    repeated = any(each.table == link.table and each.column == link.column for other, each in enumerate(scene.links) if other != target)
    if repeated:
        scene.use(target)


def settle_direction(scene: Scene, place: int, link: Link) -> None:
    """'highest first': by what is computed, or by the column that the words name."""
    scene.use(place)
    desc = link.arg == "desc"
    words = link.text.lower().split()
    if scene.slots.ranks and not any(rank.limit is None for rank in scene.slots.ranks) and "first" not in words:
        return
    marked = marked_measure(scene)
    if marked is not None:
        scene.slots.ranks.append(Rank(marked, desc))
        return
    _by_shown(scene, desc, words)


def _by_shown(scene: Scene, desc: bool, words: list[str] | None = None) -> None:
    words = words or []
    dated = {
        "oldest",
        "newest",
        "latest",
        "earliest",
        "soonest",
        "recent",
        "youngest",
        "longest-serving",
        "chronological",
        "chronologically",
    } & set(words)
    columns = [(place, each) for place, each in enumerate(scene.links) if each.kind == "column"]
    named = {"alphabetical", "alphabetically", "alphabetic", "a"} & set(words)
    fits = [each for _, each in columns if (is_dated(scene, each) if dated else scene.measures(each))]
    if named:
        fits = [each for _, each in columns if not scene.measures(each) and not is_dated(scene, each)]
    if not fits and not named:
        fits = [each for _, each in columns if is_dated(scene, each)]
    if fits:
        scene.slots.ranks.append(Rank(Measure("", fits[-1].table, fits[-1].column), desc))
        return
    table = scene.table(scene.head())
    if named and table is not None and table.names:
        scene.slots.ranks.append(Rank(Measure("", table.name, table.names[0].name), desc))
        return
    for dimension in ("date", "size"):
        if (dimension == "date") == bool(dated) and (found := by_dimension(scene.scope(), dimension, tuple(filter(None, (scene.head(),))))):
            scene.slots.pay(costs.GUESSED_COLUMN, f"order by {found[0].name}")
            scene.slots.ranks.append(Rank(Measure("", found[0].table, found[0].name), desc))
            return
    scene.slots.pay(costs.IDLE, "idle order")
