"""The web chat in a real browser."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.pages.browser_tools import (
    SECONDS,
    Browser,
    Page,
    Route,
    ask,
    expect,
    has_no_findings,
    open_chromium,
    open_page,
    shows,
)
from tests.app.pages.served_pages import HOSTILE, Server, serving
from tests.app.pages.test_thread_pages import OWNERS
from tests.app.pages.test_turn_pages import SQL, of_model
from tests.app.runner import Home, make_home
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
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return make_home(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def server(home: Home, model: ModelServer) -> Iterator[Server]:
    with serving(home, **of_model(model), LONGTABLE_APPROVE_SQL="costly") as running:
        yield running


@pytest.fixture
def page(chromium: Browser, server: Server) -> Iterator[Page]:
    with open_page(chromium, server.address) as opened:
        yield opened


def test_an_answer_streams_with_its_table_and_runs_no_script_of_the_data(
    page: Page, model: ModelServer
) -> None:
    held = threading.Event()
    name = f'SELECT 1 AS "n", \'{HOSTILE}\' AS "<script>alert(2)</script>" UNION ALL SELECT 2, NULL'
    model.script(
        call("run_sql", sql=name), say(f"First **words** {HOSTILE} come, then more", hold=held)
    )
    page.goto("/")
    ask(page, f"What? {HOSTILE}")
    shows(page, ".tail", "First")
    expect(page.locator("#stop button")).to_be_visible()
    shows(page, ".result td", "")
    held.set()
    shows(page, ".foot")
    shows(page, ".md strong", "words")
    expect(page.locator("#stop button")).to_have_count(0)
    expect(page.locator(".threads a").first).to_contain_text("What?")
    expect(page.locator("#question")).to_have_value("")
    page.locator(".result th button").first.click()
    expect(page.locator(".result th").first).to_have_attribute("aria-sort", "ascending")
    page.locator(".step > summary").first.click()
    has_no_findings(page)
    streamed = page.locator(".body").inner_text()
    page.reload()
    page.locator(".step > summary").first.click()
    assert page.locator(".body").inner_text().split() == streamed.split()


def test_a_reload_in_mid_turn_and_a_second_tab_lose_nothing(page: Page, model: ModelServer) -> None:
    held = threading.Event()
    model.script(say("Slowly it comes and comes to its end", hold=held))
    page.goto("/")
    ask(page, "Tell me slowly")
    shows(page, ".tail", "Slowly")
    page.reload()
    shows(page, ".tail", "Slowly")
    other = page.context.new_page()
    other.goto(page.url)
    shows(other, ".tail", "Slowly")
    held.set()
    for each in (page, other):
        shows(each, ".md", "to its end")
        shows(each, ".foot")
    other.close()


def test_a_turn_streams_though_the_extension_for_events_loads_late(
    page: Page, model: ModelServer
) -> None:
    def late(route: Route) -> None:
        threading.Event().wait(0.5)
        route.continue_()

    held = threading.Event()
    model.script(say("Late it comes and comes to its end", hold=held))
    page.goto("/")
    ask(page, "Tell me late")
    shows(page, ".tail", "Late")
    page.route("**/hx-sse.min.js", late)
    page.reload()
    shows(page, ".tail", "Late")
    held.set()
    shows(page, ".md", "to its end")


def test_a_failure_is_a_sentence_with_a_way_on(page: Page, model: ModelServer) -> None:
    model.script(Fault(status=401, body={"error": {"message": "no"}}), say("Well again"))
    page.goto("/")
    ask(page, "Hello")
    shows(page, ".card.failed")
    has_no_findings(page)
    page.get_by_role("button", name="Try again").click()
    shows(page, ".md", "Well again")
    expect(page.locator(".card.failed")).to_have_count(0)


def test_only_the_newest_turn_offers_to_go_on(page: Page, model: ModelServer) -> None:
    held = threading.Event()
    model.script(say("**half** of it, and then some more", hold=held), say("another answer"))
    page.goto("/")
    ask(page, "Tell me")
    shows(page, ".tail", "half")
    page.locator("#stop button").click()
    shows(page, ".card.failed button", "Continue")
    shows(page, ".md strong", "half")
    held.set()
    ask(page, "And now?")
    shows(page, ".foot")
    expect(page.locator(".card.failed .buttons:visible")).to_have_count(0)
    page.reload()
    expect(page.locator(".card.failed .buttons:visible")).to_have_count(0)


def test_a_question_is_edited_kept_renamed_and_left_out_by_keyboard(
    page: Page, model: ModelServer
) -> None:
    model.script(say("about March"), say("about May"))
    page.goto("/")
    ask(page, "How many in March?")
    shows(page, ".foot")
    page.get_by_role("button", name="Edit", exact=True).press("Enter")
    expect(page.locator("dialog")).to_be_visible()
    page.locator("#edited").fill("How many in May?")
    page.get_by_role("button", name="Ask again").press("Enter")
    expect(page.locator("dialog")).not_to_be_visible()
    expect(page.get_by_text("How many in March?").last).not_to_be_visible()
    shows(page, ".md", "about May")
    expect(page.locator(".turn.excluded")).to_have_count(1)
    page.get_by_role("button", name="Right").last.press("Enter")
    shows(page, "#toast", "Thank you")
    expect(page.get_by_role("button", name="Right").last).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Leave out").last.press("Enter")
    shows(page, ".turn.excluded .note", "Left out")


def test_a_query_is_edited_and_approved_after_a_reload(
    chromium: Browser, model: ModelServer, tmp_path: Path
) -> None:
    home = make_home(tmp_path)
    with serving(home, **of_model(model), LONGTABLE_APPROVE_SQL="always") as server:
        page = chromium.new_page(base_url=server.address, locale="en-US")
        model.script(call("run_sql", sql=SQL), say("Three of them."))
        page.goto("/")
        ask(page, "Show orders")
        shows(page, ".approval")
        page.reload()
        has_no_findings(page)
        page.locator(".approval textarea").fill(f"{SQL} LIMIT 3")
        page.get_by_role("button", name="Run it").click()
        shows(page, ".md", "Three of them.")
        shows(page, ".step .fact")
        expect(page.locator(".step")).to_contain_text("3 rows")
        expect(page.locator(".approval")).to_have_count(0)
        page.close()


def test_a_chart_is_a_picture_and_readable_in_the_dark(page: Page, model: ModelServer) -> None:
    spec = {
        "mark": "bar",
        "encoding": {
            "x": {"field": "customer", "type": "nominal"},
            "y": {"field": "amount", "type": "quantitative"},
        },
    }
    model.script(
        call("run_sql", sql=SQL), call("show_chart", handle="r1", spec=spec), say("Drawn.")
    )
    page.goto("/")
    ask(page, "Draw it")
    shows(page, ".md", "Drawn.")
    picture = page.locator(".chart img")
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("picture => picture.naturalWidth") > 100
    page.emulate_media(color_scheme="dark")
    assert "invert" in picture.evaluate("picture => getComputedStyle(picture).filter")
    assert page.locator(".chart a[download]").all_inner_texts() == ["PNG", "SVG"]
    has_no_findings(page)


def test_a_page_survives_a_server_that_is_killed_in_mid_turn(
    chromium: Browser, model: ModelServer, tmp_path: Path
) -> None:
    home = make_home(tmp_path)
    held = threading.Event()
    model.script(call("run_sql", sql=SQL), say("half of it", hold=held), say("All of it."))
    with serving(home, stops="kill", **of_model(model), LONGTABLE_APPROVE_SQL="never") as server:
        port = server.address.rpartition(":")[2]
        page = chromium.new_page(base_url=server.address, locale="en-US")
        page.set_default_timeout(SECONDS * 1_000)
        page.goto("/")
        ask(page, "Tell me")
        shows(page, ".tail", "half")
    held.set()
    with serving(home, "--port", port, **of_model(model)):
        button = page.get_by_role("button", name="Continue")
        expect(button).to_be_visible(timeout=SECONDS * 1_000)
        expect(page.locator(".step")).to_contain_text("30 rows")
        expect(page.locator("#stop button")).to_have_count(0)
        button.click()
        shows(page, ".md", "All of it.")
        page.close()


def test_two_people_on_one_server_see_their_own(
    chromium: Browser, model: ModelServer, tmp_path: Path
) -> None:
    home = make_home(tmp_path)
    (tmp_path / "owners.toml").write_text(OWNERS)
    with serving(home, "--config", str(tmp_path / "owners.toml"), **of_model(model)) as server:
        model.script(say("for Ann"), say("for Bob"))
        with (
            open_page(chromium, server.address, extra_http_headers={"X-User": "ann"}) as ann,
            open_page(chromium, server.address, extra_http_headers={"X-User": "bob"}) as bob,
        ):
            for person, name in ((ann, "Ann"), (bob, "Bob")):
                person.goto("/")
                ask(person, f"Who is {name}?")
                shows(person, ".md", f"for {name}")
            bob.reload()
            expect(bob.locator(".threads a")).to_have_count(1)
            expect(bob.locator(".threads a")).to_contain_text("Who is Bob?")
            bob.goto(ann.url)
            expect(bob.locator(".message")).to_contain_text("There is no such conversation.")
            expect(bob.locator("body")).not_to_contain_text("Ann")


def test_a_file_is_uploaded_and_asked(page: Page, model: ModelServer, tmp_path: Path) -> None:
    file = tmp_path / f"{'x' * 20}{HOSTILE}.csv"
    file.write_text(f"town,{HOSTILE}\nOslo,{HOSTILE}\nRome,2\n")
    page.goto("/")
    page.locator(".upload summary").click()
    page.locator("#file").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    shows(page, "#empty p", "x" * 20)
    has_no_findings(page)
    table = page.locator(".examples button").first.inner_text()
    assert "<" not in table
    model.script(call("list_tables"), say("One table."))
    ask(page, "Which tables?")
    shows(page, ".md", "One table.")
    (name,) = re.findall(r'"name":"(x{20}\w*)"', str(model.requests[-1].messages[-1]["content"]))
    model.script(call("run_sql", sql=f"SELECT * FROM {name}"), say("Two towns."))
    ask(page, "Which towns?")
    shows(page, ".result td", "2")
    shows(page, ".md", "Two towns.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1360, 800, 360])
def test_every_size_and_theme_is_accessible_and_scrolls_one_way(
    page: Page, model: ModelServer, width: int, scheme: Any
) -> None:
    page.set_viewport_size({"width": width, "height": 760})
    page.emulate_media(color_scheme=scheme)
    page.goto("/")
    shows(page, ".empty")
    has_no_findings(page)
    model.script(call("run_sql", sql=SQL), say("There are 31 of them.\n\n| a |\n|---|\n| 1 |"))
    ask(page, "Show all orders, please, with every customer and every amount")
    shows(page, ".foot")
    has_no_findings(page)
    wide = page.locator("html").evaluate("html => html.scrollWidth")
    assert wide <= width


def test_the_page_speaks_chinese(chromium: Browser, server: Server) -> None:
    context = chromium.new_context(base_url=server.address, locale="zh-CN")
    page = context.new_page()
    page.goto("/")
    expect(page.locator("#empty h2")).to_have_text("您想了解什么？")
    has_no_findings(page)
    context.close()


def test_the_right_side_shows_the_next_call_a_compaction_and_a_pin(
    chromium: Browser, home: Home, model: ModelServer
) -> None:
    with serving(home, "--model-limit", "8k", **of_model(model)) as running:
        context = chromium.new_context(base_url=running.address, locale="en-US")
        context.set_default_timeout(SECONDS * 1_000)
        page = context.new_page()
        page.goto("/")
        for number in range(6):
            model.script(say(f"Answer {number}. " + "The herons wade slowly. " * 120))
            ask(page, f"Question {number}, please?")
            expect(page.locator(".foot")).to_have_count(number + 1)
        panel = page.locator("#panel")
        expect(panel).to_contain_text("of 8,000 tokens")
        page.reload()
        expect(panel).to_contain_text("of 8,000 tokens")
        panel.get_by_placeholder("A rule, word for word").fill("Amounts are in <b>euros</b>.")
        panel.get_by_role("button", name="Pin", exact=True).click()
        expect(panel).to_contain_text("Amounts are in <b>euros</b>.")
        expect(panel.get_by_placeholder("A rule, word for word")).to_have_value("")
        panel.locator("#next-call > summary").click()
        tools = panel.locator("#part-tools-0")
        tools.locator("> summary").click()
        tools.locator("#tool-run_sql summary").click()
        expect(tools.locator("#tool-run_sql pre")).to_contain_text('"parameters"')
        panel.get_by_role("button", name="Compact now").click()
        expect(panel.locator("#panel-note p")).to_be_visible()
        expect(panel).to_contain_text("summary")
        expect(panel.locator("#part-memory-0")).to_be_attached()
        expect(tools.locator("#tool-run_sql pre")).to_be_visible()
        cited = panel.locator(".memory .cite").first
        cited.click()
        expect(panel.locator(".originals-open").first).to_be_visible()
        opened = panel.locator(".originals-open").first.inner_text()
        model.script(say("One more."))
        ask(page, "And once more?")
        expect(page.locator(".foot")).to_have_count(7)
        expect(panel).to_contain_text("And once more?")
        expect(tools.locator("#tool-run_sql pre")).to_be_visible()
        assert panel.locator(".originals-open").first.inner_text() == opened
        has_no_findings(page)
        context.close()
