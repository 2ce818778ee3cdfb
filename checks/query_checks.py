"""Plan the checks of a query: write the SQL that shows whether its figures can be trusted.

`probes_of` reads the tree of a query that has passed the wall, so it runs where texts are parsed.
Each check is a function of one SELECT (`Part`). It yields `Probe`s, whose SQL the caller runs
behind both walls. All their figures are counts of rows, so no probe returns a cell.

The question tells what the figures must mean. Without it, no check knows, for example, that minutes
were asked for, or customers instead of orders.
"""

from sqlglot import exp

from longtable.checks.counts import counted_rows
from longtable.checks.dates import date_bounds
from longtable.checks.joins import fan_out, rows_lost
from longtable.checks.nulls import nulls_dropped
from longtable.checks.query_part import Part
from longtable.checks.question import Question
from longtable.checks.sums import measure_faults
from longtable.checks.units import unit_faults
from longtable.tools.catalog import Catalog
from longtable.tools.sql.parsing import statement
from longtable.tools.sql.verdict import Probe

MOST_PROBES = 10
CHECKS = (
    fan_out,
    counted_rows,
    nulls_dropped,
    rows_lost,
    date_bounds,
    unit_faults,
    measure_faults,
)


def probes_of(sql: str, question: str = "", *, dialect: str, catalog: Catalog) -> list[Probe]:
    """Return the checks of a query that was run: all checks whose finding is certain without SQL,
    and at most `MOST_PROBES` checks with SQL.
    """
    tree = statement(sql, dialect)
    asked = Question(question.casefold())
    parts = [Part(select, tree, asked, dialect, catalog) for select in _selects(tree)]
    probes: dict[Probe, None] = {}
    for check in CHECKS:
        for part in parts:
            try:
                probes |= dict.fromkeys(check(part))
            except Exception:  # sqlglot's trees of odd texts fail with other errors than its own
                probes[Probe(check.__name__)] = None
    without_sql = [probe for probe in probes if not probe.sql]
    with_sql = [probe for probe in probes if probe.sql]
    return without_sql + with_sql[:MOST_PROBES]


def _selects(tree: exp.Expr) -> list[exp.Select]:
    """Return the SELECTs that have a FROM. A SELECT inside a condition is left out, because it may
    use columns of the query around it.
    """
    return [
        select
        for select in tree.find_all(exp.Select)
        if not select.find_ancestor(exp.Predicate) and select.args.get("from_")
    ]
