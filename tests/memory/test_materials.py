"""Material of context providers goes with one call, and never over its bound."""

from langchain_core.messages import HumanMessage

from longtable.memory.materials import HEAD, PASSED_ID, Material, with_materials
from longtable.memory.thread import Thread
from longtable.memory.view import CallPlan, build_view
from tests.memory.test_view import call_config


def plan(limit: int = 8_000) -> CallPlan:
    messages = [HumanMessage("first", id="1"), HumanMessage("second", id="2")]
    return CallPlan(Thread(messages), call_config(limit))


def material(text: str, most: int = 500) -> Material:
    return Material("wiki", text, ms=3, most=most)


def test_a_material_is_a_message_before_the_newest_user_message() -> None:
    call_plan = plan()
    view, [part] = with_materials(build_view(call_plan), [material("Airlines: UA.")], call_plan)
    *_, passed, newest = view.messages
    assert newest.content == "second"
    assert passed.id == f"{PASSED_ID}wiki"
    assert passed.content == HEAD.format(source="wiki") + "Airlines: UA."
    assert (part.source, part.ms, part.shortened) == ("wiki", 3, False)
    assert part.tokens == part.wanted == view.parts.passed


def test_a_long_material_is_cut_and_says_so() -> None:
    call_plan = plan()
    text = "airline " * 2_000
    view, [part] = with_materials(build_view(call_plan), [material(text, most=200)], call_plan)
    [passed] = [each for each in view.messages if str(each.id).startswith(PASSED_ID)]
    assert part.shortened
    assert part.tokens <= 200
    assert str(passed.content).endswith(f"… [cut: {len(text):,} characters in all]")


def test_a_material_without_room_is_left_out_and_the_call_stays_as_it_was() -> None:
    call_plan = plan()
    view = build_view(call_plan)
    same, [part] = with_materials(view, [material("Airlines: UA.", most=5)], call_plan)
    assert same is view
    assert part.tokens == 0


def test_materials_share_the_room_in_their_order() -> None:
    call_plan = plan()
    free = call_plan.bound + call_plan.call_config.free_for_material
    materials = [material("airline " * 9_000, most=9_000), material("more", most=500)]
    view, parts = with_materials(build_view(call_plan), materials, call_plan)
    assert view.parts.total <= min(free, call_plan.call_config.hard_tokens)
    assert parts[0].shortened
    assert parts[0].wanted >= parts[0].tokens > 0


def test_a_text_that_must_be_cut_is_cut_after_a_whole_entry_and_cites_what_is_left() -> None:
    entries = ["first " * 20, "second " * 20, "third " * 200]
    ends = [len(entries[0]), len(entries[0]) + len(entries[1]), len("".join(entries))]
    given = Material("wiki", "".join(entries), 3, 200, ["a", "b", "c"], ends)
    call_plan = plan()
    view, [part] = with_materials(build_view(call_plan), [given], call_plan)
    assert (part.shortened, part.cites) == (True, ["a", "b"])
    [passed] = [each for each in view.messages if str(each.id).startswith(PASSED_ID)]
    assert str(passed.content).startswith(f"{HEAD.format(source='wiki')}{''.join(entries[:2])}…")
