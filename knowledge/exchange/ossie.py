"""Read and write terms as a semantic model of Apache Ossie, formerly Open Semantic Interchange.

The format follows the specification of version 0.1.1: a list `semantic_model`, whose models hold
datasets with fields, and metrics. Later drafts have one model, with its keys at the top of the
document. The reader goes by the shape of a document, whatever version it names.

Metrics become terms, and so do fields with a description or synonyms. Other keys are ignored.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from longtable.base.words import fold
from longtable.knowledge.entries import Place, Problem, Term, unique_terms
from longtable.knowledge.exchange.untrusted import MOST_ENTRIES, fault_of_text, kind_of, read_json

VERSION = "0.1.1"
FLAT_VERSION = "0.2.0.dev0"
DIALECT = "ANSI_SQL"
NO_SQL = ("MDX", "TABLEAU", "MAQL")
"""Dialects of the specification that are other languages than SQL."""
PLACEHOLDER = "No table: the specification asks for a dataset, and these metrics name none."
_COLUMN = re.compile(r"""\w+|"[^"]+"|`[^`]+`|\[[^\]]+\]""")
"""The name of a column, quoted or not, and nothing else."""

Entry = Mapping[str, object]


class _FaultError(Exception):
    """An entry cannot be used; the text begins with the JSON path of the value."""


def read_ossie(text: str, file: str) -> tuple[list[Term], list[Problem]]:
    """Return the terms of a document, and a problem for each entry that is left out. A text that is
    no such document gives one problem and no term.

    A field's SQL is `dataset.column`, or its expression if it is computed. If several datasets
    describe fields of one name, each of these terms is named `dataset.field`. A synonym that is a
    name of another term is left out alone: models share words such as "amount" among metrics.
    """
    document = read_json(text, file)
    if isinstance(document, Problem):
        return [], [document]
    reader = _Reader(Place(file))
    reader.read(document)
    terms = [replace(term, place=reader.place) for term in reader.terms]
    distinct, clashes = _with_own_synonyms(terms)
    kept, doubles = unique_terms(distinct)
    return kept, [*reader.problems, *clashes, *doubles]


def _with_own_synonyms(terms: Sequence[Term]) -> tuple[list[Term], list[Problem]]:
    """Return the terms without synonyms that are names of others, and a problem for each term that
    lost some. A term's own name comes before synonyms; else the first term keeps the word.
    """
    distinct: list[Term] = []
    problems: list[Problem] = []
    owners: dict[str, str] = {}
    for term in terms:
        owners.setdefault(fold(term.term), term.term)
    for term in terms:
        lost: list[str] = []
        for synonym in term.synonyms:
            if owners.setdefault(fold(synonym), term.term) != term.term:
                lost.append(synonym)
        if lost:
            message = _kept_without(term, lost, owners[fold(lost[0])])
            problems.append(Problem(term.place, message))
        own = [synonym for synonym in term.synonyms if owners[fold(synonym)] == term.term]
        distinct.append(replace(term, synonyms=own))
    return distinct, problems


def _kept_without(term: Term, lost: Sequence[str], owner: str) -> str:
    more = f" and {len(lost) - 1} others" if len(lost) > 1 else ""
    reason = f"{lost[0]!r} is already a name of {owner!r}"
    return f"{term.term!r} is kept without the synonym {lost[0]!r}{more}: {reason}"


def write_ossie(terms: Sequence[Term], name: str, *, flat: bool = False) -> str:
    """Return terms as the metrics of a model of version 0.1.1, or with `flat` of 0.2.0.dev0, whose
    document is the model itself. `name`: of the model.

    The reader gives equal terms back, within its limits. A term without SQL has an empty
    expression, because each metric needs one. All SQL is marked as ANSI_SQL, the only dialect that
    every reader knows.
    """
    dataset = {"name": name, "source": name, "description": PLACEHOLDER}
    model = {"name": name, "datasets": [dataset], "metrics": [_metric(term) for term in terms]}
    document: dict[str, object] = {"version": VERSION, "semantic_model": [model]}
    if flat:
        document = {"version": FLAT_VERSION, **model}
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _metric(term: Term) -> dict[str, object]:
    dialects = [{"dialect": DIALECT, "expression": term.sql}]
    metric: dict[str, object] = {"name": term.term, "expression": {"dialects": dialects}}
    if term.meaning:
        metric["description"] = term.meaning
    if term.synonyms:
        metric["ai_context"] = {"synonyms": list(term.synonyms)}
    return metric


@dataclass
class _Reader:
    """Collects the terms of one document, and the problems of what is left out."""

    place: Place
    terms: list[Term] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    entries: int = 0
    """Models, datasets, metrics and fields read so far."""

    def read(self, document: object) -> None:
        """Read a whole document."""
        if not isinstance(document, dict):
            self._report(f"$: an object is needed, found {kind_of(document)}")
        elif "semantic_model" in document:
            for model, path in self._objects(document, "semantic_model", "$"):
                self._read_model(model, path)
        elif "datasets" in document or "metrics" in document:
            self._read_model(document, "$")
        else:
            self._report("$: neither `semantic_model` nor `datasets` or `metrics` is there")

    def _read_model(self, model: Entry, path: str) -> None:
        for metric, metric_path in self._objects(model, "metrics", path):
            try:
                self.terms.append(_term_of_metric(metric, metric_path))
            except _FaultError as fault:
                self._report(str(fault))
        fields = list(self._fields(model, path))
        counts = Counter(fold(term.term) for _, term in fields)
        for dataset, term in fields:
            alone = counts[fold(term.term)] == 1
            self.terms.append(term if alone else replace(term, term=f"{dataset}.{term.term}"))

    def _fields(self, model: Entry, path: str) -> Iterator[tuple[str, Term]]:
        """Yield the terms of a model's fields, each with the name of its dataset."""
        for dataset, dataset_path in self._objects(model, "datasets", path):
            try:
                dataset_name = _name(dataset, dataset_path)
            except _FaultError as fault:
                self._report(str(fault))
                continue
            for each, field_path in self._objects(dataset, "fields", dataset_path):
                try:
                    term = _term_of_field(each, field_path, dataset_name)
                except _FaultError as fault:
                    self._report(str(fault))
                    continue
                if term.meaning or term.synonyms:
                    yield dataset_name, term

    def _objects(self, parent: Entry, key: str, path: str) -> Iterator[tuple[Entry, str]]:
        """Yield the objects of a list with their paths, up to the limit of the document."""
        items = parent.get(key)
        if items is None:
            return
        if not isinstance(items, list):
            self._report(f"{path}.{key}: a list is needed, found {kind_of(items)}")
            return
        for number, item in enumerate(items):
            if self.entries == MOST_ENTRIES:
                self.entries += 1  # so that the limit is reported once
                self._report(f"at most {MOST_ENTRIES:,} entries; others are left out")
            if self.entries > MOST_ENTRIES:
                return
            self.entries += 1
            item_path = f"{path}.{key}[{number}]"
            if isinstance(item, dict):
                yield item, item_path
            else:
                self._report(f"{item_path}: an object is needed, found {kind_of(item)}")

    def _report(self, message: str) -> None:
        self.problems.append(Problem(self.place, message))


def _term_of_metric(metric: Entry, path: str) -> Term:
    """Return the term of a metric. Raises `_FaultError`."""
    term = _described(metric, path)
    sql = _expression(metric, path)
    if not sql and not term.meaning:
        raise _FaultError(f"{path}: a metric needs a description, or an expression in SQL")
    return replace(term, sql=sql)


def _term_of_field(entry: Entry, path: str, dataset: str) -> Term:
    """Return the term of a field, described or not. Raises `_FaultError`."""
    term = _described(entry, path)
    expression = _expression(entry, path) or term.term
    is_column = _COLUMN.fullmatch(expression)
    return replace(term, sql=f"{dataset}.{expression}" if is_column else expression)


def _described(entry: Entry, path: str) -> Term:
    """Return a term with name, synonyms and meaning."""
    context = entry.get("ai_context")
    context_path = f"{path}.ai_context"
    if context is None or isinstance(context, str):
        context = {"instructions": context}
    if not isinstance(context, dict):
        raise _FaultError(
            f"{context_path}: a text or an object is needed, found {kind_of(context)}"
        )
    description = _text(entry, "description", path)
    instructions = _text(context, "instructions", context_path)
    return Term(
        term=_name(entry, path),
        synonyms=_synonyms(context, context_path),
        meaning="\n".join(filter(None, [description, instructions])),
    )


def _synonyms(context: Entry, path: str) -> list[str]:
    synonyms = context.get("synonyms")
    if synonyms is None:
        return []
    if not isinstance(synonyms, list):
        raise _FaultError(f"{path}.synonyms: a list is needed, found {kind_of(synonyms)}")
    for number, synonym in enumerate(synonyms):
        fault = fault_of_text(synonym)
        if fault:
            raise _FaultError(f"{path}.synonyms[{number}]: {fault}")
    return [synonym.strip() for synonym in synonyms if synonym.strip()]


def _expression(entry: Entry, path: str) -> str:
    """Return the SQL of an entry, of the standard if it is there, and "" if it has none."""
    expression = entry.get("expression")
    if expression is None:
        return ""
    expression_path = f"{path}.expression"
    if not isinstance(expression, dict):
        raise _FaultError(f"{expression_path}: an object is needed, found {kind_of(expression)}")
    dialects = expression.get("dialects")
    if not isinstance(dialects, list):
        found = kind_of(dialects)
        raise _FaultError(f"{expression_path}.dialects: a list is needed, found {found}")
    by_dialect: dict[str, str] = {}
    for number, each in enumerate(dialects):
        each_path = f"{expression_path}.dialects[{number}]"
        if not isinstance(each, dict):
            raise _FaultError(f"{each_path}: an object is needed, found {kind_of(each)}")
        by_dialect[_text(each, "dialect", each_path)] = _text(each, "expression", each_path)
    in_sql = [sql for dialect, sql in by_dialect.items() if dialect not in NO_SQL]
    return by_dialect.get(DIALECT) or next(iter(in_sql), "")


def _name(entry: Entry, path: str) -> str:
    name = _text(entry, "name", path)
    if not name:
        raise _FaultError(f"{path}.name: a name is needed")
    return name


def _text(entry: Entry, key: str, path: str) -> str:
    """Return a text of an entry, "" if it is missing."""
    value = entry.get(key)
    if value is None:
        return ""
    fault = fault_of_text(value)
    if fault:
        raise _FaultError(f"{path}.{key}: {fault}")
    return str(value).strip()
