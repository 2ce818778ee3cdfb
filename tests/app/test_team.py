"""A team in the programs: settings, the terminal, Studio's graph; started as a person starts
them.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from longtable.analyst.model import BuiltInAnalyst
from longtable.app import open_with_settings
from longtable.app.settings.run_settings import load_settings
from longtable.app.settings.settings_tables import TeamTable, team_of
from longtable.graph import (
    ConfigError,
    Context,
    Database,
    ResultStore,
    as_node,
    as_tool,
    build_graph,
)
from longtable.graph.wiring.build import ConversationGraph
from tests.app.runner import Home, make_home
from tests.tools.databases import make

TEAM = """
[team]
mode = "workflow"
steps = ["analyst=ana", "checker"]
max_calls = 9
projects = ["audit"]

[[team.personas]]
id = "ana"
name = "Ana"
aliases = ["安娜"]
color = "cyan"

[[team.personas]]
id = "checker"
tools = ["run_sql"]
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


def test_each_voice_of_a_chat_begins_with_its_name_and_its_cost_is_told_first(home: Home) -> None:
    done = home.run("chat", "--team", stdin=b"How many orders are there?\n@bob, are you there?\n")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    names = [line for line in lines if re.fullmatch(r"\w+:", line)]
    assert names[:3] == ["Analyst:", "Checker:", "Reviewer:"]
    cost = next(
        place
        for place, line in enumerate(lines)
        if line.startswith("Team (workflow): tokens of each next call: analyst ")
    )
    assert lines[cost].endswith("The turn makes at most 24 model calls.")
    assert cost < lines.index("Analyst:") < lines.index("Checker:") < lines.index("Reviewer:")
    assert "There are" in "".join(lines[lines.index("Analyst:") : lines.index("Checker:")])
    assert "I checked r1 again and found nothing wrong" in "".join(
        lines[lines.index("Checker:") : lines.index("Reviewer:")]
    )
    assert "Nobody here is called @bob; the team is analyst, checker, reviewer." in lines


def test_a_chinese_question_is_checked_and_judged_in_chinese(home: Home) -> None:
    done = home.run("ask", "有多少订单？", "--team")
    assert "已重新核对 r1，没有发现问题" in done.stdout
    assert "问题已经回答，核对没有发现问题。" in done.stdout


def test_a_decline_is_not_reviewed_as_an_answer(home: Home) -> None:
    done = home.run("ask", "Which customer is the nicest?", "--team")
    assert "There is no query to check." in done.stdout
    assert "The question is not answered: no query ran." in done.stdout
    assert "The question is answered" not in done.stdout


def test_json_names_the_voice_of_each_event(home: Home) -> None:
    done = home.run("ask", "How many orders are there?", "--team", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["voice"] for event in events if event["type"] == "voice_started"] == [
        "analyst",
        "checker",
        "reviewer",
    ]
    assert [event["voice"] for event in events if event["type"] == "query_finished"] == ["analyst"]
    assert [said["name"] for said in events[-1]["voices"]] == ["Analyst", "Checker", "Reviewer"]


def test_the_team_of_a_file_answers_on_threads_of_its_projects(home: Home) -> None:
    (file := home.folder / "longtable.toml").write_text(TEAM)
    for project, voices in (("audit", ["ana", "checker"]), ("sales", [])):
        with open_with_settings(
            home.shop, config=str(file), project=project, store="memory://"
        ) as conversation:
            assert [
                said["voice"] for said in conversation.ask("How many orders are there?").voices
            ] == voices


def test_config_prints_the_team_and_where_it_comes_from(home: Home) -> None:
    (home.folder / "longtable.toml").write_text(TEAM)
    done = home.run("config", "--json", "--config", str(home.folder / "longtable.toml"))
    rows = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert json.loads(rows["team.personas"]["value"])[1] == {"id": "checker", "tools": ["run_sql"]}
    assert "longtable.toml, line 5" in rows["team.max_calls"]["source"]
    settings = load_settings({"config": str(home.folder / "longtable.toml")}, environment={})
    assert not settings.team.answers(None)
    assert settings.team.answers("audit")


MODES = ("free_chat", "workflow", "quiz", "werewolf")


@pytest.mark.parametrize("mode", MODES)
def test_the_settings_file_gives_each_mode_a_compaction_policy(mode: str, home: Home) -> None:
    ids = ("analyst", "checker", "reviewer", "quizmaster")
    personas = "".join(f"[[team.personas]]\nid = '{id_}'\n" for id_ in ids)
    compaction = "[team.compaction]\npreset = 'window'\nkeep_rounds = 3\n"
    file = home.folder / "longtable.toml"
    file.write_text(f"[team]\nmode = '{mode}'\n{compaction}{personas}")
    settings = load_settings({"config": str(file)}, environment={})
    team = team_of(settings.team)
    assert team.mode.name == mode
    assert team.mode.policy is not None
    assert (team.mode.policy.strategy, team.mode.policy.keep_rounds) == ("window", 3)
    done = home.run("config", "--json", "--config", str(file))
    rows = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert "longtable.toml, line 4" in rows["team.compaction"]["source"]
    assert json.loads(rows["team.compaction"]["value"]) == {"preset": "window", "keep_rounds": 3}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("keep_round = 3", "team.compaction.keep_round is not known; did you mean keep_rounds"),
        ("keep_rounds = 0", "keep_rounds"),
    ],
)
def test_a_wrong_key_of_a_teams_compaction_is_named(line: str, sentence: str, home: Home) -> None:
    file = home.folder / "longtable.toml"
    file.write_text(f"[team]\nmode = 'workflow'\n[team.compaction]\n{line}\n")
    with pytest.raises(ConfigError, match=sentence):
        load_settings({"config": str(file)}, environment={})


def test_a_team_that_cannot_be_is_refused_before_the_first_turn(home: Home) -> None:
    text = TEAM.replace('"run_sql"', '"run_python"').replace('projects = ["audit"]\n', "")
    (file := home.folder / "longtable.toml").write_text(text)
    done = home.run("ask", "How many orders are there?", "--config", str(file))
    assert done.returncode == 1
    assert "there is no tool run_python" in done.stderr
    assert "Traceback" not in done.stderr


def test_usage_and_audit_say_which_voice_it_was(home: Home) -> None:
    assert (
        home.run("ask", "How many orders are there?", "--team", "--thread", "orders").returncode
        == 0
    )
    used = [
        json.loads(line)
        for line in home.run("usage", "--by", "voice", "--json").stdout.splitlines()
    ]
    assert [row["voice"] for row in used] == ["analyst", "checker", "reviewer"]
    assert all(row["input"] > 0 for row in used)
    asked = [
        json.loads(line)
        for line in home.run("audit", "--thread", "orders", "--json").stdout.splitlines()
    ]
    assert [*dict.fromkeys((row["voice"], row["tool"]) for row in asked)] == [
        ("analyst", "run_sql"),
        ("checker", "check_sql"),
    ]
    assert "checker" in home.run("audit", "--thread", "orders").stdout


ORDERS = """CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL NOT NULL);
INSERT INTO orders VALUES (1, 5), (2, 7), (3, 9)"""
VERDICT = "The question is answered, and the check found nothing wrong."


@pytest.fixture
def built_in_team(tmp_path: Path) -> Iterator[ConversationGraph]:
    with Database.open(str(make(tmp_path, "sqlite", ORDERS))) as database:
        yield build_graph(
            model=BuiltInAnalyst(),
            database=database,
            results=ResultStore(tmp_path / "results", clock=lambda: datetime.now(UTC)),
            team=team_of(TeamTable()),
            summarizer=False,
        )


def test_the_built_in_team_as_a_tool_gives_the_analysts_answer_and_the_verdict_below_it(
    built_in_team: ConversationGraph,
) -> None:
    tool = as_tool(built_in_team, context=Context(model_limit=32_000))
    question = {"question": "How many orders are there?"}
    for text in (tool.invoke(question), asyncio.run(tool.ainvoke(question))):
        assert text.startswith("Analyst: There are 3 ")
        assert text.count("\n\nChecker: ") == 1
        assert text.endswith(f"\n\nReviewer: {VERDICT}")


def test_the_built_in_team_as_a_node_gives_a_message_for_each_voice(
    built_in_team: ConversationGraph,
) -> None:
    parent = StateGraph(MessagesState)
    parent.add_node("team", as_node(built_in_team, context=Context(model_limit=32_000)))
    parent.add_edge(START, "team")
    values = parent.compile().invoke({"messages": [HumanMessage("How many orders are there?")]})
    answers = values["messages"][1:]
    assert [message.name for message in answers] == ["Analyst", "Checker", "Reviewer"]
    assert answers[0].text.startswith("There are 3 ")
    assert answers[-1].text == VERDICT


GAME = """
[team]
mode = "werewolf"
personas = [{ id = "ada" }, { id = "ben" }, { id = "cleo" }]
"""


def test_a_game_is_told_in_figures_of_the_team_alone(home: Home) -> None:
    (file := home.folder / "longtable.toml").write_text(GAME)
    asked = home.run("ask", "How many orders are there?", "--config", str(file), "--json")
    assert asked.returncode == 0, asked.stderr
    events = [*map(json.loads, asked.stdout.splitlines())]
    counted = [event for event in events if event["type"] == "context_usage"]
    assert counted
    assert all(event["of_team"] for event in counted)
    used = home.run("usage", "--by", "voice", "--json").stdout.splitlines()
    assert [json.loads(line)["voice"] for line in used] == ["team"]
    shown = home.run("ask", "How many orders are there?", "--config", str(file)).stdout
    assert re.search(r"Team \(werewolf\): tokens of each next call: team [\d,]+", shown)
    assert "context (team)" in shown
