"""Word a result in the language of the question: its numbers, the filters that were applied, a table of the first rows."""

from typing import Any

from longtable.app.offline.labels import cell, filters_in_words, heads_of, in_brackets, label, number, phrase, plain, plural, plural_of
from longtable.app.offline.logic import (
    Agg,
    Col,
    Query,
    Share,
    Spread,
)
from longtable.app.offline.text import lemma, split_name

SHOWN = 10
_UNCOUNTED = frozenset(["weather", "data", "news", "inventory", "stock", "equipment", "staff", "personnel", "feedback", "attendance"])
_TIES = {"en": " Others may share this value: ask for the top 5 to see them.", "zh": "可能有并列：可以问前 5 个。"}


def word_result(query: Query | None, data: dict[str, Any], language: str, *, whole: bool = True) -> str:
    """Return the answer's text. `data` is run_sql's answer; `query` what its SQL says, None when that is not readable.

    Without `whole` the rows are only a part of what was asked for, and are not said to be all.
    """
    columns = [str(column) for column in data.get("columns", [])]
    rows = [list(row) for row in data.get("rows", [])]
    total = int(data.get("row_count") or len(rows))
    heads = heads_of(query, columns, language)
    if not rows:
        return _none(query, language)
    if len(rows) == 1 and total == 1:
        return _one(query, heads, rows[0], language)
    return _many(query, heads, rows, total, language, whole=whole)


def _none(query: Query | None, language: str) -> str:
    filters = filters_in_words(query, language)
    if language == "zh":
        return f"没有符合条件的记录{in_brackets(filters)}。"
    return f"Nothing matches{filters}: the query returned no rows."


def _one(query: Query | None, heads: list[str], row: list[Any], language: str) -> str:
    filters = filters_in_words(query, language)
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
                    f"没有可计算的值{in_brackets(filters)}。"
                    if language == "zh"
                    else f"There is no value to compute the {heads[0]} from{filters}."
                )
            return f"{heads[0]}是 {value}{in_brackets(filters)}。" if language == "zh" else f"The {heads[0]} is {value}{filters}."
    if len(row) == 1:
        return f"{heads[0]}：{cell(row[0])}{in_brackets(filters)}。" if language == "zh" else f"The {heads[0]} is {cell(row[0])}{filters}."
    pairs = [f"{head}: {cell(value)}" for head, value in zip(heads, row, strict=False)]
    ranked = _ranked(query, language)
    tie = _TIES[language] if ranked else ""
    if language == "zh":
        return f"{ranked}{'，'.join(pairs)}{in_brackets(filters)}。{tie}"
    return f"{ranked}{', '.join(pairs)}{filters}.{tie}"


def _ranked(query: Query | None, language: str) -> str:
    if query is None or query.limit != 1 or not query.order:
        return ""
    order = query.order[0]
    what = label(order.by, language)
    if query.offset:
        place = query.offset + 1
        if language == "zh":
            return f"按{what}{'从大到小' if order.desc else '从小到大'}排第 {place} 的是："
        return f"Number {place} by {what}, {'highest' if order.desc else 'lowest'} first: "
    if language == "zh":
        return f"{what}{'最大' if order.desc else '最小'}的是："
    return f"With the {'highest' if order.desc else 'lowest'} {what}: "


def _counted(query: Query, item: Agg, value: str, raw: object, filters: str, language: str) -> str:
    what = plain(query.base)
    if isinstance(item.arg, Col) and item.distinct and item.arg.table != query.base:
        what = plain(item.arg.table)
    elif isinstance(item.arg, Col) and item.distinct and not _is_key(item.arg, query.base):
        what = ("不同的 " if language == "zh" else "different ") + phrase(item.arg)
    if language == "zh":
        return (
            f"共有 {value} 条 {what} 记录{in_brackets(filters)}。"
            if "不同" not in what
            else f"共有 {value} 个{what}{in_brackets(filters)}。"
        )
    single = raw == 1
    if what.split()[-1] in _UNCOUNTED:
        return f"There {'is' if single else 'are'} {value} {'row' if single else 'rows'} of {what}{filters}."
    noun = " ".join([*what.split()[:-1], lemma(what.split()[-1]) if single else plural(what.split()[-1])])
    return f"There {'is' if single else 'are'} {value} {noun}{filters}."


def _is_key(col: Col, base: str) -> bool:
    words = split_name(col.name)
    return words[-1:] == ("id",) or {lemma(word) for word in words} <= {lemma(word) for word in split_name(base)}


def _many(query: Query | None, heads: list[str], rows: list[list[Any]], total: int, language: str, *, whole: bool) -> str:
    filters = filters_in_words(query, language)
    shown = rows[:SHOWN]
    table = _table(heads, shown)
    if query is not None and query.aggregates and query.group:
        what = label(query.aggregates[0], language)
        if isinstance(query.aggregates[0], Agg) and query.aggregates[0].func == "count":
            what = f"{plain(query.base)} 数量" if language == "zh" else f"number of {plural_of(query.base)}"
        by = ("、" if language == "zh" else " and ").join(dict.fromkeys(label(key, language) for key in query.group))
        lead = f"按{by}统计的{what}" if language == "zh" else f"The {what} per {by}"
    else:
        lead = (
            f"找到的 {plain(query.base)} 记录"
            if query and language == "zh"
            else f"Here are the {plural_of(query.base)}"
            if query
            else "结果"
            if language == "zh"
            else "The result"
        )
    order = _order(query, language)
    if language == "zh":
        tail = (f"共 {total:,} 行" if whole else f"取出 {total:,} 行") + (f"，以上为前 {len(shown)} 行。" if total > len(shown) else "。")
        return f"{lead}{in_brackets(filters)}{order}：\n\n{table}\n\n{tail}"
    tail = f"{total:,} rows {'in all' if whole else 'were fetched'}" + (
        f"; the first {len(shown)} are shown." if total > len(shown) else "."
    )
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
