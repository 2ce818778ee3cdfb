"""A store with a key holds no plain text; the wrong key, none, or a store of another version is
told before anything is written.
"""

import asyncio
import gzip
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from longtable.base.errors import ConfigError, NewerStoreError, StoreKeyError
from longtable.graph import Conversation, import_thread, list_threads, open_persistence
from longtable.store.encryption import SCHEMA
from longtable.store.persistence import Persistence
from tests.support.doomed import FOLDING, TIGHT, graph_on, question
from tests.support.postgres import postgres_server

KEY = "correct horse battery staple"
SECRET = "Zanzibar"


def conversation_on(kept: Persistence) -> Conversation:
    return Conversation(graph_on(kept.checkpointer, kept.store, FOLDING), "t", context=TIGHT)


def everything_in(url: str, folder: Path) -> bytes:
    """Return all bytes a store holds: its files, or a row of each table of its database as text."""
    if url.startswith("sqlite"):
        return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
    tables = [
        row[0]
        for row in postgres_server().run(
            url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        )
    ]
    return "".join(
        str(postgres_server().run(url, f'SELECT t::text, * FROM "{table}" t')) for table in tables
    ).encode()


@pytest.mark.parametrize("key", [KEY, None])
def test_with_a_key_no_text_of_a_message_can_be_read(
    url: str, key: str | None, tmp_path: Path
) -> None:
    with open_persistence(url, key=key) as kept:
        conversation = conversation_on(kept)
        conversation.ask(f"Always spell {SECRET} like this.")
        for turn in range(2, 15):  # something is folded, and retires
            conversation.ask(question(turn, tight=True) + SECRET)
        conversation.pin(f"never {SECRET}")
        conversation.rename(f"about {SECRET}")
        assert any(name in str(kept.store.list_namespaces()) for name in ("archive",))
        found = everything_in(url, tmp_path)  # with its journal, while it is open
    with open_persistence(url, key=key) as again:
        assert (SECRET.encode() in found + everything_in(url, tmp_path)) == (key is None)
        assert [info.title for info in list_threads(again)] == [f"about {SECRET}"]
        assert conversation_on(again).history()[0].text == f"Always spell {SECRET} like this."
        assert len(conversation_on(again).pins()) == 2
        assert conversation_on(again).ask("question 99").status == "answered"


def test_async_it_is_the_same(url: str) -> None:
    async def run() -> None:
        async with open_persistence(url, key=KEY) as kept:
            await conversation_on(kept).aask("question 1")
        async with open_persistence(url, key=KEY) as kept:
            assert (await conversation_on(kept).aask("question 2")).turn == 2
        with pytest.raises(StoreKeyError):
            async with open_persistence(url):
                pass

    asyncio.run(run())


def test_another_key_or_none_is_told(url: str) -> None:
    with open_persistence(url, key=KEY) as kept:
        conversation_on(kept).ask("question 1")
    for key, told in (("another key of some length", "not the one"), (None, "is encrypted")):
        with pytest.raises(StoreKeyError, match=told), open_persistence(url, key=key):
            pass
    with pytest.raises(ConfigError, match="16 characters") as caught:
        open_persistence(url, key="hunter2")
    assert "hunter2" not in str(caught.value)


def test_a_store_that_began_without_a_key_takes_none(url: str) -> None:
    with open_persistence(url) as kept:
        conversation_on(kept).ask("question 1")
    with pytest.raises(StoreKeyError, match="not encrypted"), open_persistence(url, key=KEY):
        pass


def set_schema(url: str, script: str) -> None:
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            connection.execute(script)
        connection.close()
    else:
        postgres_server().run(url, script)


def test_a_store_of_a_later_version_is_refused_and_left_as_it_is(url: str) -> None:
    with open_persistence(url) as kept:
        conversation_on(kept).ask("question 1")
    set_schema(url, f"UPDATE longtable_meta SET value = '{SCHEMA + 1}' WHERE name = 'schema'")
    with pytest.raises(NewerStoreError, match="update longtable") as caught, open_persistence(url):
        pass
    assert caught.value.found == SCHEMA + 1
    set_schema(url, f"UPDATE longtable_meta SET value = '{SCHEMA}' WHERE name = 'schema'")
    with open_persistence(url) as kept:
        assert conversation_on(kept).ask("question 2").turn == 2


def test_a_store_without_a_number_is_brought_up(url: str) -> None:
    """Version 0.1.0 wrote none."""
    with open_persistence(url) as kept:
        conversation_on(kept).ask("question 1")
    set_schema(url, "DROP TABLE longtable_meta")
    with open_persistence(url) as kept:
        assert conversation_on(kept).ask("question 2").turn == 2


def test_a_file_of_version_0_1_0_opens_and_goes_on(tmp_path: Path) -> None:
    """Fourteen turns that version wrote, of which some are folded and retired, and a pin."""
    old = Path(__file__).with_name("data") / "store-0.1.0.db.gz"
    (tmp_path / "chat.db").write_bytes(gzip.decompress(old.read_bytes()))
    with open_persistence(f"sqlite:///{tmp_path}/chat.db") as kept:
        conversation = conversation_on(kept)
        assert [m.text for m in conversation.history() if m.type == "human"] == [
            question(n, tight=True) for n in range(1, 15)
        ]
        assert "Round to whole minutes." in [pin.text for pin in conversation.pins()]
        assert "Round to whole minutes." in str(conversation.view()[0].content)
        for n in range(15, 19):
            assert conversation.ask(question(n, tight=True)).turn == n
        assert len(conversation.history()) == 18 * 4
        assert [info.turns for info in list_threads(kept)] == [18]
        text = conversation.export()
    with open_persistence(postgres_server().create(), key=KEY) as moved:
        # That version knew no PostgreSQL: so a thread gets there.
        import_thread(moved, text.splitlines(keepends=True))
        assert conversation_on(moved).export() == text
        assert "Round to whole minutes." in [pin.text for pin in conversation_on(moved).pins()]
        assert conversation_on(moved).ask(question(19, tight=True)).turn == 19


def test_a_new_store_may_be_opened_by_several_at_once(url: str) -> None:
    def work(n: int) -> str:
        with open_persistence(url, key=KEY) as kept:
            return (
                Conversation(graph_on(kept.checkpointer, kept.store), f"t{n}", context=TIGHT)
                .ask("question 1")
                .status
            )

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == ["answered"] * 4
    with open_persistence(url, key=KEY) as kept:
        assert len(list_threads(kept)) == 4
