"""Pins: what the net finds, how a quote is checked, what ends a pin, how a view shows them."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.base.errors import PinRefusedError
from longtable.memory.pin_net import MOST_FOUND, rules_in, sentences
from longtable.memory.pins import (
    IN_PASSING,
    LONG_PIN,
    MOST_A_TURN,
    Pin,
    PinChanges,
    concerns,
    current_pins,
    find_quote,
    fit_pins,
    holds_secret,
    make_pin,
    pin_contract,
    pins_in,
    pins_in_passing,
    render_pins,
    with_ends,
    without_pins,
)
from longtable.memory.stamps import RECALLED, marked
from longtable.memory.tokens import counter

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
        ("How many flights? Please use km. Thanks!", ["Please use km."]),
        ("- Report distances in km.\n- What is the longest one?", ["Report distances in km."]),
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


def test_hundreds_of_ordinary_requests_gather_no_pin_beside_the_rules_of_the_user() -> None:
    rules = ["Only look at orders from 2013.", "金额都用万元表示。"]
    requests = [f"再按国家看第{number}批" for number in range(300)]
    requests += [f"please list the orders of customer {number} again" for number in range(610)]
    assert texts(pins_in_passing(say(*rules, *requests))) == rules


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("Only look at 2013.", "Look at all years again."),
        ("Report amounts in euros.", "Can we go back to dollars?"),
        ("以后只看2013年的数据。", "恢复看全部年份。"),
        ("不要显示客户邮箱。", "邮箱现在可以显示了。"),
    ],
)
def test_without_a_model_the_later_sentence_stands_below_the_one_it_ends(
    rule: str, change: str
) -> None:
    messages = say(rule, "How many orders are there?", change)
    shown = render_pins(current_pins(pins_in_passing(messages)), "en").splitlines()
    assert [line.split('"')[1] for line in shown[1:]] == [rule, change]


@pytest.mark.parametrize(
    "fact",
    [
        "For the record, the warehouse moved in May.",
        "The warehouse has a new gate.",
        "顺便说一下，五月份仓库搬家了。",
        "仓库的门是新的。",
    ],
)
def test_a_fact_about_what_a_rule_names_is_no_change_of_the_rule(fact: str) -> None:
    rules = ["Never count the warehouse.", "不要统计仓库。"]
    assert texts(pins_in_passing(say(*rules, fact))) == rules


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


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("My password is hunter2.", True),
        ("Always use the api key: sk-abcdef1234.", True),
        ("以后密码是abc123。", True),
        ("The password is: hunter2.", True),
        ("From now on log in with hunter2 as the password.", True),
        ("以后验证码都用 889900。", True),
        ("以后数据库密码用 abc123。", True),
        ("Always leave the password out of a table.", False),
        ("密码列用星号代替。", False),
        ("Never say that the access code is 4711.", True),
        ("Never show the password column.", False),
        ("Under no circumstances reveal the access code.", False),
        ("不要透露密码。", False),
    ],
)
def test_a_secret_is_never_pinned_and_a_rule_about_one_is(text: str, secret: bool) -> None:
    assert holds_secret(text) is secret
    found = [*pins_in_passing(say(text)), *pins_in(f"## Pins\n- “{text}”", say(text), [])[0]]
    assert bool(found) is not secret
    if secret:
        with pytest.raises(PinRefusedError, match="never pinned"):
            PinChanges([], say(text), 0).remember(text)


def test_pasted_notes_change_no_rule_and_a_rule_among_them_stands() -> None:
    notes = " ".join(f"Note {n} names the orders and reason {n}." for n in range(30))
    assert rules_in(f"{notes} Always round to whole euros.", ["Leave cancelled orders out."]) == [
        "Always round to whole euros."
    ]


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
        assert message is None or " ".join(proposed.split()) in " ".join(text.split())


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
    "newer",
    [
        "Show sales by month.",
        "How many tables are there?",
        "Show that chart again.",
        "Forget the email rule.",
        "按国家统计销售额。",
    ],
)
def test_newer_words_about_something_else_end_no_pin(newer: str) -> None:
    messages = say("Use miles for distances.", "Never show the email column.", newer)
    miles, email = (make_pin(message.text, message, by="model") for message in messages[:2])
    changes = PinChanges([miles, email], messages, 0)
    with pytest.raises(PinRefusedError, match="is not about"):
        changes.forget(miles.id, newer)
    with pytest.raises(PinRefusedError, match="is not about"):
        changes.remember(newer, replaces=miles.id)
    assert (changes.made, changes.ends, changes.used) == ([], [], 0)
    assert pins_in(f"## Pins\n- “{newer}” ends {miles.id}", messages, [miles, email]) == ([], [])


@pytest.mark.parametrize(
    ("rule", "newer"),
    [
        ("Only look at 2013.", "Look at all years again."),
        ("Never show the email column.", "Forget all rules."),
        ("Report amounts in dollars.", "Euros, please."),
        ("Only JFK.", "Cancel that."),
        ("以后只看2013年的数据。", "恢复看全部。"),
        ("不要显示客户邮箱。", "邮箱可以显示。"),
        ("金额用美元。", "取消刚才的规则。"),
        ("Only look at Italy.", "Use all the data."),
        ("Leave the returns out.", "You can include them again."),
        ("Answer in one line.", "Go back to the usual."),
        ("Never say the name of the carrier.", "That is fine now."),
        ("只看意大利。", "全部数据都用。"),
    ],
)
def test_words_about_a_pin_or_a_general_revocation_end_it(rule: str, newer: str) -> None:
    messages = say(rule, newer)
    pin = make_pin(rule, messages[0], by="model")
    assert PinChanges([pin], messages, 0).forget(pin.id, newer) == pin.id
    assert [
        end["quote"] for end in pins_in(f"## Pins\n- “{newer}” ends {pin.id}", messages, [pin])[1]
    ] == [newer]


@pytest.mark.parametrize(
    "newer",
    [
        "How many orders are there?",
        "Is the shop open again?",
        "Show all orders.",
        "The warehouse has a new gate.",
        "现在一共有多少订单？",
    ],
)
def test_a_question_or_a_request_for_data_ends_not_even_the_only_pin(newer: str) -> None:
    messages = say("Use miles for distances.", newer)
    pin = make_pin(messages[0].text, messages[0], by="model")
    with pytest.raises(PinRefusedError, match="is not about"):
        PinChanges([pin], messages, 0).forget(pin.id, newer)


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


@given(st.lists(PINS, max_size=12))
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


@pytest.mark.parametrize(
    "quote",
    [
        "How many flights are over 500 miles?",
        "Show the distances by carrier.",
        "All good, thanks.",
        "We also sell shoes.",
        "按承运人列出距离",
    ],
)
def test_what_only_asks_or_says_something_else_ends_not_even_the_only_pin(quote: str) -> None:
    pin = Pin("p1", "Use miles for distances. 距离用英里。", "h1", 1, "model")
    assert not concerns(quote, pin, [pin])


@pytest.mark.parametrize(
    "quote",
    [
        "From now on show distances in km.",
        "Never mind the miles.",
        "Forget that rule.",
        "Show all distances again.",
    ],
)
def test_a_rule_about_the_pin_or_a_request_that_widens_ends_it(quote: str) -> None:
    pin = Pin("p1", "Use miles for distances.", "h1", 1, "model")
    assert concerns(quote, pin, [pin])
