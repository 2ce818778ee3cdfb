"""Stores of threads that earlier versions wrote: their talks, and the script that writes them.

python -m tests.support.old_stores

Run once, from a checkout with its history: it extracts each earlier commit, lets that code hold the
talks below, and packs the store with what that code said about it (`facts.json`). Ids are drawn
from a fixed seed; only checkpoint ids and the times that LangGraph notes itself differ from run to
run.

This module imports longtable inside functions only: the same lines run under each version.
"""

import json
import os
import random
import sqlite3
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from openai import APIConnectionError, BadRequestError

FOLDER = Path(__file__).parents[1] / "store" / "data"
KEY = "a passphrase of the tests"
LIMIT = 6_000
VERSIONS = {"0.1.0": "cbd0e45", "b0290e6": "b0290e6"}
"""The first release, and the last commit before modules were moved and renamed."""
FACTS = "facts.json"

SHOP = [
    "From now on all amounts are in euros.",
    "SQL SELECT id, item, price FROM orders ORDER BY id LIMIT 12",
    "What does the cheapest cost? " + "Mind the returns as well. " * 12,
    "SQL SELECT item, COUNT(*) AS n, SUM(price) AS total FROM orders GROUP BY item ORDER BY item",
    "A remark about the weather, which matters to nobody here.",
    "SQL SELECT nothing FROM nowhere",
    "And what about the lamps? " + "Please look at the second shop too. " * 12,
    "SQL SELECT city, SUM(price) AS total FROM orders GROUP BY city ORDER BY city",
    "Never show me the ids. " + "That was agreed with the accountant in spring. " * 10,
    "SQL SELECT MAX(price) AS dearest FROM orders",
    "Which city comes first? " + "The one in the north has closed. " * 12,
    "SQL SELECT id, item, city, price FROM orders WHERE price > 30 ORDER BY id LIMIT 20",
]
LONG = [
    f"Note {n}: the shop in street {n} opens at {n % 12} o'clock. "
    + "We agreed on it by telephone. " * 50
    for n in range(1, 15)
]
TOPICS = [
    f"About {'lamps' if n % 2 else 'chairs'}, point {n}: order {n * 10} pieces from maker {n}."
    for n in range(1, 27)
]
CHINESE = [
    "以后所有金额都用欧元表示。",
    "SQL SELECT city, COUNT(*) AS 数量 FROM orders GROUP BY city ORDER BY city",
    "哪个城市的订单最多？" + "请同时考虑退货的情况。" * 20,
    "SQL SELECT item, price FROM orders WHERE city = '北京' ORDER BY id LIMIT 10",
    "谢谢，灯的价格是多少？" + "我们上周在电话里已经谈过这件事。" * 20,
    "SQL SELECT AVG(price) AS 平均 FROM orders",
    "再总结一下北京的情况。",
]
PINNED = "The accountant wants whole euros."
APPROVED = "SQL SELECT COUNT(*) AS n FROM orders"
POISON, DEAD = "This message is poison.", "The line is dead."
INBOX = "A message that waited in the inbox."
INBOX_ID = "inbox-message"


class Clerk(BaseChatModel):
    """Run the query of a message ("SQL ..."), recall ("RECALL ..."), or answer with its first
    words.
    """

    dead: bool = False
    encoding: str = "o200k_base"

    @property
    def _llm_type(self) -> str:
        return "clerk"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        text = messages[-1].text
        request = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")
        if any(POISON in message.text for message in messages if message.type == "human"):
            body = {
                "code": "content_filter",
                "message": "the prompt triggered the content management policy",
            }
            raise BadRequestError(
                "content_filter", response=httpx2.Response(400, request=request), body=body
            )
        if self.dead and text == DEAD:
            raise APIConnectionError(request=request)
        return ChatResult(generations=[ChatGeneration(message=_answer(messages[-1]))])


def _answer(last: BaseMessage) -> AIMessage:
    text = last.text
    for word, tool, argument in (
        ("SQL ", "run_sql", "sql"),
        ("RECALL ", "recall_history", "query"),
    ):
        if last.type == "human" and text.startswith(word):
            args = {argument: text.removeprefix(word)}
            return AIMessage(
                "", tool_calls=[{"name": tool, "args": args, "id": f"call_{uuid.uuid4().hex[:8]}"}]
            )
    usage = {"input_tokens": 1_000, "output_tokens": 20, "total_tokens": 1_020}
    said = "That is done." if last.type == "tool" else f"Answer to: {text[:60]}"
    return AIMessage(said, usage_metadata=usage)


def make_shop(path: Path) -> None:
    """Write the database that the talks are about."""
    cities, items = ("Bergen", "Lyon", "北京"), ("lamp", "chair", "table", "rug")
    rows = [(n, items[n % 4], cities[n % 3], round(5 + (n * 7 % 90) / 2, 2)) for n in range(1, 61)]
    with closing(sqlite3.connect(path)) as shop, shop:
        shop.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT, city TEXT, price REAL)"
        )
        shop.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", rows)


def ticking() -> Any:
    """Return a clock that goes on by a second at each look."""
    start, looks = datetime(2026, 11, 21, 9, tzinfo=UTC), iter(range(10**9))
    return lambda: start + timedelta(seconds=next(looks))


class Opened:
    """A store in a folder, with the database, results and archive files that belong to it."""

    def __init__(
        self, folder: Path, *, key: str | None = None, model: BaseChatModel | None = None
    ) -> None:
        self.folder, self.key, self.model, self.clock = folder, key, model or Clerk(), ticking()
        self._stack = ExitStack()

    def __enter__(self) -> "Opened":
        from longtable.graph import Database, open_persistence

        url = f"sqlite:///{self.folder / 'chat.db'}"
        key: Any = {"key": self.key} if self.key else {}
        self.kept = self._stack.enter_context(open_persistence(url, **key))
        self.shop = self._stack.enter_context(Database.open(f"sqlite:///{self.folder / 'shop.db'}"))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def listing(self) -> dict[str, list[Any]]:
        """Return title, turns and messages of each thread, as the list of threads has them."""
        from longtable.graph import list_threads

        infos = sorted(list_threads(self.kept), key=lambda info: info.thread_id)
        return {info.thread_id: [info.title, info.turns, info.messages] for info in infos}

    def talk(
        self,
        thread_id: str,
        *,
        model: BaseChatModel | None = None,
        kept: Any = None,
        **context: Any,
    ) -> Any:
        """Return the conversation on a thread of this store or of `kept`, under its policy."""
        from longtable import graph as door

        parts: dict[str, Any] = {}
        beside: dict[str, Any] = {}
        if hasattr(door, "ResultStore"):
            beside = {"results": door.ResultStore(self.folder / "results", clock=self.clock)}
            parts = dict(beside)
            if not self.key:
                beside["archive"] = door.ArchiveFiles(self.folder / "archive")
                if hasattr(door, "Footer"):
                    parts["hooks"] = [beside["archive"]]
                else:  # 0.1.0 and the versions after it
                    parts["archive_on_compact"] = beside["archive"]
        graph = door.build_graph(
            model=model or self.model,
            database=self.shop,
            clock=self.clock,
            policy=door.CompactionPolicy(**POLICIES.get(thread_id, {})),
            **parts,
        ).compile(checkpointer=(kept or self.kept).checkpointer, store=(kept or self.kept).store)
        settings = door.Context(**{"model_limit": LIMIT, **context})
        return door.Conversation(graph, thread_id, context=settings, **beside)


POLICIES: dict[str, dict[str, Any]] = {
    "topics": {
        "strategy": "topics",
        "trigger_messages": 24,
        "min_messages": 0,
        "keep_rounds": 1,
        "keep_messages": 8,
        "summary_share": 0.2,
    },
    "long": {"keep_rounds": 2, "retire_after": 6},
    "chinese": {"keep_rounds": 2},
    "fork": {"keep_rounds": 3},
    "shop": {"keep_rounds": 3},
}
"""Of the threads that have a policy of their own."""


def write(folder: Path, key: str | None, few: bool) -> None:
    """Hold the talks and note what the running code says of them."""
    drawn = random.Random(14)
    uuid.uuid4 = lambda: uuid.UUID(int=drawn.getrandbits(128), version=4)
    make_shop(folder / "shop.db")
    with Opened(folder, key=key) as opened:
        for thread_id in _hold_talks(opened, few=few):
            print(thread_id, file=sys.stderr)
    with Opened(folder, key=key) as opened:
        facts = {
            name: {"listed": listed, **facts_of(opened.talk(name))}
            for name, listed in opened.listing().items()
        }
    (folder / FACTS).write_text(json.dumps(facts, ensure_ascii=False, indent=1), "utf-8")
    with closing(sqlite3.connect(folder / "chat.db", isolation_level=None)) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store.execute("VACUUM")
        store.execute("PRAGMA journal_mode=DELETE")


def _hold_talks(opened: Opened, *, few: bool) -> Iterator[str]:
    new = hasattr(opened.talk("shop"), "fork")
    chinese = opened.talk("chinese")
    for text in CHINESE:
        chinese.ask(text)
    chinese.compact()
    yield "chinese"
    if new:
        waits = opened.talk("approval", approve_sql="always")
        waits.ask("Hello.")
        assert waits.ask(APPROVED).status == "approval_requested"
        yield "approval"
    cut = opened.talk("cut", model=Clerk(dead=True))
    cut.ask("Hello.")
    with suppress(Exception):
        cut.ask(DEAD)
    assert cut.pending()
    yield "cut"
    if few:
        return
    shop = opened.talk("shop")
    for number, text in enumerate(SHOP, start=1):
        shop.ask(text)
        if number == 5:
            shop.exclude(next(m.id for m in shop.history() if m.text == SHOP[4]))
            shop.pin(PINNED)
    shop.compact()
    shop.ask("And now a turn after it.")
    yield "shop"
    for name, texts in (("long", LONG), ("topics", TOPICS)):
        talk = opened.talk(name)
        for text in texts:
            talk.ask(text)
        yield name
    failed = opened.talk("failed")
    failed.ask("Hello.")
    with suppress(Exception):
        failed.ask(POISON)
    yield "failed"
    if new:
        shop.fork(7, thread_id="fork")
        yield "fork"
        from langchain_core.messages import HumanMessage

        inboxes = import_module("longtable.nodes.arriving.inbox")  # its names of that time

        inbox = opened.talk("inbox")
        inbox.ask("Hello.")
        message = HumanMessage(INBOX, id=INBOX_ID)
        opened.kept.store.batch(
            inboxes.posting("inbox", inboxes.Letter(f"{1:020}-inbox", message, left=True))
        )
        yield "inbox"


def facts_of(talk: Any) -> dict[str, Any]:
    """Return what the running code says of a thread."""
    facts: dict[str, Any] = {
        "history": [message.model_dump(mode="json") for message in talk.history()],
        "view": [message.id for message in talk.view()[1:]],
        "pins": [pin.text for pin in talk.pins()],
        "topics": [[topic.id, topic.version, topic.artifact] for topic in talk.topics()],
        "pending": talk.pending(),
    }
    if hasattr(talk, "export"):
        facts["export"] = talk.export()
        facts["markdown"] = talk.export("markdown")
        facts["usage"] = [asdict(spent) for spent in talk.usage()]
        facts["audit"] = [asdict(entry) for entry in talk.audit()]
        facts["results"] = {
            meta.handle: [list(row) for row in talk.result(meta.handle).rows]
            for meta in talk.results.handles(talk.thread_id)
        }
    if getattr(talk, "archive", None) is not None:
        facts["archive"] = [
            [file.key, talk.archive_file(file.key)] for file in talk.archive_files()
        ]
    return facts


def main() -> None:
    """Write every store of `FOLDER` anew."""
    repository = Path(__file__).parents[2]
    for name, commit in VERSIONS.items():
        with TemporaryDirectory() as code:
            tree = subprocess.run(
                ["git", "archive", commit], cwd=repository, check=True, capture_output=True
            ).stdout
            subprocess.run(["tar", "x"], cwd=code, input=tree, check=True)
            _write_with(Path(code), repository, f"store-{name}", "plain")
            if name != "0.1.0":
                _write_with(Path(code), repository, f"store-{name}-encrypted", "encrypted")


def _write_with(code: Path, repository: Path, name: str, how: str) -> None:
    """Write one store with the code of a commit: its `typings` make `longtable` importable."""
    with TemporaryDirectory() as folder:
        where = {**os.environ, "PYTHONPATH": str(code / "typings"), "PYTHONHASHSEED": "0"}
        command = [sys.executable, "-m", "tests.support.old_stores", how, folder, str(code)]
        subprocess.run(command, cwd=repository, env=where, check=True)
        with tarfile.open(FOLDER / f"{name}.tar.xz", "w:xz") as packed:
            packed.add(folder, arcname=".")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        import longtable.graph

        used = Path(longtable.graph.__file__).resolve()
        assert used.is_relative_to(Path(sys.argv[3]).resolve()), f"this is not the old code: {used}"
        encrypted = sys.argv[1] == "encrypted"
        write(Path(sys.argv[2]), KEY if encrypted else None, few=encrypted)
