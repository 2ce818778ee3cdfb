"""Topics: the subjects of a conversation that changes its subject, as versioned Markdown artifacts.
This module finds sections and renders topics for the view.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import getitem
from typing import Any

from longtable.base.words import fold, tokens_of
from longtable.memory.counting.tokens import levels_that_fit
from longtable.memory.records import stored_topics
from longtable.memory.thread import Thread
from longtable.memory.topics.artifacts import Count, Section, join, sections, sources_of
from longtable.memory.topics.subjects import terms

SUMMARY_CHARS = 240
ENOUGH_WORDS = 0.5
"""If no section has a keyword as a whole, a section must have this share of the keyword's words."""

_MORE = {"en": "{n} more topics: {titles}", "zh": "另有 {n} 个主题：{titles}"}


@dataclass(frozen=True)
class Topic:
    """One version of a topic.

    `artifact` cites messages by their place in the transcript. `message_ids` are the ids of all
    messages filed into the topic, by this version and earlier ones. `turn` is the newest turn of
    these messages; "recently used" topics are those with the newest turns.
    """

    id: str
    version: int
    title: str
    summary: str
    artifact: str
    message_ids: tuple[str, ...]
    turn: int
    time: str

    def as_json(self) -> dict[str, Any]:
        """Return the topic as plain JSON, the form in which the state keeps it."""
        return {**asdict(self), "message_ids": list(self.message_ids)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Topic":
        """Return the topic that `as_json` wrote. Keys of later versions of this package are
        ignored.
        """
        return cls(
            id=str(value["id"]),
            version=int(value["version"]),
            title=str(value["title"]),
            summary=str(value["summary"]),
            artifact=str(value["artifact"]),
            message_ids=tuple(map(str, value["message_ids"])),
            turn=int(value["turn"]),
            time=str(value["time"]),
        )


@dataclass(frozen=True)
class SectionHit:
    """A section that fits a keyword, with its topic. Recall loads the section's sources."""

    topic: Topic
    section: Section


def topics_of(thread: Thread) -> list[Topic]:
    """Return every version of a thread's topics, oldest first."""
    return [topic for topic, _ in _written_topics(thread)]


def visible_topics(thread: Thread) -> list[Topic]:
    """Return the newest version of each topic, without the words of messages that were excluded
    after the version was written.
    """
    written = _written_topics(thread)
    before = {(topic.id, topic.version): excluded for topic, excluded in written}
    newest = current([topic for topic, _ in written])
    return [
        _without(topic, _excluded_since(thread, before[topic.id, topic.version]))
        for topic in newest
    ]


def visible_versions(thread: Thread) -> list[Topic]:
    """Return every version of a thread's topics, oldest first, without the words of messages that
    were excluded after the version was written. If a version has no text left, its title becomes
    the topic's id.
    """
    topics: list[Topic] = []
    for whole, excluded in _written_topics(thread):
        topic = _without(whole, _excluded_since(thread, excluded))
        is_empty = not topic.artifact and not thread.excluded.keys().isdisjoint(topic.message_ids)
        topics.append(replace(topic, title=topic.id) if is_empty else topic)
    return topics


def _written_topics(thread: Thread) -> list[tuple[Topic, Collection[int]]]:
    """Return every version of a thread's topics, oldest first, each with the numbers of the
    messages that were already excluded when the version was written.
    """
    topics: list[tuple[Topic, Collection[int]]] = []
    known: dict[str, tuple[str, ...]] = {}
    for record in thread.chain:
        if record.get("rebuilt"):  # by an earlier version of this package, which made topics anew
            topics = []
            known = {}
        for change in stored_topics(record):
            topic = Topic.from_json(change)
            known[topic.id] = tuple(dict.fromkeys((*known.get(topic.id, ()), *topic.message_ids)))
            whole = replace(topic, message_ids=known[topic.id])
            topics.append((whole, record.get("excluded", ())))
    return topics


def _excluded_since(thread: Thread, before: Collection[int]) -> dict[str, int]:
    return {id_: number for id_, number in thread.excluded.items() if number not in before}


def _without(topic: Topic, excluded: Mapping[str, int]) -> Topic:
    """Return a topic without the sections that cite these messages.

    The summary cites nothing, so the remaining sections' titles replace it. The title is kept if
    the remaining sections contain its words. It is also kept if no section is left: an empty topic
    is never shown, but later messages on the subject can be filed under this title.
    """
    if not excluded:
        return topic
    numbers = set(excluded.values())
    if numbers.isdisjoint(sources_of(topic.artifact)) and excluded.keys().isdisjoint(
        topic.message_ids
    ):
        return topic
    parts = [part for part in sections(topic.artifact) if numbers.isdisjoint(part.sources)]
    titles = [part.title for part in parts]
    keeps_title = not parts or set(tokens_of(topic.title)) <= set(tokens_of(join(parts)))
    title = topic.title if keeps_title else titles[0]
    return replace(
        topic, title=title, summary="; ".join(titles)[:SUMMARY_CHARS], artifact=join(parts)
    )


def unfiled(thread: Thread) -> tuple[int, frozenset[int]]:
    """Return how many messages of the transcript have been filed into topics, and the numbers of
    the messages that must be filed again.

    A message must be filed again if it was excluded and is included again. The same is true if it
    shares a section with a message that was excluded since, because that section is removed.
    """
    record = next(
        (record for record in reversed(thread.chain) if "topics" in (record.get("kept") or {})),
        None,
    )
    count = record["count"] if record else 0
    again = set(record.get("excluded", ())) if record else set()
    for whole, left in zip(current(topics_of(thread)), visible_topics(thread), strict=True):
        again |= sources_of(whole.artifact) - sources_of(left.artifact)
    return count, frozenset(again) - set(thread.excluded.values())


def current(topics: Sequence[Topic]) -> list[Topic]:
    """Return the latest version of each topic, in the order in which the topics came up. `topics`:
    versions of topics in the order of writing.
    """
    latest: dict[str, Topic] = {}
    for topic in topics:
        if topic.id not in latest or topic.version >= latest[topic.id].version:
            latest[topic.id] = topic
    return list(latest.values())


def versions(topics: Sequence[Topic], id: str) -> list[Topic]:
    """Return all versions of one topic, oldest first."""
    return sorted((topic for topic in topics if topic.id == id), key=lambda topic: topic.version)


def recently_used(topics: Iterable[Topic]) -> list[Topic]:
    """Return topics, the most recently used first."""
    return sorted(
        topics,
        key=lambda topic: (
            topic.turn,
            max(sources_of(topic.artifact), default=0),
            _number(topic.id),
        ),
        reverse=True,
    )


def next_number(topics: Iterable[Topic]) -> int:
    """Return the number that a new topic gets: one more than the highest so far."""
    return max((_number(topic.id) for topic in topics), default=0) + 1


def _number(id: str) -> int:
    digits = id.removeprefix("t")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0


# -- find ------------------------------------------------------------------------------------------


def find_section(topics: Sequence[Topic], keyword: str) -> SectionHit | None:
    """Return the section that fits a keyword best, None if no section fits.

    A title of a section or topic that equals the keyword comes first, then a title that contains
    it, then a text that contains it. If nothing contains the keyword, the section with most of the
    keyword's words is returned, if it has at least half of them. Case, full-width characters and
    white space do not matter. If several sections fit equally well, the newest section of the most
    recently used topic is returned.
    """
    folded = fold(keyword)
    if not folded:
        return None
    hits: list[SectionHit] = []
    for topic in recently_used(current(topics)):
        hits += [SectionHit(topic, section) for section in _newest_first(topic)]
    tests: tuple[Callable[[SectionHit], bool], ...] = (
        lambda hit: fold(hit.section.title) == folded,
        lambda hit: fold(hit.topic.title) == folded and folded in fold(hit.section.body),
        lambda hit: fold(hit.topic.title) == folded,
        lambda hit: folded in fold(hit.section.title),
        lambda hit: folded in fold(hit.topic.title) and folded in fold(hit.section.body),
        lambda hit: folded in fold(hit.topic.title),
        lambda hit: folded in fold(hit.section.body),
        lambda hit: folded in fold(hit.topic.summary),
    )
    for test in tests:
        for hit in hits:
            if test(hit):
                return hit
    return _by_words(hits, set(terms(keyword)))


def _by_words(hits: Sequence[SectionHit], words: set[str]) -> SectionHit | None:
    def score(hit: SectionHit) -> float:
        titles = set(terms(f"{hit.section.title} {hit.topic.title}"))
        # A word of a title tells more than one of the text, but never outweighs one word more.
        return (
            len(words & (set(terms(hit.section.body)) | titles))
            + len(words & titles) / (len(words) + 1)
        ) / len(words)

    best = max(hits, key=score, default=None) if words else None
    return best if best and score(best) >= ENOUGH_WORDS else None


def _newest_first(topic: Topic) -> list[Section]:
    return sorted(
        sections(topic.artifact), key=lambda section: max(section.sources, default=0), reverse=True
    )


# -- render ----------------------------------------------------------------------------------------


def render_topics(topics: Sequence[Topic], budget: int, count: Count, language: str) -> str:
    """Return the text of all topics within `budget` tokens by `count`.

    The least recently used topics are shortened first: to title and summary, then to a title in one
    common last line. Topics are shown in the order in which they came up, so that a new version of
    a topic leaves the text before this topic unchanged.
    """
    listed = [topic for topic in current(topics) if topic.artifact]
    used = recently_used(listed)[::-1]
    # Whole, short, in the last line.
    forms = [(f"{_short(topic)}\n\n{topic.artifact}", _short(topic), "") for topic in used]

    def costs_of(texts: Sequence[str]) -> list[int]:
        return [count(text) + 2 if text else 0 for text in texts]

    costs = list(map(costs_of, forms))

    def last_line(levels: Sequence[int]) -> str:
        return _more(
            [topic for topic, level in zip(used, levels, strict=True) if level == 2][::-1],
            budget,
            count,
            language,
        )

    def fits(levels: Sequence[int]) -> bool:
        return sum(map(getitem, costs, levels)) + count(last_line(levels)) <= budget

    if (levels := levels_that_fit(len(used), 2, fits)) is None:
        return ""
    texts = {topic.id: each[level] for topic, each, level in zip(used, forms, levels, strict=True)}
    return "\n\n".join(filter(None, [*(texts[topic.id] for topic in listed), last_line(levels)]))


def _short(topic: Topic) -> str:
    return f"# {topic.title} ({topic.id})\n{topic.summary}".rstrip()


def _more(topics: Sequence[Topic], budget: int, count: Count, language: str) -> str:
    """Return the last line, for topics that are not shown: how many they are, and as many of their
    titles as fit a tenth of the budget, the most recently used first.
    """
    if not topics:
        return ""
    titles = [topic.title for topic in topics]
    while titles and count("; ".join(titles)) > max(budget // 10, 12):
        titles = titles[: len(titles) * 2 // 3]
    names = "; ".join([*titles, *(["…"] if len(titles) < len(topics) else [])])
    return _MORE[language].format(n=len(topics), titles=names)
