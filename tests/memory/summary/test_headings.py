"""A model's summary is read into its sections, however it writes headings and lists."""

import pytest

from longtable.memory.summary.headings import read_sections, sentences

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


def test_a_sentence_keeps_the_citation_after_it() -> None:
    assert sentences("Canada has 1,204 orders. [m4] Peru has 87.") == [
        "Canada has 1,204 orders. [m4]",
        "Peru has 87.",
    ]
    assert sentences("只看加拿大。[m4] 秘鲁有 87 单。再比较。") == [
        "只看加拿大。[m4] 秘鲁有 87 单。",
        "再比较。",
    ]
