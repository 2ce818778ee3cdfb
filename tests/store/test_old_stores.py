"""Stores that earlier versions wrote: today's code reads all of it as it was, and goes on."""

import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from longtable.base.errors import ProviderRefusedError
from longtable.graph import import_thread, open_persistence, search_threads
from tests.support.old_stores import (
    APPROVED,
    CHINESE,
    DEAD,
    FACTS,
    FOLDER,
    INBOX,
    INBOX_ID,
    KEY,
    LONG,
    PINNED,
    POISON,
    SHOP,
    Clerk,
    Opened,
    facts_of,
)

STORES = ["store-0.1.0", "store-b0290e6", "store-b0290e6-encrypted"]
PLAIN, LAST = STORES[:2], STORES[1:]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folder of each store, which no test may change."""
    folders = {name: tmp_path_factory.mktemp(name) for name in STORES}
    for name, folder in folders.items():
        with tarfile.open(FOLDER / f"{name}.tar.xz") as packed:
            packed.extractall(folder, filter="data")
    return folders


@pytest.fixture
def opened(
    request: pytest.FixtureRequest, unpacked: dict[str, Path], tmp_path: Path
) -> Iterator[Opened]:
    """Open a copy of the store whose name is the parameter."""
    folder = shutil.copytree(unpacked[request.param], tmp_path / "store")
    with Opened(folder, key=KEY if request.param.endswith("encrypted") else None) as store:
        yield store


def stored(opened: Opened) -> dict[str, dict[str, Any]]:
    """Return what the version that wrote a store said of each of its threads."""
    facts: dict[str, dict[str, Any]] = json.loads((opened.folder / FACTS).read_text("utf-8"))
    return facts


def texts(talk: Any) -> list[str]:
    return [message.text for message in talk.history()]


def plain(facts: dict[str, Any]) -> Any:
    """Return facts as JSON holds them, where a tuple is a list."""
    return json.loads(json.dumps(facts))


@pytest.mark.parametrize("opened", STORES, indirect=True)
def test_what_an_earlier_version_stored_reads_byte_for_byte_as_it_did_then(opened: Opened) -> None:
    expected = stored(opened)
    listing = opened.listing()
    assert list(listing) == list(expected)
    for name, then in expected.items():
        now = plain({"listed": listing[name], **facts_of(opened.talk(name))})
        # Later versions tell more of usage: what a call was for, its hour and month, what the
        # provider charged.
        known = then["usage"][0].keys() if then.get("usage") else set()
        now["usage"] = [{key: spent[key] for key in known} for spent in now["usage"]]
        # And of the audit: which voice of a team asked, and which of several databases.
        later = {"voice", "database"}
        now["audit"] = [
            {key: value for key, value in entry.items() if key not in later}
            for entry in now["audit"]
        ]
        for what, value in then.items():
            assert now[what] == value, f"{what} of {name}"


@pytest.mark.parametrize("opened", STORES, indirect=True)
def test_a_copy_that_was_exported_and_imported_holds_the_same(opened: Opened) -> None:
    with open_persistence("memory://") as other:
        for name in stored(opened):
            text = opened.talk(name).export()
            import_thread(other, text.splitlines(keepends=True))
            copy = opened.talk(name, kept=other)
            assert copy.export() == text
            assert texts(copy) == texts(opened.talk(name))


@pytest.mark.parametrize("opened", PLAIN, indirect=True)
def test_retired_messages_and_chinese_ones_are_found_by_a_search(opened: Opened) -> None:
    assert {found.thread_id for found in search_threads(opened.kept, "telephone")} == {"long"}
    best = search_threads(opened.kept, "退货")[0]
    assert best.thread_id == "chinese"
    assert "退货" in best.excerpt


@pytest.mark.parametrize("opened", STORES, indirect=True)
def test_every_thread_takes_a_further_turn_and_forgets_nothing(opened: Opened) -> None:
    for name, then in stored(opened).items():
        talk = opened.talk(name)
        answer = talk.ask("One more question.")
        assert (answer.text, answer.status) == ("Answer to: One more question.", "answered"), name
        before = [message["content"] for message in then["history"]]
        after = texts(opened.talk(name))
        assert after[: len(before)] == before
        assert after[-2:] == ["One more question.", answer.text] or INBOX in after
        assert (PINNED in [pin.text for pin in talk.pins()]) is (PINNED in then["pins"])


@pytest.mark.parametrize("opened", STORES, indirect=True)
def test_a_turn_that_was_cut_off_is_resumed(opened: Opened) -> None:
    talk = opened.talk("cut")
    assert talk.pending()
    talk.resume()
    assert not talk.pending()
    assert texts(talk)[-2:] == [DEAD, f"Answer to: {DEAD}"]


@pytest.mark.parametrize("opened", LAST, indirect=True)
def test_an_approval_that_waited_is_resumed(opened: Opened) -> None:
    talk = opened.talk("approval", approve_sql="always")
    assert [action["args"]["sql"] for action in talk.approvals()] == [APPROVED.removeprefix("SQL ")]
    answer = talk.resume([{"type": "approve"}])
    assert (answer.text, answer.status) == ("That is done.", "answered")
    assert talk.result("r1").rows == [(60,)]
    assert [(entry.verdict, entry.rows) for entry in talk.audit()] == [("run", 1)]


@pytest.mark.parametrize("opened", ["store-b0290e6"], indirect=True)
def test_a_message_that_waited_in_the_inbox_joins_the_next_turn_once(opened: Opened) -> None:
    talk = opened.talk("inbox")
    talk.ask("Hello again.")
    talk.ask("And again.")
    assert [message.id for message in talk.history()].count(INBOX_ID) == 1
    assert texts(talk).count(INBOX) == 1


@pytest.mark.parametrize("opened", PLAIN, indirect=True)
def test_what_retired_can_be_recalled_word_for_word(opened: Opened) -> None:
    talk = opened.talk("long")
    assert LONG[0] not in [message.text for message in talk.view()]
    talk.ask("RECALL the shop in street 1")
    recalled = talk.history()[-2]
    assert (recalled.type, recalled.name) == ("tool", "recall_history")
    assert LONG[0][:60] in recalled.text


@pytest.mark.parametrize("opened", PLAIN, indirect=True)
def test_a_compaction_of_an_earlier_version_can_be_undone_and_made_again(opened: Opened) -> None:
    talk = opened.talk("shop")
    everything = texts(talk)
    seen = {message.text for message in talk.view()}
    assert SHOP[0] not in seen
    assert talk.undo()
    seen = {message.text for message in talk.view()}
    assert set(everything) - {SHOP[4]} <= seen
    assert SHOP[4] not in seen  # it was excluded
    for number in range(3):
        talk.ask(f"Question {number}.")
    assert talk.compact()
    assert texts(talk)[: len(everything)] == everything


@pytest.mark.parametrize("opened", STORES, indirect=True)
def test_a_memory_of_an_earlier_version_is_used_as_it_is_and_no_model_writes_it_again(
    opened: Opened,
) -> None:
    """Only where there is room: the thread's own model writes summaries now, which in those
    versions code did.
    """
    asked: list[list[BaseMessage]] = []

    class Noting(Clerk):
        def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
            asked.append(messages)
            return super()._generate(messages, *args, **kwargs)

    compacted = 0
    for name in stored(opened):
        talk = opened.talk(name, model=Noting(), model_limit=60_000)
        if talk.pending() or not (
            records := talk.graph.get_state(talk.config).values.get("compactions")
        ):
            continue
        view = [message.text for message in talk.view()[1:]]
        assert talk.ask("One more question.").compactions == []
        assert talk.graph.get_state(talk.config).values["compactions"] == records
        [call] = asked
        assert [message.text for message in call[1:]] == [*view, "One more question."]
        assert all(line in call[0].text for line in records[-1]["summary"].splitlines())
        compacted += len(records)
        asked.clear()
    assert compacted


@pytest.mark.parametrize("opened", STORES, indirect=True)
def test_every_checkpoint_of_an_earlier_version_can_be_gone_back_to(opened: Opened) -> None:
    talk = opened.talk("chinese")
    lengths = [
        len(state.values.get("messages") or [])
        for state in talk.graph.get_state_history(talk.config)
    ]
    assert lengths == sorted(lengths, reverse=True)
    assert (lengths[0], lengths[-1]) == (len(talk.history()), 0)


@pytest.mark.parametrize("opened", STORES, indirect=True)
def test_a_thread_of_an_earlier_version_can_be_forked_at_its_third_turn(opened: Opened) -> None:
    fork = opened.talk("chinese").fork(3, thread_id="branch")
    assert [message.text for message in fork.history() if message.type == "human"] == CHINESE[:3]
    assert fork.ask("继续。").turn == 4


@pytest.mark.parametrize("opened", LAST[:1], indirect=True)
def test_a_message_that_the_provider_refused_stays_out_of_the_view(opened: Opened) -> None:
    talk = opened.talk("failed")
    assert talk.ask("Good day.").status == "answered"
    assert POISON in texts(talk)
    assert POISON not in [message.text for message in talk.view()]
    with pytest.raises(ProviderRefusedError):
        talk.ask(f"Again: {POISON}")


@pytest.mark.parametrize("opened", STORES, indirect=True)
def test_the_turns_of_an_earlier_version_have_their_events(opened: Opened) -> None:
    kinds: set[str] = set()
    for name, then in stored(opened).items():
        turns = opened.talk(name).turns()
        asked = [message for message in then["history"] if message["type"] == "human"]
        assert [turn.number for turn in turns] == [*range(1, len(turns) + 1)]
        assert len(turns) <= len(asked)
        assert turns[0].question == asked[0]["content"]
        for turn in turns:
            told = {event["type"] for event in turn.events}
            assert ("answer" in told) is (turn.status in ("answered", "approval_requested"))
            results = [each for each in turn.events if each["type"] == "query_finished"]
            assert all(each["row_count"] for each in results if each["status"] == "success")
            kinds |= told
    assert {"query_started", "query_finished", "token", "answer", "context_compressed"} <= kinds
