"""Topics: what a wandering conversation was about, as versioned Markdown artifacts; find a section, render for the view."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from longtable.memory.artifacts import Count, Section, sections, sources_of
from longtable.memory.lexical import fold, terms

ENOUGH_WORDS = 0.5
"""Share of a keyword's words that a section must have where none has the keyword itself."""

_MORE = {"en": "{n} more topics: {titles}", "zh": "另有 {n} 个主题：{titles}"}


@dataclass(frozen=True)
class Topic:
    """One version of a topic.

    `artifact` cites messages by their place in the transcript; `message_ids` are those of all messages filed into the
    topic, over all versions; `turn` is the newest turn filed into it, which is what "recently used" goes by.
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
        """Return the topic as plain JSON, for state."""
        return {**asdict(self), "message_ids": list(self.message_ids)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Topic":
        """Return the topic that `as_json` wrote; keys of later versions of this package are passed over."""
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
    """A section that answers a keyword, with its topic; the section's sources are what recall loads."""

    topic: Topic
    section: Section


def current(topics: Sequence[Topic]) -> list[Topic]:
    """Return the latest version of each topic of an append-only list, in the order the topics came up."""
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
    return sorted(topics, key=lambda topic: (topic.turn, max(sources_of(topic.artifact), default=0), _number(topic.id)), reverse=True)


def next_number(topics: Iterable[Topic]) -> int:
    """Return the number of the next new topic."""
    return max((_number(topic.id) for topic in topics), default=0) + 1


def _number(id: str) -> int:
    digits = id.removeprefix("t")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0


# -- find -----------------------------------------------------------------------------------------------------------


def find_section(topics: Sequence[Topic], keyword: str) -> SectionHit | None:
    """Find the section for a keyword: by its title, by its topic's title, by its text; at each step the exact match first.

    Where no text holds the keyword, the one with most of its words does, if it has half of them. Case, full width and
    white space do not matter. Of equals the most recently used topic's newest section is returned.
    """
    wanted = fold(keyword)
    if not wanted:
        return None
    hits = [SectionHit(topic, section) for topic in recently_used(current(topics)) for section in _newest_first(topic)]
    tests: tuple[Callable[[SectionHit], bool], ...] = (
        lambda found: fold(found.section.title) == wanted,
        lambda found: fold(found.topic.title) == wanted and wanted in fold(found.section.body),
        lambda found: fold(found.topic.title) == wanted,
        lambda found: wanted in fold(found.section.title),
        lambda found: wanted in fold(found.topic.title) and wanted in fold(found.section.body),
        lambda found: wanted in fold(found.topic.title),
        lambda found: wanted in fold(found.section.body),
        lambda found: wanted in fold(found.topic.summary),
    )
    for test in tests:
        for found in hits:
            if test(found):
                return found
    return _by_words(hits, set(terms(keyword)))


def _by_words(hits: Sequence[SectionHit], wanted: set[str]) -> SectionHit | None:
    if not wanted:
        return None
    best, most = None, ENOUGH_WORDS
    for found in hits:
        titles = set(terms(f"{found.section.title} {found.topic.title}"))
        body = set(terms(found.section.body)) | titles
        # A word of a title tells more than one of the text, but never outweighs one word more.
        score = (len(wanted & body) + len(wanted & titles) / (len(wanted) + 1)) / len(wanted)
        if score > most or (best is None and score >= most):
            best, most = found, score
    return best


def _newest_first(topic: Topic) -> list[Section]:
    return sorted(sections(topic.artifact), key=lambda section: max(section.sources, default=0), reverse=True)


# -- render ---------------------------------------------------------------------------------------------------------


def render_topics(topics: Sequence[Topic], budget: int, count: Count, language: str) -> tuple[str, int]:
    """Return the text of all topics within `budget` tokens by `count`, and how many are not shown whole.

    The least recently used give way first: to title and summary, then to their titles in one last line. The order of
    those shown is that in which they came up, so that a new version leaves the text before it as it was.
    """
    shown = current(topics)
    used = recently_used(shown)
    texts = {topic.id: _whole(topic) for topic in shown}
    costs = {id: count(text) + 2 for id, text in texts.items()}
    # A running sum, at or above what the joined text counts: that one is counted only where the sum says it may fit.
    total = sum(costs.values())
    shrunk = 0
    for topic in reversed(used):
        if total <= budget and count(text := _text(texts)) <= budget:
            return text, shrunk
        texts[topic.id] = _short(topic)
        total += count(texts[topic.id]) + 2 - costs[topic.id]
        costs[topic.id] = count(texts[topic.id]) + 2
        shrunk += 1
    gone: list[Topic] = []
    while True:
        more = _more(gone, budget, count, language) if total <= budget else ""
        if total + count(more) <= budget and count(text := _text(texts, more)) <= budget:
            return text, shrunk
        if not used:
            return "", shrunk
        gone.insert(0, used.pop())
        del texts[gone[0].id]
        total -= costs[gone[0].id]


def _whole(topic: Topic) -> str:
    return f"{_short(topic)}\n\n{topic.artifact}".rstrip()


def _short(topic: Topic) -> str:
    return f"# {topic.title} ({topic.id})\n{topic.summary}".rstrip()


def _more(gone: Sequence[Topic], budget: int, count: Count, language: str) -> str:
    """Return the line for topics not shown, the most recently used first, with as many of their titles as fit a tenth of the budget."""
    if not gone:
        return ""
    titles = [topic.title for topic in gone]
    while titles and count("; ".join(titles)) > max(budget // 10, 12):
        titles = titles[: len(titles) * 2 // 3]
    named = "; ".join([*titles, *(["…"] if len(titles) < len(gone) else [])])
    return _MORE[language].format(n=len(gone), titles=named)


def _text(texts: Mapping[str, str], more: str = "") -> str:
    return "\n\n".join([*texts.values(), *([more] if more else [])])
