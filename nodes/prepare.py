"""Make room for the next turn after the answer: compact ahead of time, and retire old originals and
compactions to the store.

This step may be cut off. A run that ends before or during this step leaves the thread as it was
after the answer.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from langchain_core.messages import BaseMessage, RemoveMessage

from longtable.base.concurrency import Execution, in_thread
from longtable.base.errors import Reason
from longtable.base.events import ContextCompactionSkipped, MessagesRetired
from longtable.base.stored import thread_namespace
from longtable.memory.compaction.compaction import Outcome
from longtable.memory.compaction.merging import Merge, merge_of
from longtable.memory.compaction.plan import RECENT
from longtable.memory.messages.marks import STEERED, kind_of
from longtable.memory.messages.rounds import is_users, pair_calls
from longtable.memory.policy import CompactionPolicy
from longtable.memory.search import Original
from longtable.memory.thread import Thread
from longtable.memory.view import CallPlan
from longtable.nodes.compact import Compactor, plan_ahead
from longtable.nodes.compacting.compaction_events import compaction_update
from longtable.nodes.estimate import CallPlans
from longtable.nodes.state import Now, Update, failed_at
from longtable.store.records.retired import key_of, to_item
from longtable.store.records.retired_store import StoreArchive, keep_originals, retire_compactions
from longtable.store.records.word_index import WordIndex

NEAR = 0.95
"""Share of a trigger below which a call is far from it. The rest is room for new pins."""


@dataclass(frozen=True)
class Prepare:
    """The node, which runs after the answer. See the module."""

    compactor: Compactor

    async def __call__(self, now: Now, how: Execution) -> Update:
        started = time.perf_counter()
        try:
            outcome = await self.compactor.compact(now, "ahead", how)
            retire = partial(self._retired_after, now, outcome, started)
            return await how.call(retire, partial(in_thread, retire))
        finally:
            self.compactor.plans.drop(now.thread_id)

    def _retired_after(self, now: Now, outcome: Outcome | None, started: float) -> Update:
        """Move the messages and compactions that retire now into the store. Return the update that
        removes them, together with the update of a compaction made ahead.
        """
        update = compaction_update(now, outcome, started, ahead=True) if outcome else {}
        store = now.runtime.store
        thread_id = now.thread_id
        if store is None or not thread_id:
            return update
        try:
            call_plan = self.compactor.plans.of(now, shared=True)
            retired = _retired(now, call_plan)
            if retired and _retire(StoreArchive(store), thread_id, retired):
                update |= _removal(now, retired)
            merge = _merge(now, call_plan)
            if merge and retire_compactions(store, thread_id, merge):
                # The merged compaction takes the place of the old ones, before one that was made
                # just now.
                update["compactions"] = [merge.record, *update.get("compactions", ())]
        except Exception as error:
            # The answer stands, and what did not retire stays in the transcript.
            reason = Reason(
                code="store_failed", message=f"the store failed: {type(error).__name__}"
            )
            now.runtime.stream_writer(
                ContextCompactionSkipped(type="context_compaction_skipped", reasons=[reason])
            )
        return update


def worth_preparing(now: Now, plans: CallPlans) -> bool:
    """Return whether the node `prepare` has anything to do after this turn."""
    call_plan = plans.of(now, shared=True)
    if not _is_far_from_due(now, call_plan) and plan_ahead(call_plan, failed_at(now.turn)):
        return True
    return bool(_retired(now, call_plan)) or _merge(now, call_plan) is not None


def _is_far_from_due(now: Now, call_plan: CallPlan) -> bool:
    """Return whether the tokens counted before the answer already show that no compaction ahead can
    be due.

    The next round is estimated as the mean of the newest `RECENT`, so it is at most all of them
    together. If the call and these rounds stay below the threshold, so do the call and the next
    round. Planning a compaction instead took 16 % of a turn at 32,000 tokens.
    """
    call_config = call_plan.call_config
    thread = call_plan.thread
    policy = call_config.policy
    usage = now.state.get("usage")
    excludes = any(edit["op"] == "exclude" for edit in thread.edits)  # their memory is made again
    one_of_many = "voices" in now.config  # the count is of the last voice alone
    if (
        not usage
        or not thread.messages
        or excludes
        or policy.trigger_messages is not None
        or one_of_many
    ):
        return False
    count = call_config.counter.message
    coming = sum(map(count, pair_calls(_newest_rounds(thread.messages))))
    total = usage["total"] + count(thread.messages[-1]) + coming
    gave_way = usage["shrunk"] or usage["left_out"]
    most = min(call_config.threshold_tokens, policy.trigger_tokens or call_config.threshold_tokens)
    return not gave_way and total <= NEAR * most


def _newest_rounds(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return the messages of the newest `RECENT` rounds, or of more."""
    begun = 0
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if is_users(message) and kind_of(message) != STEERED:  # which may join a round
            begun += 1
        if begun == RECENT:
            return messages[place:]
    return messages


def retiring(thread: Thread, policy: CompactionPolicy) -> list[Original]:
    """Return the messages that retire now. If the live transcript is longer than the policy's
    `retire_after`, they are the messages that the compaction before the live compaction covers.

    Messages that only the live compaction covers stay, so that this compaction can be undone.
    """
    if (
        policy.retire_after is None
        or len(thread.messages) <= policy.retire_after
        or len(thread.chain) < 2
    ):
        return []
    _, end = replace(thread, compactions=thread.chain[:-1]).live
    return [Original(thread.archived + i + 1, thread.messages[i]) for i in range(end)]


def _retire(archive: StoreArchive, thread_id: str, retired: Sequence[Original]) -> bool:
    """Write the retiring messages to the store.

    Return True if they were written, False if another branch of the thread (time travel) has other
    messages under these numbers. Messages are written to the store first and removed from the state
    afterwards. If the process is killed between these two steps, no message is duplicated, because
    a message's number is its key.
    """
    items = archive.get(
        thread_namespace("archive", thread_id), [key_of(original.number) for original in retired]
    )
    if any(
        item is not None and item["id"] != to_item(original)["id"]
        for item, original in zip(items, retired, strict=True)
    ):
        return False
    keep_originals(archive, thread_id, retired)
    with suppress(Exception):  # what is not indexed now is indexed by the next search
        WordIndex(archive.store, thread_id).write(retired[0].number, retired)
    return True


def _retired(now: Now, call_plan: CallPlan) -> list[Original]:
    if now.runtime.store is None or not now.thread_id:
        return []
    return retiring(now.thread, call_plan.call_config.policy)


def _merge(now: Now, call_plan: CallPlan) -> Merge | None:
    if now.runtime.store is None or not now.thread_id:
        return None
    return merge_of(call_plan.thread, call_plan.call_config)


def _removal(now: Now, retired: Sequence[Original]) -> Update:
    archived = now.thread.archived + len(retired)
    now.runtime.stream_writer(
        MessagesRetired(type="messages_retired", messages=len(retired), archived=archived)
    )
    removals = [RemoveMessage(id=str(original.message.id)) for original in retired]
    return {"messages": removals, "archive": {"count": archived}}
