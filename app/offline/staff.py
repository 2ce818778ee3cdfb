"""Say in the schema's own words who works here, who runs what and who looks after whom: 'who works in Leeds', 'our colleagues'."""

import re

from longtable.app.offline.catalog import Catalog, Table
from longtable.app.offline.lexicon_events import events_of
from longtable.app.offline.linking import hits
from longtable.app.offline.text import lemma

_I = re.IGNORECASE
_STAFF = frozenset(["employee", "staff", "worker", "personnel"])
_PAY = frozenset(["salary", "wage", "pay", "rate", "job", "title", "role", "position", "commission", "contract"])
_WORDS = r"colleagues?|co-?workers?|workmates?|employees?|staff members?|members? of staff|staff|workers|personnel|team members?"
_WORKING = r"works|worked|working|work|(?:is|are|was|were) (?:employed|working|based)"
_UNITS = "department|dept|office|team|branch|unit|store|shop|division|depot|warehouse|site"
_CARE = r"looks? after|looked after|takes? care of|(?:is|was|are) (?:in charge of|responsible for)|handles"
_CARERS = "manager coordinator representative rep keeper handler consultant adviser advisor supervisor agent officer owner".split()  # noqa: SIM905


def in_its_words(question: str, catalog: Catalog) -> str:
    """Return the question with such words replaced by the table of those who work here, and by the column of managers."""
    roles = {word for table in catalog.tables.values() if table.kind == "table" for column in table.columns for word in column.words}
    if "boss" not in roles:
        said = next((each for each in ("manager", "supervisor", "leader", "head") if each in roles), "manager")
        question = re.sub(r"\bboss(es)?\b", lambda m: f"{said}s" if m[1] else said, question, flags=_I)
    if "manager" in roles:
        question = re.sub(r"^who (?:runs|manages|heads|leads) (?=\w)", "who is the manager of ", question, flags=_I)
    if carer := next((each for each in _CARERS if each in roles), ""):
        question = re.sub(rf"^who (?:{_CARE}) (?=\w)", f"who is the {carer} of ", question, flags=_I)
    table = _employer(catalog)
    return _with_staff(question, table.name.lower(), catalog) if table is not None else question


def _with_staff(question: str, noun: str, catalog: Catalog) -> str:
    question = re.sub(rf"^who (?:else )?(?={_WORKING})", f"which {noun} ", question, flags=_I)
    question = re.sub(rf"^(which|what|how many|list the|list) (?:people|persons) (?={_WORKING})", rf"\1 {noun} ", question, flags=_I)
    there = rf"(?:are|do we have|are there)\b.*\b(?:in|at|on)\b.*\b(?:{_UNITS})\b"
    question = re.sub(rf"^how many people (?={there})", f"how many {noun} ", question, flags=_I)
    question = re.sub(r"\b(?:of )?our people\b", lambda m: f"of our {noun}" if m[0].startswith("of") else noun, question, flags=_I)
    return re.sub(rf"\b(?:{_WORDS})\b", lambda m: m[0] if _known(m[0], catalog) else noun, question, flags=_I)


def _known(words: str, catalog: Catalog) -> bool:
    return any(hit.score >= 0.72 for hit in hits((words.lower().split()[-1],), words, catalog))


def _employer(catalog: Catalog) -> Table | None:
    """Return the one table of those who work here: by its name, else by its dates of hiring and its pay or jobs."""
    tables = [table for table in catalog.tables.values() if table.kind == "table"]
    named = [table for table in tables if _STAFF & set(map(lemma, table.words))]
    found = named or [table for table in tables if table.names and _is_hired(table)]
    return found[0] if len(found) == 1 else None


def _is_hired(table: Table) -> bool:
    dated = any(column.is_date and "joining" in events_of(column.words) for column in table.columns)
    hired = any(column.is_date and {"hire", "hired"} & set(column.words) for column in table.columns)
    paid = any(_PAY & set(column.words) for column in table.columns)
    personal = any({"name", "full", "first", "last"} & set(column.words) for column in table.names)
    return paid and personal and (hired or (dated and any({"salary", "wage", "commission"} & set(c.words) for c in table.columns)))


__all__ = ["in_its_words"]
