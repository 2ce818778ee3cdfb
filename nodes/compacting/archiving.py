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
    """The methods of `longtable.store.records.archive_files.ArchiveFiles` that are used here."""

    @property
    def encrypts(self) -> bool:
        """Whether files are encrypted."""
        ...

    def keep(
        self, thread_id: str, originals: Sequence[Original], *, compaction: str, time: datetime
    ) -> str:
        """Write the messages that a compaction covers to a file, and return the file's key. If this
        was done before, return the key of that file.
        """
        ...


def archived(
    files: Files | None, outcome: Outcome, job: Job, thread_id: str | None, store: BaseStore | None
) -> Outcome:
    """Write the compacted messages to an archive file. Return the outcome with the file's key, or
    with the reason why no file was written.
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
