"""The harness proves itself: it gives a model that is always, never or half of the time right just
that score, through the real graph, tools and walls.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from longtable.analyst.model import BuiltInAnalyst
from longtable.base.errors import ProviderAuthError, ProviderRateLimitedError
from longtable.evaluation.journal import Journal
from longtable.evaluation.question_set import Dialogue, Turn
from longtable.evaluation.turn_results import TurnResult, tally_of
from tests.support.evaluated import (
    GOLD,
    QUESTIONS,
    SINGLES,
    SUBJECT,
    Shop,
    SqlFor,
    beside,
    half,
    make_shop,
    model_of,
    right,
    single,
)
from tests.support.models import ScriptedModel, call


def run(
    folder: Path, model: ScriptedModel, dialogues: Sequence[Dialogue] = SINGLES, **settings: object
) -> tuple[list[TurnResult], list[str]]:
    results: list[TurnResult] = []
    shop = Shop(make_shop(folder / "shop.db"), folder, model)
    with Journal(folder / "run" / "journal.jsonl", resume=False) as journal:
        evaluation = shop.evaluation(journal, dialogues, on_turn=results.append, **settings)
        problems = evaluation.run()
    shop.database.close()
    return results, [str(problem) for problem in problems]


@pytest.mark.parametrize("jobs", [1, 4])
@pytest.mark.parametrize(("sql_for", "share"), [(right, 1.0), (beside, 0.0), (half, 0.5)])
def test_a_model_gets_the_score_that_it_earned(
    tmp_path: Path, sql_for: SqlFor, share: float, jobs: int
) -> None:
    results, problems = run(tmp_path, model_of(sql_for), jobs=jobs)
    assert len(results) == len(QUESTIONS)
    assert tally_of(results).accuracy == share
    assert problems == []


def test_gold_that_fails_is_told_and_neither_asked_nor_scored(tmp_path: Path) -> None:
    model = model_of(right)
    broken = single("Broken?", "SELECT gone FROM orders")
    results, problems = run(tmp_path, model, [broken, SINGLES[0]])
    assert [result.verdict for result in results] == ["unscored", "right"]
    assert "gold fails: no such column: gone" in results[0].check
    [problem] = problems
    assert "Broken?: not scored: gold fails" in problem
    assert len(model.sent) == 2


def test_a_dialogue_is_one_thread_and_right_only_as_a_whole(tmp_path: Path) -> None:
    model = model_of(half)
    turns = [Turn(text=question, gold=[GOLD[question]]) for question in QUESTIONS[:2]]
    results, _ = run(tmp_path, model, [Dialogue(id="d", turns=turns), SINGLES[1]])
    tally = tally_of(results)
    assert (tally.right, tally.scored) == (2, 3)
    assert (tally.interactions_right, tally.interactions) == (1, 2)
    texts = [message.text for message in model.sent[2] if message.type == "human"]
    assert texts == list(QUESTIONS[:2])
    fresh = [message.text for message in model.sent[4] if message.type == "human"]
    assert fresh == [QUESTIONS[1]]


def test_what_a_turn_took_is_its_own(tmp_path: Path) -> None:
    turns = [Turn(text=question, gold=[GOLD[question]]) for question in QUESTIONS[:3]]
    results, _ = run(tmp_path, model_of(right), [Dialogue(id="d", turns=turns)])
    assert [result.calls for result in results] == [2, 2, 2]
    assert all(result.estimated == 2 for result in results)
    assert 0 < results[0].input < results[1].input < results[2].input
    assert [result.seconds for result in results] == [1, 1, 1]


def test_a_refusal_and_a_question_back_run_no_query(tmp_path: Path) -> None:
    dialogues = [
        single("Delete all orders.", "x", expects="refusal"),
        single("Which is best?", "x", expects="question"),
    ]
    bare = [Dialogue(id=d.id, turns=[_without_gold(d.turns[0])]) for d in dialogues]
    results, _ = run(tmp_path, model_of(lambda _: ""), bare)
    assert [result.verdict for result in results] == ["right", "wrong"]
    assert results[1].check == "no question"


def _without_gold(turn: Turn) -> Turn:
    return Turn(text=turn.text, expects=turn.expects)


def test_a_rate_limit_is_waited_for_and_loses_no_query(tmp_path: Path) -> None:
    calls = 0
    told: list[float] = []

    def answer(messages: Sequence[BaseMessage]) -> AIMessage:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise ProviderRateLimitedError("slow down", retry_after=7)
        if messages[-1].type == "tool":
            return AIMessage("done")
        return call("run_sql", sql=right(messages[-1].text))

    shop = Shop(make_shop(tmp_path / "shop.db"), tmp_path, ScriptedModel(say=answer))
    results: list[TurnResult] = []
    with Journal(tmp_path / "journal.jsonl", resume=False) as journal:
        shop.evaluation(journal, SINGLES[:1], on_turn=results.append, on_wait=told.append).run()
    assert shop.waits == [7]
    assert told == [7]
    assert [result.verdict for result in results] == ["right"]
    assert calls == 3


def test_a_provider_that_stays_away_ends_the_run_and_keeps_what_was_scored(tmp_path: Path) -> None:
    def answer(messages: Sequence[BaseMessage]) -> AIMessage:
        if QUESTIONS[1] in messages[-1].text:
            raise ProviderRateLimitedError("slow down", retry_after=None)
        if messages[-1].type == "tool":
            return AIMessage("done")
        return call("run_sql", sql=right(messages[-1].text))

    shop = Shop(make_shop(tmp_path / "shop.db"), tmp_path, ScriptedModel(say=answer))
    path = tmp_path / "journal.jsonl"
    with Journal(path, resume=False) as journal, pytest.raises(ProviderRateLimitedError):
        shop.evaluation(journal).run()
    assert shop.waits == [2, 4, 8, 16, 32, 64, 120, 120]
    assert len(path.read_text().splitlines()) == 2


def test_a_turn_that_was_answered_but_not_journaled_is_not_asked_again(tmp_path: Path) -> None:
    model = model_of(right)
    shop = Shop(make_shop(tmp_path / "shop.db"), tmp_path, model)
    with Journal(tmp_path / "lost.jsonl", resume=False) as journal:
        shop.evaluation(journal).run()
    asked = len(model.sent)
    results: list[TurnResult] = []
    with Journal(tmp_path / "journal.jsonl", resume=False) as journal:
        shop.evaluation(journal, on_turn=results.append).run()
    assert len(model.sent) == asked
    assert [result.verdict for result in results] == ["right"] * len(SINGLES)
    assert [result.calls for result in results] == [2] * len(SINGLES)


def test_a_turn_cut_off_after_its_query_goes_on_with_the_result(tmp_path: Path) -> None:
    failing = True

    def answer(messages: Sequence[BaseMessage]) -> AIMessage:
        if messages[-1].type != "tool":
            return call("run_sql", sql=right(messages[-1].text))
        if failing:
            raise ProviderAuthError("no")
        return AIMessage("done")

    model = ScriptedModel(say=answer)
    shop = Shop(make_shop(tmp_path / "shop.db"), tmp_path, model)
    path = tmp_path / "journal.jsonl"
    with Journal(path, resume=False) as journal, pytest.raises(ProviderAuthError):
        shop.evaluation(journal, SINGLES[:1]).run()
    failing = False
    results: list[TurnResult] = []
    with Journal(path, resume=True) as journal:
        shop.evaluation(journal, SINGLES[:1], on_turn=results.append).run()
    assert [result.verdict for result in results] == ["right"]
    assert len(model.sent) == 3
    assert len(shop.conversation(SUBJECT, results[0].thread).audit()) == 1


def test_a_turn_whose_gold_failed_is_scored_once_the_gold_works(tmp_path: Path) -> None:
    model = model_of(right)
    shop = Shop(make_shop(tmp_path / "shop.db"), tmp_path, model)
    path = tmp_path / "journal.jsonl"
    turns = [Turn(text=question, gold=["SELECT * FROM later"]) for question in QUESTIONS[:3]]
    turns[0] = Turn(text=QUESTIONS[0], gold=[GOLD[QUESTIONS[0]]])
    later = single(QUESTIONS[3], "SELECT * FROM later")
    dialogues = [Dialogue(id="d", turns=turns), later]
    first: list[TurnResult] = []
    with Journal(path, resume=False) as journal:
        problems = shop.evaluation(journal, dialogues, on_turn=first.append).run()
    assert [each.verdict for each in first] == ["right", "unscored", "unscored", "unscored"]
    assert len(problems) == 3
    asked = len(model.sent)
    shop.database.close()
    with closing(sqlite3.connect(shop.file)) as connection, connection:
        connection.execute("CREATE TABLE later AS SELECT count(*) AS n FROM customers")
    again = Shop(shop.file, tmp_path, model)
    again.graph = shop.graph
    second: list[TurnResult] = []
    with Journal(path, resume=True) as journal:
        assert again.evaluation(journal, dialogues, on_turn=second.append).run() == []
    verdicts = [each.verdict for each in second]
    assert verdicts == ["right", "right", "wrong", "wrong"]
    assert len(model.sent) == asked + 2


def test_calls_before_a_kill_count_with_their_turn(tmp_path: Path) -> None:
    failing = False

    def answer(messages: Sequence[BaseMessage]) -> AIMessage:
        if messages[-1].type != "tool":
            return call("run_sql", sql=right(messages[-1].text))
        if failing:
            raise ProviderAuthError("no")
        return AIMessage("done")

    shop = Shop(make_shop(tmp_path / "shop.db"), tmp_path, ScriptedModel(say=answer))
    turns = [Turn(text=question, gold=[GOLD[question]]) for question in QUESTIONS[:2]]
    path = tmp_path / "journal.jsonl"

    def fail_after_the_first(_: TurnResult) -> None:
        nonlocal failing
        failing = True

    dialogues = [Dialogue(id="d", turns=turns)]
    with Journal(path, resume=False) as journal, pytest.raises(ProviderAuthError):
        shop.evaluation(journal, dialogues, on_turn=fail_after_the_first).run()
    failing = False
    results: list[TurnResult] = []
    with Journal(path, resume=True) as journal:
        shop.evaluation(journal, dialogues, on_turn=results.append).run()
    assert [result.calls for result in results] == [2, 2]


def test_a_chart_counts_by_the_rows_that_it_draws(tmp_path: Path) -> None:
    file = make_shop(tmp_path / "shop.db")
    shop = Shop(file, tmp_path, BuiltInAnalyst())
    gold = "SELECT customer_id, count(*) FROM orders GROUP BY customer_id"
    turns = [
        Turn(text="number of orders per customer", gold=[gold], extra_columns=True),
        Turn(text="as a bar chart", gold=[gold], extra_columns=True),
    ]
    results: list[TurnResult] = []
    with Journal(tmp_path / "journal.jsonl", resume=False) as journal:
        dialogue = Dialogue(id="d", turns=turns)
        shop.evaluation(journal, [dialogue], on_turn=results.append).run()
    assert [result.verdict for result in results] == ["right", "right"]
