"""Answer from what was said before: the visible turns, and the findings that compaction left in the memory."""

import re
from collections.abc import Sequence

from longtable.app.offline.lexicon import FILLERS, PREPOSITIONS
from longtable.app.offline.smalltalk import kind_of
from longtable.app.offline.talk import without_intro
from longtable.app.offline.text import lemma, likeness, stem, tokenize
from longtable.app.offline.view import View

_EMPTY_WORDS = frozenset([
    "answer", "answered", "ask", "asked", "asking", "question", "earlier", "before", "previously", "previous", "said", "say", "tell",
    "told", "remind", "remember", "recall", "what", "was", "when", "did", "you", "i", "about", "me", "the", "result", "number",
    "again", "exactly", "find", "found", "finding", "give", "gave", "report", "reported", "mention", "mentioned", "talked", "first",
    "last", "time", "ago", "conversation", "there", "were", "many", "much", "how",
])  # fmt: skip


def recall(question: str, view: View, language: str) -> str | None:
    """Return what was answered to the earlier question most like what `question` speaks of, None when nothing is like it."""
    pairs = [(finding.question, finding.answer) for finding in view.findings] + [
        (turn.question, turn.answer) for turn in view.turns[:-1] if turn.answer
    ]
    pairs = [(asked, answer) for asked, answer in pairs if kind_of(asked) in ("", "recall") and answer]
    best = best_match(question, [asked for asked, _ in pairs])
    if best is None:
        return None
    asked, answer = pairs[best]
    plain = without_intro(answer)
    if language == "zh":
        return f"之前问到“{asked}”时，回答是：{plain}"
    return f"When you asked “{asked}”, the answer was: {plain}"


def asked(view: View, place: str, language: str) -> str | None:
    """Return the user's first or last question before this one; None when it is not in the view any more."""
    said = [turn.question for turn in view.turns[:-1] if turn.question]
    if place == "first" and view.folded:
        said = [finding.question for finding in view.findings]
    if not said:
        return None
    text = said[0] if place == "first" else said[-1]
    if language == "zh":
        return f"你{'最先' if place == 'first' else '上一个'}问的是：“{text}”"
    return f"Your {'first' if place == 'first' else 'last'} question was: “{text}”"


def best_match(question: str, asked: Sequence[str]) -> int | None:
    """Return the place of the question most like `question` by its words of weight; the later one of equals."""
    wanted = content_words(question)
    if not wanted:
        return None
    best: tuple[float, int] | None = None
    for place, text in enumerate(asked):
        have = content_words(text)
        if not have:
            continue
        hit = sum(
            max((likeness(word, other) if word.isascii() else float(word == other) for other in have), default=0.0) for word in wanted
        )
        extra = sum(
            1 for other in have if all((likeness(word, other) if word.isascii() else float(word == other)) < 0.75 for word in wanted)
        )
        score = hit / len(wanted) - 0.04 * extra
        if hit / len(wanted) >= 0.55 and (best is None or score >= best[0] - 1e-9):
            best = (score, place)
    return best[1] if best else None


def content_words(text: str) -> list[str]:
    """Return the words of weight: no fillers, no words about asking; Chinese as pairs of characters."""
    spaced = re.sub(r"([\u3400-\u9fff]+)", r" \1 ", text)
    words = [token.word for token in tokenize(spaced) if token.kind in ("word", "quoted", "number", "code", "date")]
    ascii_words = [
        word
        for word in words
        if word.isascii()
        and word not in FILLERS
        and word not in PREPOSITIONS
        and lemma(word) not in _EMPTY_WORDS
        and stem(word) not in _EMPTY_WORDS
    ]
    asking = re.sub(
        r"之前|刚才|问过|的时候|我问|你说|还记得|记得|提醒我|答案|回答|结果|多少|是|的|了|吗|呢|我|你|问|有|那个|什么|一下", " ", text
    )
    pairs = [run[i : i + 2] for run in re.findall(r"[\u3400-\u9fff]+", asking) for i in range(max(1, len(run) - 1))]
    return list(dict.fromkeys([*ascii_words, *pairs]))
