"""Apply a policy to the catalogue of an engine: find the part that a model may see, and what the
views in it read.

A view is hidden if it names a denied column, if it may read one without naming it (by `*`, a whole
row or NATURAL JOIN), or if it cannot be parsed. Even if the author of the view wanted to publish
the column, the policy overrides this.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from sqlglot import exp

from longtable.tools.catalog import (
    Catalog,
    Column,
    Reflected,
    RowFilter,
    Table,
    calls,
    each_column,
    fold,
    mentions,
)
from longtable.tools.cells import without_labels
from longtable.tools.sql.masks.masked_names import ROW_IDS
from longtable.tools.sql.masks.masking import masks_of_view
from longtable.tools.sql.parsing import RefusedError, statements
from longtable.tools.sql.row_filters.filter_checks import (
    closed_views,
    row_filters_of,
    spelled,
    without_estimate,
)
from longtable.tools.sql.scope import cte_of
from longtable.tools.sql.table_policy import TablePolicy
from longtable.tools.sql.verdict import Masks

Key = tuple[str, str]
"""Schema and name of a table."""
MaskedColumns = dict[str, frozenset[str]]
"""Names of columns, by the name under which their table is shown."""


def visible(reflected: Reflected, policy: TablePolicy, *, dialect: str = "") -> Catalog:
    """Return the part of the catalogue that the policy shows.

    Left out are the tables that the policy hides, partitions of shown tables, views that read a
    denied table or one with a row filter, and foreign keys that point at any of these. Denied
    columns are left out too, and a view that may read a denied column is left out as a whole.
    Raises `ConfigError` if the policy names a table or column that does not exist, or if a row
    filter does not fit its table.
    """
    open_tables = _open_by_name(reflected, policy)
    hidden: dict[tuple[str, str], frozenset[str]] = {}
    masked: MaskedColumns = {}
    computed: MaskedColumns = {}
    policy.check_tables((table.bare_name, table.schema) for table in reflected.tables)
    if policy.names_columns:
        policy.check_columns(
            (column.name, table.bare_name, table.schema)
            for table, column in each_column(reflected.tables)
        )
        hidden = _hidden_columns(reflected, policy, dialect)
        closed_columns = _with_row_ids(reflected, hidden)
        open_tables -= _views_that_read(
            reflected, lambda text: _takes_in(text, closed_columns, dialect, reflected)
        )
        masked, computed = masked_columns(reflected, policy, dialect)
    filters = row_filters_of(reflected, policy, dialect)
    closed_by_rows = closed_views(reflected, filters)
    shut = {name: told for name, told in closed_by_rows.items() if name in open_tables}
    open_tables -= shut.keys()
    columns = {
        table.name: _marked_columns(_without_denied(table, hidden), masked, computed)
        for table in reflected.tables
    }
    tables = _shown_tables(reflected, open_tables, columns, filters)
    closed = _closed_types(reflected, tables)
    return Catalog(
        tables,
        database_names=reflected.database_names,
        hidden_functions=reflected.own_functions,
        exact_case=reflected.exact_case,
        own_types=frozenset(name for name in reflected.own_types if not _names_one(name, closed)),
        types_list_hidden_values=any(kind != without_labels(kind) for kind in closed),
        hidden_columns=hidden,
        row_filters=filters,
        closed_views=spelled(shut, reflected),
        view_sql=reflected.view_sql,
    )


def _open_by_name(reflected: Reflected, policy: TablePolicy) -> set[str]:
    """Return the tables that the policy permits, without views that may read a denied one."""
    open_tables = {table.name for table in reflected.tables if _is_open(table, reflected, policy)}
    denied = {name.rpartition(".")[2] for name in policy.denied}
    open_tables -= _views_that_read(
        reflected, lambda text: any(mentions(text, name) for name in denied)
    )
    if policy.denied or policy.names_columns or policy.row_filters:
        # Nobody knows what they read.
        open_tables -= reflected.unread_views
    if len(open_tables) < len(reflected.tables) or policy.names_columns or policy.row_filters:
        # Nobody knows what a function of the database reads: it runs with its author's rights.
        functions = reflected.own_functions
        open_tables -= _views_that_read(
            reflected, lambda text: any(calls(text, name) for name in functions)
        )
    return open_tables


def _shown_tables(
    reflected: Reflected,
    open_tables: set[str],
    columns: Mapping[str, tuple[Column, ...]],
    filters: Mapping[Key, RowFilter],
) -> tuple[Table, ...]:
    """Return the tables that are shown, with the columns and keys that are shown of them."""
    # A table of which nothing is left is not there; a view that is broken has no columns to begin
    # with.
    open_tables = open_tables - {
        table.name for table in reflected.tables if table.columns and not columns[table.name]
    }
    return tuple(
        _without_hidden_keys(
            without_estimate(replace(table, columns=columns[table.name]), filters),
            open_tables,
            columns,
        )
        for table in reflected.tables
        if table.name in open_tables
    )


def _is_open(table: Table, reflected: Reflected, policy: TablePolicy) -> bool:
    """Return whether the policy permits a table. It does not if it denies a partition of the
    table.
    """
    parts = reflected.parts.get((table.schema, table.bare_name), ())
    denied = any(policy.denies(name, schema) for schema, name in parts)
    return policy.permits(table.bare_name, table.schema) and not denied


def _hidden_columns(
    reflected: Reflected, policy: TablePolicy, dialect: str
) -> dict[tuple[str, str], frozenset[str]]:
    """Return the denied columns of each table. What is denied in a table is also denied in its
    partitions, and the other way round.
    """
    hidden: dict[tuple[str, str], set[str]] = {}
    for table in reflected.tables:
        key = (table.schema, table.bare_name)
        for schema, name in (key, *reflected.parts.get(key, ())):
            hidden.setdefault(key, set()).update(
                column.name
                for column in table.columns
                if not policy.permits_column(column.name, name, schema)
            )
    for key, parts in reflected.parts.items():
        for part in parts:
            if part in hidden:
                hidden[part] |= hidden.get(key, set())
    for table in reflected.tables:
        key = (table.schema, table.bare_name)
        hidden[key] |= _generated_from(table, hidden[key], dialect)
    return {key: frozenset(names) for key, names in hidden.items() if names}


def _generated_from(table: Table, columns: Iterable[str], dialect: str) -> frozenset[str]:
    """Return the generated columns that a table computes from any of these columns, either directly
    or from other generated columns.
    """
    closed = {fold(name) for name in columns}
    sources = {
        column.name: _columns_in(column, table, dialect)
        for column in table.columns
        if closed and column.generated_by
    }
    generated: set[str] = set()
    while more := {name for name in sources.keys() - generated if sources[name] & closed}:
        generated |= more
        closed |= {fold(name) for name in more}
    return frozenset(generated)


def _columns_in(column: Column, table: Table, dialect: str) -> frozenset[str]:
    """Return the folded names of the columns that a generated column reads. If its SQL cannot be
    parsed, return all columns of the table.
    """
    every = frozenset(fold(one.name) for one in table.columns)
    try:
        trees = statements(column.generated_by, dialect)
    except RefusedError:
        return every
    tree = trees[0] if len(trees) == 1 else None
    if isinstance(tree, exp.Create):
        definitions = tree.find_all(exp.ColumnDef)
        tree = next((one for one in definitions if fold(one.name) == fold(column.name)), None)
    if tree is None:
        return every
    return frozenset(fold(node.name) for node in tree.find_all(exp.Identifier))


def _without_denied(table: Table, hidden: Mapping[Key, frozenset[str]]) -> Table:
    denied = hidden.get((table.schema, table.bare_name), frozenset())
    left = tuple(column for column in table.columns if column.name not in denied)
    return replace(table, columns=left)


def _marked_columns(
    table: Table, masked: MaskedColumns, computed: MaskedColumns
) -> tuple[Column, ...]:
    closed = masked.get(table.name, frozenset())
    derived = computed.get(table.name, frozenset())
    return tuple(
        _as_masked(column, computed=column.name in derived) if column.name in closed else column
        for column in table.columns
    )


def _closed_types(reflected: Reflected, tables: Iterable[Table]) -> frozenset[str]:
    """Return the types that only denied or masked columns have. They must stay hidden, because a
    type may list values.
    """
    is_seen = {
        (table.name, column.name) for table, column in each_column(tables) if not column.masked
    }
    closed: set[str] = set()
    seen: set[str] = set()
    for table, column in each_column(reflected.tables):
        closed.add(column.type)
        if (table.name, column.name) in is_seen:
            seen.add(column.type)
    return frozenset(closed - seen)


def _names_one(name: str, kinds: Iterable[str]) -> bool:
    return any(mentions(without_labels(kind), name.rpartition(".")[2]) for kind in kinds)


def _as_masked(column: Column, *, computed: bool) -> Column:
    return replace(column, masked=True, computed=computed, type=without_labels(column.type))


def _views_that_read(reflected: Reflected, reads: Callable[[str], bool]) -> set[str]:
    """Return the names of the views whose SQL passes the test `reads`, and of all views that read
    these views, directly or through others.
    """
    views = {view.name: view.bare_name for view in reflected.tables if view.kind == "view"}
    texts = {
        view.name: reflected.view_sql.get((view.schema, view.bare_name), "")
        for view in reflected.tables
        if view.name in views
    }
    closed = {name for name, text in texts.items() if reads(text)}

    def reads_closed(name: str) -> bool:
        return any(mentions(texts[name], views[other]) for other in closed)

    while more := set(filter(reads_closed, texts.keys() - closed)):
        closed |= more
    return closed


def _without_hidden_keys(
    table: Table, open_tables: set[str], columns: Mapping[str, tuple[Column, ...]]
) -> Table:
    """Remove keys that name a table or column that is not shown. A key is removed as a whole,
    because a key with only some of its columns would be wrong.
    """

    def shown(names: tuple[str, ...], owner: str) -> bool:
        return {fold(name) for name in names} <= {
            fold(column.name) for column in columns.get(owner, ())
        }

    keys = tuple(
        key
        for key in table.foreign_keys
        if key.table in open_tables
        and shown(key.columns, table.name)
        and shown(key.referenced_columns, key.table)
    )
    primary = table.primary_key if shown(table.primary_key, table.name) else ()
    return replace(table, foreign_keys=keys, primary_key=primary)


def masked_columns(
    reflected: Reflected, policy: TablePolicy, dialect: str
) -> tuple[MaskedColumns, MaskedColumns]:
    """Return the masked columns of each table, and which of them the view or table computes, both
    by the name that the table is shown under. Which columns of a view are masked follows from the
    tables it reads.
    """
    masked = {table.name: _masked_by_policy(reflected, table, policy) for table in reflected.tables}
    texts = [
        (view, text)
        for view in reflected.tables
        if (text := reflected.view_sql.get((view.schema, view.bare_name))) is not None
    ]
    computed: MaskedColumns = {
        table.name: _generated_from(table, masked[table.name], dialect)
        for table in reflected.tables
    }
    masked = {name: names | computed[name] for name, names in masked.items()}
    grown = any(masked.values())
    while grown:
        known = [
            replace(table, columns=_marked_columns(table, masked, computed))
            for table in reflected.tables
        ]
        grown = False
        for view, text in texts:
            through, derived = _come_through(text, view, known, dialect)
            grown = grown or not (through <= masked[view.name] and derived <= computed[view.name])
            masked[view.name] |= through
            computed[view.name] |= derived
    return masked, computed


def _masked_by_policy(reflected: Reflected, table: Table, policy: TablePolicy) -> frozenset[str]:
    names = [column.name for column in table.columns]
    return frozenset(name for name in names if _is_masked(reflected, table, name, policy))


def _is_masked(reflected: Reflected, table: Table, column: str, policy: TablePolicy) -> bool:
    key = (table.schema, table.bare_name)
    parents = [parent for parent, parts in reflected.parts.items() if key in parts]
    return any(
        policy.masks(column, name, schema)
        for schema, name in (key, *reflected.parts.get(key, ()), *parents)
    )


def _with_row_ids(
    reflected: Reflected, hidden: Mapping[Key, frozenset[str]]
) -> dict[Key, frozenset[str]]:
    """Return the hidden columns, with the names of SQLite's rowid added for each table in which a
    column of the primary key is hidden.
    """
    keys = {
        (table.schema, table.bare_name): set(map(fold, table.primary_key))
        for table in reflected.tables
    }
    closed = dict(hidden)
    for key, names in hidden.items():
        if keys.get(key, set()) & set(map(fold, names)):
            closed[key] = names | set(ROW_IDS)
    return closed


def _takes_in(
    text: str, hidden: Mapping[Key, frozenset[str]], dialect: str, reflected: Reflected
) -> bool:
    """Return whether a view's SQL may read a hidden column, either by name or without naming it."""
    names: list[str] = []
    for (_, table), columns in hidden.items():
        if mentions(text, table):
            names += columns
    if not names:
        return False
    if any(mentions(text, name) for name in names):
        return True
    query = _query(text, dialect)
    if query is None:
        return True
    sources = {
        fold(node.alias_or_name) for node in query.find_all(exp.Table, exp.Subquery, exp.CTE)
    }
    for node in query.walk():
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            return True
        if isinstance(node, exp.Column) and fold(node.name) in sources:
            return True
        if isinstance(node, exp.Join) and node.method.upper() in ("NATURAL", "POSITIONAL"):
            return True
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Func):
            return True
        if isinstance(node, exp.Columns | exp.Pivot):
            return True
        if isinstance(node, exp.Anonymous) and fold(node.name) in reflected.own_functions:
            # What it reads is not looked at.
            return True
    return False


def _come_through(
    text: str, view: Table, tables: Iterable[Table], dialect: str
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the columns of a view that are masked because it reads masked columns, and which of
    these the view computes.
    """
    every = frozenset(column.name for column in view.columns)
    by_name: dict[str, Table] = {}
    for table in tables:
        if table.name != view.name and mentions(text, table.bare_name):
            # In another schema.
            same = by_name.get(fold(table.bare_name), replace(table, columns=()))
            both = replace(table, columns=same.columns + table.columns)
            by_name[fold(table.bare_name)] = both
    if not any(table.has_masks for table in by_name.values()):
        return frozenset(), frozenset()
    query = _query(text, dialect)
    if query is None:
        return every, every
    try:
        masks, derived = masks_of_view(query, lambda node: _read(node, by_name, dialect), dialect)
    except RefusedError:
        return every, every
    return _names(masks, view), _names(derived, view)


def _names(masks: Masks, view: Table) -> frozenset[str]:
    """Return the names of the masked columns of a view."""
    places = masks.of([column.name for column in view.columns])
    return frozenset(view.columns[place].name for place in places)


def _read(node: exp.Table, tables: Mapping[str, Table], dialect: str) -> Table | None:
    return (
        tables.get(fold(node.name))
        if isinstance(node.this, exp.Identifier) and cte_of(node, dialect) is None
        else None
    )


def _query(text: str, dialect: str) -> exp.Expr | None:
    """Return the query of a view. Return None if it cannot be parsed, or if the view renames its
    columns in a list after its name.
    """
    try:
        trees = statements(text, dialect)
    except RefusedError:
        return None
    if len(trees) != 1:
        return None
    query = trees[0].expression if isinstance(trees[0], exp.Create) else trees[0]
    if isinstance(trees[0], exp.Create) and isinstance(trees[0].this, exp.Schema):
        return None  # columns renamed by place: all of them count
    return query if isinstance(query, exp.Select | exp.SetOperation | exp.Subquery) else None
