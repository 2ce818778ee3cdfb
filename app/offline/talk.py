"""Word what needs no query: greetings, help, the tables there are, declines, what was said before."""

from collections.abc import Sequence

from longtable.app.offline.catalog import Catalog, Table
from longtable.app.offline.columns import CannotRead
from longtable.app.offline.labels import plural_of
from longtable.app.offline.text import is_chinese
from longtable.app.offline.view import MOST_CHARACTERS, View

NAME = "built-in analyst"
_TABLES_SHOWN = 20
_INTRO = {
    "en": "(I am the built-in analyst: rules, no language model. "
    "For a real model start with `--model provider:name` or set LONGTABLE_MODEL.)",
    "zh": "（我是内置分析器：只用规则，没有语言模型。要使用真正的模型，请加 `--model provider:name` 启动，或设置 LONGTABLE_MODEL。）",
}


def language_of(text: str) -> str:
    """Return "zh" when the text holds Chinese, else "en"."""
    return "zh" if is_chinese(text) else "en"


def with_intro(text: str, view: View, language: str) -> str:
    """Add, in the first answer of a conversation only, what this model is and how to set a real one."""
    said = view.folded or bool(view.findings) or any(turn.answer for turn in view.turns[:-1])
    return text if said else f"{text}\n\n{_INTRO[language]}"


def without_intro(answer: str) -> str:
    """Return an answer without the note on what this model is."""
    for intro in _INTRO.values():
        answer = answer.replace(intro, "")
    return answer.strip()


def greeting(language: str) -> str:
    """Answer a greeting."""
    return "你好！请问关于这个数据库的问题。" if language == "zh" else "Hello! Ask me about the data in this database."


def thanks(language: str) -> str:
    """Answer thanks."""
    return "不客气。" if language == "zh" else "You are welcome."


def read_only(language: str) -> str:
    """Decline to change data."""
    return (
        "我只能读取数据，不能修改数据库。可以让我统计、筛选或列出数据。"
        if language == "zh"
        else "I can only read: nothing in the database can be changed from here. I can count, filter, compare or list the data instead."
    )


def help_text(catalog: Catalog, language: str) -> str:
    """Say what can be asked, with examples of this schema."""
    if language == "zh":
        return "我可以计数、求和、求平均、找最大最小、筛选、分组、排序，也可以接着上一个问题继续问。例如：\n" + _bullets(
            examples(catalog, language)
        )
    return (
        "I count, sum, average, find extremes, filter, group, sort and join, and follow up on the last question. For example:\n"
        + _bullets(examples(catalog, language))
    )


def tables_text(catalog: Catalog, language: str) -> str:
    """List the tables."""
    named = sorted(catalog.tables.values(), key=lambda table: table.name.lower())[:_TABLES_SHOWN]
    lines = [
        f"- {table.name}"
        + _rows_in_words(table, language)
        + f": {', '.join(c.name for c in table.columns[:12])}{' …' if len(table.columns) > 12 else ''}"
        for table in named
    ]
    total = max(catalog.total, len(named))
    if not total:
        return "数据库中没有表。" if language == "zh" else "There are no tables in this database."
    if total > len(named):
        lines.append(f"- 以及另外 {total - len(named)} 个表" if language == "zh" else f"- and {total - len(named)} more")
    head = f"数据库中有 {total} 个表：" if language == "zh" else f"There are {total} tables:" if total != 1 else "There is 1 table:"
    return head + "\n" + "\n".join(lines)


def _rows_in_words(table: Table, language: str) -> str:
    if table.rows is None:
        return ""
    return f" ({table.rows:,} 行)" if language == "zh" else f" ({table.rows:,} {'row' if table.rows == 1 else 'rows'})"


def describe_text(table: Table, language: str) -> str:
    """Describe one table."""
    rows = _rows_in_words(table, language)
    lines = [
        "- "
        + " ".join(part for part in (c.name, c.type, "(primary key)" * c.primary, c.references and f"-> {c.references}", c.comment) if part)
        for c in table.columns
    ]
    return f"{table.name}{rows}{'：' if language == 'zh' else ':'}\n" + "\n".join(lines)


def sql_text(sql: str, language: str) -> str:
    """Show the last SQL."""
    if not sql:
        return "还没有运行过查询。" if language == "zh" else "No query has run yet."
    return ("上一条查询是：" if language == "zh" else "The last query was:") + f"\n\n```sql\n{sql}\n```"


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


# -- declines ---------------------------------------------------------------------------------------------------------

_REASONS = {
    "words": ("I could not make use of {words}", "我不理解：{words}"),
    "nothing": ("I could not tell which table or column this is about", "我没看出这个问题涉及哪个表或哪一列"),
    "column": ("I found no fitting column for {words}", "没有找到与{words}对应的列"),
    "measure": ("I found no single numeric column for {words}", "没有找到与{words}对应的唯一数值列"),
    "measure_of": (
        "I could not tell whether the sum, the average or another number is wanted of {words}",
        "不知道要求{words}的总和、平均值还是其他",
    ),
    "dimension": ("I found no column that measures {words}", "没有找到可以衡量{words}的列"),
    "number": ("I could not tell which column the number belongs to: {words}", "不知道这个数字属于哪一列：{words}"),
    "unit": ("I do not know the unit of the column to compare with {words}", "不知道要比较的列的单位：{words}"),
    "value": ("I found no such value in the data: {words}", "数据中没有找到这个值：{words}"),
    "time": ("I found no date column for {words}", "没有找到{words}对应的日期列"),
    "join": ("I see no way to connect these tables: {words}", "看不出这些表如何关联：{words}"),
    "group": ("I could not tell what to group by {words}", "不知道按什么分组 {words}"),
    "count": ("I could not count {words}", "无法统计{words}"),
    "sum": ("I could not tell what to add up for {words}", "不知道对{words}的什么求和"),
    "popular": ("I could not tell what makes {words} popular or frequent", "不知道按什么衡量{words}"),
    "order": ("I could not tell what to sort by", "不知道按什么排序"),
    "or": ("I cannot join these conditions by “or”", "我无法用“或”连接这些条件"),
    "negation": ("I could not read what is denied", "没看懂否定的内容"),
    "percent": ("I could not tell the percentage of what is asked", "不知道要计算什么的百分比"),
    "others": ("I do not know what the others are", "不知道“其他”指什么"),
    "rows": ("I cannot take single rows out of the last result", "无法从上一个结果中取出单独的行"),
    "failed": ("The database refused the query I wrote: {words}", "数据库拒绝了我写的查询：{words}"),
    "lost": (
        "I could not read the database's answer: it is too large for the conversation's limit",
        "数据库的回答超出了会话的上限，无法读取",
    ),
    "before": ("I do not know what this refers to: there is no earlier result in this conversation", "不知道指的是什么：会话中还没有结果"),
    "lost_thread": (
        "This goes on from a question that I could not answer, so I do not know what it refers to",
        "这接着一个我没有回答的问题，不知道指的是什么",
    ),
    "bridge": (
        "More than one table connects these, and I could not tell which is meant: {words}",
        "有多个表可以连接它们，不知道指哪一个：{words}",
    ),
    "contradiction": ("No row can meet these conditions at once: {words}", "没有行能同时满足这些条件：{words}"),
    "keys": (
        "More than one key connects these tables, and I could not tell which is meant: {words}",
        "有多个键连接这些表，不知道指哪一个：{words}",
    ),
    "texts": ("{words} holds texts such as “null” among its numbers", "{words} 中混有文本（如“null”），无法按数字比较"),
    "rule": (
        "I do not carry a rule from one question to the next: name the condition in each question",
        "我不能把规则带到后面的问题：请在每个问题中写明条件",
    ),
    "which": ("I could not tell which one is meant: there are many {words}", "不知道指的是哪一个：{words}有很多"),
    "long": (
        f"The question is longer than the {MOST_CHARACTERS} characters that I read: ask for one thing at a time",
        f"问题超过了我能读的 {MOST_CHARACTERS // 2} 个字符，请一次只问一件事",
    ),
    "recall": ("I find nothing about this in the conversation so far", "在目前的会话中没有找到相关内容"),
    "unknown_table": ("There is no table {words}", "没有这个表：{words}"),
}


def decline(error: CannotRead, catalog: Catalog | None, language: str, understood: str = "") -> str:
    """Say what could not be used, what was understood, and three questions that can be answered here."""
    words = ("、" if language == "zh" else ", ").join(f"“{word}”" for word in error.words if word)
    reason = _REASONS.get(error.reason, _REASONS["nothing"])[language == "zh"].format(words=words).strip()
    parts = [f"{reason}，所以我没有回答，以免答错。" if language == "zh" else f"{reason}, so I give no answer rather than a wrong one."]
    if understood:
        parts.append(f"我理解到的部分：{understood}。" if language == "zh" else f"What I understood: {understood}.")
    if catalog is not None and catalog.tables:
        parts.append(
            ("我可以回答的问题例如：\n" if language == "zh" else "Questions I can answer here, for example:\n")
            + _bullets(examples(catalog, language))
        )
    return "\n".join(parts)


def examples(catalog: Catalog, language: str) -> list[str]:
    """Make three questions that this schema can answer, from its largest described tables."""
    tables = sorted(
        (table for table in catalog.tables.values() if table.kind == "table"), key=lambda table: (not table.described, -(table.rows or 0))
    )
    found: list[str] = []
    for table in tables:
        name = " ".join(table.words) if language == "zh" else plural_of(table.name)
        measures = [
            c for c in table.columns if c.is_number and not c.is_id and not {"year", "month", "day", "hour", "minute"} & set(c.words)
        ]
        keys = [c for c in table.columns if not c.is_number and not c.is_date and not c.primary and not c.is_binary and table.described]
        if not found:
            found.append(f"有多少 {name}？" if language == "zh" else f"How many {name} are there?")
        if measures and len(found) < 3 and (table.rows or 0) > 1:
            measure = " ".join(measures[0].words)
            found.append(f"{name} 的平均 {measure} 是多少？" if language == "zh" else f"What is the average {measure} of the {name}?")
        if keys and len(found) < 3 and (table.rows or 0) > 1:
            key = " ".join(keys[0].words)
            found.append(f"每个 {key} 有多少 {name}？" if language == "zh" else f"How many {name} are there per {key}?")
        if len(found) >= 3:
            break
    for table in tables[1:]:
        if len(found) >= 3:
            break
        name = " ".join(table.words) if language == "zh" else plural_of(table.name)
        found.append(f"列出 {name}" if language == "zh" else f"How many {name} are there?")
    return found[:3]
