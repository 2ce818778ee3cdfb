"""The AST wall: read a model's SQL into a tree, check the tree against lists of what is allowed,
and write the SQL anew.

The text that runs is written from the checked tree, without comments. It is then parsed and checked
again. So if sqlglot and an engine read a text differently, the engine still gets the meaning that
was checked.
"""

import re
import unicodedata
from dataclasses import replace
from itertools import chain
from threading import Lock
from weakref import ref

from sqlglot import Token, exp

from longtable.base.errors import QueryRefusedError
from longtable.tools.catalog import Catalog, Table, fold, nearest
from longtable.tools.engines.dialects import dialect_of
from longtable.tools.sql.allow_lists import (
    QUERIES,
    SCALAR_FUNCTIONS,
    SYNTAX_FUNCTIONS,
    TABLE_FUNCTIONS,
    allowed_node,
)
from longtable.tools.sql.expansion import check_expansion
from longtable.tools.sql.forms.dotted_names import with_plain_names
from longtable.tools.sql.forms.whole_statements import as_select
from longtable.tools.sql.growth import (
    MAX_GROWTH,
    MAX_SERIES,
    bounded,
    growth,
    largest,
    longest_series,
)
from longtable.tools.sql.hints import place_of_fault, place_of_start
from longtable.tools.sql.masks.masking import masks_of
from longtable.tools.sql.narrow import crossed, narrowed, reads_of, stops_early
from longtable.tools.sql.parsing import (
    MAX_SQL_CHARS,
    MAX_WRITTEN_CHARS,
    RefusedError,
    first_line,
    nodes_of,
    statements,
    tokens_of,
    written,
)
from longtable.tools.sql.row_filters.fences import Fences, closed_view_reason, with_named_marks
from longtable.tools.sql.scope import is_cte, missing_table, resolved_table
from longtable.tools.sql.traps import check_double_quotes, check_relation_names, check_trap
from longtable.tools.sql.type_names import check_own_types, check_tokens
from longtable.tools.sql.verdict import NO_MASKS, OwnSql, Place, Verdict


class VerdictCache:
    """The newest verdicts of this process. With it, a text is parsed only once for approval, run
    and audit.

    The catalogue object itself is part of the key. This is safe because a catalogue is never
    changed: another policy or schema version makes a new object. Verdicts never change either.
    """

    def __init__(self, *, entries: int, characters: int) -> None:
        self._most_entries = entries
        self._most_characters = characters
        self._characters = 0
        self._verdicts: dict[tuple[int, str, str], tuple[ref[Catalog], Verdict, int]] = {}
        self._lock = Lock()

    def get(self, sql: str, dialect: str, catalog: Catalog) -> Verdict | None:
        """Return the cached verdict on this text, None if there is none."""
        with self._lock:
            key = (id(catalog), dialect, sql)
            entry = self._verdicts.pop(key, None)
            if entry is None:
                return None
            self._verdicts[key] = entry
        # Another catalogue may stand where a dead one stood.
        return entry[1] if entry[0]() is catalog else None

    def put(self, sql: str, dialect: str, catalog: Catalog, verdict: Verdict) -> None:
        """Add a verdict. If the cache is full, drop the least recently used verdicts."""
        key = (id(catalog), dialect, sql)
        texts = (sql, verdict.sql, verdict.shown_sql, verdict.reason, *verdict.columns)
        size = sum(map(len, texts))
        with self._lock:
            self._drop(key)
            self._verdicts[key] = ref(catalog), verdict, size
            self._characters += size
            while (
                len(self._verdicts) > self._most_entries or self._characters > self._most_characters
            ):
                self._drop(next(iter(self._verdicts)))

    def _drop(self, key: tuple[int, str, str]) -> None:
        if (entry := self._verdicts.pop(key, None)) is not None:
            self._characters -= entry[2]

    def clear(self) -> None:
        """Drop all verdicts."""
        with self._lock:
            self._verdicts.clear()
            self._characters = 0


VERDICTS = VerdictCache(entries=1_000, characters=2_000_000)


def check(sql: str, *, dialect: str, catalog: Catalog) -> Verdict:
    """Decide whether `sql` may run on a database with this dialect and catalogue. Verdicts are
    cached, so that each text is parsed only once.
    """
    if (verdict := VERDICTS.get(sql, dialect, catalog)) is None:
        verdict = _decide(sql, dialect, catalog)
        if verdict.rule != "depth":  # which may come of the caller's own depth in the stack
            VERDICTS.put(sql, dialect, catalog, verdict)
    return verdict


def _decide(sql: str, dialect: str, catalog: Catalog) -> Verdict:
    """Decide without the cache.

    In the text that runs, a table with denied columns is replaced by a subquery of its other
    columns. So the engine cannot read the denied columns either.
    """

    def resolve(node: exp.Expr) -> Table | None:
        return _resolved(node, dialect, catalog)

    checked = sql
    try:
        checked = as_select(sql, dialect, catalog)
        most = MAX_SQL_CHARS if checked is sql else MAX_WRITTEN_CHARS
        first = _checked(checked, dialect, catalog, most=most)
        rules = dialect_of(dialect)
        counted = bounded(first, dialect) if rules.bounds_growth else first
        narrow = narrowed(counted, resolve, catalog.hidden_columns)
        columns = reads_of(first, resolve)
        early = stops_early(counted)
        # Quoted names may run in backticks; they are shown in double quotes.
        renamed = rules.backticks and any(node.args.get("quoted") for node in nodes_of(narrow))
        rendered = _render(narrow, dialect, keep=renamed)
        headings = _headings(narrow, dialect) if renamed else ()
        shown = rendered
        if renamed or narrow is not counted:
            shown = _render(counted, dialect, shown=True, keep=False)
        checked = rendered
        second = _checked(rendered, dialect, catalog, most=MAX_WRITTEN_CHARS)
        if rules.bounds_growth:
            _check_growth(second, dialect)
        tables = {table.name for node in nodes_of(second) if (table := resolve(node))}
        masks = masks_of(second, resolve, dialect) if catalog.has_masks else NO_MASKS
        verdict = Verdict(
            True,
            sql=rendered,
            shown_sql=shown,
            tables=tuple(sorted(tables)),
            columns=columns,
            masks=masks,
            headings=headings,
            stops_early=early,
        )
        return _with_row_filters(verdict, second, dialect, catalog)
    except RefusedError as refused:
        place = refused.place or _place(refused.node, checked, sql, dialect)
        return Verdict(
            False, refused.rule, refused.reason, refused.hint, place=place, nearest=refused.nearest
        )
    except RecursionError:
        return _too_deep(sql, dialect)


def _too_deep(sql: str, dialect: str) -> Verdict:
    return Verdict(
        False,
        "depth",
        "the SQL is nested too deeply",
        "write it with fewer nested brackets",
        place=place_of_start(sql, dialect),
    )


def _with_row_filters(verdict: Verdict, tree: exp.Expr, dialect: str, catalog: Catalog) -> Verdict:
    """Return the verdict on a query that reads only rows which the row filters leave. `tree` is the
    tree that was checked last. The filters come after all checks, because the operator wrote them
    and no rule on queries holds for them.
    """
    fenced = _fences(dialect, catalog).put(tree) if catalog.row_filters else None
    if fenced is None:
        return verdict
    return replace(
        verdict,
        sql=fenced.sql,
        marks=tuple(each for each in fenced.marks if not isinstance(each, int)),
        reads_some_rows=True,
        crossed=crossed(tree, lambda node: _resolved(node, dialect, catalog)),
    )


def _place(node: exp.Expr | None, checked: str, sql: str, dialect: str) -> Place:
    return (node and place_of_fault(node, checked, sql, dialect)) or place_of_start(sql, dialect)


def own_sql(sql: str, *, dialect: str, catalog: Catalog) -> OwnSql:
    """Return SQL of this package with the policy on columns and rows applied to it: denied columns
    and hidden rows are missing, and masked columns are NULL. Raises `QueryRefusedError` for a text
    that reads a filtered table in a way that its filter cannot stand.
    """
    if not catalog.is_rewritten or re.match(r"\s*EXPLAIN\b", sql, re.IGNORECASE):
        return OwnSql(sql)

    def resolve(node: exp.Table) -> Table | None:
        return _resolved(node, dialect, catalog)

    hidden = catalog.hidden_columns
    named, names = with_named_marks(sql, dialect) if catalog.row_filters else (sql, [])
    try:
        tree = narrowed(_parse(named, dialect), resolve, hidden, blind=True)
        fenced = _fences(dialect, catalog).put(tree, own=names) if catalog.row_filters else None
    except RefusedError as refused:
        if not catalog.row_filters:
            raise
        raise QueryRefusedError(refused.reason, rule=refused.rule, hint=refused.hint) from refused
    if fenced is not None:
        return OwnSql(fenced.sql, fenced.marks)
    if names:
        tree = narrowed(_parse(sql, dialect), resolve, hidden, blind=True)
    return OwnSql(_render(tree, dialect))


def _fences(dialect: str, catalog: Catalog) -> Fences:
    return Fences(
        catalog,
        dialect,
        resolve=lambda node: _resolved(node, dialect, catalog),
        render=lambda node: _render(node, dialect),
        heading=lambda node: _render(node, dialect, shown=True),
    )


def _checked(sql: str, dialect: str, catalog: Catalog, *, most: int = MAX_SQL_CHARS) -> exp.Expr:
    tokens = tokens_of(sql, dialect, most=most)
    tree = _parse(sql, dialect, tokens)
    _drop_index_hints(tree, sql)
    rules = dialect_of(dialect)
    with_plain_names(tree, catalog, rules)
    if rules.plain_numbers:
        check_tokens(sql, tokens, distance=rules.distance_operator)
    if not isinstance(tree, QUERIES):
        hint = (
            _PIVOT_FORM
            if isinstance(tree, exp.Pivot)
            else "only reading is allowed: send one SELECT"
        )
        raise RefusedError("statement", f"{_label(tree)} is not a query", hint)
    if rules.double_quotes_are_text:
        check_double_quotes(sql, tokens, catalog)
    if rules.relations_by_case:
        check_relation_names(tree)
    check_expansion(tree, dialect, catalog)
    for node in nodes_of(tree):
        check_node(node, sql, dialect, catalog)
        check_trap(node, rules)
        if rules.own_types:
            check_own_types(node, catalog, dialect)
    return tree


def _parse(sql: str, dialect: str, tokens: list[Token] | None = None) -> exp.Expr:
    trees = statements(sql, dialect, tokens=tokens)
    if not trees:
        raise RefusedError("statement", "there is no statement in the text", "send one SELECT")
    if len(trees) > 1:
        place = place_of_start(sql, dialect, statement=1)
        raise RefusedError(
            "statements",
            f"the text holds {len(trees)} statements",
            "send exactly one SELECT",
            place=place,
        )
    return trees[0]


_INDEX_HINT = re.compile(r"\bINDEX(?:ED)?\b", re.IGNORECASE)


def _drop_index_hints(tree: exp.Expr, sql: str) -> None:
    """Leave out hints such as INDEXED BY, which name no table and change no row."""
    if _INDEX_HINT.search(sql):
        for table in tree.find_all(exp.Table):
            table.set("indexed", None)
            table.set("hints", None)


def _render(tree: exp.Expr, dialect: str, *, shown: bool = False, keep: bool = True) -> str:
    try:
        backticks = dialect_of(dialect).backticks and not shown
        return written(tree, dialect, exact=True, backticks=backticks, keep=keep)
    except (RecursionError, RefusedError):
        raise
    except Exception as error:
        # sqlglot's writer fails on odd trees in other ways than by its own error
        raise RefusedError(
            "syntax",
            f"the SQL has no exact form in {dialect}: {first_line(error)}",
            "write it another way",
        ) from error


def _headings(tree: exp.Expr, dialect: str) -> tuple[tuple[str, str], ...]:
    items = chain.from_iterable(select.expressions for select in tree.find_all(exp.Select))
    unnamed = [item for item in items if not isinstance(item, exp.Alias | exp.Column)]
    texts = [(_render(item, dialect), _render(item, dialect, shown=True)) for item in unnamed]
    return tuple(dict(texts).items())


_PIVOT_FORM = (
    "write SELECT * FROM (PIVOT t ON column IN ('a', 'b') USING sum(x)) AS p, or SELECT * FROM"
    " (UNPIVOT t ON a, b) AS p"
)


def check_node(node: exp.Expr, sql: str, dialect: str, catalog: Catalog) -> None:
    """Raise `RefusedError` if a node of a parsed text is not allowed in a query. Nodes below it are
    not looked at.
    """
    if isinstance(node, exp.Identifier):
        _check_name(node)
    if isinstance(node, exp.Pivot):
        _check_pivot(node)
    if isinstance(node, exp.PositionalColumn):
        # It has no name, so no rule about columns applies to it.
        raise RefusedError(
            "construct",
            "a column cannot be named by its position, as in #1",
            "write the column's name",
            node=node,
        )
    if (
        catalog.types_list_hidden_values
        and dialect_of(dialect).named_types
        and isinstance(node, exp.DataType)
        and node.this == exp.DataType.Type.USERDEFINED
    ):
        reason = (
            "a type of the database's own cannot be named: it may list the values of a masked or"
            " denied column"
        )
        raise RefusedError("type", reason, "cast to a built-in type, such as VARCHAR", node=node)
    is_name = isinstance(node, exp.In) and node.args.get("field") is not None
    if is_name and dialect_of(dialect).reads_in_name:
        # The engine reads `IN name` as a table, the tree has it as a column.
        raise RefusedError(
            "construct",
            "a table after IN must be read by a SELECT",
            "write IN (SELECT column FROM table)",
            node=node,
        )
    if isinstance(node, exp.Table):
        _check_table(node, dialect, catalog)
    elif isinstance(node, exp.Func) and type(node) not in SYNTAX_FUNCTIONS:
        _check_function(node, sql, dialect, catalog)
    elif not allowed_node(node):
        hint = "only reading is allowed: send a plain SELECT"
        raise RefusedError(
            "construct", f"{_label(node)} is not allowed in a query", hint, node=node
        )


def _check_pivot(node: exp.Pivot) -> None:
    """Refuse PIVOT without a list of values, because DuckDB would run a further statement to find
    the values. Raises `RefusedError`.
    """
    with_values = all(isinstance(one, exp.In) for one in node.expressions)
    if node.this and not node.unpivot and not with_values:
        raise RefusedError(
            "construct",
            "PIVOT without the values that become columns is not one query",
            _PIVOT_FORM,
            node=node,
        )


def _check_name(node: exp.Identifier) -> None:
    """Refuse invisible characters in a name. SQLite and DuckDB read some of them as spaces, but the
    parser reads them as part of the name. Raises `RefusedError`.
    """
    if not node.args.get("quoted") and any(
        unicodedata.category(char)[0] in "CZ" for char in node.name if char > "\x7f"
    ):
        raise RefusedError(
            "syntax",
            "a name holds a character that cannot be seen",
            "leave it out, or put the name in quotes",
            node=node,
        )


def _check_table(node: exp.Table, dialect: str, catalog: Catalog) -> None:
    if isinstance(node.this, exp.Func) or (node.this is None and node.args.get("rows_from")):
        return  # its name is checked when the walk comes to it
    # `a..b` leaves the schema an empty text, which is no name.
    odd = any(
        not isinstance(node.args.get(part) or node.this, exp.Identifier)
        or node.args.get(part) == ""
        for part in ("db", "catalog")
    )
    if not isinstance(node.this, exp.Identifier) or odd:
        raise RefusedError(
            "construct",
            "a table must be given by its name",
            "see list_tables for the names",
            node=node,
        )
    if is_cte(node, dialect) or _resolved(node, dialect, catalog) is not None:
        return
    name = node.name
    if reason := closed_view_reason(catalog, name):
        raise RefusedError("rows", reason, "read the table itself", node=node.this)
    raise missing_table(node, dialect, catalog)


def _resolved(node: exp.Expr, dialect: str, catalog: Catalog) -> Table | None:
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        return None
    return None if is_cte(node, dialect) else resolved_table(node, catalog, dialect)


_NAMING_TYPES = frozenset(
    {"from_json", "from_json_strict", "json_transform", "json_transform_strict"}
)
"""DuckDB's functions that take names of types in a text argument."""


def _check_function(node: exp.Func, sql: str, dialect: str, catalog: Catalog) -> None:
    name = _written_name(node, sql)
    in_from = isinstance(node.parent, exp.Table | exp.From | exp.Join | exp.Lateral)
    allowed = TABLE_FUNCTIONS[dialect] if in_from else SCALAR_FUNCTIONS[dialect]
    closed = catalog.hidden_functions | (
        _NAMING_TYPES if catalog.types_list_hidden_values else frozenset()
    )
    if name in allowed and name not in closed:
        return
    close = nearest(name, sorted(allowed))
    where = " in FROM" if in_from else ""
    raise RefusedError(
        "function",
        f"the function {name!r} is not allowed{where}",
        f"nearest functions: {', '.join(close)}" if close else "use another function",
        node=node,
        nearest=close,
    )


def _written_name(node: exp.Func, sql: str) -> str:
    """Return the name of a function as it is written in the text. The node itself does not have
    this name, because sqlglot uses one class for several names.
    """
    start = node.meta.get("start")
    end = node.meta.get("end")
    if isinstance(start, int) and isinstance(end, int):
        return fold(sql[start : end + 1].strip('"`[]'))
    if isinstance(node, exp.JSONTable):
        return "json_table"  # sqlglot has no name for it
    return fold(node.name if isinstance(node.this, str) else node.sql_name())


def _check_growth(tree: exp.Expr, dialect: str) -> None:
    size = growth(tree, dialect)
    rows = longest_series(tree) if dialect_of(dialect).series_are_rows else 1.0
    if size is None or rows is None:
        raise RefusedError(
            "growth",
            "a format string or a series has a size that the text does not tell",
            "write the format or the step as a literal, or use generate_series in FROM",
            node=largest(tree, dialect),
        )
    if rows > MAX_SERIES:
        reason = f"the query would make a series of {rows:,.0f} rows"
        raise RefusedError(
            "growth", reason, f"stay under {MAX_SERIES:,}", node=largest(tree, dialect)
        )
    if size > MAX_GROWTH:
        reason = f"the query would make values of some {size:,.0f} elements"
        raise RefusedError(
            "growth", reason, f"stay under {MAX_GROWTH:,}", node=largest(tree, dialect)
        )


def _label(node: exp.Expr) -> str:
    if isinstance(node, exp.Command):
        return str(node.this).upper()
    if isinstance(node, exp.Column | exp.Alias):
        return "the text"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()
