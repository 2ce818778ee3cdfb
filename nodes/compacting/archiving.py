"""Write messages to archive files before they are compacted."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from langgraph.store.base import BaseStore

from longtable.base.errors import LongtableError, Reason
from longtable.memory.compaction.compaction import Job, Outcome
from longtable.memory.search import Original


class Files(Protocol):
    """The archive files, as `longtable.store.records.archive_files.ArchiveFiles` offers them."""

    @property
    def encrypts(self) -> bool:
        """Whether files are encrypted."""
        ...

    def keep(
        self, thread_id: str, originals: Sequence[Original], *, compaction: str, time: datetime
    ) -> str:
        """Write what a compaction covers, once, and return the file's key."""
        ...


def archived(
    files: Files | None, outcome: Outcome, job: Job, thread_id: str | None, store: BaseStore | None
) -> Outcome:
    """Return the outcome with the key of the file that holds the compacted messages, or with the
    reason why there is no file.
    """
    start = job.plan.start
    end = job.plan.end
    if files is None or outcome.record is None or not thread_id or start == end:
        return outcome
    if getattr(store, "encrypts", False) and not files.encrypts:
        return _without_file(
            outcome,
            "the store is encrypted and the archive is not: give it the key, ArchiveFiles(folder,"
            " key=...)",
        )
    thread = job.thread
    originals = [Original(thread.archived + i + 1, thread.messages[i]) for i in range(start, end)]
    try:
        key = files.keep(
            thread_id,
            originals,
            compaction=outcome.record["id"],
            time=datetime.fromisoformat(job.time),
        )
    except Exception as error:  # the transcript keeps all, with and without the file
        return _without_file(
            outcome, str(error) if isinstance(error, LongtableError) else type(error).__name__
        )
    return replace(outcome, archive=key)


def _without_file(outcome: Outcome, why: str) -> Outcome:
    return replace(
        outcome,
        reasons=[
            *outcome.reasons,
            Reason(code="archive_failed", message=f"no archive file was written: {why}"),
        ],
    )
