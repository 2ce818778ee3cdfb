"""Read a test of nao, which is a question and the SQL that answers it, as a verified query.

    name: total_revenue
    prompt: What is the total revenue from all orders?
    sql: |
      SELECT SUM(amount) AS total_revenue
      FROM orders

nao keeps one YAML document in each file of its folder `tests/`. PyYAML comes with the extra
`knowledge`.
"""

from pathlib import PurePosixPath

from longtable.base.errors import MissingExtraError
from longtable.knowledge.entries import Place, Problem, VerifiedQuery, one_line
from longtable.knowledge.exchange.untrusted import fault_of_text, kind_of
from longtable.knowledge.query_files import bare_sql, name_for

MOST_YAML_CHARS = 1_000_000
MOST_ALIASES = 100
MOST_DEPTH = 20
"""Most lists and mappings inside each other. PyYAML needs a minute for 100,000 open brackets."""


def read_nao(text: str, file: str) -> VerifiedQuery | Problem:
    """Return the query of a test, or what is wrong with it. `file`: such as
    "tests/total_revenue.yml"; a test without a name is named after it.

    Raises `MissingExtraError` if PyYAML is not installed.
    """
    test = _parsed(text, file)
    if isinstance(test, Problem):
        return test
    if not isinstance(test, dict):
        message = f"`name`, `prompt` and `sql` are needed, found {kind_of(test)}"
        return Problem(Place(file), message)
    values = {"name": PurePosixPath(file).stem, **test}
    for key in ("name", "prompt", "sql"):
        fault = fault_of_text(values.get(key))
        if fault:
            return Problem(Place(file), f"`{key}`: {fault}")
    question = one_line(values["prompt"])
    if not question:
        return Problem(Place(file), "`prompt`: the question is missing")
    sql = bare_sql(values["sql"])
    if not sql:
        return Problem(Place(file), "`sql`: the SQL is missing")
    name = name_for(values["name"].strip() or question)
    return VerifiedQuery(name=name, question=question, sql=sql, place=Place(file, 1))


def _parsed(text: str, file: str) -> object:
    """Return the value of a YAML text, or a `Problem` that says why it is not read."""
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError("tests of nao cannot be read", "knowledge") from error
    if len(text) > MOST_YAML_CHARS:
        message = f"at most {MOST_YAML_CHARS:,} characters of YAML, found {len(text):,}"
        return Problem(Place(file), message)
    try:
        danger = _danger(text)
        value: object = None if danger else yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        return Problem(Place(file, line), f"this is no YAML of one document: {error.problem}")
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # Dates and numbers that only look like it raise what Python's own types raise.
        return Problem(Place(file), f"this YAML cannot be read: {str(error)[:200]}")
    return Problem(Place(file), danger) if danger else value


def _danger(text: str) -> str:
    """Return why a YAML text must not be loaded, "" if it may be. It is only parsed here: each
    merge key and alias copies what it names, so a few lines can become gigabytes.
    """
    import yaml

    aliases = 0
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            aliases += 1
        elif isinstance(event, yaml.ScalarEvent) and event.value == "<<":
            return "merge keys (`<<`) are not read"
        tag = getattr(event, "tag", None)
        if tag:
            return f"tags such as {tag[:40]} are not read"
        if aliases > MOST_ALIASES:
            return f"at most {MOST_ALIASES} aliases are read"
        if depth > MOST_DEPTH:
            return "the YAML is nested too deeply"
    return ""
