"""Write the texts of all answers: greetings, help, recalled messages, charts, declined questions
and results. Also recognise small talk.
"""

import re
import tomllib
from calendar import month_name
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import chain
from typing import Any

from longtable.analyst.lexicon import expanded, lemma, likeness, stem, tokenize, vocabulary
from longtable.analyst.query import PATTERNS, Agg, Bucket, Col, Condition, Query, Scalar
from longtable.analyst.schema import Catalog, Column, Table

SHOWN_ROWS = 10
MOST_WISH = 200
_TABLES_SHOWN = 20
_CELL = 60

_PHRASES = resources.files("longtable.analyst") / "data" / "talk.toml"


@cache
def _texts() -> dict[str, dict[str, list[str]]]:
    """Return the texts of answers and the patterns of small talk. The file is read only once."""
    return tomllib.loads(_PHRASES.read_text(encoding="utf-8"))


class DeclineError(Exception):
    """The analyst declines a question. `reason` says why, and `words` are the user's words that
    caused it.
    """

    def __init__(self, reason: str, *words: str, near: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.words = words
        self.near = near


def say(name: str, language: str, **values: object) -> str:
    """Return the sentence `name` in a language, with `values` filled in."""
    return _texts()["said"][name][language == "zh"].format(**values)


def without_introduction(answer: str) -> str:
    """Return an answer without the note on what this model is. The first answer of a conversation
    has this note.
    """
    for text in _texts()["said"]["introduction"]:
        answer = answer.replace(text, "")
    return answer.strip()


# -- small talk ------------------------------------------------------------------------------------


@cache
def _kinds() -> dict[str, re.Pattern[str]]:
    whole = {name: rf"^\W*(?:{'|'.join(parts)})\W*$" for name, parts in _texts()["kinds"].items()}
    inside = {name: "|".join(parts) for name, parts in _texts()["found"].items()}
    return {name: re.compile(pattern, re.IGNORECASE) for name, pattern in (whole | inside).items()}


def kind_of(question: str) -> str:
    """Return the kind of small talk that a question is, such as "greeting". Return "" for a
    question about the data.
    """
    kinds = _kinds()
    if kinds["rule"].search(question):
        return "rule"
    kind = next((name for name in _texts()["kinds"] if kinds[name].match(question)), "")
    return kind or ("recall" if kinds["recall"].search(question) else "")


def described_name(question: str) -> str:
    """Return the name of the table that a question wants described, "" if it names none."""
    match = _kinds()["describe"].match(question)
    return next((group for group in match.groups() if group), "").strip() if match else ""


_RECALL_CHINESE = re.compile(
    r"之前|刚才|问过|的时候|我问|你说|还记得|记得|提醒我|答案|回答|结果|多少|是|的|了|吗|呢|我|你|问|有|那个|什么|一下"
)


def best_match(question: str, questions: Sequence[str]) -> int | None:
    """Return the place of the earlier question that is most like `question`, by content words.
    Among equally good questions, the latest counts. Return None if none is alike.
    """
    words = content_words(question)
    best: tuple[float, int] | None = None
    for place, text in enumerate(questions):
        have = content_words(text)
        if not have or not words:
            continue
        likes = [_most_like(word, have) for word in words]
        extra = sum(_is_extra(other, words) for other in have)
        score = sum(likes) / len(words)
        if score >= 0.55 and (best is None or score - 0.04 * extra >= best[0] - 1e-9):
            best = (score - 0.04 * extra, place)
    return best[1] if best else None


def _likeness(word: str, other: str) -> float:
    """Return how alike two words are. Chinese words are alike only if they are equal."""
    return likeness(word, other) if word.isascii() else float(word == other)


def _most_like(word: str, others: Iterable[str]) -> float:
    return max(_likeness(word, other) for other in others)


def _is_extra(other: str, words: Iterable[str]) -> bool:
    return all(_likeness(word, other) < 0.75 for word in words)


def content_words(text: str) -> list[str]:
    """Return the words of a text that carry its content, without grammar and question words. The
    runs of Chinese characters in it become pairs of characters.
    """
    lists = vocabulary().lists
    words = [
        token.word
        for token in tokenize(re.sub(r"([\u3400-\u9fff]+)", r" \1 ", text))
        if token.kind not in ("comma", "stop", "symbol")
    ]
    small = lists["grammar"] | lists["verbs"] | lists["recall"]
    english = [
        word
        for word in words
        if word.isascii()
        and word not in small
        and lemma(word) not in small
        and stem(word) not in small
    ]
    runs = re.findall(r"[\u3400-\u9fff]+", _RECALL_CHINESE.sub(" ", text))
    chinese = chain.from_iterable(map(_bigrams, runs))
    return list(dict.fromkeys([*english, *chinese]))


def _bigrams(run: str) -> list[str]:
    return [run[n : n + 2] for n in range(max(1, len(run) - 1))]


# -- charts ----------------------------------------------------------------------------------------


@cache
def _charts() -> dict[str, re.Pattern[str]]:
    parts: dict[str, str] = {}
    for name, pattern in _texts()["charts"].items():
        parts[name] = str(pattern).format(**parts)
    return {name: re.compile(pattern, re.IGNORECASE) for name, pattern in parts.items()}


@dataclass(frozen=True)
class ChartWish:
    """A chart that was asked for. `question` is the question to answer first; "" means that the
    newest result is drawn.
    """

    text: str
    question: str


def chart_wish(question: str) -> ChartWish | None:
    """Return the chart that a question asks for, None if it asks for none."""
    text = " ".join(question.split())[:MOST_WISH]
    charts = _charts()
    rest: str | None = None
    if (charts["draw_it"].match(question) and charts["drawing"].search(question)) or charts[
        "zh_it"
    ].match(question):
        return ChartWish(text, "")
    for name, lead, sign in (("before", "Show ", "drawing"), ("zh_before", "", "any_picture")):
        if (
            rest is None
            and (match := charts[name].match(question))
            and match.end()
            and charts[sign].search(question)
        ):
            rest = (
                lead
                + charts["zh_after"]
                .sub("", charts["after"].sub("", question[match.end() :]))
                .strip()
            )
    for name in ("after", "zh_after"):
        if rest is None and (match := charts[name].search(question)) and match.start():
            rest = question[: match.start()].strip()
    return (
        None
        if rest is None
        else ChartWish(text, "" if charts["it"].fullmatch(rest.removeprefix("Show ")) else rest)
    )


def chart_text(data: dict[str, Any] | None, error: str, handle: str, language: str) -> str:
    """Return the text that says that a chart was drawn, or why it was not."""
    name = "drawn" if data is not None else "not_drawn" if error else "not_kept"
    return say(
        name,
        language,
        handle=(data or {}).get("handle", handle),
        reason=error.partition("\n")[0][:200],
    )


# -- the schema, help and declines -----------------------------------------------------------------


def help_text(catalog: Catalog, language: str) -> str:
    """Return a text that says what can be asked, with examples for this schema."""
    return "\n".join(
        [say("help", language), *(f"- {line}" for line in examples(catalog, language))]
    )


def tables_text(catalog: Catalog, language: str) -> str:
    """Return a list of the tables as text."""
    tables = sorted(catalog.tables.values(), key=lambda table: table.name.lower())[:_TABLES_SHOWN]
    lines = [f"- {table.name}{_rows(table, language)}: {_columns(table)}" for table in tables]
    total = max(catalog.total, len(tables))
    more = (
        [f"- {say('more_tables', language, count=total - len(tables))}"]
        if total > len(tables)
        else []
    )
    head = say({0: "no_tables", 1: "one_table"}.get(total, "tables"), language, count=total)
    return "\n".join([head, *lines, *more])


def _columns(table: Table) -> str:
    names = ", ".join(column.name for column in table.columns[:12])
    return f"{names} …" if len(table.columns) > 12 else names


def _rows(table: Table, language: str) -> str:
    unit = "行" if language == "zh" else "row" if table.rows == 1 else "rows"
    return "" if table.rows is None else f" ({table.rows:,} {unit})"


def describe_text(table: Table, language: str) -> str:
    """Return a description of one table as text."""
    colon = "：" if language == "zh" else ":"
    head = f"{table.name}{_rows(table, language)}{colon}"
    return "\n".join([head, *map(_described, table.columns)])


def _described(column: Column) -> str:
    """Return a line with a column's name, type, key and comment."""
    key = "(primary key)" if column.primary else ""
    target = f"-> {column.references}" if column.references else ""
    parts = [column.name, column.type, key, target, column.comment]
    return f"- {' '.join(filter(None, parts))}"


def sql_text(sql: str, language: str) -> str:
    """Return a text that shows the SQL of the last query."""
    return f"{say('sql', language)}\n\n```sql\n{sql}\n```" if sql else say("no_sql", language)


def decline(error: DeclineError, catalog: Catalog | None, language: str) -> str:
    """Return a text that names the user's words that could not be used, and three questions that
    can be answered.
    """
    zh = language == "zh"
    words = ("、" if zh else ", ").join(f"“{word}”" for word in error.words if word)
    reason = _texts()["declines"][error.reason][zh].format(words=words)
    parts = [
        (
            f"{reason}，所以我没有回答，以免答错。"
            if zh
            else f"{reason}, so I give no answer rather than a wrong one."
        )
    ]
    if catalog is not None and catalog.tables:
        parts += [say("examples", language), *(f"- {line}" for line in examples(catalog, language))]
    if error.near:
        parts.append(say("near", language, values=("、" if zh else ", ").join(error.near)))
    return "\n".join(parts)


def examples(catalog: Catalog, language: str) -> list[str]:
    """Return up to three questions that this schema can answer, about its largest tables."""
    zh = language == "zh"
    tables = sorted(catalog.plain, key=lambda table: (not table.described, -(table.rows or 0)))
    questions: list[str] = []
    for table in tables:
        name = " ".join(table.words) if zh else plural_of(table.name)
        measures = [c for c in table.columns if c.is_measure and not (c.is_year or c.is_clock)]
        keys = [
            c
            for c in table.columns
            if table.described and not (c.is_number or c.is_date or c.primary or c.is_binary)
        ]
        questions.append(f"有多少 {name}？" if zh else f"How many {name} are there?")
        if measures and (table.rows or 0) > 1:
            measure = " ".join(measures[0].words)
            questions.append(
                f"{name} 的平均 {measure} 是多少？"
                if zh
                else f"What is the average {measure} of the {name}?"
            )
        if keys and (table.rows or 0) > 1:
            key = " ".join(keys[0].words)
            questions.append(
                f"每个 {key} 有多少 {name}？" if zh else f"How many {name} are there per {key}?"
            )
    return questions[:3]


# -- results in words ------------------------------------------------------------------------------


def result_text(
    query: Query | None, data: dict[str, Any], language: str, *, whole: bool = True
) -> str:
    """Return the answer about a result as text.

    `data` is the answer of run_sql. `query` is its SQL as read by `read_sql`, None if it cannot be
    read. `whole` is False if more rows were asked for than `data` has.
    """
    columns = [str(column) for column in data.get("columns", [])]
    rows = [list(row) for row in data.get("rows", [])]
    total = int(data.get("row_count") or len(rows))
    same = query is not None and len(query.select) == len(columns)
    heads = (
        [label(item, language) for item in query.select] if same and query is not None else columns
    )
    if not rows:
        return say("no_rows", language, filters=_filters(query, language))
    return (
        _one(query, heads, rows[0], language)
        if len(rows) == 1 and total == 1
        else _many(query, heads, rows, total, language, whole=whole)
    )


def withheld_text(data: dict[str, Any], language: str) -> str:
    """Return the answer about a result whose values this model must not see. The text tells the
    number of rows, the columns and the handle, but never a value.
    """
    count = int(data.get("row_count") or 0)
    handle = data.get("handle")
    zh = language == "zh"
    if not count:
        return say("no_rows", language, filters="")
    columns = ("、" if zh else ", ").join(map(str, data.get("columns", ())))
    place = say("as_result", language, handle=handle) if handle else ""
    return say(
        "withheld",
        language,
        rows="1 row" if count == 1 and not zh else f"{count:,} rows",
        count=count,
        columns=columns,
        place=place,
    )


def _one(query: Query | None, heads: list[str], row: list[Any], language: str) -> str:
    """Return a sentence about a result of one row."""
    zh = language == "zh"
    filters = _filters(query, language)
    item = query.select[0] if query is not None and query.select else None
    if query is not None and len(row) == 1 and item == Agg("count") and not query.group:
        name = plain(query.base)
        return (
            f"共有 {number(row[0])} 条 {name} 记录{filters}。"
            if zh
            else f"There {_counted(query.base, row[0])}{filters}."
        )
    if len(row) == 1 and isinstance(item, Agg):
        value = number(row[0]) if row[0] is not None else "没有值" if zh else "not there to compute"
        return f"{heads[0]}是 {value}{filters}。" if zh else f"The {heads[0]} is {value}{filters}."
    pairs = ("，" if zh else ", ").join(
        f"{head}: {cell(value)}" for head, value in zip(heads, row, strict=False)
    )
    if query is None or query.limit != 1 or not query.order:
        return f"{pairs}{filters}。" if zh else f"{pairs}{filters}."
    what = label(query.order[0].by, language)
    desc = query.order[0].desc
    if zh:
        return (
            f"{what}{'最大' if desc else '最小'}的是：{pairs}{filters}。可能有并列：可以问前 5 个。"
        )
    lead = f"With the {'highest' if desc else 'lowest'} {what}: "
    return f"{lead}{pairs}{filters}. Others may share this value: ask for the top 5 to see them."


def _table_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _many(
    query: Query | None,
    heads: list[str],
    rows: list[list[Any]],
    total: int,
    language: str,
    *,
    whole: bool,
) -> str:
    """Return a text about a result of several rows: what it shows, a table of the first rows, and
    the number of rows.
    """
    zh = language == "zh"
    first_rows = rows[:SHOWN_ROWS]
    lines = [_table_line(heads), _table_line(["---"] * len(heads))]
    for row in first_rows:
        lines.append(_table_line([cell(value).replace("|", "\\|") for value in row]))
    table = "\n".join(lines)
    lead = "结果" if zh else "The result"
    if query is not None and query.aggregates and query.group:
        what = label(query.aggregates[0], language)
        if query.aggregates[0] == Agg("count"):
            what = f"{plain(query.base)} 数量" if zh else f"number of {plural_of(query.base)}"
        keys = list(
            dict.fromkeys(
                label(item, language) for item in query.select if not isinstance(item, Agg)
            )
        )
        keys = [key for key in keys if not key.endswith(" id")] or keys
        lead = f"按{'、'.join(keys)}统计的{what}" if zh else f"The {what} per {' and '.join(keys)}"
    elif query is not None:
        lead = f"找到的 {plain(query.base)} 记录" if zh else f"Here are the {plural_of(query.base)}"
    if query is not None and query.order and (query.order[0].desc or query.limit is not None):
        what = label(query.order[0].by, language)
        desc = query.order[0].desc
        lead += (
            f"，按{what}{'降序' if desc else '升序'}"
            if zh
            else f", by {what} {'descending' if desc else 'ascending'}"
        )
    if zh:
        tail = f"{'共' if whole else '取出'} {total:,} 行" + (
            f"，以上为前 {len(first_rows)} 行。" if total > len(first_rows) else "。"
        )
        return f"{lead}{_filters(query, language)}：\n\n{table}\n\n{tail}"
    tail = f"{total:,} rows {'in all' if whole else 'were fetched'}" + (
        f"; the first {len(first_rows)} are shown." if total > len(first_rows) else "."
    )
    return f"{lead}{_filters(query, language)}:\n\n{table}\n\n{tail}"


def number(value: object) -> str:
    """Return a number as people write it: with thousands separators, and with at most two decimals
    unless it is small.
    """
    if isinstance(value, str) and re.fullmatch(r"-?\d+\.\d+", value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return cell(value)
    return (
        f"{int(value):,}"
        if value == int(value)
        else f"{value:,.2f}"
        if abs(value) >= 0.1
        else f"{value:.4g}"
    )


def cell(value: object) -> str:
    """Return one cell as text. Whole numbers have no separators, because they may be ids or years;
    other numbers are rounded, and long text is cut.
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return number(value) if value != int(value) else f"{value:,.2f}"
    text = str(value).replace("\n", " ")
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def label(item: Scalar, language: str) -> str:
    """Return a column, an aggregate or a part of a date in words."""
    zh = language == "zh"
    match item:
        case Col():
            return phrase(item)
        case Bucket(col=col, unit=unit):
            return (
                _texts()["units"][unit][0]
                if zh
                else f"{unit.replace('_of_year', '')} of {phrase(col)}"
            )
        case Agg(func="count", arg=None):
            return "数量" if zh else "count"
        case Agg(func=func, arg=arg) if arg is not None:
            word = _texts()["functions"][func][zh]
            words = label(arg, language)
            return (
                words
                if words.split()[0] == word
                else f"{word}{' ' if zh and words.isascii() else '' if zh else ' '}{words}"
            )
    return str(item)


def condition_text(cond: Condition, language: str) -> str:
    """Return a condition in words."""
    zh = language == "zh"
    value = cond.value
    name = label(cond.left, language)
    if value is True and isinstance(cond.left, Col) and cond.left.is_computed:
        return name if cond.op == "=" and not cond.negated else f"{'不是' if zh else 'not '}{name}"
    if cond.op == "null":
        return (
            f"{name}"
            f" {('不为空' if cond.negated else '为空') if zh else 'is given' if cond.negated else 'is missing'}"
        )
    if cond.query is not None:
        return _within_text(cond.query, language, negated=cond.negated)
    if (
        isinstance(value, int)
        and 1 <= value <= 12
        and (name == "month" or getattr(cond.left, "unit", "") == "month_of_year")
    ):
        text = f"{value} 月" if zh else month_name[value]
    elif isinstance(value, tuple):
        text = ("、" if zh else ", ") if cond.op == "in" else (" 和 " if zh else " and ")
        text = text.join(map(str, value))
    else:
        text = (
            label(value, language)
            if isinstance(value, Agg)
            else f"“{value}”"
            if cond.op in PATTERNS
            else str(value)
        )
    return (
        f"{name} {('不' if zh else 'not ') * cond.negated}{_texts()['operators'][cond.op][zh]}"
        f" {text}"
    )


def _within_text(query: Query, language: str, *, negated: bool) -> str:
    """Return words for the condition that matching rows exist in another table, or that none
    exist.
    """
    zh = language == "zh"
    parts = [
        condition_text(each, language)
        for each in (*query.where, *query.having)
        if not each.is_filled
    ]
    about = (" 且 " if zh else " and ").join(parts)
    if about and not negated and not query.having:
        return (
            f"{plain(query.base)}: {about}"
            if len(query.where) > 1 or not about.startswith(plain(query.base))
            else about
        )
    word = ("没有" if negated else "有") if zh else "without" if negated else "with"
    return f"{word} {plain(query.base)}{f' ({about})' if about else ''}"


def _filters(query: Query | None, language: str) -> str:
    """Return the conditions of a query as the end of a sentence, "" if there are none."""
    if query is None:
        return ""
    hidden = {*(order.by for order in query.order), *query.group}
    conds = [cond for cond in query.where if not (cond.is_filled and cond.left in hidden)]
    words = list(dict.fromkeys(condition_text(cond, language) for cond in (*conds, *query.having)))
    if not words:
        return ""
    return f"（{'；'.join(words)}）" if language == "zh" else f" ({', '.join(words)})"


def phrase(col: Col) -> str:
    """Return a column in words. If the column's name alone says little, such as `name`, the name of
    its table comes first.
    """
    if col.is_computed:
        return col.label or col.name
    words = " ".join(expanded(col.name)) if col.name.isascii() else col.name
    bare = words in ("name", "title", "id", "code", "type", "year", "description")
    return f"{_singular(plain(col.table))} {words}" if bare and col.table else words or col.name


def plain(table: str) -> str:
    """Return the name of a table in words."""
    return " ".join(expanded(table)) if table.isascii() and expanded(table) else table


def _singular(name: str) -> str:
    words = name.split()
    return " ".join([*words[:-1], lemma(words[-1])]) if words else name


def _counted(table: str, count: Any) -> str:
    """Return the words for a number of rows of a table, such as "are 3 orders"."""
    name = plain(table)
    if any(map(str.isdigit, table)):  # a name such as sales_2023 has no plural
        return f"is 1 row in {table}" if count == 1 else f"are {number(count)} rows in {table}"
    return f"is 1 {_singular(name)}" if count == 1 else f"are {number(count)} {plural_of(table)}"


def plural_of(table: str) -> str:
    """Return the name of a table as a plural noun."""
    words = plain(table).split() or [table]
    word = words[-1]
    if lemma(word) == word and word.isascii() and word not in vocabulary().lists["no_plural"]:
        word = (
            word[:-1] + "ies"
            if word.endswith("y") and word[-2:-1] not in "aeiou"
            else word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")
        )
    return " ".join([*words[:-1], word])
