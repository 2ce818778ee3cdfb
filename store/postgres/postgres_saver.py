"""LangGraph's saver for PostgreSQL, with the histories that turns loaded before."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import DeltaChannelHistory, get_checkpoint_id, writes_sort_key
from langgraph.checkpoint.postgres import PostgresSaver

from longtable.store.heads import Key, key_of
from longtable.store.history_cache import (
    CachedHistory,
    Histories,
    HistoryCache,
    copies,
    extended,
    may_share,
)

_SINCE = """WITH RECURSIVE ancestors(checkpoint_id, parent, counters, place) AS (
    SELECT checkpoint_id, parent_checkpoint_id, NULL::jsonb, 0 FROM checkpoints
    WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s
    UNION ALL
    SELECT c.checkpoint_id, c.parent_checkpoint_id, c.metadata->'counters_since_delta_snapshot', place + 1
    FROM ancestors a JOIN checkpoints c ON c.checkpoint_id = a.parent
    WHERE c.thread_id = %s AND c.checkpoint_ns = %s AND a.checkpoint_id <> %s AND place < 100
) SELECT a.checkpoint_id, a.counters, a.place, w.task_path, w.task_id, w.idx, w.channel, w.type, w.blob
FROM ancestors a LEFT JOIN checkpoint_writes w ON w.thread_id = %s AND w.checkpoint_ns = %s
    AND w.checkpoint_id = a.checkpoint_id AND w.channel = ANY(%s)
WHERE a.place > 0"""
"""SQL for the checkpoints between two of a thread, newest first, and their writes to some channels.
Each row has JSON that counts, for each delta channel, the steps since it was last stored whole.
"""


class LoadingPostgresSaver(PostgresSaver):
    """LangGraph's saver for PostgreSQL, except that turns read only what was written since the
    checkpoint from which the turn before began.
    """

    cache: HistoryCache | None = None
    """The histories that turns loaded, None if each load reads all."""

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """See `BaseCheckpointSaver`."""
        cache = self.cache if may_share(config) else None
        checkpoint_id = get_checkpoint_id(config)
        if cache is None or not checkpoint_id or not channels:
            return super().get_delta_channel_history(config=config, channels=channels)
        key = key_of(config)
        known = cache.get(key)
        histories = self._since(known, key, checkpoint_id, channels) if known is not None else None
        if histories is None:
            histories = dict(super().get_delta_channel_history(config=config, channels=channels))
        cache.put(key, checkpoint_id, histories)
        return copies(histories)

    def _since(
        self, known: CachedHistory, key: Key, checkpoint_id: str, channels: Sequence[str]
    ) -> Histories | None:
        """Return the histories of a checkpoint that comes after a known one. Return None if it does
        not, or if a channel was stored whole in between.
        """
        if not known.histories.keys() >= set(channels):
            return None
        histories = {channel: extended(known.histories[channel]) for channel in channels}
        if known.checkpoint_id == checkpoint_id:
            return histories
        with self._cursor() as cursor:
            cursor.execute(
                _SINCE, (*key, checkpoint_id, *key, known.checkpoint_id, *key, [*channels])
            )
            rows = cursor.fetchall()
        if not any(row["checkpoint_id"] == known.checkpoint_id for row in rows):
            return None
        between = [row for row in rows if row["checkpoint_id"] != known.checkpoint_id]
        if not all((row["counters"] or {}).keys() >= set(channels) for row in between):
            return None
        for row in sorted((row for row in rows if row["channel"] is not None), key=_oldest_first):
            value = self.serde.loads_typed((row["type"], row["blob"]))
            channel = row["channel"]
            histories[channel]["writes"].append((row["task_id"], channel, value))
        return histories


def _oldest_first(row: Mapping[str, Any]) -> Any:
    return -row["place"], writes_sort_key(row["task_path"], row["task_id"], row["idx"])
