"""What differs between the dialects of SQL, one record for each.

Wall, scope, growth, masking, samples, values, hints and the analyst's writer ask these records, and
name no engine. A record names what is so in the dialect, not which engine it belongs to.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

ScanLimit = Literal["", "scan_rows", "columnar_scan_rows"]
"""The field of `CostThresholds` that limits the rows of a scan, "" if the engine tells a cost."""
DatePart = Literal["year", "month_of_year", "quarter", "hour", "weekday", "month", "day"]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One dialect. Its `name` is also sqlglot's name of it."""

    name: str
    title: str
    """The name of the engine for people."""
    engine: str
    """The engine's class, as `module:name`. It is imported when a database is opened."""
    extra: str = ""
    """The extra that the engine's driver needs, "" for none."""

    # Names
    quote: str = '"'
    """The mark that quotes names. The other kinds of quotes mean what sqlglot says."""
    exact_names: bool = False
    """Names in quotes are taken as they are, others are folded to lower case. Otherwise case does
    not matter in either.
    """
    backticks: bool = False
    """What runs has its names in backticks, because the engine reads an unknown name in double
    quotes as text.
    """
    double_quotes_are_text: bool = False
    """Text may stand in double quotes."""
    names_may_be_text: bool = False
    """An unknown name in double quotes is text."""
    row_ids: bool = False
    """Each table has a number of its rows, which is its integer primary key if it has one."""
    relations_by_case: bool = False
    """On some servers, tables, CTEs and aliases are different names if their case differs, though
    columns are not.
    """
    field_calls: bool = False
    """`t.text` casts the row t to text, and `t.to_json` calls the function."""

    # Queries
    sees_later_ctes: bool = False
    """A CTE sees those after it in the same WITH."""
    recurses_without_word: bool = False
    """A CTE may read itself without RECURSIVE, in each part of a union but its first."""
    aliases_in_items: bool = False
    """An item of a SELECT list may use the alias of an earlier one."""
    later_aliases: bool = False
    """A name may be the alias of any expression of the same SELECT, also of a later one or of one
    within another expression.
    """
    dotted_columns: bool = False
    """`n.a` may be one column whose name has a dot, such as a part of a Nested column."""
    old_names_stay: bool = False
    """A table that has an alias can still be named by its own name."""
    using_first: bool = False
    """The columns of USING come first in `*`."""
    reads_in_name: bool = False
    """`IN name` reads a table of this name."""
    lists_values: bool = True
    """`VALUES (1), (2)` may stand wherever a query may."""

    # Types
    tells_types: bool = False
    """`typeof`, `TRY_CAST` and `approx_quantile` exist. DESCRIBE of a query and SUMMARIZE are
    written with them.
    """
    named_types: bool = False
    """Casts may name a type of the database, and its error text lists the type's values."""
    declared_types: bool = True
    """A column's type says what its values are."""
    text_compared_with_number: bool = True
    """Text compared with a number is not cast, so no text makes the query fail."""
    text_type: str = "TEXT"
    own_types: bool = False
    """A database may define types, functions and operators that a query can name: see
    `type_names`.
    """
    plain_numbers: bool = False
    """Numbers such as `0x1F` and `1_000` are refused, because sqlglot reads them differently."""
    distance_operator: bool = False
    """`<=>` is a distance, and not the comparison that sqlglot takes it for."""
    schema_calls: bool = True
    """A call may have a schema before it, as in `main.lower(x)`."""
    whole_intervals: bool = False
    """A fraction in an interval is refused, because a number rounds and a text does not, and
    sqlglot writes both as text.
    """
    refused_nodes: frozenset[str] = frozenset()
    """sqlglot's classes of nodes that it reads but does not write as they were."""
    query_parts: frozenset[str] = frozenset()
    """sqlglot's names of the parts that a query may have, empty for all. A part may be no node of
    its own, such as SETTINGS.
    """
    join_kinds: frozenset[str] = frozenset()
    """The kinds of joins that a query may have, empty for all. A join of another kind may join no
    table.
    """
    scalar_ctes: bool = False
    """`WITH expression AS name` names an expression, and not a query."""
    bare_unions: bool = False
    """The engine is told that UNION, INTERSECT and EXCEPT without a word drop duplicates, though
    sqlglot takes them for errors.
    """
    ascii_names: bool = False
    """A name with other letters than A to Z needs quotes."""

    # Growth and cost
    bounds_growth: bool = True
    """Functions may make one value as large as memory, so a text is checked for it."""
    series_are_rows: bool = False
    """generate_series streams rows wherever it stands."""
    errors_by_cast: bool = False
    """There is no function that raises an error, but a cast of text to a number does."""
    scan_limit: ScanLimit = ""
    whole_rows: int = 0
    """A table of so many rows is read whole for its samples, 0 for the usual number."""

    # Texts
    backslash_escapes: bool = False
    """A backslash in text escapes the next character."""
    function_names: Mapping[str, str] = field(default_factory=dict)
    """The dialect's own names of functions, by sqlglot's class, where sqlglot would write another
    name that the engine does not know.
    """
    function_forms: Mapping[str, str] = field(default_factory=dict)
    """The dialect's own forms of functions, by sqlglot's class, where the name alone does not do.
    `{this}` and `{expression}` stand for the arguments.
    """
    fold_function: str = "lower"
    """The function that disregards case."""
    like: str = "ILIKE"
    """The operator for patterns that disregards case."""
    exact: str = "{}"
    """What a text is compared with so that case matters, with {} for the text."""
    folds_ascii_only: bool = False
    """Patterns disregard the case of A to Z only."""
    numbered_marks: bool = False
    """Parameters are $1, $2; otherwise each is ?."""
    row_fence: str = ""
    """The clause at the end of a subquery that keeps the engine from testing conditions of the
    query around it on rows that the subquery's own condition leaves out. Without one, a policy for
    this dialect can have no row filters.
    """
    correlated_aggregates: bool = True
    """A subquery within the argument of an aggregate may read the query around it."""
    set_order_is_last: bool = False
    """ORDER BY and LIMIT after the last SELECT of a UNION hold for this SELECT alone."""
    sample: str = ""
    """The clause that samples a share of a table's rows, with {} for the percentage. "" if a table
    has none.
    """
    nulls_first_ascending: bool = False
    nulls_first_descending: bool = False
    """Whether NULL comes first without NULLS LAST."""
    comment_statements: bool = False
    """COMMENT ON describes tables and columns."""
    comments_in_create: bool = False
    """CREATE TABLE has comments."""
    date_parts: Mapping[DatePart, str]
    """SQL that computes each part of a date, with {} for the date."""

    def quoted(self, name: str) -> str:
        """Return a name in quotes."""
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def literal(self, text: str) -> str:
        """Return a text as SQL."""
        escaped = text.replace("\\", "\\\\") if self.backslash_escapes else text
        return "'" + escaped.replace("'", "''") + "'"


def _parts_by_date_part(month: str) -> dict[DatePart, str]:
    names: dict[DatePart, str] = {
        "year": "year",
        "month_of_year": "month",
        "quarter": "quarter",
        "hour": "hour",
        "weekday": "dow",
    }
    parts: dict[DatePart, str] = {}
    for part, name in names.items():
        parts[part] = f"DATE_PART('{name}', CAST({{}} AS TIMESTAMP))"
    return {**parts, "month": month, "day": "CAST({} AS DATE)"}


_MONTH = "CAST(STRFTIME('%m', {}) AS INTEGER)"

SQLITE = Dialect(
    name="sqlite",
    title="SQLite",
    engine="longtable.tools.engines.sqlite:SqliteEngine",
    backticks=True,
    names_may_be_text=True,
    row_ids=True,
    sees_later_ctes=True,
    recurses_without_word=True,
    reads_in_name=True,
    declared_types=False,
    bounds_growth=False,
    scan_limit="scan_rows",
    function_names={"Chr": "CHAR"},
    row_fence="LIMIT -1 OFFSET 0",
    fold_function="lt_fold",
    like="LIKE",
    folds_ascii_only=True,
    nulls_first_ascending=True,
    date_parts={
        "year": "CAST(STRFTIME('%Y', {}) AS INTEGER)",
        "month_of_year": _MONTH,
        "hour": "CAST(STRFTIME('%H', {}) AS INTEGER)",
        "weekday": "CAST(STRFTIME('%w', {}) AS INTEGER)",
        "month": "STRFTIME('%Y-%m', {})",
        "day": "STRFTIME('%Y-%m-%d', {})",
        "quarter": f"CAST(CAST(({_MONTH} + 2) AS REAL) / 3 AS INTEGER)",
    },
)
DUCKDB = Dialect(
    name="duckdb",
    title="DuckDB",
    engine="longtable.tools.engines.duckdb:DuckdbEngine",
    aliases_in_items=True,
    tells_types=True,
    named_types=True,
    text_compared_with_number=False,
    text_type="VARCHAR",
    scan_limit="columnar_scan_rows",
    whole_rows=2_000_000,
    comment_statements=True,
    row_fence="OFFSET 0",
    sample="USING SAMPLE {} PERCENT (system, 42)",
    date_parts=_parts_by_date_part("STRFTIME(CAST({} AS TIMESTAMP), '%Y-%m')"),
)
POSTGRES = Dialect(
    name="postgres",
    title="PostgreSQL",
    engine="longtable.tools.engines.postgres:PostgresEngine",
    extra="postgres",
    exact_names=True,
    field_calls=True,
    using_first=True,
    own_types=True,
    plain_numbers=True,
    distance_operator=True,
    series_are_rows=True,
    errors_by_cast=True,
    function_names={"Hex": "TO_HEX"},
    numbered_marks=True,
    comment_statements=True,
    row_fence="OFFSET 0",
    sample="TABLESAMPLE SYSTEM ({}) REPEATABLE (42)",
    nulls_first_descending=True,
    date_parts=_parts_by_date_part("TO_CHAR(CAST({} AS TIMESTAMP), 'YYYY-MM')"),
)
MYSQL = Dialect(
    name="mysql",
    title="MySQL or MariaDB",
    engine="longtable.tools.engines.mysql:MysqlEngine",
    extra="mysql",
    quote="`",
    double_quotes_are_text=True,
    relations_by_case=True,
    using_first=True,
    lists_values=False,
    text_compared_with_number=False,
    text_type="CHAR",
    plain_numbers=True,
    schema_calls=False,
    whole_intervals=True,
    refused_nodes=frozenset({"Struct", "Version", "Into"}),
    bounds_growth=False,
    scan_limit="scan_rows",
    backslash_escapes=True,
    function_names={"Median": "MEDIAN"},
    row_fence="LIMIT 18446744073709551615",
    function_forms={
        "RegexpLike": "{this} REGEXP {expression}",
        "JSONExtractScalar": "JSON_UNQUOTE(JSON_EXTRACT({this}, {expression}))",
    },
    like="LIKE",
    exact="BINARY {}",
    comments_in_create=True,
    sample="WHERE RAND(42) < {} / 100",
    nulls_first_ascending=True,
    date_parts={
        "year": "YEAR({})",
        "month_of_year": "MONTH({})",
        "quarter": "QUARTER({})",
        "hour": "HOUR({})",
        "weekday": "DAYOFWEEK({}) - 1",
        "month": "DATE_FORMAT({}, '%Y-%m')",
        "day": "DATE({})",
    },
)
CLICKHOUSE = Dialect(
    name="clickhouse",
    title="ClickHouse",
    engine="longtable.tools.engines.clickhouse.clickhouse:ClickhouseEngine",
    extra="clickhouse",
    relations_by_case=True,
    aliases_in_items=True,
    later_aliases=True,
    old_names_stay=True,
    reads_in_name=True,
    dotted_columns=True,
    text_compared_with_number=False,
    text_type="String",
    schema_calls=False,
    refused_nodes=frozenset({"Aliases", "IntDiv", "TableSample", "AtTimeZone", "Values"}),
    query_parts=frozenset(
        {"with_", "this", "expression", "expressions", "alias", "distinct", "from_", "joins"}
        | {"where", "group", "having", "qualify", "windows", "order", "limit", "offset", "on"}
    ),
    join_kinds=frozenset({"", "INNER", "OUTER", "CROSS", "SEMI", "ANTI", "ANY", "ALL", "ASOF"}),
    lists_values=False,
    scalar_ctes=True,
    ascii_names=True,
    bounds_growth=False,
    scan_limit="columnar_scan_rows",
    whole_rows=2_000_000,
    backslash_escapes=True,
    row_fence="LIMIT 18446744073709551615",
    function_names={"Explode": "arrayJoin"},
    bare_unions=True,
    fold_function="lowerUTF8",
    correlated_aggregates=False,
    set_order_is_last=True,
    sample="WHERE rand() % 10000 < {} * 100",
    date_parts={
        "year": "toYear({})",
        "month_of_year": "toMonth({})",
        "quarter": "toQuarter({})",
        "hour": "toHour(CAST({} AS DateTime))",
        "weekday": "toDayOfWeek({}) % 7",
        "month": "formatDateTime({}, '%Y-%m')",
        "day": "toDate({})",
    },
)
DIALECTS: dict[str, Dialect] = {
    each.name: each for each in (SQLITE, DUCKDB, POSTGRES, MYSQL, CLICKHOUSE)
}
RESULTS = DUCKDB
"""The dialect of queries over kept results."""
DEFAULT_DIALECT = SQLITE.name
"""The dialect that a text is read in if nothing tells its dialect."""


def dialect_of(name: str) -> Dialect:
    """Return the record of a dialect. Raises `KeyError` for an unknown name."""
    return DIALECTS[name]
