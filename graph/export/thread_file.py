"""Write one thread as JSON Lines and read it back. If a thread is exported, imported and exported
again, both files have the same bytes.

The first line is a header. Then follow one line for each message (in the form of
`longtable.store.records.retired`), compaction and edit, and a line with the rest of the state. The
last line has the number of lines and their hash, which shows whether the file was cut or changed.
All lines are ASCII.
"""

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from langchain_core.messages import BaseMessage

from longtable.base.context import Context
from longtable.base.errors import ConfigError, LongtableError, ThreadFormatError
from longtable.base.settings_base import OWNER_RULE, is_owner
from longtable.graph.export.export_text import Draw, Drawing, to_html, to_markdown
from longtable.graph.thread_state import is_sound
from longtable.graph.transcripts import CHANNELS, REDUCING, ThreadRecord
from longtable.memory.compaction.merging import merged_count
from longtable.memory.summary.summary_text import language_of
from longtable.nodes.call_plans import next_view
from longtable.nodes.state import Turn
from longtable.store.records.retired import decode_message, encode_message
from longtable.tools.charts.chart_tool import chart_of, embedded_svg

if TYPE_CHECKING:
    from longtable.tools.results.result_store import ResultStore

FORMAT = "longtable-thread"
SCHEMA = 1
MOST_LINE = 100_000_000
"""The most characters of a line that is read. No message in a checkpoint is nearly this long."""
ENTRY = {
    "title": str,
    "created": str,
    "updated": str,
    "turns": int,
    "messages": int,
    "model": str,
    "project": str,
    "origin": dict,
}
"""The fields of a thread's entry in the index that an export contains, besides the owner."""
OWNER: Final = "owner"

Json = dict[str, Any]
Form = Literal["jsonl", "markdown", "html"]


def export_as(
    whole: ThreadRecord, form: Form, *, language: str | None = None, draw: Draw | None = None
) -> str:
    """Return a thread in one of the forms. Labels are in `language`, or in the language of the
    conversation if it is None. `draw` draws the charts.
    """
    if form == "jsonl":
        return "".join(export_lines(whole))
    if form not in ("markdown", "html"):
        raise ConfigError(f"a thread is exported as 'jsonl', 'markdown' or 'html', found {form!r}")
    write = to_markdown if form == "markdown" else to_html
    return write(
        whole.shown,
        title=str(whole.entry.get("title") or ""),
        language=language or language_of(whole.messages),
        draw=draw,
    )


def export_lines(whole: ThreadRecord) -> Iterator[str]:
    """Yield the lines of an exported thread, each with its line feed."""
    digest = hashlib.sha256()
    count = 0
    for line in _lines(whole):
        digest.update(line.encode())
        count += 1
        yield line
    yield _line({"type": "end", "lines": count, "sha256": digest.hexdigest()})


def import_lines(
    lines: Iterable[str], *, thread_id: str | None = None, owner: str | None = None
) -> ThreadRecord:
    """Return the thread of an export. If given, `thread_id` and `owner` replace those of the file.
    Raises `ThreadFormatError` if the file is damaged or cannot be read.
    """
    whole = _read(lines)
    whole = replace(whole, thread_id=thread_id or whole.thread_id)
    if owner is not None:
        if not is_owner(owner):
            raise ConfigError(f"an owner must be {OWNER_RULE}, found {owner!r}")
        entry = {**whole.entry, OWNER: owner} if whole.entry else {}
        whole = replace(whole, entry=entry, turn={**whole.turn, OWNER: owner} if whole.turn else {})
    _check(whole)
    return whole


# -- writing ---------------------------------------------------------------------------------------


def _lines(whole: ThreadRecord) -> Iterator[str]:
    entry = {
        name: whole.entry[name] for name in (*ENTRY, OWNER) if whole.entry.get(name) is not None
    }
    yield _line(
        {
            "type": FORMAT,
            "schema": SCHEMA,
            "thread_id": whole.thread_id,
            "archived": whole.archived,
            "entry": entry,
        }
    )
    for number, message in enumerate(whole.messages, 1):
        yield f'{{"type":"message","number":{number},"message":{encode_message(message)}}}\n'
    for record in whole.retired:
        yield _line({"type": "retired_compaction", "record": record})
    for record in whole.compactions:
        yield _line({"type": "compaction", "record": record})
    for edit in whole.edits:
        yield _line({"type": "edit", "edit": edit})
    channels = {name: whole.channels[name] for name in CHANNELS if name in whole.channels}
    if voices := channels.get("brief", {}).get("voices"):
        # A persona's prompt is its own, and made again with the next turn.
        channels["brief"] = {
            **channels["brief"],
            "voices": {id_: {**each, "system": ""} for id_, each in voices.items()},
        }
    yield _line({"type": "state", "turn": whole.turn, **channels})


def _line(fields: Json) -> str:
    return json.dumps(fields, separators=(",", ":")) + "\n"


# -- reading ---------------------------------------------------------------------------------------


def _read(lines: Iterable[str]) -> ThreadRecord:
    header: Json = {}
    messages: list[BaseMessage] = []
    lines_of: dict[str, list[Any]] = {
        "retired_compaction": [],
        "compaction": [],
        "edit": [],
        "state": [],
    }
    digest = hashlib.sha256()
    count = 0
    end: Json | None = None
    for text in lines:
        line = text.rstrip("\r\n")
        if end is not None and line:
            raise ThreadFormatError(
                f"something follows the end of the thread at line {count + 2}: give one exported"
                " thread"
            )
        if not line:
            continue
        fields = _fields(line, count + 1)
        if not header:
            header = _header(fields)
        elif fields["type"] == "message":
            messages.append(_message(fields, len(messages) + 1))
        elif fields["type"] == "end":
            end = fields
            continue
        else:
            _keep(fields, lines_of, count + 1)
        digest.update(f"{line}\n".encode("utf-8", "surrogatepass"))
        count += 1
    _check_end(end, count, digest.hexdigest())
    state = lines_of["state"][-1] if lines_of["state"] else {}
    return ThreadRecord(
        thread_id=header["thread_id"],
        entry=header["entry"],
        messages=messages,
        archived=header["archived"],
        compactions=lines_of["compaction"],
        retired=lines_of["retired_compaction"],
        edits=lines_of["edit"],
        turn=cast("Turn", _dict(state.get("turn", {}), "turn")),
        channels={name: _dict(state[name], name) for name in CHANNELS if name in state},
    )


def _check_end(end: Json | None, count: int, digest: str) -> None:
    """Raise `ThreadFormatError` unless the last line has this number of lines and this hash."""
    if end is None:
        raise ThreadFormatError(
            f"the file ends after line {count} without the end of the thread: it was cut off,"
            " export it again"
        )
    if end.get("lines") != count or end.get("sha256") != digest:
        raise ThreadFormatError(
            "the file is not as it was exported, lines of it were changed or are missing: export"
            " the thread again"
        )


def _fields(line: str, number: int) -> Json:
    try:
        fields = json.loads(line) if len(line) <= MOST_LINE else None
    except (ValueError, RecursionError):  # no JSON, or brackets within brackets without end
        fields = None
    if not isinstance(fields, dict) or not isinstance(fields.get("type"), str):
        raise ThreadFormatError(
            f"line {number} is not a line of an exported thread: give a file that `longtable"
            " threads export` wrote"
        )
    return fields


def _header(fields: Json) -> Json:
    schema = fields.get("schema")
    if fields["type"] != FORMAT or not isinstance(schema, int):
        raise ThreadFormatError(
            "the file does not begin as an exported thread does: give one that `longtable threads"
            " export` wrote"
        )
    if schema > SCHEMA:
        raise ThreadFormatError(
            f"the file is of schema {schema}, this version reads up to {SCHEMA}: update longtable"
        )
    entry = _dict(fields.get("entry"), "entry")
    kinds = {**ENTRY, OWNER: str}
    sound = all(name in kinds and type(value) is kinds[name] for name, value in entry.items())
    thread_id = fields.get("thread_id")
    archived = fields.get("archived")
    if (
        not sound
        or not isinstance(thread_id, str)
        or not thread_id
        or type(archived) is not int
        or archived < 0
    ):
        raise ThreadFormatError("the first line does not describe a thread: export it again")
    if OWNER in entry and not is_owner(entry[OWNER]):
        raise ThreadFormatError(f"the thread's owner must be {OWNER_RULE}: export it again")
    return fields


def _message(fields: Json, number: int) -> BaseMessage:
    if fields.get("number") != number:
        raise ThreadFormatError(
            f"message {number} is missing, or not in its place: export the thread again"
        )
    try:
        message = decode_message(json.dumps(fields.get("message"), separators=(",", ":")))
    except (LongtableError, AttributeError, RecursionError) as error:
        raise ThreadFormatError(f"message {number} cannot be read: {error}") from error
    if not is_sound(message):
        raise ThreadFormatError(
            f"message {number} lacks what every message has, such as an id: export the thread again"
        )
    return message


def _keep(fields: Json, lines_of: dict[str, list[Json]], number: int) -> None:
    kind = fields["type"]
    if kind not in lines_of:
        raise ThreadFormatError(
            f"line {number} is a {kind[:40]!r}, which this version does not know: update longtable"
        )
    inner = {"retired_compaction": "record", "compaction": "record", "edit": "edit"}.get(kind)
    lines_of[kind].append(_dict(fields.get(inner), kind) if inner else fields)


def _dict(value: object, name: str) -> Json:
    if not isinstance(value, dict):
        raise ThreadFormatError(f"the {name} of the thread is not an object: export it again")
    return value


def _check(whole: ThreadRecord) -> None:
    """Raise `ThreadFormatError` for a thread that could be stored but not be read again."""
    if whole.archived > len(whole.messages):
        raise ThreadFormatError(
            f"{whole.archived:,} of {len(whole.messages):,} messages are said to be archived:"
            " export it again"
        )
    if len({message.id for message in whole.messages}) != len(whole.messages):
        raise ThreadFormatError("two messages share an id: export the thread again")
    if REDUCING in whole.entry:
        raise ThreadFormatError(
            "the thread was exported while its checkpoints were dropped: prune it again, then"
            " export it"
        )
    if whole.turn.get(OWNER) != whole.entry.get(OWNER, whole.turn.get(OWNER)):
        raise ThreadFormatError("the thread names two owners: export it again")
    try:
        thread = whole.thread
        _ = (
            thread.pins,
            thread.excluded,
            thread.chain,
            thread.stale,
            whole.shown,
            next_view(whole.values, Context()),
        )
        records = [*whole.retired, *whole.compactions]
        sound = all(
            isinstance(item["id"], str) for item in [*records, *whole.edits]
        ) and merged_count(records) == len(whole.retired)
        sound = sound and all(
            isinstance(record["turn"], int) and isinstance(record["count"], int)
            for record in records
        )
    except Exception as error:  # whatever a made-up record makes the view stumble over
        raise ThreadFormatError(
            f"the memory of the thread cannot be read ({type(error).__name__}): export it again"
        ) from error
    if not sound:
        raise ThreadFormatError("the memory of the thread cannot be read: export it again")


# -- charts ----------------------------------------------------------------------------------------


def chart_drawer(results: "ResultStore | None", thread_id: str) -> Draw | None:
    """Return a function that draws a thread's charts as SVG, in which names are unique within the
    document. Return None if there is no result store.
    """
    if results is None:
        return None
    numbers = itertools.count(1)

    def draw(drawing: Drawing) -> str | None:
        try:
            chart = chart_of(
                drawing.handle, results.get(thread_id, drawing.handle), spec=drawing.spec
            )
            return embedded_svg(chart.svg(), f"chart{next(numbers)}")
        except Exception:
            # Its rows have gone, the extra is not installed, an imported spec is made up: then the
            # spec is shown.
            return None

    return draw
