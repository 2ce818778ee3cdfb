"""Put the small pieces of an answer in words: numbers, columns, conditions."""

import re

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

_CELL = 60
_PREFIXES = frozenset(["tbl", "dim", "fact"])
_FUNCS = {
    "en": {"avg": "average", "sum": "total", "min": "lowest", "max": "highest", "count": "number of"},
    "zh": {"avg": "平均", "sum": "总", "min": "最小", "max": "最大", "count": "数量"},
}
_MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
_OPS = {
    "en": {"=": "is", "<>": "is not", ">": ">", "<": "<", ">=": "≥", "<=": "≤"},
    "zh": {"=": "为", "<>": "不为", ">": ">", "<": "<", ">=": "≥", "<=": "≤"},
}


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
            return phrase(item)
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
            return f"{names[unit]} of {phrase(col)}"
        case Agg(func="count", arg=None):
            return "数量" if language == "zh" else "count"
        case Agg(func=func, arg=arg) if arg is not None:
            if func == "count":
                return f"{label(arg, language)}数量" if language == "zh" else f"number of different {label(arg, language)}"
            words = label(arg, language)
            return words if words.startswith(f"{funcs[func]} ") else f"{funcs[func]} {words}"  # the total price, not the total total price
        case Product(factors=factors):
            return " × ".join(phrase(factor) for factor in factors)
        case Spread(arg=arg):
            return f"{phrase(arg)} 最大与最小之差" if language == "zh" else f"difference between the highest and the lowest {phrase(arg)}"
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
                f"{phrase(col)} {'在' if language == 'zh' else 'in'} {month}"
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
            return f"{phrase(left)} {no if negated else ''}{verb} “{text}”"
        case Null(left=left, negated=negated):
            return (
                f"{phrase(left)} {'不为空' if negated else '为空'}"
                if language == "zh"
                else f"{phrase(left)} is {'given' if negated else 'missing'}"
            )
        case Beats(left=left, op=op, agg=agg):
            return f"{phrase(left)} {ops[op]} {label(agg, language)}"
        case Within(query=query, negated=negated):
            return _within(query, negated, language)
        case AnyOf(conds=conds):
            return (" 或 " if language == "zh" else " or ").join(condition(each, language) for each in conds)
        case ColumnsCompare(left=left, op=op, right=right):
            return f"{phrase(left)} {ops[op]} {phrase(right)}"
    return str(cond)


def _within(query: Query, negated: bool, language: str) -> str:
    joined = " 且 " if language == "zh" else " and "
    conds = [condition(cond, language) for cond in query.where if not (isinstance(cond, Null) and cond.negated)]
    having = [condition(cond, language).replace("count", "number") for cond in query.having]
    about = f" ({joined.join([*conds, *having])})" if conds or having else ""
    target = plain(query.tables[-1] if not having else query.base)
    if language == "zh":
        return f"{'没有' if negated else '有'} {target}{about}"
    return f"{'without' if negated else 'with'} {target}{about}"


def filters_in_words(query: Query | None, language: str) -> str:
    """Return the conditions of a query as the end of a sentence."""
    if query is None:
        return ""
    hidden = {*(order.by for order in query.order), *query.group}
    conds = [cond for cond in query.where if not (isinstance(cond, Null) and cond.negated and cond.left in hidden)]
    words = list(dict.fromkeys(condition(cond, language) for cond in (*conds, *query.having)))
    if not words:
        return ""
    return f" ({'；'.join(words)})" if language == "zh" else f" ({', '.join(words)})"


def in_brackets(filters: str) -> str:
    """Return conditions in Chinese brackets."""
    return filters.replace(" (", "（", 1).removesuffix(")") + "）" if filters else ""


def heads_of(query: Query | None, columns: list[str], language: str) -> list[str]:
    """Return the heads of a result's columns in words."""
    if query is None or len(query.select) != len(columns):
        return columns
    heads = [label(item, language) for item in query.select]
    doubled = {head for head in heads if heads.count(head) > 1}
    return [
        f"{plain(item.table)} {head}" if head in doubled and isinstance(item, Col) else head
        for head, item in zip(heads, query.select, strict=True)
    ]


def phrase(col: Col) -> str:
    """Return a column in words."""
    words = split_name(col.name)
    return " ".join(words) if words and col.name.isascii() else col.name


def plain(table: str) -> str:
    """Return a table in words."""
    words = split_name(table) if table.isascii() else ()
    return " ".join(words[1:] if len(words) > 1 and words[0] in _PREFIXES else words) or table


def plural_of(table: str) -> str:
    """Return a table's name as a plural noun."""
    words = plain(table).split() or [table]
    return " ".join([*words[:-1], plural(words[-1])])


def plural(word: str) -> str:
    """Return the plural of an English word."""
    if lemma(word) != word or not word.isascii() or word in ("data", "staff", "series", "weather", "people", "news"):
        return word
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")
