"""The strategy `topics`: folded rounds are filed into documents by subject, each section with its source messages."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longtable.memory.coverage import coverage
from longtable.memory.filing import Filed, Filing, file_steps
from longtable.memory.fold import Attempts, Draft, Job
from longtable.memory.thread import Thread
from longtable.memory.topics import Topic, current, render_topics

TOPICS = "topics"
ARTIFACT_SHARE = 0.5
"""Most one artifact may take, as a share of what all may."""


@dataclass(frozen=True)
class Topics:
    """Files with the summariser where there is one; without a model, or where it fails, by words and SQL."""

    name: str = TOPICS

    def attempts(self, job: Job) -> Attempts:
        """See `longtable.memory.fold.Strategy`."""
        before = [] if job.rebuilt else topics_of(job.thread)
        for window in [job.frame.window, None] if job.frame.window is not None else [None]:
            filed = yield from _file(job, before, window)
            text, _ = render_topics(current([*before, *filed.topics]), job.budget, job.frame.counter.text, job.language)
            seen, unseen = coverage(job.reads, job.frame.policy.clip_tool_chars, job.frame.counter.text)
            yield Draft(
                text=text,
                method="model" if filed.method == "model" else "fallback",
                coverage=seen,
                note="; ".join(filter(None, [unseen, *filed.reasons])),
                kept={"topics": _changes(filed.topics, before)},
            )


def topics_of(thread: Thread) -> list[Topic]:
    """Return every version of a thread's topics, oldest first."""
    found: list[Topic] = []
    known: dict[str, tuple[str, ...]] = {}
    for record in thread.chain:
        if record.get("rebuilt"):
            found, known = [], {}  # made from the originals: what was before is the same messages, filed once more
        for change in (record.get("kept") or {}).get("topics", ()):
            topic = Topic.from_json(change)
            known[topic.id] = tuple(dict.fromkeys((*known.get(topic.id, ()), *topic.message_ids)))
            found.append(replace(topic, message_ids=known[topic.id]))
    return found


def _changes(filed: Sequence[Topic], before: Sequence[Topic]) -> list[dict[str, Any]]:
    """Return new versions as a record keeps them: with the ids of newly filed messages only, for records to stay small."""
    changes = []
    filed_before = {topic.id: set(topic.message_ids) for topic in before}
    for topic in filed:
        known = filed_before.get(topic.id, set())
        changes.append(replace(topic, message_ids=tuple(id_ for id_ in topic.message_ids if id_ not in known)).as_json())
    return changes


def _file(job: Job, before: Sequence[Topic], window: int | None) -> Generator[Any, Any, Filed]:
    frame = job.frame
    return (
        yield from file_steps(
            Filing(
                messages=job.reads,
                topics=before,
                language=job.language,
                window=window,
                count=frame.counter.text,
                clip_tool_chars=frame.policy.clip_tool_chars,
                budget=int(frame.summary_tokens * ARTIFACT_SHARE),
                turn=job.turn,
                time=job.time,
                instructions=job.instructions,
            )
        )
    )
