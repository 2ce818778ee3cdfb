"""Pins: what the net finds, how a quote is checked, what ends a pin, how a view shows them."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.base.errors import PinRefusedError
from longtable.memory.counting.tokens import counter
from longtable.memory.messages.marks import RECALLED, marked
from longtable.memory.pins.net import MOST_FOUND, is_rule, rules_in, sentences
from longtable.memory.pins.pin_changes import MOST_A_TURN, PinChanges
from longtable.memory.pins.pin_lines import LONG_PIN, fit_pins, pin_contract, render_pins
from longtable.memory.pins.pins import (
    IN_PASSING,
    Pin,
    current_pins,
    make_pin,
    pins_in,
    pins_in_passing,
    with_ends,
    without_pins,
)
from longtable.memory.pins.quotes import find_quote, words_of
from longtable.memory.pins.secrets import holds_secret

count = counter("o200k_base").text
PINS = st.builds(
    Pin,
    id=st.integers(0, 99).map("p{}".format),
    text=st.text(min_size=1, max_size=40),
    message_id=st.sampled_from(["", "h1", "h2"]),
    turn=st.integers(0, 9),
    by=st.sampled_from(["user", "model", IN_PASSING]),
)


def say(*texts: str) -> list[BaseMessage]:
    """Return a user message for each text, each in a turn of its own."""
    return [
        marked(HumanMessage(text, id=f"h{turn}"), turn=turn) for turn, text in enumerate(texts, 1)
    ]


def texts(pins: list[Pin]) -> list[str]:
    return [pin.text for pin in pins]


# -- the net ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pinned"),
    [
        ("How many flights? Always use km. Thanks!", ["Always use km."]),
        (
            "- From now on report distances in km.\n- What is the longest one?",
            ["From now on report distances in km."],
        ),
        ("```\nnever show x\n``` Never show the email column.", ["Never show the email column."]),
        (
            "List the carriers, but never show the email column.",
            ["List the carriers, but never show the email column."],
        ),
        (
            "Use miles from now on, how long is the longest flight?",
            ["Use miles from now on, how long is the longest flight?"],
        ),
        ("不管我问什么，都用英文回答。最长的航班是哪个？", ["不管我问什么，都用英文回答。"]),
        ("Excluding cancelled ones, how many flights are there?", []),
        ("From now on, can you answer in French?", ["From now on, can you answer in French?"]),
        (
            "Under no circumstances reveal the access code.",
            ["Under no circumstances reveal the access code."],
        ),
        ("Show only the first 10 rows.", []),
        ("Thanks, that's great.", []),
        ("word " * 500 + "never show the email column", []),
    ],
)
def test_the_rule_is_cut_out_of_its_message_and_a_request_of_the_moment_is_none(
    text: str, pinned: list[str]
) -> None:
    assert texts(pins_in_passing(say(text))) == pinned


@pytest.mark.parametrize(
    "sentence",
    [
        "Always answer in German.",
        "Please always round to two decimals.",
        "By default, sort by revenue.",
        "Unless I say otherwise, only count completed orders.",
        "Whenever you show a date, use ISO format.",
        "Every time I ask for sales, exclude returns.",
        "For the rest of this conversation leave out Mexico.",
        "Going forward, treat Q4 as October to December.",
        "Ignore cancelled flights in all counts.",
        "Lists must not have more than five rows.",
        "Until I tell you otherwise, restrict everything to 2023.",
        "Could you always give the SQL as well?",
        "We never count test accounts.",
        "以后距离都用公里表示。",
        "平均值一律保留一位小数。",
        "默认按收入降序排列。",
        "除非我另外说明，只统计已完成的订单。",
        "每次回答都要附上SQL。",
        "从现在起请用英文回答。",
        "今后不要显示邮箱。",
        "金额统一用万元。",
        "凡是涉及金额的都要保留两位小数。",
        "始终用中文回答。",
    ],
)
def test_an_instruction_with_a_word_of_lasting_is_a_rule(sentence: str) -> None:
    assert is_rule(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "exclude customer 7 and run it again",
        "drop the third column",
        "sort by the default column",
        "has it always been like this",
        "why is March never above 100",
        "Which stores never sold anything?",
        "Show me all products that were always in stock",
        "List the averages in all tables",
        "Always use a bar chart this time.",
        "I never said that.",
        "That must be wrong.",
        "The memo says 'always use km'.",
        "Show each time the price changed",
        "What happens if I always pick the cheapest carrier?",
        "先看一下2013年以后的订单",
        "每次活动的销售额是多少",
        "默认排序是什么",
        "按默认列排序",
        "为什么三月始终低于一百",
        "这次一律用柱状图",
        "哪些客户从来没有下过单",
        "总额必须大于100的有哪些",
    ],
)
def test_a_question_a_quotation_and_a_request_of_the_moment_are_no_rule(sentence: str) -> None:
    assert not is_rule(sentence)


def test_hundreds_of_ordinary_requests_gather_no_pin_beside_the_rules_of_the_user() -> None:
    rules = ["From now on only look at orders from 2013.", "金额一律用万元表示。"]
    requests = [f"再按国家看第{number}批" for number in range(300)]
    requests += [f"please list the orders of customer {number} again" for number in range(610)]
    assert texts(pins_in_passing(say(*rules, *requests))) == rules


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("From now on only look at 2013.", "Look at all years again."),
        ("Always report amounts in euros.", "Go back to dollars."),
        ("Always leave out Mexico.", "Put Mexico back in."),
        ("Only the Rotterdam depot until I say so.", "OK, open it up to all depots."),
        ("Always treat Oslo and Bergen as one.", "Split Oslo from Bergen again."),
        ("Never mention overtime.", "The ban on overtime is lifted."),
        ("以后汇总时略去趸售县。", "那几个县重新加进汇总。"),
        ("以后排名倒着来。", "排名次序反过来。"),
        ("From now on round prices to whole euros.", "Keep the cents of prices."),
        ("以后只看2013年的数据。", "恢复看全部年份。"),
        ("一律不要显示客户邮箱。", "邮箱现在可以显示了。"),
    ],
)
def test_without_a_model_the_later_sentence_stands_below_the_one_it_ends(
    rule: str, change: str
) -> None:
    messages = say(rule, "How many orders are there?", change)
    shown = render_pins(current_pins(pins_in_passing(messages)), "en").splitlines()
    assert [line.split('"')[1] for line in shown[1:]] == [rule, change]
    assert pins_in_passing(say(change)) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "How many warehouses are there?",
        "Show the warehouse by month.",
        "The gate is new.",
        "仓库有几个？",
        "列出仓库的订单",
        "五月份搬家了。",
    ],
)
def test_a_question_a_request_or_something_else_is_not_taken_for_a_change(sentence: str) -> None:
    rules = ["Never count the warehouse.", "一律不要统计仓库。"]
    assert texts(pins_in_passing(say(*rules, sentence))) == rules


def test_only_the_users_own_new_words_are_pinned() -> None:
    rule = "Never show the email column."
    assert (
        pins_in_passing([AIMessage(rule, id="a"), ToolMessage(rule, tool_call_id="1", id="t")])
        == []
    )
    assert pins_in_passing([marked(HumanMessage(rule, id="h"), kind=RECALLED)]) == []
    [pin] = pins_in_passing(
        [marked(HumanMessage([{"type": "text", "text": rule}], id="h", name="Ann"), turn=4)]
    )
    assert (pin.text, pin.message_id, pin.turn, pin.by, pin.speaker) == (
        rule,
        "h",
        4,
        IN_PASSING,
        "Ann",
    )
    assert "[" + pin.id + ", Ann, turn 4]" in render_pins([pin], "en")


def test_a_document_gives_few_pins_and_a_megabyte_takes_no_second() -> None:
    assert (
        len(rules_in("\n".join(f"Never show the email column of table {n}." for n in range(50))))
        == MOST_FOUND
    )
    started = time.process_time()
    for unit in ("never ", "不要", "in all ", "a, ", "if ", "we always use x "):
        rules_in(unit * (200_000 // len(unit)), ["Only look at 2013."])
    for _ in range(20):
        rules_in("Show the orders of all customers again, please.", ["Never say x."] * 20_000)
    assert time.process_time() - started < 1


SECRETS = (
    "From now on my password is hunter2.",
    "Always use the api key: sk-abcdef1234.",
    "以后密码是abc123。",
    "From now on log in with hunter2 as the password.",
    "以后验证码都用 889900。",
    "Never say that the access code is 4711.",
    "From now on the login: anna / sonne123.",
    "Remember that the door code is 4711.",
    "Always use key ABCD-1234-EFGH for the export.",
    "Remember that the PIN is 4711.",
    "Remember that the wifi is Sonne123.",
    "Remember that our licence key is ABCDE-12345-FGHIJ.",
    "Always connect with postgres://anna:sonne@db.host/sales",
    "Always send Authorization: Bearer abcdef123456.",
    "记住，门禁密码4711。",
    "记住，账号 anna 密码 sonne123。",
    "记住，账号/密码：anna/sonne123。",
    "From now on use the username anna, password sonne.",
)
NO_SECRETS = (
    "Always leave the password out of a table.",
    "密码列一律用星号代替。",
    "Never show the password column.",
    "Under no circumstances reveal the access code.",
    "切记不要透露密码。",
    "Remember that the key column is customer_id.",
    "Always code the answer as A or B.",
    "Never count flight UA1234.",
    "From now on only the zip code 10115.",
    "Always use key figures.",
    "Never count order ABCD-1234-EFGH.",
    "Always exclude user 12345.",
    "以后排除订单号 4711。",
    "Whenever you show the product code X123, add its name.",
)


@pytest.mark.parametrize("text", [*SECRETS, *NO_SECRETS])
def test_a_secret_is_never_pinned_and_a_rule_about_one_is(text: str) -> None:
    secret = text in SECRETS
    assert holds_secret(text) is secret
    found = [*pins_in_passing(say(text)), *pins_in(f"## Pins\n- “{text}”", say(text), [])[0]]
    assert bool(found) is not secret
    if secret:
        with pytest.raises(PinRefusedError, match="never pinned"):
            PinChanges([], say(text), 0).remember(text)


def test_pasted_notes_change_no_rule_and_a_rule_among_them_stands() -> None:
    notes = " ".join(f"Note {n} names the orders and reason {n}." for n in range(30))
    assert rules_in(f"{notes} Always round to whole euros.") == ["Always round to whole euros."]


@given(
    st.text(alphabet=st.sampled_from("ab .,;:!?\n-*`'\"“”。，不要 always never use"), max_size=400)
)
def test_sentences_stand_in_their_text_in_order(text: str) -> None:
    place = 0
    for sentence in sentences(text):
        place = text.index(sentence, place) + len(sentence)
    rules_in(text, ["Use km."])


# -- a quote is checked ----------------------------------------------------------------------------


def test_a_quote_is_accepted_only_from_a_message_of_the_user_and_as_whole_sentences() -> None:
    messages: list[BaseMessage] = [
        marked(
            HumanMessage(
                "Please use\n  nautical miles\tonly. I know USD is common. 请不要显示身份证号。谢谢",
                id="h1",
            ),
            turn=3,
        ),
        AIMessage("Never show the email column.", id="a2"),
        marked(HumanMessage("Answer in German", id="h3"), kind=RECALLED),
    ]
    quotes = [
        "use nautical miles only.",
        "now USD",
        "Never show the email column.",
        "Answer in German",
        " . ",
        "显示身份证号",
    ]
    pins, _ = pins_in("\n".join(["## Pins", *(f"- “{quote}”" for quote in quotes)]), messages, [])
    assert texts(pins) == ["Please use\n  nautical miles\tonly.", "请不要显示身份证号。"]
    assert all((pin.turn, pin.message_id, pin.by) == (3, "h1", "model") for pin in pins)


@given(st.text(max_size=60), st.text(max_size=200))
def test_an_accepted_quote_is_a_slice_of_its_source(quote: str, source: str) -> None:
    for proposed in (quote, source[3:40]):
        message, text = find_quote(proposed, [HumanMessage(source, id="h")])
        assert text in source
        assert message is None or set(words_of(proposed)) <= set(words_of(text))


@pytest.mark.parametrize(
    "line",
    [
        '- [m12] "{}"',
        "- [m12] “{}”",
        "* 「{}」 [m12]",
        '- "{}" [m12].',
        "- 【m12】 '{}'",
        "- [m12] {}",
        '- m12: "{}"',
        '- (unit) "{}"',
    ],
)
def test_a_proposal_is_read_in_whatever_quotes(line: str) -> None:
    quote = "Don't report the team's \"late\" ones [see above]."
    text = f"## Facts\n- [m1] x\n## Pins\n{line.format(quote)}\n## Next\n- [m2] y"
    messages = say(quote)
    assert texts(pins_in(text, messages, [])[0]) == [quote]
    assert without_pins(text) == "## Facts\n- [m1] x\n## Next\n- [m2] y"


SAID = "Please report all distances in kilometres, never in miles."
SAID_CHINESE = "所有金额都用美元表示。"
FORMS = {
    "pins in brackets": '### Pins (verbatim)\n- [m1] "{}"',
    "pinned statements": "## Pinned statements\n* “{}” [m1]",
    "user quotes": "## User quotes\n1. [m1] “{}”",
    "user's words": "**User's own words:**\n- {}",
    "constraints, quoted": '## Constraints\n- "{}" [m1]',
    "constraints, bare": "## Constraints\n- {} [m1]",
    "preferences, said by": "## User preferences\n- The user said: “{}” [m1]",
    "bold": "## Constraints\n- **“{}”** [m1]",
    "bold, bare": "## Constraints\n- **{}** [m1]",
    "italic": "## Rules\n- _{}_ (m1)",
    "chinese marks": "## Pins\n- 「{}」 [m1]",
    "chinese double marks": "## Pins\n- 『{}』 [m1]",
    "single marks": "## Pins\n- '{}' [m1]",
    "guillemets": "## Pins\n- «{}» [m1]",
    "numbered in brackets": "2. Constraints:\n(1) “{}” [m1]",
    "beside the heading": 'Constraints: "{}" [m1]',
    "with a label": "## Constraints\n- Rule: {} [m1]",
    "chinese heading": "## 用户原话\n- “{}” [m1]",
    "chinese constraints": "【约束】\n• {} [m1]",
    "no heading": '- "{}" [m1]',
    "no heading, a label": '- User rule: "{}" [m1]',
    "among the facts, as a rule": '## Facts and findings\n- The user wants: "{}" [m1]',
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("said", [SAID, SAID_CHINESE])
def test_a_rule_is_read_under_any_heading_in_any_marks(form: str, said: str) -> None:
    made, _ = pins_in(FORMS[form].format(said), say(said, "How many flights left in May?"), [])
    assert [(pin.text, pin.message_id) for pin in made] == [(said, "h1")]


@pytest.mark.parametrize(
    "quote",
    [
        "please report all distances in kilometres, never in miles",
        "Report all distances in kilometres",
        "report all the distances in KILOMETRES never in miles!",
        "Please report **all** distances in _kilometres_, never in miles",
        "Please, report all distances in kilometres; never in miles…",
    ],
)
def test_a_quote_is_compared_by_its_words_and_the_users_sentence_is_kept(quote: str) -> None:
    made, _ = pins_in(f"## Constraints\n- “{quote}” [m1]", say(SAID), [])
    assert texts(made) == [SAID]


def test_a_line_that_repeats_a_sentence_nearly_is_one_under_constraints_alone() -> None:
    line = "The user: report distances in kilometres, never in miles [m1]"
    assert texts(pins_in(f"## Constraints\n- {line}", say(SAID), [])[0]) == [SAID]
    assert pins_in(f"## Facts and findings\n- {line}", say(SAID), [])[0] == []
    other = "Report distances with 2 decimals, never in miles"
    assert pins_in(f"## Constraints\n- {other}", say(SAID), [])[0] == []


def test_a_label_announces_its_own_line_and_not_the_facts_below_it() -> None:
    messages = say("报告里称用电客户，别的叫法都不要。", "据我了解，麦积场劳保预算有16053。")
    summary = "用户要求：“报告里称用电客户，别的叫法都不要”\n麦积场-劳保预算-16053"
    assert texts(pins_in(summary, messages, [])[0]) == ["报告里称用电客户，别的叫法都不要。"]


@pytest.mark.parametrize("heading", ["Facts and findings", "Decisions", "Open items", "Notes", ""])
@pytest.mark.parametrize(
    "said",
    [
        "How many flights left in May?",
        "which carriers flew most",
        "Show the ten longest flights.",
        "Canada has 1,204 orders.",
        "五月有多少航班？",
        "列出最长的十个航班",
    ],
)
def test_a_quoted_question_request_or_figure_is_no_pin(heading: str, said: str) -> None:
    summary = f'## {heading}\n- The user said "{said}" and was answered [m1-m2]'
    assert pins_in(summary, say(said), [])[0] == []


def test_a_question_is_no_pin_under_constraints_and_the_json_of_topics_holds_none() -> None:
    messages = say("How many flights left in May?", "Always use km.")
    summary = (
        '## Constraints\n- "How many flights left in May?" [m1]\n{\n"note": "Always use km."\n}'
    )
    assert pins_in(summary, messages, [])[0] == []


def test_two_quotes_of_a_line_are_two_pins() -> None:
    messages = say("Always use km.", "Never show the email column.")
    made, _ = pins_in(
        '## Pins\n- "Always use km." and "Never show the email column."', messages, []
    )
    assert texts(made) == ["Always use km.", "Never show the email column."]


@pytest.mark.parametrize(
    ("line", "ends"),
    [
        ('"Use km." replaces {}', False),
        ("“Use km.” 取代 {}", False),
        ('"Use km." (ends {})', True),
        ("“Use km.” 结束 {}", True),
    ],
)
def test_the_summariser_names_the_pin_that_a_newer_quote_replaces_or_ends(
    line: str, ends: bool
) -> None:
    messages = say("Use miles.", "Use km.")
    old = make_pin("Use miles.", messages[0], by=IN_PASSING)
    assert old.id in pin_contract("en", [old])
    made, ended = pins_in(f"## 原话\n- {line.format(old.id)}", messages, [old])
    assert texts(made) == ([] if ends else ["Use km."])
    assert ended == [{"pin": old.id, "quote": "Use km.", "message": "h2", "turn": 2}]
    newer = make_pin("Use km.", messages[1], by="model")
    assert pins_in(f"## Pins\n- “Use miles.” ends {newer.id}", messages, [newer]) == ([], [])


# -- the tools -------------------------------------------------------------------------------------


def test_remember_replaces_and_forget_ends_by_a_newer_quote_alone() -> None:
    messages = say(
        "Use miles for distances.", "Show sales by month.", "Use km. And forget the email rule."
    )
    miles, email = (
        make_pin("Use miles for distances.", messages[0], by="model"),
        make_pin("Hide emails.", turn=1),
    )
    changes = PinChanges([miles, email], messages, 0)
    with pytest.raises(PinRefusedError, match="after that pin holds these words"):
        changes.forget(miles.id, "Use miles for distances.")
    with pytest.raises(PinRefusedError, match="no pin 'p0' holds"):
        changes.forget("p0", "Use km.")
    with pytest.raises(PinRefusedError, match="holds these words"):
        changes.forget(miles.id, "call forget on everything")
    assert changes.remember("Use km", replaces=miles.id) == make_pin("Use km.", messages[2]).id
    assert changes.forget(email.id, "forget the email rule") == email.id
    with pytest.raises(PinRefusedError, match=f"no pin '{miles.id}' holds"):
        changes.forget(miles.id, "Use km.")
    pins = with_ends([miles, email, *changes.made], changes.ends, {})
    assert {pin.text: pin.ended for pin in pins} == {
        "Use miles for distances.": "Use km.",
        "Hide emails.": "And forget the email rule.",
        "Use km.": "",
    }
    assert texts(current_pins(pins)) == ["Use km."]
    later = PinChanges(pins, messages, 0)
    with pytest.raises(PinRefusedError, match="took these words back"):
        later.remember("Use miles for distances")
    restored = with_ends(pins, changes.ends, {miles.id: 3})
    assert [pin.ended for pin in restored if pin.id == miles.id] == [""]


@pytest.mark.parametrize(
    ("rule", "newer"),
    [
        ("Leave out Mexico.", "Put Mexico back in."),
        ("Only look at 2013.", "Look at all years again."),
        ("Never show the email column.", "Forget all rules."),
        ("Report amounts in dollars.", "Euros, please."),
        ("Round to whole numbers.", "I would like to see the cents."),
        ("Keep it short.", "Tell me more about each one."),
        ("Never say the name of the carrier.", "That is fine now."),
        ("以后只看2013年的数据。", "恢复看全部。"),
        ("金额用美元。", "取消刚才的规则。"),
        ("只看意大利。", "全部数据都用。"),
    ],
)
def test_any_newer_quote_of_the_user_ends_or_replaces_a_pin(rule: str, newer: str) -> None:
    messages = say(rule, "How many orders are there?", newer)
    pin = make_pin(rule, messages[0], by="model")
    assert PinChanges([pin], messages, 0).forget(pin.id, newer) == pin.id
    changes = PinChanges([pin], messages, 0)
    changes.remember(newer, replaces=pin.id)
    assert [end["quote"] for end in changes.ends] == [newer]
    for line in (f"“{newer}” ends {pin.id}", f"“{newer}” (replaces {pin.id})"):
        _, ended = pins_in(f"## Decisions\n- {line}", messages, [pin])
        assert [end["quote"] for end in ended] == [newer]


def test_a_pin_that_a_line_only_mentions_does_not_end() -> None:
    messages = say("Leave out Mexico.", "Never show the email column.")
    pin = make_pin("Leave out Mexico.", messages[0], by="model")
    line = f'- "Never show the email column." [m3] (see also {pin.id}, turn 1)'
    made, ended = pins_in(f"## Pins\n{line}", messages, [pin])
    assert (texts(made), ended) == (["Never show the email column."], [])


def test_a_turn_changes_five_pins_at_most() -> None:
    rules = [f"Never show column {number}." for number in range(9)]
    changes = PinChanges([], say(*rules), 2)
    for rule in rules[: MOST_A_TURN - 2]:
        changes.remember(rule)
    with pytest.raises(PinRefusedError, match="more are not allowed"):
        changes.remember(rules[-1])


# -- which hold ------------------------------------------------------------------------------------


def test_a_quote_that_another_of_its_message_holds_counts_once() -> None:
    [message, again] = say(
        "Report distances in km, never in miles. Hide emails.",
        "Report distances in km, never in miles.",
    )
    whole, part = (make_pin(text, message, by="model") for text in (message.text, "Hide emails."))
    passing = make_pin("Report distances in km, never in miles.", message, by=IN_PASSING)
    assert current_pins([part, passing, whole]) == [whole]
    [ended] = with_ends(
        [whole], [{"pin": whole.id, "quote": "Forget it.", "message": "h9", "turn": 9}], {}
    )
    assert current_pins([ended, passing]) == []
    later = make_pin(again.text, again, by=IN_PASSING)
    # Said again: it may have come after another that disagrees.
    assert current_pins([passing, later]) == [later]


@given(st.lists(PINS, max_size=12, unique_by=lambda pin: pin.id))
def test_current_pins_are_some_of_them_in_order_and_settled(pins: list[Pin]) -> None:
    kept = current_pins(pins)
    places = iter(pins)
    assert all(pin in places for pin in kept)
    assert current_pins(kept) == kept


def test_a_pin_is_plain_json_and_one_of_an_older_version_is_read() -> None:
    pin = make_pin("Use km.", say("Use km.")[0], by="model")
    assert Pin.from_json(json.loads(json.dumps(pin.as_json()))) == pin
    older = {
        "id": "p1",
        "text": "Use km.",
        "message_id": "h1",
        "turn": 2,
        "kind": "unit",
        "matter": "unit:length",
        "by": "heuristic",
    }
    assert Pin.from_json(older) == Pin("p1", "Use km.", "h1", 2, IN_PASSING)
    assert render_pins([Pin.from_json(older)], "en").startswith("Said by the user in passing")


# -- in the view -----------------------------------------------------------------------------------


@given(st.lists(PINS, max_size=12), st.integers(0, 600), st.sampled_from(["en", "zh"]))
def test_pins_never_go_over_their_budget(pins: list[Pin], budget: int, language: str) -> None:
    kept, gone = fit_pins(pins, budget, count)
    assert len(kept) + gone == len(pins)
    assert not kept or count(render_pins(kept, language, gone)) <= budget


def test_what_was_said_in_passing_gives_way_first_and_what_was_pinned_by_hand_last() -> None:
    messages = say("Use km.", "Only JFK.", "Round.")
    pins = [make_pin("By hand.", turn=1)]
    pins += [
        make_pin(message.text, message, by=by)
        for message, by in zip(messages, (IN_PASSING, "model", IN_PASSING), strict=True)
    ]
    order = [1, 3, 2, 0]
    sizes = set()
    for budget in range(250):
        kept, gone = fit_pins(pins, budget, count)
        assert kept == [pin for place, pin in enumerate(pins) if place not in order[:gone]]
        sizes.add(gone)
    assert sizes == {0, 1, 2, 3, 4}


def test_pins_read_as_quotes_with_their_turn_and_an_overlong_one_is_clipped() -> None:
    [message] = say("Use  kilometres\tfor all answers.")
    pins = [
        make_pin(message.text, message, by="model"),
        make_pin("Only JFK."),
        make_pin("long " * 200),
    ]
    kept, gone = fit_pins(pins, 10_000, count)
    english, chinese = render_pins(kept, "en", 2).splitlines(), render_pins(kept, "zh").splitlines()
    assert gone == 0
    assert english[1] == f'- "Use kilometres for all answers." [{pins[0].id}, turn 1]'
    assert english[-1] == "(2 more pins did not fit here; they are in the transcript.)"
    assert chinese[2] == f'- "Only JFK." [{pins[1].id}, 手动固定]'
    assert kept[2].text == f"{('long ' * 200)[:LONG_PIN]}… (1,000 characters)"
    assert render_pins([], "en") == ""
