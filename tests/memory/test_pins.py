"""Pins: the user's standing rules are found, held against their source, superseded by later ones, and fit their budget."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from longtable.memory.pin_rules import kind_of, matter_of, sentences
from longtable.memory.pins import (
    LONG_PIN,
    PIN_CONTRACT,
    Pin,
    Proposal,
    fit_pins,
    heuristic_pins,
    live_pins,
    make_pin,
    proposals_in,
    render_pins,
    verify,
    without_proposals,
)
from longtable.memory.stamps import RECALLED, marked
from longtable.memory.tokens import counter
from tests.memory.pin_sentences import FRAGMENTS, MORE_RULES, QUESTIONS, all_rules, held_out, tuned_on
from tests.support.flights_talk import TALK
from tests.support.histories import histories

count = counter("o200k_base").text
RULE_TEXTS = [sentence for _, sentence in all_rules()]
PINS = st.builds(
    lambda number, text, by, turn: make_pin(text, message_id="" if by == "user" else f"h{number}", turn=turn, by=by),
    st.integers(0, 5),
    st.sampled_from(RULE_TEXTS) | st.text(min_size=1, max_size=40) | st.integers(1, 400).map(lambda n: "Always do this. " * n),
    st.sampled_from(["model", "heuristic", "user"]),
    st.integers(0, 9),
)


def say(*texts: str) -> list[BaseMessage]:
    return [marked(HumanMessage(text, id=f"h{n}"), turn=n) for n, text in enumerate(texts, start=1)]


def texts(pins: list[Pin]) -> list[str]:
    return [pin.text for pin in pins]


def live(*said: str) -> list[str]:
    return texts(live_pins(heuristic_pins(say(*said))))


# -- which sentences are pinned -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sentence", tuned_on(RULE_TEXTS) + list(MORE_RULES))
def test_a_standing_rule_is_pinned_word_for_word(sentence: str) -> None:
    pins = heuristic_pins(say(sentence))
    assert pins
    assert all(pin.text in sentence for pin in pins)


@pytest.mark.parametrize("sentence", [*tuned_on(QUESTIONS), *FRAGMENTS, *(turn.question for turn in TALK)])
def test_a_question_is_not_pinned(sentence: str) -> None:
    assert heuristic_pins(say(sentence)) == []


def test_the_third_kept_aside_holds_the_recall_and_the_precision_that_are_published() -> None:
    found = [sentence for sentence in held_out(RULE_TEXTS) if heuristic_pins(say(sentence))]
    false = [sentence for sentence in held_out(QUESTIONS) if heuristic_pins(say(sentence))]
    assert len(found) / len(held_out(RULE_TEXTS)) >= 0.95
    assert len(found) / (len(found) + len(false)) >= 0.95


@pytest.mark.parametrize(
    ("text", "pinned"),
    [
        ("How many flights left JFK? Report distances in kilometres. And which was the longest?", ["Report distances in kilometres."]),
        ("By late I mean over 15 min, e.g. 16.5. How many were late?", ["By late I mean over 15 min, e.g. 16.5."]),
        (
            "Hi!\n- Round to 2 decimals\n- never show the tailnum column\nList the planes.",
            ["Round to 2 decimals", "never show the tailnum column"],
        ),
        ("二月有多少航班？以后只看JFK。谢谢！", ["以后只看JFK。"]),
        ("Why does this fail?\n```\nAlways use miles. Never do x.\n```\nAnswer in German.", ["Answer in German."]),
        ("List the carriers, but never show the tailnum column.", ["List the carriers, but never show the tailnum column."]),
        ("Use miles from now on, how long is the longest flight?", ["Use miles from now on, how long is the longest flight?"]),
        ("How many were late, by late I mean over an hour?", ["How many were late, by late I mean over an hour?"]),
        ("距离用公里，最长的航班有多远？", ["距离用公里，最长的航班有多远？"]),
        ("不管我问什么，都用英文回答。", ["不管我问什么，都用英文回答。"]),
        ("Excluding cancelled ones, how many flights are there?", []),
        ("From now on, can you answer in French?", ["From now on, can you answer in French?"]),
        (
            "When I ask for the mean of any of these columns then always give me\nthe median of that column as well. Why?",
            ["When I ask for the mean of any of these columns then always give me\nthe median of that column as well."],
        ),
        ("word " * 500 + ", never show the tailnum column, " + "word " * 500, ["never show the tailnum column"]),
    ],
)
def test_the_sentence_is_cut_out_of_its_message(text: str, pinned: list[str]) -> None:
    assert texts(heuristic_pins(say(text))) == pinned


def test_only_the_users_own_new_words_are_pinned() -> None:
    rule = "Never show the tailnum column."
    assert heuristic_pins([AIMessage(rule, id="a"), ToolMessage(rule, tool_call_id="1", id="t")]) == []
    assert heuristic_pins([marked(HumanMessage(rule, id="h"), kind=RECALLED)]) == []
    [pin] = heuristic_pins([marked(HumanMessage([{"type": "text", "text": rule}], id="h"), turn=4)])
    assert (pin.text, pin.message_id, pin.turn, pin.kind, pin.by) == (rule, "h", 4, "constraint", "heuristic")
    assert re.fullmatch("p[0-9a-f]{8}", pin.id)


@given(histories())
def test_every_pin_of_any_history_stands_in_its_message(history: list[BaseMessage]) -> None:
    by_id = {message.id: message for message in history}
    for pin in heuristic_pins(history):
        assert pin.text in str(by_id[pin.message_id].text)


@given(st.text(alphabet=st.sampled_from("ab .,;:!?\n-*`'\"“”。，不要 always never use"), max_size=400))
def test_sentences_stand_in_their_text_in_order(text: str) -> None:
    place = 0
    for sentence in sentences(text):
        place = text.index(sentence, place) + len(sentence)
        kind_of(sentence)


# -- one matter, the later wins -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Report distances in miles.", "Use kilometres."),
        ("Report in miles", "Actually, distances in km from now on please."),
        ("距离用公里表示。", "请把距离换算成英里"),
        ("Report distances in miles.", "距离一律用公里表示。"),
        ("Round to 2 decimals", "No decimals."),
        ("保留两位小数", "结果取整"),
        ("Answer in German", "English only please."),
        ("请用英文回答", "Please reply in Chinese."),
        ("By late I mean more than 15 minutes.", "By late I mean over an hour."),
        ("“延误”指超过15分钟", "延误是指超过30分钟。"),
        ("Quote all prices in euros.", "Amounts in US dollars please."),
        ("Altitudes in feet please.", "Show altitudes in metres."),
        ("Keep answers under three sentences.", "Please be detailed."),
        ("Never show the tailnum column", "Always show the tailnum column."),
        ("Exclude cancelled flights", "Only consider cancelled flights."),
        ("Always show the SQL.", "Don't show the SQL."),
        ("Limit lists to 20 rows.", "Never list more than ten rows."),
        ("From now on only JFK", "Now only LGA."),
        ("Only count flights where origin is JFK.", "Only count flights where origin is LGA."),
    ],
)
def test_a_later_rule_on_the_same_matter_supersedes(earlier: str, later: str) -> None:
    assert live(earlier, "Exclude test accounts.", later) == ["Exclude test accounts.", later]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Report distances in kilometres.", "Altitudes in feet please."),
        ("Round prices to 2 decimals.", "Round delays to whole minutes."),
        ("Exclude cancelled flights", "Exclude diverted flights"),
        ("By late I mean more than 15 minutes.", "By early I mean before the schedule."),
        ("From now on only JFK", "From now on only 2013"),
        ("以后只看一月", "以后只看二月的美联航"),
        ("Treat missing delays as zero.", "Treat missing prices as zero."),
        ("Exclude orders before 2014.", "Exclude orders after 2014."),
        ("Report distances in miles for US flights.", "Report distances in kilometres for flights to Europe."),
        ("Report distances in kilometres.", "By late I mean more than 2 hours."),
        ("Never show the tailnum column", "Never show the email column"),
    ],
)
def test_two_matters_both_stand(one: str, other: str) -> None:
    assert live(one, other) == [one, other]


def test_a_statement_about_two_matters_holds_until_both_are_superseded() -> None:
    both = "Report distances in miles and round to one decimal."
    assert live(both, "Use kilometres.") == [both, "Use kilometres."]
    assert live(both, "Use kilometres.", "No decimals.") == ["Use kilometres.", "No decimals."]


@pytest.mark.parametrize(
    ("rule", "taken_back"),
    [
        ("Never show the tailnum column", "Forget the rule about the tailnum column."),
        ("Round everything to two decimals", "You no longer need to round."),
        ("Round prices to two decimals", "Forget the rounding rule."),
        ("Exclude cancelled flights", "Stop excluding cancelled flights."),
        ("Never show the tailnum column", "You may show the tailnum column again."),
        ("Answer in German", "Forget everything I said."),
        ("保留两位小数", "不用再保留两位小数了"),
        ("以后只看JFK", "取消JFK的限制"),
        ("不要显示身份证号", "可以重新显示身份证号了"),
        ("距离用公里表示。", "取消所有规则"),
    ],
)
def test_a_rule_taken_back_is_gone_and_what_took_it_back_stands(rule: str, taken_back: str) -> None:
    assert live(rule, taken_back) == [taken_back]
    assert live(rule, taken_back, rule) == [rule] or live(rule, taken_back, rule) == [taken_back, rule]


def test_taking_one_rule_back_leaves_the_others() -> None:
    assert live("Never show the tailnum column", "Use miles.", "Forget the rule about the tailnum column.") == [
        "Use miles.",
        "Forget the rule about the tailnum column.",
    ]


def test_a_quote_inside_another_of_its_message_counts_once() -> None:
    whole = make_pin("Report distances in km,  never in miles.", message_id="h1", by="heuristic")
    part = make_pin("distances in km, never", message_id="h1", by="model")
    elsewhere = make_pin("distances in km, never", message_id="h2", by="model")
    assert live_pins([part, whole]) == [whole]
    assert live_pins([whole, part, part]) == [whole]
    assert elsewhere in live_pins([whole, elsewhere])


@given(st.lists(PINS, max_size=12))
def test_live_pins_are_given_ones_in_order_and_settled(pins: list[Pin]) -> None:
    kept = live_pins(pins)
    places = iter(pins)
    assert all(pin in places for pin in kept)
    assert live_pins(kept) == kept


def test_a_thread_of_many_pins_is_settled_in_one_pass() -> None:
    rules = say(
        *(f"Exclude flights of carrier C{n}." for n in range(3_000)), *(f"Forget the rule about carrier C{n}." for n in range(3_000))
    )
    kept = live_pins(heuristic_pins(rules))
    assert [pin.kind for pin in kept] == ["revocation"] * 3_000


def test_matters_are_the_same_however_a_pin_was_made() -> None:
    by_pattern, by_model, by_hand = (
        heuristic_pins(say("Use miles."))[0],
        verify([Proposal((1,), "preference", "Use miles.")], {1: say("Use miles.")[0]})[0][0],
        make_pin("Use miles."),
    )
    assert by_pattern.matter == by_model.matter == by_hand.matter == matter_of("Report distances in km", "unit")
    assert by_pattern.id == by_model.id != by_hand.id
    assert (by_model.by, by_hand.by, by_hand.message_id) == ("model", "user", "")


# -- what a model proposes ------------------------------------------------------------------------------------------

QUOTE = "Report distances in kilometres."


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (f'- [m12] (unit) "{QUOTE}"', "unit"),
        (f"- [m12] (unit) “{QUOTE}”", "unit"),
        (f"- [m12]（单位）「{QUOTE}」", "unit"),
        (f'* [m12] "{QUOTE}"', ""),
        (f"[M12]: 『{QUOTE}』", ""),
        (f'- "{QUOTE}" [m12]', ""),
        (f'- "{QUOTE}" (unit) [m12]', "unit"),
        (f'- (unit) "{QUOTE}" [m12].', "unit"),
        (f"- 【m12】 [Unit] '{QUOTE}'", "unit"),
        (f"- [m12] (unit) {QUOTE}", "unit"),
        (f'- m12: "{QUOTE}"', ""),
    ],
)
def test_a_proposal_is_read_in_whatever_quotes(line: str, kind: str) -> None:
    assert proposals_in(f"## Facts\n- [m1] x\n## Pins\n{line}\n## Next\n- [m2] y") == [Proposal((12,), kind, QUOTE)]


def test_the_users_own_brackets_and_quotes_stay_in_the_quote() -> None:
    assert proposals_in('## 原话\n- [m3-m4] (rule) "Say "late" (not "delayed") [see above]"') == [
        Proposal((3, 4), "rule", 'Say "late" (not "delayed") [see above]')
    ]


def test_a_summary_without_its_section_is_the_rest() -> None:
    summary = '## Facts and findings\n- 3 flights [m4]\n\n## Pins\n- [m1] (unit) "Use km"\n\n## Open items\n- none'
    assert without_proposals(summary) == "## Facts and findings\n- 3 flights [m4]\n\n## Open items\n- none"
    assert without_proposals("## Facts\n- pins: none") == "## Facts\n- pins: none"
    assert proposals_in("## Facts\n- [m1] x") == []
    for language, heading in (("en", "## Pins"), ("zh", "## 原话")):
        assert heading in PIN_CONTRACT[language]
        [example] = re.findall(r'- \[m12\] .*?[”"](?=[。. ])', PIN_CONTRACT[language])
        assert proposals_in(f"{heading}\n{example}")[0].numbers == (12,)


def test_a_quote_is_accepted_only_if_it_stands_in_the_users_message() -> None:
    sources: dict[int, BaseMessage] = {
        1: marked(HumanMessage("Please use\n  nautical miles\tonly. I know USD is common.", id="h1"), turn=3),
        2: AIMessage("Never show the tailnum column.", id="a2"),
        3: marked(HumanMessage("Answer in German", id="h3"), kind=RECALLED),
    }
    proposals = [
        Proposal((1,), "unit", "use nautical miles only."),
        Proposal((1,), "unit", "Use nautical miles only."),
        Proposal((1,), "unit", "now USD"),
        Proposal((2,), "constraint", "Never show the tailnum column."),
        Proposal((3,), "language", "Answer in German"),
        Proposal((9,), "unit", "use nautical miles"),
        Proposal((1,), "unit", " . "),
        Proposal((2, 1), "unit", "nautical miles"),
    ]
    pins, reasons = verify(proposals, sources)
    assert texts(pins) == ["use\n  nautical miles\tonly.", "nautical miles"]
    assert all(pin.text in str(sources[1].text) and pin.turn == 3 and pin.message_id == "h1" and pin.by == "model" for pin in pins)
    assert len(reasons) == 6
    assert "[m2] is a message of type ai" in reasons[2]
    assert "[m9] is not among" in reasons[4]


@pytest.mark.parametrize(
    ("source", "quote", "stored"),
    [
        ("OK. Do not show the salary column. Thanks", "show the salary column", "Do not show the salary column."),
        ("请不要显示身份证号。谢谢", "显示身份证号", "请不要显示身份证号。"),
        ("I know. Show the salary column.", "Show the salary column.", "Show the salary column."),
    ],
)
def test_a_quote_cut_behind_its_not_is_widened_to_the_sentence(source: str, quote: str, stored: str) -> None:
    [pin], _ = verify([Proposal((1,), "", quote)], {1: HumanMessage(source, id="h")})
    assert pin.text == stored


@given(st.text(max_size=60), st.text(max_size=200))
def test_an_accepted_quote_is_a_slice_of_its_source(quote: str, source: str) -> None:
    for proposed in (quote, source[3:40]):
        pins, reasons = verify([Proposal((1,), "", proposed)], {1: HumanMessage(source, id="h")})
        assert len(pins) + len(reasons) == 1
        assert all(pin.text in source and " ".join(proposed.split()) in " ".join(pin.text.split()) for pin in pins)


# -- in the view ----------------------------------------------------------------------------------------------------


@given(st.lists(PINS, max_size=12), st.integers(0, 600), st.sampled_from(["en", "zh"]))
def test_pins_never_go_over_their_budget(pins: list[Pin], budget: int, language: str) -> None:
    kept, gone = fit_pins(pins, budget, count)
    assert len(kept) + gone == len(pins)
    text = render_pins(kept, language, gone)
    assert count(text) <= budget or not kept
    assert len(text.splitlines()) == (len(kept) + 1 + bool(gone) if pins else 0)


def test_what_gives_way_goes_by_class_then_by_age() -> None:
    pins = [
        make_pin("Please be brief.", message_id="h1"),
        make_pin("Never show the tailnum column.", message_id="h2", by="model"),
        make_pin("Let's use the orders_v2 table.", message_id="h3", by="model"),
        make_pin("I prefer tables over prose.", message_id="h4", by="model"),
        make_pin("Use kilometres.", message_id="h5", by="model"),
    ]
    order = [0, 3, 2, 1, 4]
    pins[0] = make_pin("Please be brief.", message_id="h1", by="model")
    sizes = {_left(pins, budget, order) for budget in range(200)}
    by_hand = [make_pin(pins[0].text), *pins[1:]]
    sizes |= {_left(by_hand, budget, [3, 2, 1, 4, 0]) for budget in range(200)}
    assert {0, 1, 2, 5} <= sizes


def _left(pins: list[Pin], budget: int, order: list[int]) -> int:
    kept, gone = fit_pins(pins, budget, count)
    assert kept == [pin for place, pin in enumerate(pins) if place not in order[:gone]]
    return len(kept)


def test_an_overlong_pin_is_clipped_only_where_the_budget_forces_it() -> None:
    long = make_pin("Never " + "show this and that " * 60, message_id="h1", by="model")
    assert fit_pins([long], 10_000, count) == ([long], 0)
    [clipped], gone = fit_pins([long], 200, count)
    assert gone == 0
    assert clipped.text.startswith(long.text[:LONG_PIN])
    assert f"… ({len(long.text):,} characters)" in clipped.text
    assert len(clipped.text) < LONG_PIN + 30
    assert clipped.id == long.id


def test_pins_read_as_quotes_with_their_turn() -> None:
    pins = [*heuristic_pins(say("Use  kilometres\tfor all answers.")), make_pin("Only JFK.")]
    english, chinese = render_pins(pins, "en", 2).splitlines(), render_pins(pins, "zh").splitlines()
    assert english[1:] == [
        '- "Use kilometres for all answers." [turn 1]',
        '- "Only JFK." [pinned by hand]',
        "(2 more pins did not fit here; they are in the transcript.)",
    ]
    assert chinese[2] == '- "Only JFK." [手动固定]'
    assert render_pins([], "en") == ""


@given(PINS)
def test_a_pin_is_plain_json(pin: Pin) -> None:
    assert Pin.from_json(json.loads(json.dumps(pin.as_json()))) == pin


@pytest.mark.parametrize("text", ["Question 3: show me 35 rows of flights.", "Task: list all carriers", "第3题：显示35行航班"])
def test_a_label_before_a_request_makes_it_no_rule(text: str) -> None:
    assert heuristic_pins([HumanMessage(text, id="m")]) == []
