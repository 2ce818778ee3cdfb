"""One database's part of a thread's call config: a card for the system prompt, and what changed in
the schema.

The card is made anew only when the schema or its budget has changed; a note then says what changed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from longtable.base.errors import DatabaseError
from longtable.nodes.state import Schema, SchemaChange
from longtable.tools.catalog import Catalog
from longtable.tools.cells import clean, clip
from longtable.tools.database import Database
from longtable.tools.schema.schema_card import schema_card

ASKED = 3
"""If the card has no room for all tables, this many of the newest questions decide which tables are
shown.
"""
MOST_CHANGES = 500
"""The most tables that are recorded as changed. If more have changed, every earlier description
counts as stale.
"""
MOST_NAMED = (12, 3, 0)
"""How many changed tables the note to the model names. The first of these numbers for which the
note fits is used.
"""
NAME_CHARS = 64
NOTE_SHARE = 0.5
NOTE_TOKENS = 100
"""The largest share of the budget that the note may take. `NOTE_TOKENS` tokens are allowed even if
the budget is small. The card gets what the note leaves.
"""
EARLIER = (
    "The schema changed earlier in this conversation. What was said of its tables before may no"
    " longer hold."
)


@dataclass(frozen=True)
class Change:
    """How the schema differs from what the thread was told about it. A table that the thread was
    not told about cannot be in `changed` or `gone`.
    """

    changed: list[str]
    new: list[str]
    gone: list[str]
    before: int
    now: int

    def as_mark(self) -> SchemaChange:
        """Return the mark from which it is later decided which answers are stale and what the user
        is told.
        """
        return SchemaChange(
            changed=self.changed[:MOST_CHANGES],
            new=self.new[:MOST_CHANGES],
            gone=self.gone[:MOST_CHANGES],
            listing=bool(self.new or self.gone) or self.now != self.before,
            all=max(map(len, (self.changed, self.new, self.gone))) > MOST_CHANGES,
        )

    def note(self, turn: int, fits: Callable[[str], bool]) -> str:
        """Return the note for the model, with as many names as fit into it."""
        notes = [self._note(turn, most) for most in MOST_NAMED]
        return next((note for note in notes if fits(note)), notes[-1])

    def _note(self, turn: int, most: int) -> str:
        lists = (("changed", self.changed), ("new", self.new), ("gone", self.gone))
        parts = [f"{word}: {_names(names, most)}" for word, names in lists if names]
        if self.before != self.now:
            parts.append(f"{self.now:,} tables, {self.before:,} before")
        what = "; ".join(parts) or "in tables not shown here"
        return (
            f"The schema changed before turn {turn} ({what}). What was said of these tables earlier"
            " may no longer hold."
        )


def database_schema(
    database: Database,
    before: Schema | None,
    *,
    budget: int,
    count: Callable[[str], int],
    messages: Sequence[BaseMessage],
    described: Mapping[str, str],
    turn: int,
) -> tuple[Schema | None, SchemaChange | None]:
    """Return one database's part of a thread's call config, and the mark of what changed in its
    schema. If nothing changed, return `before` itself.

    `described`: the tables that tool answers have described, each with the hash of its schema.

    The card keeps the numbers of rows from the time when it was made, and the tables that questions
    asked about then, because it is in the part of a call that providers cache. If the database
    cannot be reached, the earlier schema is kept.
    """

    def fits(note: str) -> bool:
        return count(note) <= max(int(budget * NOTE_SHARE), NOTE_TOKENS)

    try:
        catalog = database.refresh()
        rows = database.rows_key()
        same = before is not None and before["hash"] == catalog.hash
        if same and before is not None and _is_as_before(before, budget, rows):
            return before, None
        change = None if same or before is None else changes(before, catalog, described)
        note = (
            change.note(turn, fits)
            if change
            else _earlier_note(str((before or {}).get("note", "")), fits)
        )
        questions = [message.text for message in messages if message.type == "human"][-ASKED:]
        card = schema_card(database, tokens=budget - count(note), count=count, questions=questions)
    except DatabaseError:
        return before, None
    hashes = {name: catalog.hashes[name] for name in card.shown}
    schema: Schema = {
        "hash": catalog.hash,
        "budget": budget,
        "tables": len(catalog.tables),
        "shown": hashes,
        "card": card.text,
    }
    if rows:
        schema["rows"] = rows
    return ({**schema, "note": note} if note else schema), change.as_mark() if change else None


def _is_as_before(before: Schema, budget: int, rows: str) -> bool:
    return before["budget"] == budget and before.get("rows", "") == rows


def changes(before: Schema, catalog: Catalog, described: Mapping[str, str]) -> Change:
    """Return how the catalogue differs from what the thread was told about it, by the card and by
    descriptions of tables.
    """
    known: Mapping[str, str] = {**before.get("shown", {}), **described}
    now = catalog.hashes
    whole = len(before.get("shown", {})) == before.get("tables")
    return Change(
        changed=[name for name, looks in known.items() if name in now and now[name] != looks],
        new=[name for name in now if name not in known] if whole else [],
        gone=[name for name in known if name not in now],
        before=before.get("tables", 0),
        now=len(now),
    )


def _earlier_note(note: str, fits: Callable[[str], bool]) -> str:
    """Return the note about an earlier change. If a smaller limit leaves no room for it, return a
    shorter text.
    """
    return note if not note or fits(note) else EARLIER


def _names(names: Sequence[str], most: int) -> str:
    if not most:
        return f"{len(names):,} table{'' if len(names) == 1 else 's'}"
    safe = (
        " ".join(clean(name).replace("<", "").replace(">", "").split()) for name in names[:most]
    )
    return ", ".join(clip(name, NAME_CHARS) for name in safe) + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )
