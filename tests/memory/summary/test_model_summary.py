"""A model's answer becomes a summary: headings as models write them, lines cut by line, no invented
figure, no room unused.
"""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.memory.counting.tokens import counter
from longtable.memory.summary.headings import read_sections, sentences
from longtable.memory.summary.model_summary import filled, fitted
from longtable.memory.summary.sources import Sources, checked
from longtable.memory.summary.summary_text import findings_in, join_sections
from longtable.memory.view import CallPlan, build_view
from tests.support.compacting import Talk, call_config, system_of

count = counter("o200k_base").text

LINES = (
    "28,796 flights left in May [m2]",
    "answers in one sentence [m3]",
    "only departures from JFK [m5]",
    "distances are given in kilometres [m7]",
    "compare with 2012 [m9]",
)
CHINESE = (
    "五月有 28,796 个航班 [m2]",
    "回答只用一句话 [m3]",
    "只看 JFK 出发的航班 [m5]",
    "距离用公里表示 [m7]",
    "与 2012 年比较 [m9]",
)
EN = ("Facts and findings", "User preferences", "Constraints", "Decisions", "Open items")
ZH = ("事实与发现", "用户偏好", "约束", "决定", "未决事项")


def under(
    form: str, names: tuple[str, ...] = EN, lines: tuple[str, ...] = LINES, between: str = "\n"
) -> str:
    """Write the five headings in one form; {n} is the heading's number, {name} its name, {line} its
    line.
    """
    return between.join(
        form.format(n=i, name=name, line=line)
        for i, (name, line) in enumerate(zip(names, lines, strict=True), 1)
    )


FORMS = {
    "as asked": under("## {name}\n- {line}"),
    "numbered": under("{n}. {name}\n- {line}"),
    "numbered in brackets": under("({n}) {name}\n{line}"),
    "a numbered markdown heading": under("## {n}. {name}\n- {line}"),
    "a deeper heading with a colon": under("### {name}:\n\n* {line}\n"),
    "the text on the heading's line": under("{name}: {line}"),
    "the text on a markdown heading's line": under("## {name}: {line}"),
    "bold": under("**{name}**\n- {line}"),
    "bold with the colon inside and the text beside it": under("**{name}:** {line}"),
    "bold, numbered": under("{n}. **{name}**\n   - {line}"),
    "bullets as headings": under("- {name}\n  - {line}"),
    "bullets as headings with the text beside them": under("- **{name}**: {line}"),
    "a dash before the text": under("{name} - {line}"),
    "capitals": under("{name}\n- {line}", tuple(name.upper() for name in EN)),
    "underlined": under("{name}\n-------\n{line}"),
    "numbered items": under("## {name}\n1. {line}"),
    "tags": under("<{name}>\n- {line}\n</{name}>"),
    "an emoji": under("📌 {name}\n• {line}"),
    "in a fence": "```markdown\n" + under("## {name}\n- {line}") + "\n```",
    "with a title before and a remark": (
        "Here is the memory:\n\n# Memory of the conversation\n\n" + under("## {name}\n- {line}")
    ),
    "an ampersand": under(
        "## {name}\n- {line}",
        ("Facts & Findings", "User Preferences", "Constraints", "Decisions", "Open Items"),
    ),
    "other words": under(
        "## {name}\n- {line}",
        (
            "Key facts",
            "The user's preferences",
            "Constraints and rules",
            "Decisions made",
            "Open questions",
        ),
    ),
    "words of one's own, numbered": under(
        "{n}. {name}:\n- {line}",
        ("Findings", "Preferences", "Rules", "Decisions taken", "Next steps"),
    ),
}
CHINESE_FORMS = {
    "as asked": under("## {name}\n- {line}", ZH, CHINESE),
    "numbered": under("{n}. {name}\n- {line}", ZH, CHINESE),
    "a numbered markdown heading": under("## {n}. {name}\n{line}", ZH, CHINESE),
    "a full stop of lists": under("{n}、{name}\n- {line}", ZH, CHINESE),
    "numbered in words": "\n".join(
        f"{n}、{name}\n- {line}" for n, name, line in zip("一二三四五", ZH, CHINESE, strict=True)
    ),
    "the text on the heading's line": under("{name}：{line}", ZH, CHINESE),
    "brackets": under("【{name}】\n{line}", ZH, CHINESE),
    "brackets with the text beside them": under("【{name}】{line}", ZH, CHINESE),
    "bold with a colon": under("**{name}：**\n- {line}", ZH, CHINESE),
    "bullets": under("- {name}：{line}", ZH, CHINESE),
    "traditional": under(
        "## {name}\n- {line}", ("事實與發現", "用戶偏好", "約束", "決定", "未決事項"), CHINESE
    ),
    "traditional, other words": under(
        "{n}. {name}\n- {line}",
        ("事實和結論", "使用者偏好", "限制條件", "已做決定", "待辦事項"),
        CHINESE,
    ),
    "other words": under(
        "### {name}\n- {line}",
        ("主要发现", "用户的偏好", "约束与规则", "已确定的决定", "待解决的问题"),
        CHINESE,
    ),
    "both languages": under(
        "## {name}\n- {line}", tuple(f"{a} ({b})" for a, b in zip(ZH, EN, strict=True)), CHINESE
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_headings_are_read_as_models_write_them(form: str) -> None:
    assert read_sections(FORMS[form]) == [[f"- {line}"] for line in LINES]


@pytest.mark.parametrize("form", CHINESE_FORMS)
def test_chinese_headings_are_read_as_models_write_them(form: str) -> None:
    assert read_sections(CHINESE_FORMS[form]) == [[f"- {line}"] for line in CHINESE]


@pytest.mark.parametrize(
    "form",
    [
        "## {name}\n- {line}",
        "{n}. {name}\n- {line}",
        "- {name}:\n  - {line}",
        "**{name}**: {line}",
        "{name}\n{line}",
    ],
)
def test_headings_in_the_users_own_names_are_read_by_their_place(form: str) -> None:
    names = ("Ledger", "House manners", "Guard rails", "Verdicts", "Loose ends")
    asked = (
        "Keep the minutes of this conversation. Write them under: Ledger, House manners, Guard"
        " rails, Verdicts, Loose ends."
    )
    assert read_sections(under(form, names), asked) == [[f"- {line}"] for line in LINES]


@pytest.mark.parametrize("title", ["**Where we stand**", "Where we stand:", "## Where we stand"])
def test_bullets_before_the_first_heading_that_is_known_are_facts(title: str) -> None:
    answer = (
        f"This replaces the older messages.\n{title}\n* Oslo: 31,204 crates\n* Bergen moves last\n"
        "**Ground rules**\n* Leave the test shop aside\n"
        "**Not valid any longer**\n* Whole numbers only, taken back"
    )
    assert read_sections(answer) == [
        ["- Oslo: 31,204 crates", "- Bergen moves last", "- Whole numbers only, taken back"],
        [],
        ["- Leave the test shop aside"],
        [],
        [],
    ]


def test_headings_none_of_which_is_known_are_no_facts_and_a_quotation_stays_whole() -> None:
    answer = (
        "本次会话围绕电网工作。\n【已确认信息】\n（1） 麦积场的劳保预算为16053\n（2） 多收的钱源于倍率抄错\n（3） 北岭线路暂不入地\n"
        "【旧话】\n（1） 同比这一栏摆在环比前头\n“年份写满四位数字。”"
    )
    [facts, *others] = read_sections(answer)
    assert facts == [
        "- 本次会话围绕电网工作。",
        "- 麦积场的劳保预算为16053",
        "- 多收的钱源于倍率抄错",
        "- 北岭线路暂不入地",
        "- 同比这一栏摆在环比前头",
        "- “年份写满四位数字。”",
    ]
    assert others == [[], [], [], []]


def test_bullets_before_any_heading_are_facts_and_a_sentence_of_greeting_is_none() -> None:
    answer = "Here is the summary.\n- Oslo: 31,204 crates\n## Constraints\n- Whole numbers only"
    assert read_sections(answer) == [
        ["- Oslo: 31,204 crates"],
        [],
        ["- Whole numbers only"],
        [],
        [],
    ]


def test_plain_prose_stands_under_the_first_heading_sentence_by_sentence() -> None:
    prose = (
        "The user asked for flights in May; 28,796 left [m2]. They want only JFK [m5].\n\nIt is"
        " open how 2012 compares [m9]."
    )
    assert read_sections(prose) == [
        [
            "- The user asked for flights in May; 28,796 left [m2].",
            "- They want only JFK [m5].",
            "- It is open how 2012 compares [m9].",
        ],
        *([[]] * 4),
    ]


def test_a_line_that_begins_like_a_heading_stays_a_line() -> None:
    text = (
        "## Facts and findings\n- Decision: the board met on 3 May [m2]\n- Open orders: 12 [m4]\n"
    )
    text += "- Results of the query on open items: 7 [m6]"
    sections = read_sections(text)
    assert len(sections[0]) == 3
    assert sections[1:] == [[]] * 4


def test_none_under_a_heading_is_no_line() -> None:
    assert (
        read_sections("## Facts and findings\n- none\n## Constraints\n(无)\n## Decisions\nN/A")
        == [[]] * 5
    )


# -- figures ---------------------------------------------------------------------------------------

TALK: list[BaseMessage] = [
    HumanMessage("How many orders came from Canada and how many from Peru? 二月呢？"),
    AIMessage(
        "", tool_calls=[{"name": "run_sql", "args": {"sql": "SELECT 1 WHERE n > 250"}, "id": "1"}]
    ),
    ToolMessage(
        '{"columns": ["n", "share"], "rows": [[1204], [0.3391], [12500000]], "row_count": 3}',
        tool_call_id="1",
    ),
    AIMessage("Canada has 1,204 orders, about 1.2k; Peru has 87."),
    HumanMessage("And how many flights left in May?"),
    AIMessage("28,796 flights left in May."),
]
SOURCES = Sources(
    list(enumerate(TALK, 1)), "## Facts and findings\n- Asked: old | Answered: 4,711 bags [m9]"
)


@pytest.mark.parametrize(
    "line",
    [
        "Canada has 1204 orders [m4]",
        "Canada has 1,204 orders [m4]",
        "Canada has 1.204 orders [m4]",
        "Canada has some 1.2k orders [m4]",
        "Canada has １，２０４ orders [m1-m4]",
        "the share is 34 % [m3]",
        "33.9 % of them, as 0.339 [m1]",
        "12.5 million in all [m3]",
        "共 1250 万 [m3]",
        "only those over 250 [m2]",
        "in May 2013 28,796 flights left [m5-m6]",
        "28,796 flights and 1,204 orders",
        "no figure at all [m2]",
        "4,711 bags",
    ],
)
def test_a_line_whose_figures_stand_in_the_round_it_cites_stays(line: str) -> None:
    assert checked([[f"- {line}"], *([[]] * 3), ["- x [m1]"]], SOURCES, 6)[0] == [f"- {line}"]


@pytest.mark.parametrize(
    "line",
    [
        "Canada has 1,205 orders [m4]",
        "Canada has 1,204 orders [m6]",
        "Canada has 12,040 orders [m4]",
        "Canada has 1.3k orders [m4]",
        "the share is 35 % [m3]",
        "1260 万 [m3]",
        "31,337 flights left",
        "4,711 bags [m2]",
    ],
)
def test_a_line_with_a_figure_that_no_cited_round_has_is_cut(line: str) -> None:
    assert checked([[f"- {line}"], *([[]] * 3), ["- x [m1]"]], SOURCES, 6)[0] == []


def test_of_a_line_of_several_sentences_only_the_invented_one_goes_and_the_citation_stays() -> None:
    lines = checked([["- Canada has 1,204 orders. Peru has 88. [m4]"], *([[]] * 4)], SOURCES, 6)
    assert lines[0] == ["- Canada has 1,204 orders. [m4]"]


def test_an_answer_that_is_about_something_else_is_no_summary() -> None:
    for answer in (
        "",
        "I cannot do that.",
        "## Something else\n- x",
        '{"topics": []}',
        "Sure, happy to help!",
    ):
        assert not any(checked(read_sections(answer), SOURCES, 6))


# -- room ------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.lists(
            st.sampled_from(
                [
                    "- only JFK [m3]",
                    "- 120 flights [m9]",
                    "- talk " + "and talk " * 40,
                    "- 7 [m1-m4]",
                    "- 短",
                ]
            )
        ),
        min_size=5,
        max_size=5,
    ),
    st.integers(min_value=40, max_value=600),
)
def test_what_is_cut_to_fit_keeps_its_order_and_leaves_no_room_for_another_line(
    sections: list[list[str]], budget: int
) -> None:
    kept = fitted(sections, "en", budget, count)
    assert count(join_sections(kept, "en")) <= budget
    for before, after in zip(sections, kept, strict=True):
        rest = iter(before)
        assert all(line in rest for line in after)
    spare = (
        budget
        - count(join_sections([[]] * 5, "en"))
        - sum(count(line) + 1 for section in kept for line in section)
    )
    gone = [
        line
        for before, after in zip(sections, kept, strict=True)
        for line in before
        if before.count(line) > after.count(line)
    ]
    assert all(count(line) + 1 > spare for line in gone)


def test_two_hundred_facts_over_the_budget_lose_only_as_many_as_must_go() -> None:
    facts = [f"- region {n} sold {n * 37} units [m{n}]" for n in range(1, 201)]
    sections = [facts, [], ["- only finished orders [m3]"], [], ["- a word without a figure [m4]"]]
    kept = fitted(sections, "en", 2_000, count)
    assert kept[2] == sections[2]
    assert kept[4] == []
    newest = next(
        n for n in range(200) if count(join_sections([facts[-n - 1 :], *kept[1:]], "en")) > 2_000
    )
    assert newest > 80
    assert len(kept[0]) >= newest * 0.9


def test_room_is_filled_with_the_rounds_that_no_line_cites() -> None:
    sections = [["- Canada has 1,204 orders, some 1.2k [m4]"], [], [], [], []]
    text = filled(sections, SOURCES, "en", 400, count)
    assert [finding.ids for finding in findings_in(text)] == ["m9", "m5-m6"]
    wide = filled(
        [["- much was asked [m1-m400]"], [], [], [], []],
        Sources(list(enumerate(TALK * 4, 1)), ""),
        "en",
        900,
        count,
    )
    assert len(findings_in(wide)) == 8


def facts_of(seed: int, rounds: int) -> tuple[list[BaseMessage], list[str]]:
    """Return a talk of one figure a round, half of it Chinese, and the figures."""
    draw = random.Random(seed)
    figures = [f"{draw.randrange(10_000, 10_000_000):,}" for _ in range(rounds)]
    talk: list[BaseMessage] = []
    for n, figure in enumerate(figures):
        chinese = n % 2 == 1
        asked = (
            f"第 {n} 区卖了多少？"
            if chinese
            else f"How much did region {n} sell in its best month?"
        )
        said = (
            f"第 {n} 区卖了 {figure} 件。"
            if chinese
            else f"Region {n} sold {figure} units. "
            + "That is what the table says. " * draw.randrange(4)
        )
        talk += [HumanMessage(asked, id=f"h{n}"), AIMessage(said, id=f"a{n}")]
    return talk, figures


def survival(seed: int, say: object, rounds: int, limit: int) -> float:
    """Return the share of a talk's figures that are in view at its end."""
    talk, figures = facts_of(seed, rounds)
    talking = Talk(call_config(limit, min_messages=0, window=100_000 if say else None), say=say)  # type: ignore[arg-type]  # a fake beside its use
    for _ in talking.hear(talk):
        pass
    assert all(
        outcome.record and outcome.record["method"] == ("model" if say else "fallback")
        for outcome in talking.outcomes
    )
    shown = "\n".join(
        str(message.text)
        for message in build_view(CallPlan(talking.thread, talking.call_config)).messages
    )
    assert talking.outcomes
    assert system_of(build_view(CallPlan(talking.thread, talking.call_config)).messages)
    return sum(figure in shown for figure in figures) / len(figures)


@pytest.mark.parametrize(("rounds", "limit"), [(100, 4_000), (120, 5_000), (150, 4_000)])
def test_a_summariser_that_keeps_one_line_is_no_worse_than_none(rounds: int, limit: int) -> None:
    """Over three talks together: in one, a line a little longer than the code's may cost one fact
    more than it holds.
    """

    def lazy(request: list[BaseMessage]) -> str:
        said = [
            line
            for line in str(request[-1].text).splitlines()
            if line.startswith("[m") and " ai: " in line
        ]
        mark, _, words = said[-1].partition(" ai: ")
        return f"## Facts and findings\n- {words} {mark}"

    without = sum(survival(seed, None, rounds, limit) for seed in range(3))
    assert sum(survival(seed, lazy, rounds, limit) for seed in range(3)) >= without - 1e-9


def test_a_fact_that_the_model_corrected_is_not_carried_on() -> None:
    sources = Sources(
        SOURCES.messages,
        "## Facts and findings\n- Canada has 1,100 orders [m1]\n- Chile has 12 orders [m2]",
    )
    sources = Sources(
        [(number + 10, message) for number, message in SOURCES.messages], sources.previous
    )
    text = filled([["- Canada has 1,204 orders [m14]"], [], [], [], []], sources, "en", 400, count)
    assert "1,100" not in text
    assert "- Chile has 12 orders [m2]" in text


def test_a_fact_that_the_model_writes_again_without_its_citation_stands_once() -> None:
    previous = (
        "## Facts and findings\n- Canada has 1,204 orders [m1-m8]\n- Chile has 12 orders [m1-m8]"
    )
    sources = Sources([(number + 10, message) for number, message in SOURCES.messages], previous)
    again = ["- Canada has 1,204 orders", "- Chile has 12 orders"]
    text = filled([again, [], [], [], []], sources, "en", 400, count)
    assert text.count("- Canada has 1,204") == 1
    assert text.count("- Chile has 12") == 1


PROSE = {
    "en": (
        "The user wanted to know how much the regions sold. Everything was read from the table. It"
        " is not settled who asks next."
    ),
    "zh": "用户想知道各个地区卖了多少件。数字都取自表格。接下来由谁提问还没有定下来。",
}


def prose_only(text: str, rounds: int) -> Talk:
    """Return a talk whose summariser says the same each time."""
    talking = Talk(call_config(5_000, min_messages=0, window=100_000), say=lambda _: text)
    for _ in talking.hear(facts_of(0, rounds)[0]):
        pass
    assert talking.outcomes
    return talking


@pytest.mark.parametrize("language", PROSE)
def test_prose_that_cites_nothing_is_used_at_once_and_filled_up_with_the_lines_of_code(
    language: str,
) -> None:
    talking = prose_only(PROSE[language], 80)
    said = [f"- {sentence}" for sentence in sentences(PROSE[language])]
    for requests, outcome in zip(talking.asked, talking.outcomes, strict=True):
        assert outcome.record
        assert (len(requests), outcome.record["method"]) == (1, "model")
        facts = read_sections(outcome.record["summary"])[0]
        assert [line for line in facts if line in said] == said
        assert len(findings_in(outcome.record["summary"])) > 5
    by_code = survival(0, None, 80, 5_000)
    one_fact = 1 / 80  # three sentences take its room
    assert survival(0, lambda _: PROSE[language], 80, 5_000) >= by_code - one_fact - 1e-9


def test_prose_about_nothing_that_was_said_is_asked_for_once_more_and_then_code_writes() -> None:
    talking = prose_only("I am sorry. As a language model I cannot help here.", 80)
    for requests, outcome in zip(talking.asked, talking.outcomes, strict=True):
        assert outcome.record
        assert (len(requests), outcome.record["method"]) == (2, "fallback")
