"""Check that each figure of an answer is in a result of the turn, or one step from such."""

import re
from collections.abc import Iterable, Sequence

from longtable.memory.number_reading import Figure, figures
from longtable.memory.number_support import Source, Support, gather, mention, vouches

__all__ = ["Figure", "Source", "unsupported"]

_PER = re.compile(
    r"\b(?:per|each|averag\w*|mean|ratio|a (?:day|week|month|year|customer|track|user)|every)\b|平均|人均|日均|月均|年均|均|每|单价|客单价|比例",
    re.IGNORECASE,
)
_LABEL_CELLS = 5_000


def unsupported(answer: str, sources: Sequence[Source], question: str = "") -> list[Figure]:
    """Return the figures of `answer` that neither the results nor the question, the SQL or one step from them give.

    A step is a sum, difference, ratio, share, growth, average or count. Years, dates, ordinals, versions, citations, code and
    names from the data claim nothing.
    """
    labels = _labels(sources, answer)
    claimed = figures(answer, labels)
    if not claimed:
        return []
    given = [reading for figure in figures(question, labels) for reading in _values(figure)]
    given += [float(digits) for source in sources for digits in re.findall(r"(?<![\w.])\d{1,15}(?:\.\d{1,9})?(?![\w.])", source.sql)]
    support = gather(sources, told=f"{question}\n{answer}", given=list(dict.fromkeys(given))[:100])
    left = [figure for figure in claimed if not _supported(figure, support, answer)]
    if not left:
        return []
    mention(support, [figure for figure in claimed if figure not in left])
    return [figure for figure in left if not _supported(figure, support, answer)]


def _supported(figure: Figure, support: Support, answer: str) -> bool:
    per = bool(_PER.search(_sentence(answer, figure)))
    if any(vouches(support, reading, figure=figure, per=per) for reading in figure.readings):
        return True
    return bool(figure.parts) and all(_supported(part, support, answer) for part in figure.parts)


def _sentence(text: str, figure: Figure) -> str:
    """Return the sentence or line that a figure stands in."""
    start = max((text.rfind(mark, 0, figure.start) for mark in ("\n", ". ", "。", "！", "？")), default=-1)
    ends = [at for mark in ("\n", ". ", "。", "！", "？") if (at := text.find(mark, figure.end)) >= 0]
    return text[start + 1 : min(ends, default=len(text))]


def _values(figure: Figure) -> Iterable[float]:
    for reading in figure.readings:
        middle = (reading.low + reading.high) / 2
        yield middle
        if reading.kind == "percent":
            yield middle / 100


def _labels(sources: Sequence[Source], answer: str) -> list[str]:
    """Return the names and text cells with digits in them that the answer repeats, longest first."""
    lowered = answer.casefold()
    found: dict[str, None] = {}
    for source in sources:
        texts: list[object] = [*source.columns, *(cell for row in source.rows[:_LABEL_CELLS] for cell in row)]
        for text in texts:
            if isinstance(text, str) and 2 <= len(text) <= 200 and _is_label(text) and text.casefold() in lowered:
                found[text] = None
    return sorted(found, key=len, reverse=True)[:500]


def _is_label(text: str) -> bool:
    return bool(re.search(r"\d", text)) and not re.fullmatch(r"\s*[-+]?[\d.,]+\s*%?\s*", text)
