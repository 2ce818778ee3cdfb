"""Word a result in the language of the question: its numbers, the filters that were applied, a table of the first rows."""

import re
from typing import Any

from longtable.app.offline.logic import (
    Agg,
    Among,
    AnyOf,
    Beats,
    Between,
    Bucket,
    Col,
    ColumnsCompare,
    Compare,
    Cond,
    Like,
    Null,
    Product,
    Query,
    Scalar,
    Share,
    Spread,
    Within,
)
from longtable.app.offline.text import lemma, split_name

SHOWN = 10
_CELL = 60
_FUNCS = {
    "en": {"avg": "average", "sum": "total", "min": "lowest", "max": "highest", "count": "number of"},
    "zh": {"avg": "平均", "sum": "总", "min": "最小", "max": "最大", "count": "数量"},
}
_TIES = {"en": " Others may share this value: ask for the top 5 to see them.", "zh": "可能有并列：可以问前 5 个。"}
_MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
_OPS = {
    "en": {"=": "is", "<>": "is not", ">": ">", "<": "<", ">=": "≥", "<=": "≤"},
    "zh": {"=": "为", "<>": "不为", ">": ">", "<": "<", ">=": "≥", "<=": "≤"},
}


def word_result(query: Query | None, data: dict[str, Any], language: str) -> str:
    """Return the answer's text. `data` is run_sql's answer; `query` what its SQL says, None when that is not readable."""
    columns = [str(column) for column in data.get("columns", [])]
    rows = [list(row) for row in data.get("rows", [])]
    total = int(data.get("row_count") or len(rows))
    heads = _heads(query, columns, language)
    if not rows:
        return _none(query, language)
    if len(rows) == 1 and total == 1:
        return _one(query, heads, rows[0], language)
    return _many(query, heads, rows, total, language)


def _none(query: Query | None, language: str) -> str:
    filters = _where(query, language)
    if language == "zh":
        return f"没有符合条件的记录{_zh(filters)}。"
    return f"Nothing matches{filters}: the query returned no rows."


def _one(query: Query | None, heads: list[str], row: list[Any], language: str) -> str:
    filters = _where(query, language)
    if query is not None and len(row) == 1 and not query.group:
        item = query.select[0] if query.select else None
        value = number(row[0])
        if isinstance(item, Agg) and item.func == "count":
            return _counted(query, item, value, row[0], filters, language)
        if isinstance(item, Share):
            return (
                f"占比为 {value}%（{label(item, language)}）。" if language == "zh" else f"The share is {value}% ({label(item, language)})."
            )
        if isinstance(item, Agg | Spread):
            if row[0] is None:
                return (
                    f"没有可计算的值{_zh(filters)}。" if language == "zh" else f"There is no value to compute the {heads[0]} from{filters}."
                )
            return f"{heads[0]}是 {value}{_zh(filters)}。" if language == "zh" else f"The {heads[0]} is {value}{filters}."
    if len(row) == 1:
        return f"{heads[0]}：{cell(row[0])}{_zh(filters)}。" if language == "zh" else f"The {heads[0]} is {cell(row[0])}{filters}."
    pairs = [f"{head}: {cell(value)}" for head, value in zip(heads, row, strict=False)]
    ranked = _ranked(query, language)
    tie = _TIES[language] if ranked else ""
    if language == "zh":
        return f"{ranked}{'，'.join(pairs)}{_zh(filters)}。{tie}"
    return f"{ranked}{', '.join(pairs)}{filters}.{tie}"


def _ranked(query: Query | None, language: str) -> str:
    if query is None or query.limit != 1 or not query.order:
        return ""
    order = query.order[0]
    what = label(order.by, language)
    if language == "zh":
        return f"{what}{'最大' if order.desc else '最小'}的是："
    return f"With the {'highest' if order.desc else 'lowest'} {what}: "


def _counted(query: Query, item: Agg, value: str, raw: object, filters: str, language: str) -> str:
    what = _plain(query.base)
    if isinstance(item.arg, Col) and item.distinct and item.arg.table != query.base:
        what = _plain(item.arg.table)
    elif isinstance(item.arg, Col) and item.distinct and not _is_key(item.arg, query.base):
        what = ("不同的 " if language == "zh" else "different ") + _phrase(item.arg)
    if language == "zh":
        return f"共有 {value} 条 {what} 记录{_zh(filters)}。" if "不同" not in what else f"共有 {value} 个{what}{_zh(filters)}。"
    single = raw == 1
    noun = " ".join([*what.split()[:-1], lemma(what.split()[-1]) if single else _plural(what.split()[-1])])
    return f"There {'is' if single else 'are'} {value} {noun}{filters}."


def _is_key(col: Col, base: str) -> bool:
    words = split_name(col.name)
    return words[-1:] == ("id",) or {lemma(word) for word in words} <= {lemma(word) for word in split_name(base)}


def _many(query: Query | None, heads: list[str], rows: list[list[Any]], total: int, language: str) -> str:
    filters = _where(query, language)
    shown = rows[:SHOWN]
    table = _table(heads, shown)
    if query is not None and query.aggregates and query.group:
        what = label(query.aggregates[0], language)
        if isinstance(query.aggregates[0], Agg) and query.aggregates[0].func == "count":
            what = f"{_plain(query.base)} 数量" if language == "zh" else f"number of {plural_of(query.base)}"
        by = ("、" if language == "zh" else " and ").join(dict.fromkeys(label(key, language) for key in query.group))
        lead = f"按{by}统计的{what}" if language == "zh" else f"The {what} per {by}"
    else:
        lead = (
            f"找到的 {_plain(query.base)} 记录"
            if query and language == "zh"
            else f"Here are the {plural_of(query.base)}"
            if query
            else "结果"
            if language == "zh"
            else "The result"
        )
    order = _order(query, language)
    if language == "zh":
        tail = f"共 {total:,} 行" + (f"，以上为前 {len(shown)} 行。" if total > len(shown) else "。")
        return f"{lead}{_zh(filters)}{order}：\n\n{table}\n\n{tail}"
    tail = f"{total:,} rows in all" + (f"; the first {len(shown)} are shown." if total > len(shown) else ".")
    return f"{lead}{filters}{order}:\n\n{table}\n\n{tail}"


def _order(query: Query | None, language: str) -> str:
    if query is None or not query.order:
        return ""
    order = query.order[0]
    if order.by in query.group and not order.desc and query.limit is None:
        return ""  # the plain order of the groups
    what = label(order.by, language)
    if language == "zh":
        return f"，按{what}{'降序' if order.desc else '升序'}" + (f"，取前 {query.limit} 个" if query.limit else "")
    return f", by {what} {'descending' if order.desc else 'ascending'}" + (f", top {query.limit}" if query.limit else "")


def _table(heads: list[str], rows: list[list[Any]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(cell(value).replace("|", "\\|") for value in row) + " |" for row in rows])


# -- small pieces -----------------------------------------------------------------------------------------------------


def number(value: object) -> str:
    """Return a number as people read it: separators from 1,000 on, at most two decimals unless it is small."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        if isinstance(value, str) and re.fullmatch(r"-?\d+\.\d+", value):
            return number(float(value))
        return cell(value) if not isinstance(value, str) else value
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 0.1 else f"{value:.4g}"


def cell(value: object) -> str:
    """Return one cell: ids and years without separators, floats short, long text clipped."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) >= 0.1 else f"{value:.4g}"
    text = str(value).replace("\n", " ")
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def label(item: Scalar, language: str) -> str:
    """Return a column, aggregate or bucket in words."""
    funcs = _FUNCS[language]
    match item:
        case Col():
            return _phrase(item)
        case Bucket(col=col, unit=unit):
            names = {
                "month_of_year": "month",
                "year": "year",
                "month": "month",
                "day": "day",
                "hour": "hour",
                "quarter": "quarter",
                "weekday": "weekday",
                "decade": "decade",
            }
            if language == "zh":
                return {
                    "month": "月份",
                    "year": "年份",
                    "day": "日期",
                    "hour": "小时",
                    "quarter": "季度",
                    "weekday": "星期",
                    "decade": "年代",
                }.get(names[unit], unit)
            return f"{names[unit]} of {_phrase(col)}"
        case Agg(func="count", arg=None):
            return "数量" if language == "zh" else "count"
        case Agg(func=func, arg=arg) if arg is not None:
            if func == "count":
                return f"{label(arg, language)}数量" if language == "zh" else f"number of different {label(arg, language)}"
            return f"{funcs[func]} {label(arg, language)}"
        case Product(factors=factors):
            return " × ".join(_phrase(factor) for factor in factors)
        case Spread(arg=arg):
            return f"{_phrase(arg)} 最大与最小之差" if language == "zh" else f"difference between the highest and the lowest {_phrase(arg)}"
        case Share(conds=conds):
            within = (" 且 " if language == "zh" else " and ").join(condition(cond, language) for cond in conds)
            return within or ("占比 %" if language == "zh" else "share in %")
    return str(item)


def condition(cond: Cond, language: str) -> str:
    """Return a condition in words."""
    ops = _OPS[language]
    no = "不" if language == "zh" else "not "
    match cond:
        case Compare(left=Bucket(col=col, unit="month_of_year"), op=op, value=value) if isinstance(value, int) and 1 <= value <= 12:
            month = f"{value} 月" if language == "zh" else _MONTHS[value - 1]
            return (
                f"{_phrase(col)} {'在' if language == 'zh' else 'in'} {month}"
                if op == "="
                else f"{label(cond.left, language)} {ops[op]} {month}"
            )
        case Compare(left=left, op=op, value=value):
            return f"{label(left, language)} {ops[op]} {value}"
        case Between(left=left, low=low, high=high):
            return f"{label(left, language)} {'介于' if language == 'zh' else 'between'} {low} {'和' if language == 'zh' else 'and'} {high}"
        case Among(left=left, values=values, negated=negated):
            names = ("、" if language == "zh" else ", ").join(map(str, values))
            return f"{label(left, language)} {no if negated else ''}{'属于' if language == 'zh' else 'one of'} {names}"
        case Like(left=left, how=how, text=text, negated=negated):
            verb = {
                "en": {"contains": "contains", "starts": "starts with", "ends": "ends with"},
                "zh": {"contains": "包含", "starts": "开头为", "ends": "结尾为"},
            }[language][how]
            return f"{_phrase(left)} {no if negated else ''}{verb} “{text}”"
        case Null(left=left, negated=negated):
            return (
                f"{_phrase(left)} {'不为空' if negated else '为空'}"
                if language == "zh"
                else f"{_phrase(left)} is {'given' if negated else 'missing'}"
            )
        case Beats(left=left, op=op, agg=agg):
            return f"{_phrase(left)} {ops[op]} {label(agg, language)}"
        case Within(query=query, negated=negated):
            return _within(query, negated, language)
        case AnyOf(conds=conds):
            return (" 或 " if language == "zh" else " or ").join(condition(each, language) for each in conds)
        case ColumnsCompare(left=left, op=op, right=right):
            return f"{_phrase(left)} {ops[op]} {_phrase(right)}"
    return str(cond)


def _within(query: Query, negated: bool, language: str) -> str:
    joined = " 且 " if language == "zh" else " and "
    conds = [condition(cond, language) for cond in query.where if not (isinstance(cond, Null) and cond.negated)]
    having = [condition(cond, language).replace("count", "number") for cond in query.having]
    about = f" ({joined.join([*conds, *having])})" if conds or having else ""
    target = _plain(query.tables[-1] if not having else query.base)
    if language == "zh":
        return f"{'没有' if negated else '有'} {target}{about}"
    return f"{'without' if negated else 'with'} {target}{about}"


def _where(query: Query | None, language: str) -> str:
    if query is None:
        return ""
    hidden = {order.by for order in query.order}
    conds = [cond for cond in query.where if not (isinstance(cond, Null) and cond.negated and cond.left in hidden)]
    words = [condition(cond, language) for cond in conds] + [condition(cond, language) for cond in query.having]
    if not words:
        return ""
    return f" ({'；'.join(words)})" if language == "zh" else f" ({', '.join(words)})"


def _zh(filters: str) -> str:
    return filters.replace(" (", "（", 1).removesuffix(")") + "）" if filters else ""


def _heads(query: Query | None, columns: list[str], language: str) -> list[str]:
    if query is None or len(query.select) != len(columns):
        return columns
    heads = [label(item, language) for item in query.select]
    doubled = {head for head in heads if heads.count(head) > 1}
    return [
        f"{_plain(item.table)} {head}" if head in doubled and isinstance(item, Col) else head
        for head, item in zip(heads, query.select, strict=True)
    ]


def _phrase(col: Col) -> str:
    words = split_name(col.name)
    return " ".join(words) if words and col.name.isascii() else col.name


def _plain(table: str) -> str:
    return " ".join(split_name(table)) if table.isascii() else table


def plural_of(table: str) -> str:
    """Return a table's name as a plural noun."""
    words = _plain(table).split() or [table]
    return " ".join([*words[:-1], _plural(words[-1])])


def _plural(word: str) -> str:
    if lemma(word) != word or not word.isascii() or word in ("data", "staff", "series", "weather", "people", "news"):
        return word
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")
