"""Merge the older compactions of a long thread into a single compaction, so that the data stored by
a turn do not grow with the number of compactions.

The merged compaction holds all that later memories need: the newest text, the pins, the newest
lines of the ledger, and the topics as they are now. The original compactions move to a store (they
retire), as compacted messages do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from longtable.memory.call_config import CallConfig
from longtable.memory.memory_block import LEAST_LINE
from longtable.memory.pins.pins import Pin
from longtable.memory.policy import TOPICS
from longtable.memory.records import Compaction, is_results, stored_ends, stored_lines, stored_pins
from longtable.memory.thread import Thread
from longtable.memory.topics.topics import Topic, current, topics_of

MERGE_AT = 24
"""If the state holds this many compactions, the older ones are merged."""
KEEP = 8
"""Number of newest compactions that are not merged, so that they can be undone."""
MOST_PINS = 400
"""Most pins of a merged compaction. If there are more, all ended pins are dropped, then the oldest.
Pins made by hand are kept elsewhere and do not count.
"""
MOST_IDS = 100
"""Most message ids that a topic of a merged compaction holds: its newest ones."""


@dataclass(frozen=True)
class Merge:
    """A merge of compactions.

    `retired`: the compactions that retire now. `first`: number of the first of them among all
    compactions that ever retired, from 1. `record`: the compaction that replaces them.
    """

    first: int
    retired: Sequence[Compaction]
    record: Compaction


def merge_of(thread: Thread, call_config: CallConfig) -> Merge | None:
    """Return the merge that is due, else None. No merge is due while there are few compactions, or
    if the policy retires nothing (`retire_after` is None).
    """
    if call_config.policy.retire_after is None or len(thread.compactions) < MERGE_AT:
        return None
    return _merge_of_memories(thread, call_config) or _merge_of_results(thread)


def _merge_of_memories(thread: Thread, call_config: CallConfig) -> Merge | None:
    chain = thread.chain
    if len(chain) <= KEEP:
        return None
    last = chain[-KEEP - 1]
    order = [record["id"] for record in thread.compactions]
    old = thread.compactions[: order.index(last["id"]) + 1]
    # Results that shrank stay so: what says up to where is merged by itself.
    old = [record for record in old if not is_results(record)]
    retired = [record for record in old if "merged" not in record]
    # What a strategy of the user's own keeps in its records is not known here.
    if not retired or any(record.get("kept") and record["strategy"] != TOPICS for record in old):
        return None
    ids = [record["id"] for record in old]
    count = merged_count(old) + len(retired)
    record = _merged(thread, chain[:-KEEP], ids, count, call_config)
    return Merge(1 + merged_count(thread.compactions), retired, record)


def _merge_of_results(thread: Thread) -> Merge | None:
    """Return the merge of the older compactions of results, None if they are too few. The newest of
    them that applies replaces the rest, because it also shrinks all results that these shrank.
    """
    old = [record for record in thread.compactions if is_results(record)][:-KEEP]
    retired = [record for record in old if "merged" not in record]
    if len(retired) < KEEP:
        return None
    valid = [record for record in old if thread.applies(record)] or old
    newest: Compaction = {
        **valid[-1],
        "previous": None,
        "folded": sum(record["folded"] for record in valid),
        "folded_tokens": sum(record["folded_tokens"] for record in valid),
        "merged": merged_count(old) + len(retired),
        "replaces": [record["id"] for record in old],
    }
    return Merge(1 + merged_count(thread.compactions), retired, newest)


def _merged(
    thread: Thread,
    chain: Sequence[Compaction],
    replaces: list[str],
    count: int,
    call_config: CallConfig,
) -> Compaction:
    most = call_config.ledger_tokens // LEAST_LINE + 1
    ledger = list(stored_lines(chain))
    rebuilt = max((i for i, record in enumerate(chain) if record.get("rebuilt")), default=-1)
    topics = current(topics_of(replace(thread, compactions=chain)))
    record: Compaction = {
        **chain[-1],
        "previous": None,
        "from_id": chain[0]["from_id"],
        "folded": sum(record["folded"] for record in chain),
        "folded_tokens": sum(int(record["folded_tokens"]) for record in chain),
        "pins": _pins(chain),
        "ended": list(stored_ends(chain)),
        "ledger": ledger[-most:],
    }
    left_out = sum(int(record.get("earlier", 0)) for record in chain)
    record["earlier"] = left_out + len(ledger[:-most])
    record["folds"] = sum(int(record.get("folds", 1)) for record in chain[rebuilt + 1 :])
    record["merged"] = count
    record["replaces"] = replaces
    if topics:
        record["kept"] = {"topics": list(map(_newest_ids, topics))}
    return record


def _newest_ids(topic: Topic) -> dict[str, Any]:
    """Return a topic as JSON with its newest message ids only."""
    return {**topic.as_json(), "message_ids": list(topic.message_ids[-MOST_IDS:])}


def _pins(chain: Sequence[Compaction]) -> list[dict[str, Any]]:
    pins = [Pin.from_json(pin) for pin in stored_pins(chain)]
    if len(pins) > MOST_PINS:
        ended = {end["pin"] for end in stored_ends(chain)}
        held = [pin for pin in pins if pin.id not in ended]
        pins = sorted(held, key=lambda pin: pin.turn)[-MOST_PINS:]
    return [pin.as_json() for pin in pins]


def unmerged(retired: Sequence[Compaction], records: Sequence[Compaction]) -> list[Compaction]:
    """Return all compactions that a thread ever had, in order. `retired` come first; `records` are
    the compactions in the state, of which merged ones are left out.
    """
    return [*retired, *(record for record in records if "merged" not in record)]


def merged_count(records: Sequence[Compaction]) -> int:
    """Return how many compactions of a thread have retired."""
    return sum(int(record.get("merged", 0)) for record in records)
