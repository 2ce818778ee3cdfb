"""Take the pictures of the web chat for README and docs: `make pictures`.

`longtable web` runs over the demo database, with the built-in analyst and a store that is thrown
away; Debian's Chromium shows it (`apt-get install chromium`).
"""

import io
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from benchmarks.web import Page, serving
from longtable.app.demo import ensure_demo
from tests.support.flights_talk import TALK

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HERE = Path(__file__).parent
LIMIT = "12k"
COLOURS = 128
"""Colours of a picture: enough for text and few areas, and a third of the bytes of all colours."""
ENDING = (
    "From now on leave out cancelled flights.",
    "How many flights per month?",
    "plot it as a bar chart",
)
OTHER_THREADS = (
    "How many planes are there per manufacturer?",
    "What is the average arrival delay per origin?",
    "Which carrier has the most flights?",
)


@dataclass(frozen=True)
class Picture:
    """One picture: its file, the size of the window, the theme, and what is opened in it."""

    name: str
    width: int
    height: int
    theme: Literal["light", "dark"] = "light"
    panel: bool = False


PICTURES = (
    Picture("web.png", 1360, 860),
    Picture("web-phone.png", 360, 740),
    Picture("web-panel.png", 360, 740, theme="dark", panel=True),
)


@contextmanager
def demo_pages() -> Iterator[str]:
    """Serve a long thread over the demo. Yield the address of its page."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        database = f"duckdb:///{ensure_demo(home / 'cache')}"
        with serving(home, "--model-limit", LIMIT, database=database) as (address, _, _):
            page = Page(address)
            for question in OTHER_THREADS:
                page.ask(page.open(), question)
            thread = page.open()
            for question in (*(turn.question for turn in TALK[:40]), *ENDING):
                page.ask(thread, question)
            page.http.close()
            yield f"{address}{thread}"


def take(browser: "Browser", address: str, picture: Picture) -> bytes:
    """Return a picture of a page as PNG."""
    window = browser.new_context(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme=picture.theme,
        locale="en-US",
    )
    page = window.new_page()
    page.goto(address)
    page.locator("#panel .saw").wait_for(state="attached")
    page.locator(".chart img").last.scroll_into_view_if_needed()
    page.wait_for_load_state("networkidle")
    page.locator(".foot").last.scroll_into_view_if_needed()
    if picture.panel:
        page.locator('[data-toggle="panel"]').click()
        page.wait_for_timeout(400)  # it slides in
    shot = page.screenshot(animations="disabled")
    window.close()
    return shot


def small(png: bytes) -> bytes:
    """Return a picture with few colours."""
    from PIL import Image

    few = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    out = io.BytesIO()
    few.save(out, "PNG", optimize=True)
    return out.getvalue()


def main() -> None:
    """Write the pictures, and print their sizes."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("the pictures need Debian's chromium: apt-get install chromium")
    with demo_pages() as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for picture in PICTURES:
            png = small(take(browser, address, picture))
            (HERE / picture.name).write_bytes(png)
            print(f"{picture.name}: {len(png):,} bytes")
        browser.close()


if __name__ == "__main__":
    main()
