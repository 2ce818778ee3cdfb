"""The input to a thread before it is accepted: which messages are new, and whether the sender may
write to the thread.
"""

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from longtable.base.context import Context
from longtable.base.errors import (
    LostMessagesError,
    NotPrivateError,
    ThreadNotFoundError,
    UsedIdError,
)
from longtable.base.stored import CHECKPOINT, thread_namespace
from longtable.memory.messages.marks import COLLEAGUE, marked, turn_number, unmarked
from longtable.memory.messages.rounds import all_calls, is_users
from longtable.memory.thread import Thread
from longtable.nodes.arriving.input_checks import storable
from longtable.nodes.arriving.stamps import Accepted
from longtable.nodes.closing.failures import FAILED
from longtable.nodes.state import UNDER_WAY, Now, State, StoredConfig, Turn
from longtable.nodes.tally import check_whole
from longtable.store.records.retired import ids_in_archive, key_of_id, page
from longtable.store.records.retired_store import StoreArchive
from longtable.store.records.thread_index import (
    entry_of,
    may_see,
    open_turn,
    owner_of,
    retitle,
    title_of,
)

MOST_OF_A_TURN = 200
"""If a message that has retired is sent again, at most this many retired messages after it are read
to find its answer.
"""


SENT = "__longtable_sent"
"""Key of a run's config that holds the newest message as the client sent it. The state may not have
this message, because the reducer drops a message whose id is known.
"""


EACH_STORED = "__longtable_each_stored"
"""Key of a run's config. It is true if each checkpoint of the run is stored before the next step.
"""


ROWS = "__longtable_rows"
"""Key in a run's settings: the row parameters of this run, a `RunRows`. Whatever a client sends
under this name is replaced.
"""
COLLECTED = "__longtable_collected"
"""Key of a run's config: the function that takes the events of the run's nodes, None if LangGraph
streams them. Whatever a client sends under this name is replaced.
"""
STATELESS = "__longtable_stateless"
"""Key of a run's config. It is true if no checkpointer keeps the thread."""


MADE_UP = "do-not-render-"
"""The id of a message that the client agent-chat-ui made up begins with this."""


@dataclass(frozen=True)
class Arrival:
    """The input to a thread before it is accepted. `embedded`: True if this graph runs as a node of
    another graph.
    """

    context: Context
    thread: Thread
    before: Turn
    sent: list[BaseMessage]
    run: str
    thread_id: str
    inner_thread_id: str
    """The id under which this graph keeps its own data. For an embedded graph it is not the id of
    the surrounding graph's thread.
    """
    embedded: bool
    store: BaseStore | None
    kept: bool
    """Whether a checkpointer keeps the thread. False for a stateless run of a server."""

    @property
    def owner(self) -> str | None:
        """Return the thread's owner: the owner of its first turn."""
        return owner_of(self.before) if self.before.get("number") else self.context.owner

    @property
    def index(self) -> BaseStore | None:
        """Return the store that lists the thread in its index of threads, None if there is none."""
        return self.store if self.thread_id and self.kept and not self.embedded else None

    @property
    def is_answered(self) -> bool:
        """Return whether the newest turn is closed, so that an input without new messages needs no
        answer. False if the input holds a tool's answer that a client made up.
        """
        if self.embedded or not self.before.get("number") or any(map(is_made_up, self.sent)):
            return False
        status = self.before.get("status")
        if status == "refused":  # what came is known, so its turn is over
            return SENT in run_settings()
        return status not in (*UNDER_WAY, FAILED)

    def check_access(self) -> None:
        """Raise `ThreadNotFoundError` if the thread belongs to another owner or project. Raise
        `NotPrivateError` if cells are to be withheld from the model, but earlier turns of the
        thread showed it cells.
        """
        project = self.context.project
        if not may_see(self.owner, self.context.owner):
            raise ThreadNotFoundError(self.thread_id)
        if project and self.index is not None:
            stored = entry_of(self.index, self.thread_id).get("project", "")
            if stored not in ("", project):
                raise ThreadNotFoundError(self.thread_id)
        withholds = self.context.privacy == "types"
        if withholds and self.before.get("number") and not self.before.get("private"):
            raise NotPrivateError

    def check_whole(self, state: State) -> None:
        """Raise `LostMessagesError` if rows of the thread have vanished from the store."""
        if self.embedded:
            return
        try:
            check_whole(self.thread_id, state)
        except LostMessagesError as error:
            found = error.found - len(self.sent)
            raise LostMessagesError(self.thread_id, wanted=error.wanted, found=found) from None
        if self.index is None or self.before.get("number"):
            return
        entry = entry_of(self.index, self.thread_id)
        found = sum(turn_number(message) > 0 for message in self.thread.messages)
        if entry.get(CHECKPOINT) and found:  # it had turns, and its state knows of none
            wanted = entry.get("messages", 0)
            raise LostMessagesError(self.thread_id, wanted=wanted, found=found)

    def new(self) -> list[BaseMessage]:
        """Return the new messages without marks. Answers that a client made up, and messages that
        have retired, are left out. Raises `UsedIdError` if the newest message has the id of another
        message with a different text.
        """
        if not self.embedded:
            _refuse_other_text(self)
        messages = [
            taken_in(message, embedded=self.embedded)
            for message in self.sent
            if not is_made_up(message)
        ]
        new = _not_retired(messages, self.thread, self.store, self.thread_id)
        newest = messages[-1] if messages else None
        if newest is not None and newest.type == "human" and newest not in new:
            retired = replace(self.thread, messages=[])
            known, _ = answer_to(str(newest.id), retired, self.store, self.thread_id)
            if known is not None and known.text != storable(newest.text):
                raise UsedIdError(message_id=str(newest.id))
        return new

    def next_turn(self, brief: StoredConfig) -> Turn:
        """Return the record of the turn that begins."""
        before = self.before
        optional = Turn(
            owner=self.owner,
            channel=self.context.channel or "",
            private=self.context.privacy == "types",
            schema=(brief.get("schema") or {}).get("hash", ""),
            bell=before.get("bell", ""),
            joined=before.get("joined", []),
            footers="footers" in before,
        )
        turn = Turn(
            number=before.get("number", 0) + 1,
            status="running",
            calls=0,
            overflows=0,
            # It outlives the turn: a compaction that failed is not tried again at every message.
            breaker=before.get("breaker"),
            run=self.run,
        )
        return {**turn, **cast("Turn", {name: value for name, value in optional.items() if value})}

    def note_in_index(self, first: str, model: str, now: str) -> None:
        """Write the turn into the index of threads. `first`: the text from which the title of a new
        thread is made.
        """
        if self.index is None:
            return
        open_turn(
            self.index,
            self.thread_id,
            first=first,
            owner=self.owner,
            model=model,
            turns=self.before.get("number", 0) + 1,
            now=now,
            project=self.context.project,
        )
        refused = self.thread.refused
        titles = {title_of(each.text) for each in self.thread.messages if each.id in refused}
        if titles:
            retitle(self.index, self.thread_id, titles=titles, first=first)


def arrival_of(now: Now) -> Arrival:
    info = now.runtime.execution_info
    embedded = info is not None and "|" in info.checkpoint_ns
    return Arrival(
        context=now.context,
        thread=now.thread,
        before=now.turn,
        sent=new_messages(now.thread.messages, now.turn, embedded=embedded),
        run=(info.run_id if info else None) or uuid.uuid4().hex[:16],
        thread_id=(info.thread_id if info else None) or "",
        inner_thread_id=now.thread_id or "",
        embedded=embedded,
        store=now.runtime.store,
        kept=_is_kept(now.runtime),
    )


def _is_kept(runtime: Runtime[Context]) -> bool:
    """Return whether the thread still exists after the run. False only for a stateless run on a
    server.
    """
    return runtime.server_info is None or not run_settings().get(STATELESS)


def _refuse_other_text(arrival: Arrival) -> None:
    """Raise `UsedIdError` if the run's newest message has the id of an accepted message but another
    text. (A message that also bears the stamp of the accepted message is an edit. The reducer has
    applied it already, so the texts are equal.)
    """
    sent = run_settings().get(SENT)
    if sent is None:
        return
    for message in arrival.thread.messages:
        same = message.id == sent.id and turn_number(message)
        if same and storable(sent.text) != message.text:
            raise UsedIdError(message_id=sent.id)


def run_settings() -> Mapping[str, Any]:
    """Return the settings in the config of the current run, an empty dict outside of a run."""
    try:
        return get_config().get("configurable", {})
    except RuntimeError:
        return {}


def is_sync() -> bool:
    """Return whether the checkpoint on which the current node runs is certainly stored already."""
    return bool(run_settings().get(EACH_STORED))


def _not_retired(
    new: Sequence[BaseMessage], thread: Thread, store: BaseStore | None, thread_id: str
) -> list[BaseMessage]:
    """Return those of the new messages that the archive does not have. A client may send the whole
    transcript again, including messages that have retired.
    """
    known: Sequence[str] = ()
    if thread.archived and store is not None and thread_id:
        with suppress(Exception):
            # A store that fails never fails a turn: at worst a message stands in the transcript
            # twice.
            known = ids_in_archive(
                StoreArchive(store),
                thread_id,
                [str(message.id) for message in new],
                thread.archived,
            )
    return [message for message in new if message.id not in known]


def answer_to(
    message_id: str, thread: Thread, store: BaseStore | None, thread_id: str
) -> tuple[BaseMessage | None, AIMessage | None]:
    """Return the message with this id, live or retired, and the answer of its turn. Each is None if
    it does not exist. The function may read the store.
    """
    place = next(
        (place for place, message in enumerate(thread.messages) if message.id == message_id), None
    )
    after: list[BaseMessage] = [] if place is None else list(thread.messages[place:])
    if place is None and store is not None and thread.archived:
        [item] = StoreArchive(store).get(
            thread_namespace("archived", thread_id), [key_of_id(message_id)]
        )
        if item is not None and item["number"] <= thread.archived:
            place = item["number"]
            last = min(thread.archived, item["number"] + MOST_OF_A_TURN)
            after = [
                *(each.message for each in page(StoreArchive(store), thread_id, place, last)),
                *thread.messages,
            ]
    of_turn = [each for each in after if turn_number(each) == turn_number(after[0])]
    # The last one: with a team each voice has one.
    return next(iter(after), None), next(
        (each for each in reversed(of_turn) if isinstance(each, AIMessage) and not all_calls(each)),
        None,
    )


def new_messages(
    messages: Sequence[BaseMessage], turn: Turn, *, embedded: bool = False
) -> list[BaseMessage]:
    """Return the newest messages that no turn has accepted yet, oldest first.

    Before the first turn these are all messages. Later they are the messages after the message
    whose id the turn's record has in `last`. The stamps of messages decide if a person removed that
    message, or if there is no `last`: in a thread of an earlier version, or if this graph is
    `embedded` in a graph that keeps only the messages.
    """
    if not turn.get("number") and not embedded:
        return list(messages)
    last = turn.get("last")
    place = (
        next((i for i in range(len(messages) - 1, -1, -1) if messages[i].id == last), None)
        if last
        else None
    )
    if place is not None:
        return list(messages[place + 1 :])
    new: list[BaseMessage] = []
    for message in reversed(messages):
        # Stamps can be forged: the newest message, where it is the user's, is looked at in any
        # case.
        if turn_number(message) and (new or message.type != "human"):
            break
        new.append(message)
    return new[::-1]


def taken_in(message: Accepted, *, embedded: bool) -> Accepted:
    """Return a message without marks. If this graph is `embedded`, another agent's message is
    marked as a colleague's.
    """
    clean = unmarked(message)
    return (
        marked(clean, kind=COLLEAGUE)
        if embedded and message.type == "human" and not is_users(message)
        else clean
    )


def is_made_up(message: BaseMessage) -> bool:
    """Return whether a message is a tool's answer that a chat client made up. The client
    agent-chat-ui does this for each open tool call. The tool did not run, so there is no result.
    """
    return isinstance(message, ToolMessage) and str(message.id).startswith(MADE_UP)
