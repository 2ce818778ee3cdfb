"""What `Conversation` offers as a whole thread: another title, a fork, an export, its end."""

import asyncio
import uuid
from collections.abc import Mapping
from copy import copy
from datetime import UTC, datetime
from typing import Self

from longtable.base.errors import ConfigError
from longtable.graph.archive_files import ArchiveFile, ArchiveFiles
from longtable.graph.auditing import audit_steps
from longtable.graph.drawing import drawn_from
from longtable.graph.export import Form, written
from longtable.graph.operations import delete_steps, rename_steps
from longtable.graph.spending import spent_in
from longtable.graph.steps import arun, run
from longtable.graph.thread_memory import ThreadMemory
from longtable.graph.transcripts import fork_steps, load_steps, seen_steps
from longtable.memory.spent import Price, Spent
from longtable.nodes.records.audit import AuditEntry


class ThreadOperations(ThreadMemory):
    """One thread as a whole. Each method has an `a...` twin for async checkpointers and stores."""

    def rename(self, title: str) -> str:
        """Give the thread another title and return it, on one line and clipped. Raises `ThreadNotFoundError`."""
        return run(rename_steps(self.thread_id, title, self.context.owner), self.graph, alone=self.thread_id, wait=self._waits)

    async def arename(self, title: str) -> str:
        """Give the thread another title: see `rename`."""
        return await arun(rename_steps(self.thread_id, title, self.context.owner), self.graph, alone=self.thread_id, wait=self._waits)

    def fork(self, turn: int | None = None, *, thread_id: str | None = None) -> Self:
        """Return a new thread that begins with this one's transcript up to and with `turn`, and the memory it had then.

        Without `turn` up to the last one that is finished; of a damaged thread, that can be read. Results and archive files
        go along where the conversation was given them.

        Raises `UnknownTurnError`, `TurnPendingError` for a turn that is not finished, `ThreadExistsError`.
        """
        new_id = thread_id or uuid.uuid4().hex[:12]
        compactions = run(fork_steps(self.thread_id, new_id, turn, self.context.owner, _now()), self.graph, alone=new_id)
        self._copy_files(new_id, compactions)
        return self._on(new_id)

    async def afork(self, turn: int | None = None, *, thread_id: str | None = None) -> Self:
        """Return a new thread that begins as this one did: see `fork`."""
        new_id = thread_id or uuid.uuid4().hex[:12]
        compactions = await arun(fork_steps(self.thread_id, new_id, turn, self.context.owner, _now()), self.graph, alone=new_id)
        await asyncio.to_thread(self._copy_files, new_id, compactions)
        return self._on(new_id)

    def export(self, form: Form = "jsonl") -> str:
        """Return the thread whole. Raises `ThreadNotFoundError`.

        "jsonl": all that is stored, for `import_thread`; "markdown" and "html": the transcript, for people, with its charts
        drawn where the conversation was given its results.
        """
        whole, _ = run(load_steps(self.thread_id, self.context.owner), self.graph)
        return written(whole, form, language=self.context.language, draw=drawn_from(self.results, self.thread_id))

    async def aexport(self, form: Form = "jsonl") -> str:
        """Return the thread whole: see `export`."""
        whole, _ = await arun(load_steps(self.thread_id, self.context.owner), self.graph)
        draw = drawn_from(self.results, self.thread_id)
        return await asyncio.to_thread(written, whole, form, language=self.context.language, draw=draw)

    def usage(self, prices: Mapping[str, Price] | None = None) -> list[Spent]:
        """Return the tokens the thread's model calls took, by day and model: as reported, or estimated and marked.

        With `prices` also what they cost. `pandas.DataFrame` takes the list.
        """
        whole, _ = run(load_steps(self.thread_id, self.context.owner), self.graph)
        return spent_in(whole, prices)

    async def ausage(self, prices: Mapping[str, Price] | None = None) -> list[Spent]:
        """Return the tokens the thread's model calls took: see `usage`."""
        whole, _ = await arun(load_steps(self.thread_id, self.context.owner), self.graph)
        return spent_in(whole, prices)

    def audit(self) -> list[AuditEntry]:
        """Return every query the model sent, the oldest first, also those refused, failed or cancelled; `pandas.DataFrame` takes it.

        Raises `ThreadNotFoundError`, `ConfigError` for a graph without a store.
        """
        return run(audit_steps(self.thread_id, self.context.owner), self.graph)

    async def aaudit(self) -> list[AuditEntry]:
        """Return every query the model sent: see `audit`."""
        return await arun(audit_steps(self.thread_id, self.context.owner), self.graph)

    def archive_files(self) -> list[ArchiveFile]:
        """Return the files that were written before the thread's compactions, the oldest first.

        Raises `ThreadNotFoundError`, `ConfigError` where the conversation was not given their folder.
        """
        run(seen_steps(self.thread_id, self.context.owner), self.graph)
        return self._archive().files(self.thread_id)

    async def aarchive_files(self) -> list[ArchiveFile]:
        """Return the files that were written before the thread's compactions: see `archive_files`."""
        await arun(seen_steps(self.thread_id, self.context.owner), self.graph)
        return await asyncio.to_thread(self._archive().files, self.thread_id)

    def archive_file(self, key: str) -> str:
        """Return one of these files as JSON text. Raises `UnknownArchiveError`."""
        run(seen_steps(self.thread_id, self.context.owner), self.graph)
        return self._archive().read(self.thread_id, key)

    async def aarchive_file(self, key: str) -> str:
        """Return one of these files: see `archive_file`."""
        await arun(seen_steps(self.thread_id, self.context.owner), self.graph)
        return await asyncio.to_thread(self._archive().read, self.thread_id, key)

    def delete(self) -> None:
        """Delete the thread with all that is stored of it. Raises `ThreadNotFoundError`."""
        steps = delete_steps(self.thread_id, self.context.owner, results=self.results, archive=self.archive)
        run(steps, self.graph, alone=self.thread_id, wait=self._waits)

    async def adelete(self) -> None:
        """Delete the thread with all that is stored of it: see `delete`."""
        steps = delete_steps(self.thread_id, self.context.owner, results=self.results, archive=self.archive)
        await arun(steps, self.graph, alone=self.thread_id, wait=self._waits)

    def _copy_files(self, new_id: str, compactions: set[str]) -> None:
        if self.results is not None:
            self.results.copy(self.thread_id, new_id)
        if self.archive is not None:
            self.archive.copy(self.thread_id, new_id, compactions)

    def _archive(self) -> ArchiveFiles:
        if self.archive is None:
            raise ConfigError("the archive's files lie in a folder: give it to the conversation as well, Conversation(..., archive=...)")
        return self.archive

    def _on(self, thread_id: str) -> Self:
        """Return the same settings on another thread."""
        other = copy(self)
        other.thread_id = thread_id
        other.config = {**self.config, "configurable": {"thread_id": thread_id}}
        return other


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
