"""Originals are found by their words, in English and Chinese, and only by words they share."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.base.words import STOP, tokens_of
from longtable.memory.messages.marks import EXCLUDED, RECALLED, marked
from longtable.memory.search import K1, B, Index, Original, text_of
from tests.support.histories import TEXTS, histories


def originals(*texts: str) -> list[Original]:
    return [Original(i, HumanMessage(text, id=f"m{i}")) for i, text in enumerate(texts, 1)]


def found(index: Index, query: str, limit: int = 10) -> list[int]:
    return [original.number for original, _ in index.search(query, limit)]


@pytest.mark.parametrize(
    ("texts", "query", "numbers"),
    [
        (["flights from JFK in May", "planes of United", "delays at LGA"], "jfk", [1]),
        (["The average delay is 12 minutes", "revenue by month"], "delayed flights", [1]),
        (["SELECT avg(dep_delay) FROM flights", "how many rows"], "dep delay", [1]),
        (["count=6200", "count=620"], "6,200", [1]),
        (["五月的航班有多少", "航空公司的收入", "上班时间"], "航班延误", [1]),
        (["冰岛航线", "日本航线"], "冰", [1]),
        (["我们用人民币", "用美元"], "人民币是多少？", [1]),
        (["apples", "apples", "pears"], "apples", [2, 1]),
        (["what was the answer to that", "flights"], "what was that?", [1]),
        (["flights"], "planes", []),
        (["flights"], "", []),
        ([], "flights", []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_query_finds_what_shares_its_words_the_newest_of_equals_first(
    texts: list[str], query: str, numbers: list[int]
) -> None:
    assert found(Index.build(originals(*texts)), query) == numbers


def test_a_rare_word_weighs_more_than_a_common_one_and_a_short_message_more_than_a_long_one() -> (
    None
):
    index = Index.build(
        originals(
            "flights flights flights",
            "flights of tailnum",
            "flights " + "word " * 50 + "tailnum",
            "flights",
        )
    )
    assert found(index, "flights with tailnum")[:2] == [2, 3]


def test_a_query_is_searched_without_its_function_words() -> None:
    assert found(
        Index.build(originals("what is the time of it", "the carrier")),
        "what is the carrier of that?",
    ) == [2]


def test_calls_are_found_by_their_sql_and_tool_answers_by_their_rows() -> None:
    call = AIMessage(
        "",
        tool_calls=[{"name": "run_sql", "args": {"sql": "SELECT tailnum FROM planes"}, "id": "c"}],
        id="a",
    )
    answer = ToolMessage('{"rows":[["N14228"]]}', tool_call_id="c", id="t")
    index = Index.build([Original(1, call), Original(2, answer)])
    assert text_of(call) == "run_sql: SELECT tailnum FROM planes"
    assert found(index, "tailnum") == [1]
    assert found(index, "n14228") == [2]


@pytest.mark.parametrize("kind", [RECALLED, EXCLUDED])
def test_what_only_repeats_and_what_was_excluded_is_not_found(kind: str) -> None:
    said = HumanMessage("the tailnum is N14228", id="a")
    index = Index.build([Original(1, said), Original(2, marked(said, kind=kind))])
    assert found(index, "tailnum") == [1]


@given(st.lists(TEXTS, max_size=12), TEXTS)
def test_scores_are_those_of_the_formula_and_every_hit_shares_a_term(
    texts: list[str], query: str
) -> None:
    index = Index.build(originals(*texts))
    bags = [Counter(tokens_of(text)) for text in texts]
    average = sum(bag.total() for bag in bags) / max(1, len(bags)) or 1.0
    hits = index.search(query, len(texts))
    asked = set(tokens_of(query))
    for original, score in hits:
        assert asked & bags[original.number - 1].keys()
        assert score <= sum(
            math.log(1 + (len(bags) - n + 0.5) / (n + 0.5))
            * f
            * (K1 + 1)
            / (f + K1 * (1 - B + B * bags[original.number - 1].total() / average))
            for term in asked
            if (n := sum(term in bag for bag in bags)) and (f := bags[original.number - 1][term])
        ) * (1 + 1e-9)
    assert [(-score, -original.number) for original, score in hits] == sorted(
        (-score, -original.number) for original, score in hits
    )
    telling = {term for term in asked if len(term) > 2 and term not in STOP}
    for number, bag in enumerate(bags, 1):
        if telling & bag.keys():
            assert number in [original.number for original, _ in hits]


def test_the_score_of_one_word_is_the_formula() -> None:
    (hit,) = Index.build(originals("tailnum of it", "flights", "flights and more")).search(
        "tailnum", 5
    )
    weight = math.log(1 + (3 - 1 + 0.5) / (1 + 0.5))
    assert hit[1] == pytest.approx(weight * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 3 / (7 / 3))))


@given(histories(most_rounds=6))
def test_every_message_of_words_is_found_by_its_own_text(history: list[BaseMessage]) -> None:
    index = Index.build(Original(i, message) for i, message in enumerate(history, 1))
    for number, message in enumerate(history, 1):
        if tokens_of(text_of(message)):
            assert number in found(index, text_of(message), len(history))


SAID = (
    ("Customer 30 from Lyon complained about late deliveries.", "里昂的30号客户投诉送货太晚。"),
    ("Revenue means net revenue without returns.", "收入是指扣除退货后的净收入。"),
    ("Please ignore cancelled flights in all counts.", "所有统计都不要算取消的航班。"),
    ("The warehouse in Rotterdam holds 312 pallets.", "鹿特丹仓库有312个托盘。"),
    ("The supplier of lamps is Hansen from Bergen.", "灯具的供应商是卑尔根的汉森。"),
    ("Refund rate of shoes is 8.4 percent.", "鞋类的退款率是百分之8.4。"),
)
ASKED = (
    ("which customer complained on late delivery?", "哪个客户投诉了送货晚？"),
    ("what did I say about the meaning of revenue", "我之前说的收入是什么意思"),
    ("what to do with cancelled flights?", "取消的航班怎么处理？"),
    ("pallets at the Rotterdam warehouse", "鹿特丹仓库的托盘数量"),
    ("who supplies the lamps", "灯具由谁供应"),
    ("what was the refund rate for shoes", "鞋子的退款率是多少"),
)


@pytest.mark.parametrize("language", [0, 1], ids=["en", "zh"])
def test_other_forms_of_the_words_find_what_was_said_in_either_language(language: int) -> None:
    index = Index.build(
        [Original(n, HumanMessage(said[language])) for n, said in enumerate(SAID, 1)]
    )
    assert [index.search(asked[language], 1)[0][0].number for asked in ASKED] == [1, 2, 3, 4, 5, 6]


def test_an_index_that_is_extended_is_the_one_built_at_once_and_the_first_stays_as_it_was() -> None:
    originals = [
        Original(n, HumanMessage(said))
        for n, said in enumerate((text for pair in SAID for text in pair), 1)
    ]
    first = Index.build(originals[:5])
    assert first.extended(originals[5:]) == Index.build(originals)
    assert first == Index.build(originals[:5])
