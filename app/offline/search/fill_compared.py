"""Read columns compared with each other: shots done and shot life, a date and its due date, a number and its average."""

from longtable.app.offline.catalog import Column
from longtable.app.offline.logic import Agg, Beats, Col, ColumnsCompare
from longtable.app.offline.search import costs
from longtable.app.offline.search.link_schema import dated_by
from longtable.app.offline.search.model import Link, Where
from longtable.app.offline.search.scene import Scene
from longtable.app.offline.text import lemma

PASSED = ("wh", "list", "distinct", "present", "pron")
"""Operations that may stand between what is compared."""


def compare_columns(scene: Scene, place: int, link: Link) -> None:
    """Two columns compared, or one with its average."""
    left, right = scene.before(place, over=PASSED, most=5), scene.after(place, over=("agg",), most=6)
    if link.arg == "<>" and _leads_to_value(scene, place):
        scene.become(place, op="neg", arg="")  # excluding the ones on hold
        return
    op = link.arg.partition(":")[0]
    first = scene.links[left] if left >= 0 else None
    second = scene.links[right] if right >= 0 else None
    average = any(each.is_op("agg") and each.arg == "avg" for each in scene.links[place : place + 5]) or (
        second is not None and second.op == "avg"
    )
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
    if (
        second is not None
        and scene.measures(second)
        and (first is None or first.kind == "table")
        and link.word in ("exceeded", "exceed", "exceeds")
    ):
        twin = _sibling(scene, second)
        if twin is not None:
            scene.use(place, right)
            scene.slots.pay(costs.GUESSED_COLUMN, f"compared with {twin.name}")
            compared = ColumnsCompare(Col(twin.table, twin.name), op, Col(second.table, second.column))
            scene.slots.where.append(Where(twin.table, compared, place, twin.name, op))
            return
    if first is None or second is None or first.kind != "column" or second.kind != "column":
        scene.use(place)
        if link.word not in ("under", "over", "up"):  # 'up to' aside, what is compared must be told
            scene.slots.pay(costs.IDLE, f"idle {link.text}")
        return
    kinds = scene.column(first), scene.column(second)
    same = kinds[0] is not None and kinds[1] is not None and (kinds[0].is_date == kinds[1].is_date) and first.table == second.table
    if not same or first.column == second.column or (kinds[0] is not None and kinds[0].is_id):
        scene.slots.pay(costs.IDLE, f"idle {link.text}")
        return
    scene.use(place, left, right)
    cond = ColumnsCompare(Col(first.table, first.column), op, Col(second.table, second.column))
    scene.slots.where.append(Where(first.table, cond, place, first.column, op))


def _leads_to_value(scene: Scene, place: int) -> bool:
    target = scene.after(place, over=("pron",), most=5)
    return target >= 0 and scene.links[target].kind == "value"


def _sibling(scene: Scene, link: Link) -> Column | None:
    """Return the one other column of numbers that shares a word with a column: the shots done beside the shot life."""
    column, table = scene.column(link), scene.table(link.table)
    if column is None or table is None:
        return None
    own = set(map(lemma, column.words))
    fits = [each for each in table.columns if each != column and each.is_number and not each.is_id and own & set(map(lemma, each.words))]
    return fits[0] if len(fits) == 1 else None


def compare_dates(scene: Scene, place: int, link: Link) -> None:
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
        fits = [
            column for column in table.columns if column.is_date and column != second and any(dated_by(word, column) for word in before)
        ]
        first = fits[0] if len(fits) == 1 else None
        left = -1
    if first is None or first.table != second.table or first == second:
        return
    scene.use(place, left, right)
    cond = ColumnsCompare(Col(first.table, first.name), link.arg, Col(second.table, second.name))
    scene.slots.where.append(Where(first.table, cond, place, first.name, link.arg))
