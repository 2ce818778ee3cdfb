"""Name what was bought, ordered or delivered where a question only says 'what': 'what did Ana order' asks for products."""

import re

from longtable.app.offline.catalog import Catalog, Table
from longtable.app.offline.lexicon import PEOPLE
from longtable.app.offline.lexicon_abbreviations import ALTERNATIVES
from longtable.app.offline.lexicon_events import events, events_of
from longtable.app.offline.text import lemma, stem

_GOODS = frozenset(
    """product item article material good merchandise drug medicine dish meal wine book film movie title song track part spare tool
    equipment service treatment course model game ticket pass""".split()  # noqa: SIM905
)
_VERBS = (
    "buy|bought|order|ordered|purchase|purchased|rent|rented|borrow|borrowed|deliver|delivered|supply|supplied|ship|shipped|sell|sold|"
    "prescribe|prescribed|receive|received|return|returned|watch|watched|play|played|read|see|seen|visit|visited"
)
_ACTIVE = re.compile(rf"^what (?:all |else )?(did|has|have) (?!we\b|they\b|it\b|you\b|i\b)([^,;?]+?) ({_VERBS})\b", re.IGNORECASE)
_TRADE = frozenset(["buying", "ordering", "selling"])


def what_for(question: str, catalog: Catalog) -> str:
    """Return the question with the table of goods in place of 'what', where the schema has one that the verb can mean."""
    asked = _ACTIVE.match(question)
    goods = (_goods(asked[3].lower(), catalog) or _column(asked[3].lower(), catalog)) if asked else ""
    if asked is None or not goods:
        return question
    aux, verb = asked[1], asked[3].lower()
    if verb in ("buy", "bought", "ordered") and not any("buying" in events_of(_words(table)) for table in catalog.tables.values()):
        aux, verb = "did", "order"  # what the schema calls it
    return f"which {goods} {aux} {asked[2]} {verb}{question[asked.end() :]}"


def _recording(verb: str, catalog: Catalog) -> list[Table]:
    """Return the tables whose rows are what the verb tells."""
    return [table for table in catalog.tables.values() if table.kind == "table" and _records(table, verb)]


def _column(verb: str, catalog: Catalog) -> str:
    """Return the one column of goods that such records themselves hold."""
    columns = [column for table in _recording(verb, catalog) for column in table.columns if not column.is_number and not column.is_id]
    found = [column.name for column in columns if _GOODS & set(map(lemma, column.words)) and not {"name", "type"} & set(column.words)]
    return found[0] if len(found) == 1 else ""


def _goods(verb: str, catalog: Catalog) -> str:
    """Return the one table of things that the records of the verb point at, or the lines of these records."""
    names = {table.name for table in _recording(verb, catalog)}
    lines = {link.many for link in catalog.links if link.one in names}
    found = {link.one for link in catalog.links if link.many in names | lines and link.one not in names}
    nameless = {name for name in found if (table := catalog.table(name)) is not None and not table.names}
    found |= {link.one for link in catalog.links if link.many in nameless}  # copies of books
    tables = [table for name in found if (table := catalog.table(name)) is not None and table.names]
    things = [table for table in tables if not PEOPLE & set(map(lemma, table.words))]
    goods = [table for table in things if _GOODS & set(map(lemma, _words(table)))]
    return goods[0].name if len(goods) == 1 else ""


def _records(table: Table, verb: str) -> bool:
    kinds = events(verb)
    kinds = kinds | _TRADE if kinds & _TRADE else kinds
    return bool(kinds & events_of(table.words)) or stem(verb) in set(map(stem, _words(table)))


def _words(table: Table) -> tuple[str, ...]:
    return tuple(each for word in table.words for each in (word, *ALTERNATIVES.get(word, ())))


__all__ = ["what_for"]
