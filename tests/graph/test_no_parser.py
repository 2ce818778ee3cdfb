"""No text of a model is parsed in the process that talks: the parser is not even loaded there."""

import subprocess
import sys
from pathlib import Path

from tests.tools.databases import DIALECTS, make, url

TURN = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from longtable.graph import Context, Conversation, Database, ResultStore, build_graph
from longtable.tools.check_tool import check_tool
from tests.support.models import call, script

calls = [
    call("list_tables", "c1"),
    call("run_sql", "c2", sql="SELECT name, salary FROM people"),
    call("run_sql", "c3", sql="SELECT name FROM people WHERE city = 'bern'"),
    call("run_sql", "c4", sql="SELECT nme FROM people"),
    call("run_sql", "c5", sql="DROP TABLE people"),
    call("fetch_result", "c6", sql="SELECT max(salary) FROM r1"),
    call("fetch_result", "c7", sql="SELECT max(salry) FROM r1"),
    call("check_sql", "c8", result="r1", question="Who earns most?"),
    call("check_sql", "c9", sql="DROP TABLE people"),
]
results = ResultStore(Path(sys.argv[1]), clock=lambda: datetime.now(UTC))
for place in sys.argv[2:]:
    with Database.open(place) as database:
        graph = build_graph(model=script(*calls, "There."), database=database, tools=[check_tool(database)], results=results)
        compiled = graph.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
        context = Context(model_limit=64_000, approve_sql="costly")
        talk = Conversation(compiled, database.dialect, context=context, results=results)
        answer = talk.ask("Who earns most?")
        talk.compact()
        print(database.dialect, [entry.verdict == "run" for entry in talk.audit()], answer.text)
loaded = [name for name in sys.modules if name.partition(".")[0] == "sqlglot"]
assert not loaded, loaded[:5]
"""


def test_a_chat_turn_with_queries_loads_no_parser(tmp_path: Path) -> None:
    places = [url(make(tmp_path, dialect)) for dialect in DIALECTS]
    command = [sys.executable, "-c", TURN, str(tmp_path / "results"), *places]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    verdicts = [True, True, False, False, True, False, True, False]
    assert done.stdout.splitlines() == [f"{dialect} {verdicts} There." for dialect in DIALECTS]
