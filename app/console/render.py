"""Draw events, results and errors for a terminal. The functions are pure: they take values and
return rich renderables. Every text is made safe to print.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.errors import StyleSyntaxError
from rich.markdown import Markdown
from rich.padding import Padding
from rich.style import Style
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from longtable.app.console.streams import clean, clean_line
from longtable.app.console.translations import advice_for, counted, say
from longtable.base.errors import ConfigError, InputError, LongtableError
from longtable.base.events import (
    ApprovalRequested,
    ContextCompactionSkipped,
    ContextCompressed,
    ContextUsage,
    MessagesRetired,
    QueryFinished,
    Recall,
    ReportedTokens,
    ToolFinished,
    Verified,
)

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from longtable.graph.listing.thread_list import ThreadInfo
    from longtable.memory.pins.pins import Pin
    from longtable.memory.topics.topics import Topic
    from longtable.tools.catalog import Catalog

FEW_ROWS = 10
"""An answer most likely shows all rows of a result if there are no more."""
SHOWN_ROWS = 20
MOST_CELL = 60
GAUGE_CELLS = 24
USUAL_STRATEGY = "rolling"
Language = str


def style_of(color: str) -> str:
    """Return the style of a persona's name. If rich does not know the color, the style is bold."""
    try:
        return str(Style.parse(f"bold {color}"))
    except StyleSyntaxError:
        return "bold"


def answer(text: str) -> RenderableType:
    """Return an answer, finished or not, as Markdown. Links stay visible as text, and columns of
    numbers are aligned to the right.
    """
    return Markdown(numbers_to_the_right(clean(text)), hyperlinks=False)


_RULE = re.compile(r"^ {0,3}\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?)?\s*$", re.MULTILINE)
"""Matches the line below the headings of a Markdown table."""
_NUMBER = re.compile(r"[*_`]*[-+−]?[$€£¥]?\d[\d,.\s]*%?[*_`]*")
_CELL_END = re.compile(r"(?<!\\)\|")


def has_table(text: str) -> bool:
    """Return whether a Markdown text has a table."""
    return _RULE.search(text) is not None


def numbers_to_the_right(text: str) -> str:
    """Return Markdown in which table columns with only numbers are aligned to the right. Alignments
    that the text sets itself are kept.
    """
    lines = text.split("\n")
    for place, line in enumerate(lines):
        if place and "|" in lines[place - 1] and _RULE.fullmatch(line):
            lines[place] = _aligned_rule(line, _table_rows(lines[place + 1 :]))
    return "\n".join(lines)


def _table_rows(lines: Iterable[str]) -> list[list[str]]:
    """Return the cells of the table rows with which these lines begin."""
    return [_table_cells(line) for line in takewhile(lambda line: "|" in line, lines)]


def _table_cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in _CELL_END.split(inner)]


def _aligned_rule(rule: str, rows: Sequence[Sequence[str]]) -> str:
    marks = _table_cells(rule)
    for place, mark in enumerate(marks):
        values = [row[place] for row in rows if place < len(row)]
        known = [value for value in values if value not in ("", "-", "–", "NULL")]
        if ":" not in mark and known and all(_NUMBER.fullmatch(value) for value in known):
            marks[place] = f"{mark}:"
    return f"| {' | '.join(marks)} |"


def lookups(calls: Sequence[tuple[str, Mapping[str, Any]]], ms: int) -> RenderableType:
    """Return one dim line about the tools called before a query or an answer, with their arguments
    and the time in milliseconds.
    """
    lines = dict.fromkeys(_lookup(name, args) for name, args in calls)
    return Text(f"  {' · '.join(lines)}: {ms} ms", "dim", overflow="ellipsis", no_wrap=True)


def _lookup(name: str, args: Mapping[str, Any]) -> str:
    words = [clean_line(name)]
    for value in args.values():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        words.append(clean_line(text, 60))
    return " ".join(words)


def query_started(
    name: str, sql: str, *, plain: bool = False, database: str = ""
) -> RenderableType:
    """Return the line that announces a query, and its SQL. The SQL is highlighted unless `plain` is
    True. `database`: the name of the database, "" if there is only one.
    """
    text = clean(sql).strip()
    code = (
        Text(text)
        if plain
        else Syntax(text, "sql", theme="ansi_dark", background_color="default", word_wrap=True)
    )
    return Group(
        Text.assemble(("▸ ", "cyan"), (clean_line(f"{name} {database}".strip()), "cyan")),
        Padding(code, (0, 0, 0, 2), expand=False),
    )


def approval(event: ApprovalRequested, *, plain: bool = False) -> RenderableType:
    """Return the queries that wait for a decision, each with the reason why it waits."""
    parts: list[RenderableType] = []
    for action in event["action_requests"]:
        sql = str(action["args"].get("sql", ""))
        database = str(action["args"].get("database") or "")
        parts.append(query_started(action["name"], sql, plain=plain, database=database))
        parts += [Text(f"  {clean_line(action['description'])}", "yellow")]
    return Group(*parts)


def tool_failed(event: ToolFinished) -> RenderableType:
    """Return the line about a tool that failed."""
    return Text(f"  {clean_line(event['name'])}: {clean_line(event.get('error', ''))}", "red")


def query_finished(
    event: QueryFinished, width: int, language: Language, *, rows: bool = True
) -> RenderableType:
    """Return how a query ended: its error, or its size and time. With `rows`, the first rows
    follow; without, a hint how to see all of many.
    """
    if event["status"] == "error":
        return Text(f"  {clean_line(event['name'])}: {clean_line(event.get('error', ''))}", "red")
    count = event.get("row_count", 0)
    size = counted("rows", language, count, ms=event["ms"])
    if count > FEW_ROWS and not rows:
        size = f"{size} ({say('all_rows', language)})"
    parts: list[RenderableType] = [Text(f"  {size}", "dim")]
    if count and rows:
        parts.append(first_rows(event, width, language))
    if why := event.get("not_kept"):
        parts.append(Text(say("not_kept", language, why=clean_line(why)), "yellow"))
    return Group(*parts)


def first_rows(event: QueryFinished, width: int, language: Language) -> RenderableType:
    """Return the first rows as a table with the columns that fit into `width`, and lines about the
    columns and rows that are not shown.
    """
    columns = event.get("columns", [])
    rows = event.get("rows", [])
    cells = [list(map(cell, row)) for row in rows[:SHOWN_ROWS]]
    fit = _columns_that_fit(columns, cells, width)
    parts: list[RenderableType] = [
        _table(columns[:fit], [row[:fit] for row in cells], _numeric(rows, len(columns)))
    ]
    if len(columns) > fit:
        names = clean_line(", ".join(columns[fit:]), 200)
        parts.append(
            Text(counted("more_columns", language, len(columns) - fit, names=names), "dim")
        )
    if (more := event.get("row_count", len(rows)) - len(cells)) > 0:
        parts.append(Text(counted("more_rows", language, more), "dim"))
    return Group(*parts)


def whole_result(event: QueryFinished, width: int) -> RenderableType:
    """Return every row. If all columns fit into `width`, the rows are one table; otherwise each row
    is a list of names and values.
    """
    columns = event.get("columns", [])
    rows = event.get("rows", [])
    cells = list(map(_whole_cells, rows))
    if _columns_that_fit(columns, cells, width) == len(columns):
        return _table(columns, cells, _numeric(rows, len(columns)))
    grid = Table.grid(padding=(0, 1))
    for number, row in enumerate(cells, 1):
        grid.add_row(Text(f"- {number}", "bold"), Text(""))
        for name, value in zip(columns, row, strict=True):
            grid.add_row(Text(clean_line(name), "cyan"), Text(value, overflow="fold"))
    return grid


def _whole_cells(row: Sequence[object]) -> list[str]:
    return [cell(value, most=None) for value in row]


def cell(value: object, *, most: int | None = MOST_CELL) -> str:
    """Return one value as safe text on one line, cut to `most` characters. Whole numbers have no
    thousands separators, because they may be years.
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return (
            f"{value:.4f}".rstrip("0").rstrip(".")
            if 1e-3 <= abs(value) < 1e15 or value == 0
            else f"{value:g}"
        )
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = clean(text).replace("\n", "⏎").replace("\t", " ")
    return line if most is None or len(line) <= most else line[: most - 1] + "…"


def _numeric(rows: Sequence[Sequence[object]], columns: int) -> list[bool]:
    """Return for each column whether all cells are numbers or empty."""
    if not rows:
        return [False] * columns
    return [all(map(_is_numeric, column)) for column in zip(*rows, strict=True)]


def _is_numeric(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _columns_that_fit(columns: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> int:
    used = 1
    for i, name in enumerate(columns):
        used += 3 + max([cell_len(clean_line(name)), *(cell_len(row[i]) for row in cells)])
        if used > width:
            return max(1, i)
    return len(columns)


def _table(
    columns: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool]
) -> Table:
    from rich import box

    table = Table(box=box.ROUNDED, header_style="bold")
    for name, right in zip(columns, numeric, strict=False):
        table.add_column(
            Text(clean_line(name)), justify="right" if right else "left", overflow="fold"
        )
    for row in cells:
        table.add_row(*(Text(value, "dim" if value == "NULL" else "") for value in row))
    return table


def gauge(
    usage: ContextUsage,
    language: Language,
    whose: str = "",
    tokens: ReportedTokens | None = None,
) -> Text:
    """Return the context gauge: the used tokens and the limit, a bar with a mark at the threshold,
    the parts, and the share of the turn's input that came from the provider's cache.

    `whose` is the name of the voice if there is a team. `tokens` are those of the turn's calls.
    """
    if usage.get("of_team"):
        whose = say("team", language)
    of_voice = f"({clean_line(whose)}) " if whose else ""
    fraction = usage["fraction"]
    threshold = usage["threshold"]
    style = (
        "red" if fraction >= threshold else "yellow" if fraction >= 0.75 * threshold else "green"
    )
    filled = min(GAUGE_CELLS, round(fraction * GAUGE_CELLS))
    mark = min(GAUGE_CELLS - 1, round(threshold * GAUGE_CELLS))
    bar = "".join(
        "│" if i == mark and i >= filled else "█" if i < filled else "░" for i in range(GAUGE_CELLS)
    )
    parts = " · ".join(f"{say(name, language)} {count:,}" for name, count in _parts(usage))
    if tokens and tokens["cached"]:
        parts += f" · {say('cached', language)} {tokens['cached'] / tokens['input']:.0%}"
    flag = f" ({say('estimated', language)})" if usage["estimated"] else ""
    return Text.assemble(
        (f"{say('context', language)} {of_voice}", "dim"),
        (bar, style),
        (
            (
                f" {usage['calibrated']:,} / {usage['limit']:,} {say('tokens', language)}"
                f" ({fraction:.1%}){flag}"
            ),
            style,
        ),
        (f"  {parts}", "dim"),
    )


def _parts(usage: ContextUsage) -> list[tuple[str, int]]:
    parts = usage["parts"]
    passed_on = [("passed", parts["passed"])] if "passed" in parts else []
    return [
        ("system", parts["system"]),
        ("tools", parts["tools"]),
        ("memory", parts["memory"]),
        ("messages", parts["messages"]),
        *passed_on,
    ]


def compressed(event: ContextCompressed, language: Language) -> Text:
    """Return the line about a compaction. How the memory was written is mentioned only if it
    differs from the usual way.
    """
    before = f"{event['original_tokens']:,}"
    after = f"{event['compressed_tokens']:,}"
    if event.get("kind") == "results":
        return Text(say("results_shortened", language, before=before, after=after), "dim")
    how = [say(event["method"], language)]
    if event["strategy"] != USUAL_STRATEGY:
        how.insert(0, clean_line(event["strategy"], 40))
    if event["rebuilt"]:
        how.append(say("from_originals", language))
    if event["ahead"]:
        how.append(say("ahead", language))
    if event["coverage"] < 1:
        how.append(say("coverage", language, share=int(event["coverage"] * 100)))
    line = counted(
        "compacted",
        language,
        event["messages"],
        before=before,
        after=after,
        how=say("comma", language).join([*how, say("ms", language, ms=event["ms"])]),
    )
    missed = [
        clean_line(reason["message"], 200)
        for reason in event["reasons"]
        if reason["code"] == "archive_failed"
    ]
    return Text.assemble(
        (line, "magenta"),
        (_written_by(event, language), "dim"),
        *((f"\n{text}", "yellow") for text in missed),
    )


def _written_by(event: ContextCompressed, language: Language) -> str:
    """Return the line about the model that wrote a memory and its tokens, or about why code wrote
    it. Return "" if no model was asked.
    """
    if not event["input"] and all(
        reason["code"] == "archive_failed" for reason in event["reasons"]
    ):
        return ""
    why = clean_line(event["why_by_code"], 200)
    figures = {"input": f"{event['input']:,}", "output": f"{event['output']:,}"}
    return (
        "\n"
        + say("written_by", language, writer=clean_line(event["writer"], 60), **figures)
        + (f"; {why}" if why else "")
    )


def retired(event: MessagesRetired, language: Language) -> Text:
    """Return the line about messages that were moved to the archive."""
    return Text(
        counted("retired", language, event["messages"], archived=f"{event['archived']:,}"), "dim"
    )


def recalled(event: Recall, language: Language) -> Text:
    """Return the line about original messages that were brought back for a call."""
    query = clean_line(event["query"], 80)
    if not event["found"]:
        return Text(say("recalled_none", language, query=query), "dim")
    turns = (
        say("of_turns", language, turns=clean_line(", ".join(map(str, event["turns"])), 60))
        if event["turns"]
        else ""
    )
    return Text(counted("recalled", language, event["found"], query=query, turns=turns), "cyan")


def verified(query: Verified, language: Language) -> Text:
    """Return the line that tells who checked the query of an answer."""
    who = clean_line(query["checked_by"]) or say("nobody_named", language)
    day = f", {query['checked_on']}" if query["checked_on"] else ""
    line = say("verified", language, name=clean_line(query["query"]), who=f"{who}{day}")
    return Text(line, "green")


def unsupported(figures: Sequence[str], language: Language) -> Text:
    """Return the line with the figures that no result supports."""
    return Text(say("unsupported", language, figures=clean_line(", ".join(figures), 200)), "yellow")


def skipped(event: ContextCompactionSkipped, language: Language) -> Text:
    """Return the line about a compaction that was due but was not made."""
    reasons = clean_line(
        "; ".join(dict.fromkeys(reason["message"] for reason in event["reasons"])), 200
    )
    input_tokens = event.get("input", 0)
    spent = (
        say(
            "spent_on_it", language, input=f"{input_tokens:,}", output=f"{event.get('output', 0):,}"
        )
        if input_tokens
        else ""
    )
    return Text(say("not_compacted", language, reasons=reasons) + spent, "yellow")


def error_texts(error: Exception, language: Language) -> tuple[str, str]:
    """Return a sentence for the person, and a hint. The hint is "" if the sentence says enough."""
    if not isinstance(error, LongtableError):
        return say("bug", language), say("bug_hint", language, kind=type(error).__name__)
    is_sentence = isinstance(error, InputError) and type(error) is not InputError
    hint = "" if is_sentence else clean_line(str(error))
    if hint and language == "zh":
        advice = advice_for(error)  # without details that are a developer's: they name Python
        hint = (
            advice
            if "`" in hint or "()" in hint
            else say("advice", language, advice=advice, details=hint)
        )
    return clean_line(error.user_text(language)), hint


def error(error: Exception, language: Language) -> RenderableType:
    """Return an error in two lines. The first says what is wrong and what to do, the second what
    kind of error it is. For a bug in longtable, the sentence for the person comes first.

    The second line is left out where it would add nothing: for a `ConfigError`, and in English for
    errors about something unknown.
    """
    sentence, hint = error_texts(error, language)
    first, second = (
        (hint, sentence) if hint and isinstance(error, LongtableError) else (sentence, hint)
    )
    unknown = (
        language == "en" and isinstance(error, LongtableError) and error.code.startswith("unknown_")
    )
    second = "" if unknown or isinstance(error, ConfigError) else second
    head = Text.assemble((f"{say('error', language)}: ", "bold red"), (first, "red"))
    return Group(head, Text(second, "dim")) if second else head


def plain(text: str) -> RenderableType:
    """Return a text unchanged except that control characters are made visible."""
    return Text(clean(text).strip(), style="dim")


def history(
    transcript: Sequence["BaseMessage"], language: Language, *, most: int
) -> RenderableType:
    """Return a whole transcript. Messages have the numbers by which the memory cites them, and
    excluded messages are marked.
    """
    from longtable.memory.messages.marks import EXCLUDED, kind_of

    left_out = say("left_out_mark", language)
    marks = [
        f"m{number} {left_out}" if kind_of(m) == EXCLUDED else f"m{number}"
        for number, m in enumerate(transcript, 1)
    ]
    return messages(transcript, most=most, marks=marks)


def messages(
    transcript: Sequence["BaseMessage"],
    *,
    most: int | None = None,
    reasoning: bool = False,
    marks: Sequence[str] = (),
) -> RenderableType:
    """Return messages in order, each with its role. Texts are cut to `most` characters. With
    `reasoning`, the model's reasoning comes before its answers. `marks` are texts put before the
    roles.
    """
    from longtable.memory.messages.reasoning import reasoning_of

    lines: list[Text] = []
    for place, message in enumerate(transcript):
        if reasoning and (thoughts := reasoning_of(message)):
            lines.append(Text(f"reasoning: {clean(thoughts).strip()}", style="dim"))
        body = clean(str(message.text)).strip()
        body = body if most is None or len(body) <= most else f"{body[: most - 1]}…"
        calls = [
            f"-> {call['name']} {json.dumps(call['args'], ensure_ascii=False)}"
            for call in getattr(message, "tool_calls", [])
        ]
        text = "\n".join([*([body] if body else []), *(clean_line(line) for line in calls)])
        lines.append(
            Text.assemble(
                (f"{marks[place]} " if marks else "", "dim"),
                (f"{clean_line(message.name or message.type)}: ", "bold cyan"),
                text,
            )
        )
    return Group(*lines)


def threads(infos: Sequence["ThreadInfo"]) -> RenderableType:
    """Return the thread list."""
    rows = [[info.thread_id, str(info.turns), info.updated, info.title] for info in infos]
    return _table(
        ("thread", "turns", "updated", "title"),
        [list(map(cell, row)) for row in rows],
        (False, True, False, False),
    )


def listing(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: int = 0
) -> RenderableType:
    """Return rows as a table. The last `numeric` columns are aligned to the right."""
    right = [i >= len(columns) - numeric for i in range(len(columns))]
    return _table(columns, list(map(_whole_cells, rows)), right)


def tables(catalogs: Mapping[str, "Catalog"]) -> RenderableType:
    """Return the tables of catalogues with their columns. `catalogs`: by the name of the database;
    the name of a single one may be "".
    """
    rows: list[list[str]] = []
    names = len(catalogs) > 1 or "" not in catalogs
    for name, catalog in catalogs.items():
        for table in catalog.tables:
            columns = ", ".join(column.name for column in table.columns)
            row = [cell(table.name), table.kind, clean_line(columns, 400)]
            rows.append([cell(name), *row] if names else row)
    heads = ("table", "kind", "columns")
    return _table(("database", *heads) if names else heads, rows, (False,) * (3 + names))


def pins(listed: Sequence["Pin"], language: Language) -> RenderableType:
    """Return the pinned statements in full. An ended pin is shown with the words that ended it."""
    rows = [
        [
            pin.id,
            say(f"pin_{pin.by}", language),
            str(pin.turn),
            cell(pin.text, most=None),
            cell(pin.ended, most=None),
        ]
        for pin in listed
    ]
    return _listed(("id", "pin_by", "turn", "text", "ended"), rows, language)


def topics(listed: Sequence["Topic"], language: Language) -> RenderableType:
    """Return the topics, each with its newest summary."""
    rows = [
        [cell(topic.id), str(topic.version), cell(topic.title), cell(topic.summary, most=400)]
        for topic in listed
    ]
    return _listed(("id", "version", "title", "summary"), rows, language)


def _listed(names: Sequence[str], rows: Sequence[Sequence[str]], language: Language) -> Table:
    heads = [say(f"head_{name}", language) for name in names]
    cells = [list(map(partial(clean_line, most=10_000), row)) for row in rows]
    return _table(heads, cells, [name in {"turn", "version"} for name in names])


def commands(names: Sequence[str], language: Language) -> RenderableType:
    """Return the list of chat commands."""
    grid = Table.grid(padding=(0, 2))
    for name in names:
        grid.add_row(Text(f"/{name}", "cyan"), Text(say(f"help_{name}", language)))
    return grid
