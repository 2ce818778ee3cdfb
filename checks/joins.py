"""Check for joins that repeat rows which a figure adds up, and for joins that lose rows which the
question wants.
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from longtable.checks.query_part import Part, conjuncts
from longtable.tools.catalog import fold
from longtable.tools.schema.schema_index import singular
from longtable.tools.sql.verdict import Probe


def fan_out(part: Part) -> Iterator[Probe]:
    """Find joins that repeat rows of a table whose values are added up, counted or listed."""
    if len(part.tables) < 2 or not all(part.tables.values()):
        return
    yield from _repeated_figures(part)
    yield from _repeated_counts(part)
    yield from _idle_joins(part)


def _repeated_figures(part: Part) -> Iterator[Probe]:
    for node in part.aggregates:
        owners = sorted(part.owners(node))
        column = node.find(exp.Column)
        if column is None or "" in owners:
            continue
        if isinstance(node, exp.Avg) and _is_weighted(part, owners):
            continue
        yield Probe(
            "fan_out",
            f"{part.short(node)}: {{0:,}} rows of {' and '.join(owners)} count {{1:,}} times, for a"
            " join repeats them",
            part.repeats([part.text(column), *part.identity(*owners)]),
        )


def _repeated_counts(part: Part) -> Iterator[Probe]:
    """Find counts of rows in which a join without a condition pairs every row with every row."""
    crossed = [] if part.question.says("pairs") else _crossed(part)
    if not crossed:
        return
    alias = crossed[0]
    for node in part.aggregates:
        if node.find(exp.Column) is None:
            yield Probe(
                "fan_out",
                f"{part.short(node)}: {{0:,}} rows of {alias} count {{1:,}} times, for a join"
                " repeats them",
                part.repeats(part.identity(alias)),
            )


def _idle_joins(part: Part) -> Iterator[Probe]:
    """Find joins that only repeat the rows of a list, because nothing of the joined table is
    shown.
    """
    if not part.is_list:
        return
    for join in part.joins:
        if part.is_idle(join):
            joined = fold(join.this.alias_or_name)
            others = [alias for alias in part.tables if alias != joined]
            yield Probe(
                "fan_out",
                f"{join.this.name} is joined and nothing of it is shown: {{0:,}} rows are listed"
                " {1:,} times",
                part.repeats(part.identity(*others)),
            )


def _crossed(part: Part) -> list[str]:
    """Return the first table and all tables that conditions connect with it. Return an empty list
    if conditions connect all tables.
    """
    if any(join.args.get("using") or join.method == "NATURAL" for join in part.joins):
        return []
    ties = [part.owners(each) for each in _all_conditions(part)]
    tied = {next(iter(part.tables))}
    size = 0
    while size < len(tied):
        size = len(tied)
        tied = tied.union(*(names for names in ties if names & tied))
    return sorted(tied) if {*part.tables} - tied else []


def _all_conditions(part: Part) -> Iterator[exp.Expr]:
    """Yield the conditions of a SELECT and of its joins, all of which must hold."""
    yield from part.conditions
    for join in part.joins:
        on = join.args.get("on")
        if on is not None:
            yield from conjuncts(on)


def _is_weighted(part: Part, owners: Sequence[str]) -> bool:
    """Return whether the question wants an average with one value for each row of another table.
    For example, the average temperature over late flights counts the weather once for each flight.
    """
    if not part.question.text:
        return False
    names = part.question.names
    own: set[str] = set().union(*map(part.table_words, owners))
    for alias in part.tables:
        if alias in owners or not _is_one_each(part, alias):
            continue
        if part.is_used_outside_joins(alias) and not any(map(names, own)):
            return True
        if any(map(names, {*part.table_words(alias)} - own)):
            return True
    return False


def _is_one_each(part: Part, alias: str) -> bool:
    """Return whether the joins leave each row of a table single. They do if every other table is
    joined by its whole primary key.
    """
    reached = {alias}
    size = 0
    while size < len(reached):
        size = len(reached)
        reached |= {name for name in part.tables if _is_joined_by_key(part, name, reached)}
    return reached == {*part.tables}


def _is_joined_by_key(part: Part, name: str, known: set[str]) -> bool:
    """Return whether every column of a table's primary key is set equal to a column of the tables
    in `known`.
    """
    table = part.tables[name]
    keys: set[str] = set()
    for each in _all_conditions(part):
        sides = [each.this, each.expression] if isinstance(each, exp.EQ) else []
        columns = [side for side in sides if isinstance(side, exp.Column)]
        own = [column for column in columns if part.owners(column) == {name}]
        others = [column for column in columns if part.owners(column) <= known]
        if own and others:
            keys.add(fold(own[0].name))
    primary = {fold(column) for column in table.primary_key} if table else set()
    return bool(primary) and primary <= keys


def rows_lost(part: Part) -> Iterator[Probe]:
    """Find rows that a join loses because they have no match in the joined table. They are reported
    if the question seems to want them, or if the join is not used for anything else.
    """
    for place, join in enumerate(part.joins):
        on = join.args.get("on")
        if on is None or join.side or not _loses_wanted_rows(part, place):
            continue
        missing = f"NOT EXISTS (SELECT 1 FROM {part.text(join.this)} WHERE {part.text(on)})"
        yield Probe(
            "rows_lost",
            f"the join with {join.this.name} loses {{0:,}} rows that have no match there",
            part.count(missing, joins=place),
        )


def _loses_wanted_rows(part: Part, place: int) -> bool:
    """Return whether the answer should include rows that have no match in the join at `place`."""
    join = part.joins[place]
    onwards = {*list(part.tables)[place + 1 :]}
    if any(onwards & part.owners(each) for each in part.conditions):
        return False
    if part.question.says("outer"):
        return True
    columns = [
        column
        for column in join.args["on"].find_all(exp.Column)
        if not part.owners(column) & onwards
    ]
    if part.is_list and any(map(part.may_be_null, columns)):
        return True
    if part.aggregates and part.is_idle(join):
        return True
    every = set(map(singular, part.question.says("every")))
    return any(_subjects(part, column) & every for column in columns)


def _subjects(part: Part, column: exp.Expr) -> set[str]:
    """Return the last word in the name of each table that a column may belong to."""
    words: set[str] = set()
    for owner in part.owners(column):
        words.update(part.table_words(owner)[-1:])
    return words
