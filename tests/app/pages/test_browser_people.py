"""People who use the page by keyboard, on paper, in two tabs, in haste and in bad faith."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.app.pages.browser_tools import (
    Browser,
    Page,
    ask,
    expect,
    has_no_findings,
    open_chromium,
    open_page,
    shows,
)
from tests.app.pages.served_pages import HOSTILE, Server, serving
from tests.app.pages.test_turn_pages import SQL, of_model
from tests.app.runner import make_home
from tests.support.model_server import Fault, ModelServer, call, open_model_server, say


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with open_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with open_model_server() as server:
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[Server]:
    home = make_home(tmp_path_factory.mktemp("home"))
    options = {**of_model(model), "LONGTABLE_MODEL_LIMIT": "8000"}
    with serving(home, **options, LONGTABLE_APPROVE_SQL="always") as running:
        yield running


@pytest.fixture
def page(chromium: Browser, server: Server) -> Iterator[Page]:
    with open_page(chromium, server.address) as opened:
        yield opened


def long_thread(page: Page, model: ModelServer) -> None:
    """Talk until the memory is compacted, and keep a pin."""
    page.goto("/")
    for number in range(6):
        model.script(say(f"Answer {number}. " + "The herons wade slowly. " * 120))
        ask(page, f"Question {number}, please?")
        expect(page.locator(".foot")).to_have_count(number + 1)
    panel = page.locator("#panel")
    panel.get_by_placeholder("A rule, word for word").fill("Amounts are in euros.")
    panel.get_by_role("button", name="Pin", exact=True).click()
    expect(panel).to_contain_text("Amounts are in euros.")
    panel.get_by_role("button", name="Compact now").click()
    expect(panel.locator("#panel-note p")).to_be_visible()


def open_everything(page: Page) -> None:
    """Open the right side, the parts of the next call and the definitions of tools."""
    toggle = page.locator('[data-toggle="panel"]')
    if toggle.is_visible():
        toggle.click()
    page.locator("#next-call > summary").click()
    page.locator("#part-tools-0 > summary").click()
    page.locator("#tool-run_sql > summary").click()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_long_thread_with_all_its_parts_open_is_accessible(
    page: Page, model: ModelServer, scheme: Any
) -> None:
    page.emulate_media(color_scheme=scheme)
    long_thread(page, model)
    page.locator(".memory .cite").first.click()
    expect(page.locator(".originals-open").first).to_be_visible()
    open_everything(page)
    has_no_findings(page)
    page.set_viewport_size({"width": 360, "height": 740})
    page.locator('[data-toggle="panel"]').click()
    has_no_findings(page)
    panel = page.locator("#panel")
    assert panel.evaluate("side => side.scrollWidth <= side.clientWidth")
    page.locator("#title").click()
    expect(panel).not_to_be_visible()


@pytest.mark.parametrize("width", [1360, 800, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_failing_and_waiting_threads_are_accessible_at_every_size(
    page: Page, model: ModelServer, width: int, scheme: Any
) -> None:
    page.set_viewport_size({"width": width, "height": 740})
    page.emulate_media(color_scheme=scheme)
    model.script(Fault(status=401, body={"error": {"message": "no"}}))
    page.goto("/")
    ask(page, "Fail, please")
    shows(page, ".card.failed")
    has_no_findings(page)
    model.script(call("run_sql", sql=SQL))
    page.goto("/")
    ask(page, "Wait for me, please")
    shows(page, ".approval")
    has_no_findings(page)
    wide = page.locator("html").evaluate("html => html.scrollWidth")
    assert wide <= width


def test_all_of_a_turn_is_done_by_keyboard(page: Page, model: ModelServer) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_be_visible()
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#question")).to_be_focused()
    model.script(call("run_sql", sql=SQL), say("There they are."))
    page.keyboard.type("Show orders")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("all of them")
    page.keyboard.press("Enter")
    shows(page, ".approval")
    expect(page.locator(".asked")).to_have_text("Show orders\nall of them")
    reach(page, ".approval button")
    page.keyboard.press("Enter")
    shows(page, ".md", "There they are.")
    reach(page, ".step > summary", backwards=True)
    page.keyboard.press("Enter")
    expect(page.locator(".sql")).to_be_visible()
    reach(page, ".result th button")
    page.keyboard.press("Enter")
    expect(page.locator(".result th").first).to_have_attribute("aria-sort", "ascending")
    page.set_viewport_size({"width": 360, "height": 740})
    reach(page, '[data-toggle="panel"]', backwards=True)
    page.keyboard.press("Enter")
    expect(page.locator("#panel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).not_to_be_visible()
    expect(page.locator('[data-toggle="panel"]')).to_be_focused()


def reach(page: Page, selector: str, *, backwards: bool = False) -> None:
    """Press Tab until an element with this selector has the focus."""
    for _ in range(80):
        page.keyboard.press("Shift+Tab" if backwards else "Tab")
        if page.locator(f"{selector}:focus").count():
            return
    raise AssertionError(f"the keyboard does not reach {selector}")


def test_a_print_has_the_turns_and_nothing_to_press(page: Page, model: ModelServer) -> None:
    long_thread(page, model)
    page.emulate_media(media="print")
    expect(page.locator(".asked").first).to_be_visible()
    expect(page.locator(".md").last).to_be_visible()
    for hidden in ("#left", "#panel", "#ask", ".foot", ".menu"):
        expect(page.locator(hidden).first).not_to_be_visible()
    heights = "turns => [turns.scrollHeight, turns.clientHeight]"
    whole, shown = page.locator("#turns").evaluate(heights)
    assert whole == shown, "all turns are printed, not those of one screen"


def test_reduced_motion_moves_nothing(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto("/")
    page.locator('[data-toggle="panel"]').click()
    moving = page.evaluate("document.getAnimations().length")
    assert moving == 0
    style = page.locator("#panel").evaluate("side => getComputedStyle(side).transitionDuration")
    assert set(style.split(", ")) == {"0s"}


def test_a_double_click_sends_once_and_what_is_typed_meanwhile_stays(
    page: Page, model: ModelServer
) -> None:
    held = threading.Event()
    model.script(say("one and only", hold=held))
    asked = len(model.requests)
    page.goto("/")
    page.locator("#question").fill("Once?")
    page.locator(".send").dblclick()
    page.locator("#question").press_sequentially("and then", delay=1)
    held.set()
    shows(page, ".foot")
    expect(page.locator(".asked")).to_have_text(["Once?"])
    assert len(model.requests) == asked + 1
    page.reload()
    expect(page.locator(".asked")).to_have_text(["Once?"])


def test_a_huge_paste_is_refused_with_a_sentence_and_kept(page: Page) -> None:
    page.goto("/")
    for length, words in ((420_000, "the limit is"), (3_000_000, "too long to be sent")):
        page.locator("#question").evaluate("(area, n) => { area.value = 'x'.repeat(n); }", length)
        page.locator("#question").press("Enter")
        shows(page, "#toast", words)
        assert len(page.locator("#question").input_value()) == length
    expect(page.locator(".turn")).to_have_count(0)


def test_back_and_forward_show_the_threads_that_were_there(page: Page, model: ModelServer) -> None:
    model.script(say("first answer"), say("second answer"))
    page.goto("/")
    ask(page, "First?")
    shows(page, ".md", "first answer")
    page.locator("a.new").click()
    expect(page.locator(".empty")).to_be_visible()
    page.wait_for_load_state()
    ask(page, "Second?")
    shows(page, ".md", "second answer")
    page.go_back()
    page.go_back()
    shows(page, ".md", "first answer")
    page.go_forward()
    page.go_forward()
    shows(page, ".md", "second answer")


def test_an_approval_decided_in_one_tab_is_gone_in_the_other(
    page: Page, model: ModelServer
) -> None:
    model.script(call("run_sql", sql=SQL), say("Decided once."))
    page.goto("/")
    ask(page, "Approve?")
    shows(page, ".approval")
    other = page.context.new_page()
    other.goto(page.url)
    shows(other, ".approval")
    page.get_by_role("button", name="Run it").click()
    shows(page, ".md", "Decided once.")
    other.get_by_role("button", name="Reject").click()
    shows(other, "#toast", "gone on since")
    expect(other.locator(".approval")).to_have_count(0)
    shows(other, ".md", "Decided once.")
    other.close()


def test_a_turn_that_one_tab_begins_is_shown_in_the_other(
    page: Page, model: ModelServer, chromium: Browser, server: Server
) -> None:
    held = threading.Event()
    model.script(say("The first answer."), say("The second answer.", hold=held), say("A third."))
    page.goto("/")
    ask(page, "First, please?")
    shows(page, ".md", "The first answer.")
    with open_page(chromium, server.address) as other:
        other.goto(page.url)
        other.get_by_label("Ask about the data").fill("half a question")
        ask(page, "Second, please?")
        expect(other.locator("article")).to_have_count(2, timeout=15_000)
        held.set()
        shows(other, ".md", "The second answer.")
        shows(page, ".md", "The second answer.")
        expect(other.get_by_role("button", name="Edit")).to_have_count(1)
        expect(other.get_by_label("Ask about the data")).to_have_value("half a question")
        ask(other, "Third, please?")
        expect(page.locator("article")).to_have_count(3, timeout=15_000)
        shows(page, ".md", "A third.")


def test_html_in_every_field_stays_text(page: Page, model: ModelServer) -> None:
    model.script(call("run_sql", sql=SQL), say(f"Here {HOSTILE}"))
    page.goto("/")
    ask(page, f"What? {HOSTILE}")
    shows(page, ".approval")
    page.locator(".approval textarea").fill(f"SELECT '{HOSTILE}' AS \"{HOSTILE}\"")
    page.get_by_role("button", name="Run it").click()
    shows(page, ".result td", HOSTILE)
    page.locator(".menu summary").click()
    page.get_by_role("button", name="Rename").click()
    page.locator("#new-title").fill(HOSTILE)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#title")).to_have_text(HOSTILE)
    expect(page.locator(".threads a").first).to_contain_text(HOSTILE)
    expect(page).to_have_title(f"{HOSTILE} · longtable")
    page.get_by_placeholder("A rule, word for word").fill(f"Never {HOSTILE}")
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.locator("#panel blockquote")).to_have_text(f"Never {HOSTILE}")
    page.locator("#search").fill(HOSTILE)
    expect(page.locator(".threads a").first).to_contain_text(HOSTILE)
    page.reload()
    assert page.locator("img[src='x']").count() == 0
