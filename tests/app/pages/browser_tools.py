"""Debian's Chromium, driven by Playwright: what the browser tests of the web chat share.

Without Chromium they are skipped, unless LONGTABLE_NEED names chromium: then a missing part fails.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NEEDED = "chromium" in os.environ.get("LONGTABLE_NEED", "").split(",")
CHROMIUM = shutil.which("chromium") or ""
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
SECONDS = 20.0

if not NEEDED:
    pytest.importorskip("playwright.sync_api", reason="needs playwright (pip install -e '.[dev]')")
    if not CHROMIUM:
        pytest.skip("needs Debian's chromium (apt-get install chromium)", allow_module_level=True)

from axe_playwright_python.sync_playwright import Axe  # noqa: E402
from playwright.sync_api import Browser as Browser  # noqa: E402
from playwright.sync_api import Page as Page  # noqa: E402
from playwright.sync_api import Route as Route  # noqa: E402
from playwright.sync_api import expect as expect  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402


@contextmanager
def open_chromium() -> Iterator[Browser]:
    assert CHROMIUM, "LONGTABLE_NEED names chromium, and it is not installed"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def open_page(chromium: Browser, address: str, **settings: Any) -> Iterator[Page]:
    """Open a page of a server. It fails if the page complains, or asks another host."""
    faults: list[str] = []
    context = chromium.new_context(base_url=address, **{"locale": "en-US", **settings})
    context.set_default_timeout(SECONDS * 1_000)
    page = context.new_page()
    watch(page, faults, address)
    yield page
    context.close()
    assert not faults


def watch(page: Page, faults: list[str], address: str) -> None:
    """Collect what a page complains of, and what it asks of another host."""
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(f"dialog {dialog.message}"))
    page.on(
        "console",
        lambda message: (
            faults.append(message.text) if "Content Security Policy" in message.text else None
        ),
    )
    page.on(
        "request",
        lambda request: None if request.url.startswith(address) else faults.append(request.url),
    )


def ask(page: Page, question: str) -> None:
    page.locator("#question").fill(question)
    page.keyboard.press("Enter")


def shows(page: Page, selector: str, text: str = "") -> None:
    found = page.locator(selector).last
    expect(found).to_be_visible(timeout=SECONDS * 1_000)
    if text:
        expect(found).to_contain_text(text, timeout=SECONDS * 1_000)


MOVES = """() => document.getAnimations().some(
    (each) => each.playState === "running" && each.effect.getComputedTiming().endTime < Infinity
)"""


def has_no_findings(page: Page) -> None:
    """Assert that axe finds nothing, once all that slides in has done so."""
    page.wait_for_function(f"() => !({MOVES})()")
    options: Any = {"runOnly": {"type": "tag", "values": LEVELS}}
    found = Axe().run(page, options=options)
    assert found.violations_count == 0, found.generate_report()
