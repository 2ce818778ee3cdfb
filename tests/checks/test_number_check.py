"""The number check: which figures of an answer the results of a turn vouch for."""

import json
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.numbers import labelled, rates
from longtable.checks.number_check import unsupported
from longtable.memory.counting.figures import Source, figures


def one(*cells: object, sql: str = "") -> list[Source]:
    return [Source([f"c{at}" for at in range(len(cells))], [cells], 1, sql)]


def table(columns: Sequence[str], *rows: Sequence[object]) -> list[Source]:
    return [Source(columns, rows, len(rows))]


def flagged(answer: str, sources: Sequence[Source], question: str = "") -> list[str]:
    return [figure.text for figure in unsupported(answer, sources, question)]


@pytest.mark.parametrize(
    ("written", "cell"),
    [
        ("about 3.4", 3.44),
        ("3.44", 3.44),
        ("3", 3.44),
        ("1,234", 1234),
        ("1 234", 1234),
        ("1\u202f234", 1234),
        ("1.234,5", 1234.5),
        ("1.234.567", 1234567),
        ("12,34,567", 1234567),
        ("1'234", 1234),
        ("１２３", 123),
        ("1234.50", "1234.5"),
        ("1.2e6", 1.2e6),
        ("34 %", 0.34),
        ("34%", 34.2),
        ("３４％", 0.34),
        ("34 percent", 0.3401),
        ("6成", 0.6),
        ("6成五", 0.65),
        ("3.4k", 3412),
        ("3.4 K", 3412),
        ("$3.4M", 3_412_000),
        ("3.4 million", 3_412_000),
        ("3.4m dollars", 3_412_000),
        ("3.4 bn", 3_400_000_000),
        ("340 万", 3_404_000),
        ("3.4 亿", 341_000_000),
        ("3千", 3000),
        ("1亿2000万", 120_000_000),
        ("300多万", 3_120_000),
        ("-5.2", -5.2),
        ("\u22125.2", -5.2),
        ("负 5.2", -5.2),
        ("-$5.20", -5.2),
        ("a loss of 5.2", -5.2),
        ("$1,234.50", 1234.5),
        ("€ 1.234,50", 1234.5),
        ("USD 1234.5", 1234.5),
        ("¥1234.5", 1234.5),
        ("nearly 3,000", 2962),
        ("over 3,000", 3120),
        ("roughly 3,000", 3120),
        ("近 3000", 2962),
        ("2.1 hours", 125),
        ("3‰", 0.003),
    ],
)
def test_a_figure_is_found_however_it_is_written(written: str, cell: object) -> None:
    assert figures(f"It is {written}."), "nothing was read, so the check would pass anything"
    assert flagged(f"It is {written}.", one(cell)) == []
    assert flagged(f"It is {written}.", one(918273.5)) != []


@pytest.mark.parametrize(
    ("answer", "cell", "wrong"),
    [
        ("The total is 1,243.", 1234, "1,243"),
        ("The rate is 43 %.", 0.34, "43 %"),
        ("The rate is 3.4 %.", 0.34, "3.4 %"),
        ("It is 3.4 million.", 3.4, "3.4 million"),
        ("It is 3.4k.", 34_000, "3.4k"),
        ("共 340 亿元。", 3_400_000, "340 亿"),
        ("It changed by -5.2.", 5.2, "-5.2"),
        ("There were 2013 flights.", 2031, "2013"),
        ("共有 2013 人。", 2031, "2013"),
        ("about 3,000 rows", 4123, "3,000"),
        ("over 3,000 rows", 2950, "3,000"),
        ("nearly 3,000 rows", 3050, "3,000"),
    ],
)
def test_a_figure_that_no_result_holds_is_flagged(answer: str, cell: object, wrong: str) -> None:
    assert flagged(answer, one(cell)) == [wrong]


@pytest.mark.parametrize(
    "answer",
    [
        "In 2013 it rose.",
        "2013 年 7 月 4 日，2013-07-04, 4/7/2013, July 4, 2013, 4 July, 7月4日, 2013年下半年.",
        "It left at 10:45, at 8 pm and at 8 点.",
        "1. first\n2. second\n10) tenth\n- 3. third",
        "一、概述\n二、结论\n（3）补充",
        (
            "The first 10 are shown, the last 5 too. The 1st, the 22nd, 第三, 第 12 位, the top 10,"
            " 前十, 前 5 名, No. 7."
        ),
        "Version 3.4.1, v2, python3.11.",
        "See [m12], [12], [msg_4f2a], message 14, turn 5, r3 and 消息 12.",
        "Aircraft N14228 is an A320-232; Q3 and FY24 and B2B.",
        "```sql\nSELECT * FROM t WHERE x > 99\n```",
        "I filtered with `x > 99`.",
        "See https://example.org/2400/x?y=77.",
        "All of it: 100 %, 24 hours a day.",
        "One of them is a single one; no one else; 一些, 一个, 唯一, 十分.",
        "The two airports differ; these three as well; 这两家公司, 前三名, 周三, 星期五.",
        "A 3fa85f64-5717-4562-b3fc-2c963f66afa6 id.",
    ],
)
def test_dates_ordinals_names_and_citations_claim_nothing(answer: str) -> None:
    assert flagged(answer, one(918273.5)) == []


SALES = table(
    ["month", "orders", "sales"],
    ["2024-01", 120, 3000.5],
    ["2024-02", 150, 4200.0],
    ["2024-03", 90, 2400.25],
)


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        ("In all 360 orders and sales of 9,600.75.", ""),
        ("February had 30 orders more than January.", ""),
        ("From January to February orders grew by 25 %.", ""),
        ("From February to March orders fell by 40 %.", ""),
        ("March is 25 % of all orders.", ""),
        ("An order was worth 25.00 in January on average.", ""),
        ("On average 120 orders a month.", ""),
        ("平均每月 3,200.25 元。", ""),
        ("The result has 3 rows and 3 columns.", ""),
        ("Two months have 120 orders or more.", "Which months have at least 120 orders?"),
        ("February had 1.67 times the orders of March.", ""),
        ("二月是三月的 1.67 倍。", ""),
        (
            "No month came to the 5,000 you asked about.",
            "Which months had more than 5,000 in sales?",
        ),
        ("January and February together: 270.", ""),
    ],
)
def test_one_step_from_the_results_is_enough(answer: str, question: str) -> None:
    assert flagged(answer, SALES, question) == []


@pytest.mark.parametrize(
    "answer",
    ["In all 395 orders.", "March is 37 % of all.", "March has 2.9 times the orders of January."],
)
def test_what_no_one_step_gives_is_flagged(answer: str) -> None:
    assert len(flagged(answer, SALES)) == 1


def test_figures_of_the_sql_and_of_two_results_count() -> None:
    sources = [
        Source(["n"], [[57]], 1, "SELECT count(*) FROM t WHERE amount > 4711"),
        Source(["n"], [[59]], 1),
    ]
    assert flagged("57 of 59 (96.6 %) are over 4711, two are not.", sources) == []


def test_names_from_the_data_claim_nothing_and_their_digits_may_be_repeated() -> None:
    sources = table(["group", "n"], ["65+", 12], ["0-17", 30], ["7 Seas", 5])
    assert (
        flagged("The group 65+ has 12, 0-17 has 30, 7 Seas has 5; those under 17 lead.", sources)
        == []
    )


def test_the_digits_of_a_table_s_name_claim_nothing() -> None:
    sources = [Source(["count"], [[12]], 1, "SELECT count(*) FROM sales2023, q4_report")]
    assert (
        flagged("There are 12 rows in sales2023, or sales 2023, and in the Q4 report.", sources)
        == []
    )
    assert flagged("There are 12 rows, 412 of them new.", sources) == ["412"]


def test_a_column_in_ten_thousands_is_read_as_such() -> None:
    assert flagged("销售额为 1.2 亿元。", table(["sales_wan"], [12_000])) == []
    assert flagged("销售额为 1.2 亿元。", table(["sales"], [12_000])) == ["1.2 亿"]


def test_a_list_without_blanks_is_read_figure_by_figure() -> None:
    assert flagged("They are 120,150,90.", SALES) == []
    assert flagged("分别为 3，4 和 5。", one(3, 4, 5)) == []


def test_an_empty_result_vouches_for_nothing_but_its_emptiness() -> None:
    empty = [Source(["name", "n"], [], 0)]
    assert flagged("There are 0 such flights.", empty) == []
    assert flagged("There are 12 such flights.", empty) == ["12"]
    assert flagged("Nothing was found.", []) == []
    assert flagged("It is 12.", []) == ["12"]


def test_places_are_those_of_the_answer_as_written() -> None:
    answer = "总数是１２３４，不是 99 个。"
    assert [
        answer[figure.start : figure.end].strip() for figure in unsupported(answer, one(5))
    ] == ["１２３４", "99"]


def test_a_large_result_vouches_by_totals_named_rows_and_exact_cells() -> None:
    rows = [[f"customer {at}", at * 7 + 100_000, at % 50] for at in range(10_000)]
    source = [Source(["customer", "balance", "age"], rows, len(rows))]
    total = sum(at * 7 + 100_000 for at in range(10_000))
    assert (
        flagged(
            f"10,000 customers hold {total:,} in total; the most is 169,993; customer 5000 holds"
            " 135,000.",
            source,
        )
        == []
    )
    assert flagged("Somebody holds 135,007.", source) == []
    assert flagged("Somebody holds 135,009.", source) == ["135,009"]
    assert flagged("On average they hold 139,996.5", source) == ["139,996.5"]


@pytest.mark.parametrize(
    "cell",
    [float("nan"), float("inf"), 10**400, None, True, b"12", "12" * 300, [1, 2], {"a": 1}, "1e999"],
)
def test_cells_that_are_no_numbers_are_passed_over(cell: object) -> None:
    assert flagged("It is 12.", one(cell)) == ["12"]


def test_half_a_million_digits_and_ten_thousand_figures_come_to_an_end() -> None:
    assert unsupported("9" * 500_000, one(1))
    assert len(unsupported(" ".join(f"{at}7" for at in range(2_000, 12_000)), one(1))) > 1_000
    assert [figure.text for figure in unsupported("x" * 100_000 + " 12", one(1))] == ["12"]
    assert isinstance(
        unsupported("1 " * 50_000 + "," * 50_000 + "一" * 50_000 + "twenty " * 20_000, one(1)), list
    )


@given(
    st.text(
        alphabet="0123456789.,-+ %$€kmMB万亿千百两三十〇点成倍年月日xe/()[]`|\n１２ abouttwo",
        max_size=60,
    )
)
def test_no_text_breaks_the_check(text: str) -> None:
    for figure in unsupported(text, SALES, text):
        assert 0 <= figure.start < figure.end <= len(text)


@given(st.integers(-(10**15), 10**15))
def test_every_whole_number_is_vouched_for_by_its_cell(number: int) -> None:
    for written in (f"{number}", f"{number:,}", f"{number:.3e}"):
        assert flagged(f"The result: {written}", one(number)) == []


@pytest.mark.parametrize(
    "answer", ["Three hundred and twenty, two thirds of it.", "三百二十，三分之一，百分之三十四"]
)
def test_numbers_written_as_words_are_not_checked(answer: str) -> None:
    assert figures(answer) == []


def test_the_rates_on_the_labelled_answers_hold() -> None:
    hits = rates(labelled())
    assert hits["true"][0] / hits["true"][1] <= 0.02
    assert hits["invented"][0] / hits["invented"][1] >= 0.85


def test_cells_as_json_gives_them_are_enough() -> None:
    rows = json.loads('[["2013-07-04", "12.50", null, 3]]')
    assert (
        flagged(
            "On July 4 it was 12.5, three times.", [Source(["day", "price", "note", "n"], rows, 1)]
        )
        == []
    )


def test_changed_digits_are_caught_in_sentences_that_name_one_of_105_rows() -> None:
    chance = random.Random(3)
    names = [f"{first}{second}" for first in "ABCDE" for second in "FGHJPQR"]
    rows = [
        [
            name,
            year,
            chance.randint(200, 60_000),
            round(chance.uniform(5, 60), 2),
            round(chance.uniform(50, 99), 1),
        ]
        for name in names
        for year in (2021, 2022, 2023)
    ]
    source = table(["carrier", "year", "flights", "avg_delay", "on_time_pct"], *rows)
    caught = 0
    for name, year, _, delay, on_time in rows:
        for text, figure in (
            (f"In {year} {name} was {delay} minutes late on average.", delay),
            (f"{name} 在 {year} 年的准点率为 {on_time}%。", on_time),
        ):
            assert flagged(text, source) == []
            digit = chance.choice([other for other in "123456789" if other != f"{figure}"[0]])
            at = text.rindex(f"{figure}")
            caught += bool(flagged(text[:at] + digit + text[at + 1 :], source))
    assert caught >= 0.8 * 2 * len(rows)


def test_a_figure_of_another_row_is_flagged_where_the_sentence_names_its_row() -> None:
    rows = [
        [f"City {letter}", at * 13 % 97 + 2]
        for at, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ", start=1)
    ]
    assert flagged("City C has 41.", table(["city", "n"], *rows)) == []
    assert flagged("City C has 28.", table(["city", "n"], *rows)) == ["28"]


def test_dashes_thresholds_and_lists_are_no_negative_figures() -> None:
    source = table(["quarter", "n"], ["Q3", 9], ["Q4", 12])
    assert flagged("Q3-9 and Q4-12, within 24 hours.\n- 9 in Q3\n2. 12 in Q4", source) == []
    assert flagged("Neither is over 500.", source, "Which quarters are over 500?") == []


@pytest.mark.parametrize(
    ("answer", "sources"),
    [
        (
            "Phone revenue was 1,713,775.00; 2,450 units at 699.50.",
            table(["product", "units", "price"], ["Laptop", 812, 1199.99], ["Phone", 2450, 699.5]),
        ),
        (
            "一季度毛利率为 18.0%，全年毛利 433.3。",
            table(["季度", "收入", "成本"], ["2023Q1", 1205.5, 988.2], ["2023Q2", 1300.0, 1084.0]),
        ),
        (
            "Amazon made $514.0 billion.",
            table(["company", "revenue_musd"], ["Apple", 394328], ["Amazon", 513983]),
        ),
        (
            "Of 3,503 tracks 1,519 were never sold; the other 1,984 were.",
            [Source(["tracks"], [[3503]], 1), Source(["unsold"], [[1519]], 1)],
        ),
    ],
)
def test_what_two_columns_two_rows_or_two_results_give_is_not_flagged(
    answer: str, sources: Sequence[Source]
) -> None:
    assert flagged(answer, sources) == []


def test_a_number_that_a_tool_said_may_be_repeated_with_either_sign() -> None:
    assert unsupported("The worker ended with -9.", one(5), said=[9]) == []
    assert unsupported("The worker ended with 9.", one(5), said=[-9]) == []
    assert [
        figure.text for figure in unsupported("The worker ended with -7.", one(5), said=[-9])
    ] == ["-7"]
