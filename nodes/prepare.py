"""Make room for the next turn after the answer: compact ahead of time, and retire old originals and
compactions to the store.

Safe to lose: a run that ends before or within it leaves the thread as the answer left it.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from langchain_core.messages import RemoveMessage
from langgraph.runtime import Runtime

from longtable.base.concurrency import Execution, in_thread
from longtable.base.context import Context
from longtable.base.errors import Reason
from longtable.base.events import ContextCompactionSkipped, MessagesRetired
from longtable.base.stored import thread_namespace
from longtable.memory.compaction.compaction import Outcome
from longtable.memory.compaction.merging import Merge, merge_of
from longtable.memory.policy import CompactionPolicy
from longtable.memory.search import Original
from longtable.memory.thread import Thread
from longtable.memory.view import CallPlan
from longtable.nodes.compact import Compactor, compaction_update, plan_ahead
from longtable.nodes.estimate import CallPlans
from longtable.nodes.state import State, Update, failed_at, thread_of, turn_of
from longtable.store.records.retired import key_of, to_item
from longtable.store.records.retired_store import StoreArchive, keep_originals, retire_compactions
from longtable.store.records.thread_index import thread_id_of
from longtable.store.records.word_index import WordIndex


@dataclass(frozen=True)
class Prepare:
    """The node."""

    compactor: Compactor

    async def __call__(self, state: State, *, runtime: Runtime[Context], how: Execution) -> Update:
        started = time.perf_counter()
        try:
            outcome = await self.compactor.compact(state, runtime, "ahead", how)
            retire = partial(self._retired_after, state, runtime, outcome, started)
            return await how.call(retire, partial(in_thread, retire))
        finally:
            self.compactor.plans.drop(runtime)

    def _retired_after(
        self, state: State, runtime: Runtime[Context], outcome: Outcome | None, started: float
    ) -> Update:
        """Return the update of a compaction made ahead, and of the messages and compactions that
        retire now.
        """
        update = compaction_update(state, outcome, runtime, started, ahead=True) if outcome else {}
        if (store := runtime.store) is None or not (thread_id := thread_id_of(runtime)):
            return update
        try:
            if (retired := _retired(state, runtime)) and _retire(
                StoreArchive(store), thread_id, retired
            ):
                update |= _removal(state, retired, runtime)
            if (merge := _merge(state, runtime, self.compactor.plans)) and retire_compactions(
                store, thread_id, merge
            ):
                # The merged compaction takes the place of the old ones, before one that was made
                # just now.
                update["compactions"] = [merge.record, *update.get("compactions", ())]
        except Exception as error:
            # The answer stands, and what did not retire stays in the transcript.
            reason = Reason(
                code="store_failed", message=f"the store failed: {type(error).__name__}"
            )
            runtime.stream_writer(
                ContextCompactionSkipped(type="context_compaction_skipped", reasons=[reason])
            )
        return update


def worth_preparing(state: State, runtime: Runtime[Context], plans: CallPlans) -> bool:
    """Return whether the node has anything to do after this turn."""
    call_plan = plans.of(state, runtime, shared=True)
    if not _is_far_from_due(state, call_plan) and plan_ahead(call_plan, failed_at(turn_of(state))):
        return True
    return bool(_retired(state, runtime)) or _merge(state, runtime, plans) is not None


def _is_far_from_due(state: State, call_plan: CallPlan) -> bool:
    """Return whether the count before the answer shows that no compaction ahead can be due.

    The next round is guessed from the newest ones, so it is at most as large as the call: below
    half of the threshold it cannot pass it. To plan instead took 4 of 30 ms a turn at 1,000
    messages.
    """
    call_config = call_plan.call_config
    thread = call_plan.thread
    policy = call_config.policy
    usage = state.get("usage")
    excludes = any(edit["op"] == "exclude" for edit in thread.edits)  # their memory is made again
    one_of_many = "voices" in (state.get("brief") or {})  # the count is of the last voice alone
    if (
        not usage
        or not thread.messages
        or excludes
        or policy.trigger_messages is not None
        or one_of_many
    ):
        return False
    total = usage["total"] + call_config.counter.message(thread.messages[-1])
    gave_way = usage["shrunk"] or usage["left_out"]
    most = min(call_config.threshold_tokens, policy.trigger_tokens or call_config.threshold_tokens)
    return not gave_way and 2 * total <= most


def retiring(thread: Thread, policy: CompactionPolicy) -> list[Original]:
    """Return the messages that retire now: those the compaction before the live one covers, once
    the transcript is long.

    Those of the live one stay, so that it can be undone.
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
    """Write what retires; False where another branch of the thread (time travel) has its own
    messages under these numbers.

    Written first, removed after: a kill between the two doubles nothing, for the number is the key.
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


def _retired(state: State, runtime: Runtime[Context]) -> list[Original]:
    if runtime.store is None or not thread_id_of(runtime):
        return []
    policy = CompactionPolicy.from_json((state.get("brief") or {}).get("policy") or {})
    return retiring(thread_of(state), policy)


def _merge(state: State, runtime: Runtime[Context], plans: CallPlans) -> Merge | None:
    if runtime.store is None or not thread_id_of(runtime):
        return None
    call_plan = plans.of(state, runtime, shared=True)
    return merge_of(call_plan.thread, call_plan.call_config)


def _removal(state: State, retired: Sequence[Original], runtime: Runtime[Context]) -> Update:
    archived = thread_of(state).archived + len(retired)
    runtime.stream_writer(
        MessagesRetired(type="messages_retired", messages=len(retired), archived=archived)
    )
    removals = [RemoveMessage(id=str(original.message.id)) for original in retired]
    return {"messages": removals, "archive": {"count": archived}}
