"""The updates of a running turn: numbered, painted once, and only what is new."""

import asyncio
from typing import Any

import pytest

from longtable.app.pages.part_html import TurnPlace
from longtable.app.pages.turn_feed import TurnFeed
from longtable.app.pages.turn_html import body_html, sse_data
from longtable.base.events import Event
from tests.app.pages.served_pages import shown_body

PLACE = TurnPlace("thread", "t1", "en")
COMPACTED: Any = {
    "type": "context_compressed",
    "original_tokens": 9_000,
    "compressed_tokens": 4_000,
    "messages": 20,
    "writer": "code",
}
EVENTS: list[Event] = [
    {"type": "token", "text": "Once "},
    {"type": "token", "text": "upon\n\na time "},
    {"type": "query_started", "call_id": "c1", "name": "run_sql", "sql": "SELECT 1"},
    {"type": "token", "text": "there was"},
    {"type": "answer", "text": "", "status": "answered", "turn": 1},
]


def filled(events: list[Event], *, over: bool = True) -> TurnFeed:
    feed = TurnFeed(PLACE, before="<p>before</p>")
    for number, event in enumerate(events, 1):
        feed.take(number, event)
    if over:
        feed.end("<end>")
    return feed


async def everything(feed: TurnFeed, after: int = 0) -> list[str]:
    """Return the messages of a page, without the one that says that all has been sent."""
    async with asyncio.timeout(5):
        messages = [each async for each in feed.messages(after)]
    assert messages[-1] == f"id: t1.{feed.number}\nevent: done\ndata: done\n\n"
    return messages[:-1]


def test_a_page_with_nothing_is_sent_the_whole_body() -> None:
    async def work() -> None:
        (message,) = await everything(filled(EVENTS))
        assert message.startswith(f"id: t1.{len(EVENTS) + 1}\n")
        assert shown_body(message) == f"<p>before</p>{body_html(EVENTS, PLACE)}"
        assert message.endswith("<end>\n\n")

    asyncio.run(work())


@pytest.mark.parametrize("number", range(1, len(EVENTS)))
def test_a_page_that_has_some_is_sent_only_the_rest(number: int) -> None:
    async def work() -> None:
        shown = ""
        for place in range(1, number + 1):
            update = filled(EVENTS[:place], over=False).after(place - 1)
            shown += sse_data(update, str(place))
        (rest,) = await everything(filled(EVENTS), number)
        assert "Once" not in rest or number == 1  # the second event closes the first block
        assert "<p>before</p>" not in rest
        whole = f"<p>before</p>{body_html(EVENTS, PLACE)}"
        assert shown_body(shown + rest) == whole

    asyncio.run(work())


def test_readers_that_wait_are_sent_what_comes() -> None:
    async def work() -> None:
        feed = TurnFeed(PLACE)
        readers = [asyncio.create_task(everything(feed)) for _ in range(10)]
        for number, event in enumerate(EVENTS, 1):
            feed.take(number, event)
            await asyncio.sleep(0.01)
        feed.end("<end>")
        for messages in await asyncio.gather(*readers):
            assert len(messages) == len(EVENTS) + 1
            assert messages[0].startswith("id: t1.1\n")
            assert shown_body("".join(messages)) == body_html(EVENTS, PLACE)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("events", "interrupted"),
    [
        (EVENTS, False),
        ([*EVENTS, COMPACTED], False),
        ([*EVENTS, {"type": "token", "text": "and a second"}], True),
        (EVENTS[:3], True),
    ],
)
def test_a_turn_without_an_answer_at_its_end_was_interrupted(
    events: list[Event], interrupted: bool
) -> None:
    async def work() -> None:
        (message,) = await everything(filled(events))
        assert ("This answer was interrupted" in message) == interrupted

    asyncio.run(work())


@pytest.mark.parametrize("number", [0, 3])
def test_the_text_of_an_interrupted_answer_is_markdown_at_the_end(number: int) -> None:
    events: list[Event] = [
        {"type": "token", "text": "one\n\n"},
        {"type": "token", "text": "**tw"},
        {"type": "token", "text": "o**"},
        {"type": "token", "text": " **three**"},
    ]

    async def work() -> None:
        (message,) = await everything(filled(events), number)
        assert "<strong>two</strong> <strong>three</strong>" in message
        assert 'class="tail"' not in message
        assert message.index("<strong>three") < message.index("This answer was interrupted")

    asyncio.run(work())
    assert "<strong>two</strong> <strong>three</strong>" in body_html(events, PLACE)
