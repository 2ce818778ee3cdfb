"""The routes of the panel, as a browser calls them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.testclient import TestClient

from longtable.app.pages.context.panel_html import panel_word, panel_words
from longtable.app.pages.context.panel_routes import (
    CHANGED,
    MOST_ORIGINALS,
    compaction_note,
    panel_routes,
)
from longtable.base.errors import PersistenceError, Reason, ThreadNotFoundError
from longtable.graph import Conversation
from longtable.nodes.compacting.compaction_events import NOTHING_LEFT
from tests.app.pages.context.panel_talk import HOSTILE, known_of, long_talk
from tests.support.threads import talk, thread

PANEL = "/threads/t/panel"
ROOT = Path(__file__).parents[4]


def client_of(conversation: Conversation) -> TestClient:
    def conversation_of(request: Request) -> Conversation:
        if request.path_params["thread_id"] != conversation.thread_id:
            raise ThreadNotFoundError(request.path_params["thread_id"])
        return conversation

    routes = panel_routes(conversation_of)
    return TestClient(Starlette(routes=routes))


@pytest.fixture(scope="module")
def talked() -> Conversation:
    return long_talk(20)


@pytest.fixture
def short() -> Iterator[tuple[TestClient, Conversation]]:
    conversation = thread()
    talk(conversation, 7)
    with client_of(conversation) as client:
        yield client, conversation


def test_the_panel_and_its_parts_are_fragments(talked: Conversation) -> None:
    with client_of(talked) as client:
        panel = client.get(PANEL)
        assert panel.status_code == 200
        assert panel.headers["content-type"] == "text/html; charset=utf-8"
        assert panel.text.startswith('<div class="panel">')
        parts = client.get(f"{PANEL}/next-call").text
        assert parts.count('<details id="part-') == len(talked.view()) + 2
        memory = client.get(f"{PANEL}/memory").text
        assert memory in panel.text
        assert (
            panel_word("zh", "title") in client.get(PANEL, headers={"accept-language": "zh"}).text
        )


def test_every_address_in_the_panel_answers(talked: Conversation) -> None:
    with client_of(talked) as client:
        addresses = set(re.findall(r'hx-get="([^"]+)"', client.get(PANEL).text))
        assert len(addresses) > 5
        assert {client.get(address).status_code for address in addresses} == {200}


def test_originals_are_the_words_of_the_transcript(talked: Conversation) -> None:
    with client_of(talked) as client:
        html = client.get(f"{PANEL}/originals/1-2").text
        for message in talked.history(limit=2):
            assert f">{message.text}</pre>" in html
        cut = client.get(f"{PANEL}/originals/1-500").text
        assert cut.count("<article") == len(talked.history()) < MOST_ORIGINALS
        assert panel_word("en", "no_originals") in client.get(f"{PANEL}/originals/900-901").text


@pytest.mark.parametrize("span", ["0-3", "5-2", "x", "1", "1-99999999999999999999", "-1-2"])
def test_a_bad_range_is_answered_with_a_sentence(span: str, talked: Conversation) -> None:
    with client_of(talked) as client:
        answer = client.get(f"{PANEL}/originals/{span}")
        assert answer.status_code == 400
        assert "FIRST-LAST" in answer.text
        assert "HX-Retarget" not in answer.headers


def test_compact_preview_compact_and_undo(short: tuple[TestClient, Conversation]) -> None:
    client, conversation = short
    preview = client.post(f"{PANEL}/compact-preview").text
    expected = conversation.compact(preview=True)
    assert expected is not None
    assert f"{expected.first} to {expected.last}" in preview
    assert not known_of(conversation).thread.compactions
    compacted = client.post(f"{PANEL}/compact").text
    record = known_of(conversation).thread.compactions[-1]
    assert f"from {record['tokens_before']:,} to {record['tokens_after']:,} tokens" in compacted
    assert panel_word("en", "nothing_to_compact") in client.post(f"{PANEL}/compact").text
    assert panel_word("en", "undone") in client.post(f"{PANEL}/undo").text
    assert known_of(conversation).thread.live[0] is None
    assert panel_word("en", "nothing_to_undo") in client.post(f"{PANEL}/undo").text


def test_pins_are_added_ended_and_restored(short: tuple[TestClient, Conversation]) -> None:
    client, conversation = short
    added = client.post(f"{PANEL}/pins", data={"text": HOSTILE})
    assert panel_word("en", "pinned") in added.text
    assert HOSTILE not in added.text
    (pin,) = conversation.pins()
    assert pin.text == HOSTILE
    ended = client.post(f"{PANEL}/pins/{pin.id}/end").text
    assert conversation.pins() == []
    assert f"/pins/{pin.id}/restore" in ended
    client.post(f"{PANEL}/pins/{pin.id}/restore")
    assert [each.text for each in conversation.pins()] == [HOSTILE]


def test_a_rule_said_in_a_message_is_restored_after_it_was_ended(
    short: tuple[TestClient, Conversation],
) -> None:
    client, conversation = short
    conversation.ask("From now on always leave out the airport EWR.")
    (pin,) = conversation.pins()
    client.post(f"{PANEL}/pins/{pin.id}/end")
    assert conversation.pins() == []
    client.post(f"{PANEL}/pins/{pin.id}/restore")
    assert [each.text for each in conversation.pins()] == [pin.text]


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/pins", {"text": "  "}, 422),
        ("/pins", {}, 422),
        ("/pins", {"text": "the password is hunter2secret"}, 422),
        ("/pins", {"text": "x" * 1_900_000}, 422),
        ("/pins", {"text": "x" * 2_000_000}, 400),
        ("/pins", {"text": "nul \0"}, 422),
        ("/pins/p00000000/end", {}, 404),
        ("/pins/p00000000/restore", {}, 404),
    ],
)
def test_what_cannot_be_done_leaves_the_panel_and_says_why(
    short: tuple[TestClient, Conversation], path: str, fields: dict[str, str], status: int
) -> None:
    client, conversation = short
    answer = client.post(f"{PANEL}{path}", data=fields)
    assert answer.status_code == status
    assert answer.headers["HX-Retarget"] == "#panel-note"
    assert 'role="alert"' in answer.text
    assert conversation.pins() == []


def test_a_body_that_does_not_say_how_large_it_is_is_refused(
    short: tuple[TestClient, Conversation],
) -> None:
    client, conversation = short
    answer = client.post(f"{PANEL}/pins", content=iter([b"text=", b"a rule"]))
    assert answer.status_code == 400
    assert "at most 2,000,000 bytes" in answer.text
    assert conversation.pins() == []


def test_opened_parts_find_themselves_again_after_a_command(talked: Conversation) -> None:
    with client_of(talked) as client:
        before = client.get(PANEL).text
        answer = client.post(f"{PANEL}/pins", data={"text": "Amounts are in euros."})
        assert answer.headers["HX-Trigger"] == CHANGED
        parts = client.get(f"{PANEL}/next-call").text
        assert f"{CHANGED} from:body" in parts
        for pattern in (r' id="(line-[^"]+)"', r' id="(next-call)"'):
            assert set(re.findall(pattern, before)) & set(re.findall(pattern, answer.text))
        conversation_pins = re.findall(r'<li class="pin [^"]*" id="pin-(p\w+)"', answer.text)
        assert set(conversation_pins) == {pin.id for pin in talked.pins()}


def test_a_skipped_compaction_says_why_in_the_language_of_the_page() -> None:
    reasons = [Reason(code="summariser_failed", message="the summariser failed: 500")]
    event: Any = {"type": "context_compaction_skipped", "reasons": reasons}
    assert "the summariser failed: 500" in compaction_note(event, "en")
    assert "摘要模型没有成功" in compaction_note(event, "zh")
    unknown: Any = {**event, "reasons": [Reason(code="of_a_hook", message="not today")]}
    assert "not today" in compaction_note(unknown, "zh")


def test_every_reason_that_the_code_gives_has_chinese_words() -> None:
    folders = [ROOT / "memory" / "compaction", ROOT / "nodes"]
    texts = [path.read_text("utf-8") for folder in folders for path in folder.rglob("*.py")]
    codes = set(re.findall(r'(?:Reason\(\s*code=|object_\(\s*)"(\w+)"', "".join(texts)))
    assert len(codes) > 8
    assert codes - {*NOTHING_LEFT} <= {
        key.removeprefix("skipped_") for key in panel_words() if key.startswith("skipped_")
    }


def test_a_foreign_thread_is_not_found_and_a_new_one_is_empty() -> None:
    with client_of(thread()) as client:
        assert client.get("/threads/other/panel").status_code == 404
        assert client.post("/threads/other/panel/undo").status_code == 404
        new = client.get(PANEL)
        assert new.status_code == 200
        assert panel_word("en", "empty") in new.text


def test_errors_that_are_not_a_persons_are_raised() -> None:
    def broken(_: Request) -> Conversation:
        raise PersistenceError("the disk is full")

    with (
        TestClient(Starlette(routes=panel_routes(broken))) as client,
        pytest.raises(PersistenceError),
    ):
        client.get(PANEL)
