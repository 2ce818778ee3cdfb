"""Questions in Chinese."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from longtable.analyst.zh import translate
from tests.analyst.conftest import Chat, chat_about, holds

Rows = list[tuple[Any, ...]]


@pytest.mark.parametrize(
    ("database", "question", "rows"),
    [
        ("shop", "有多少位客户?", [(3,)]),
        ("shop", "每个国家有多少客户?", [("Austria", 2), ("Chile", 1)]),
        ("shop", "最长的歌曲是哪首?", [("Overdose",)]),
        ("shop", "哪位艺术家的专辑最多?", [("AC/DC", 2)]),
        ("shop", "2022年有多少张发票?", [(2,)]),
        ("shop", "没有专辑的艺术家有多少?", [(1,)]),
        ("shop", "发票的平均总额是多少?", [(13.0,)]),
        ("shop", "单价大于1的歌曲有哪些?", [("Restless", 1.29)]),
        ("flights", "三月从JFK出发的航班有多少？", [(2,)]),
        (
            "flights",
            "每个航空公司的平均到达延误是多少？",
            [("DL", 15.5), ("UA", 220.0), ("B6", -20 / 3)],
        ),
        ("flights", "出发延误超过2小时的航班有多少？", [(2,)]),
        ("shop", "2022年每个月的销售额是多少？", [("2022-03", 7.0), ("2022-05", 30.0)]),
        ("shop", "爵士乐有多少首歌曲？", [(1,)]),
        ("shop", "平均每张专辑有几首歌曲？", [(4 / 3,)]),
        ("flights", "从肯尼迪机场起飞的航班有多少？", [(7,)]),
        ("flights", "飞往洛杉矶的航班有多少？", [(3,)]),
        ("flights", "航班最多的出发机场是哪个？", [("JFK", 7)]),
        ("flights", "平均到达延误最严重的是哪家航空公司？", [("UA", 220.0)]),
    ],
)
def test_a_chinese_question(
    database: str, question: str, rows: Rows, request: pytest.FixtureRequest
) -> None:
    chat: Chat = request.getfixturevalue(database)
    answer = chat.ask(question)
    assert holds(chat.rows, rows), (chat.sql, answer)


@pytest.mark.parametrize(
    ("question", "count"),
    [("张伟有多少订单", 2), ("李娜有多少订单？", 1), ("有多少行？", 3), ("一共有多少条记录", 3)],
)
def test_a_name_that_is_no_word_and_the_rows_of_the_only_table(
    question: str, count: int, tmp_path: Path
) -> None:
    """The first sign of 张伟 is a word of its own, 张 as in 两张票: what is found for the rest
    tells the name.
    """
    (tmp_path / "订单.csv").write_text(
        "订单号,客户,金额\n1,张伟,100\n2,李娜,50\n3,张伟,20\n", encoding="utf-8"
    )
    with chat_about(tmp_path) as chat:
        answer = chat.ask(question)
        assert chat.rows == [(count,)], (chat.sql, answer)


def test_a_chinese_decline_quotes_the_chinese_word(shop: Chat) -> None:
    answer = shop.ask("有多少首紫色的歌曲？")
    assert shop.rows is None
    assert "紫色" in answer


def test_a_token_keeps_its_chinese_text() -> None:
    tokens = translate("2022年有多少客户", None)
    assert (tokens[0].text, tokens[0].word) == ("2022年", "2022")
    assert {token.text for token in tokens} == {"2022年", "有多少", "客户"}


def test_an_english_question_loads_no_chinese() -> None:
    script = """
import sys
from langchain_core.messages import HumanMessage
from longtable.analyst.model import BuiltInAnalyst
BuiltInAnalyst().invoke([HumanMessage("How many flights are there?")])
assert "longtable.analyst.zh" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
