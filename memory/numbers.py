"""Check that each figure of an answer is in a result of the turn, or one step from such."""

import re
from collections.abc import Sequence

from longtable.memory.number_reading import Figure, figures
from longtable.memory.number_sources import Source, Told, gather, mention
from longtable.memory.number_support import Support, Wording, vouches
from longtable.memory.number_words import ENGLISH, NUMERAL

__all__ = ["Figure", "Source", "unsupported"]

_PER = re.compile(
    r"\b(?:per|each|averag\w*|mean|ratio|a (?:day|week|month|year|customer|track|user)|every)\b"
    r"|平均|人均|日均|月均|年均|均|每|单价|客单价|比例",
    re.IGNORECASE,
)
_UP = re.compile(
    r"\b(?:gr[eo]w\w*|rose|ris\w+|increas\w+|gain\w*|up|more|higher|larger|faster|longer|above|exceed\w*|climb\w*|jump\w*|plus|better"
    r"|recover\w*|expensive|gap|differ\w*|ahead)\b|[增涨升多高超快长]|环比|同比|变化|相差|差距|领先",
    re.IGNORECASE,
)
_DOWN = re.compile(
    r"\b(?:fell|fall\w*|drop\w*|decreas\w+|declin\w+|los[st]\w*|down|less|fewer|lower|smaller|slower|shorter|below|under|behind|cheaper"
    r"|reduc\w+|shr[aiu]nk\w*|minus|worse|gap|differ\w*)\b|[降减跌少低慢短亏]|环比|同比|变化|相差|差距|落后",
    re.IGNORECASE,
)
_CHANGE = re.compile(r"\bby\s?(?:about\s|around\s|roughly\s|some\s|only\s|a\s)?$|[增降减涨跌][长幅加少]?(?:了|率?(?:约?为|达)?)?\s?约?\s?$")
_LABEL_CELLS = 5_000
_NEAR = 200
_ENDS = ("\n", ". ", "。", "！", "？")


def unsupported(answer: str, sources: Sequence[Source], question: str = "") -> list[Figure]:
    """Return the figures of `answer` that neither the results nor the question, the SQL or one step from them give.

    A step is a sum, difference, ratio, share, growth, average or count. Years, dates, ordinals, versions, citations, code and
    names from the data claim nothing.
    """
    labels = _labels(sources, answer)
    claimed = figures(answer, labels)
    if not claimed:
        return []
    given = [value for figure in figures(question, labels) for value in _values(figure)]
    given += [float(digits) for source in sources for digits in re.findall(r"(?<![\w.])\d{1,15}(?:\.\d{1,9})?(?![\w.])", source.sql)]
    support = gather(sources, told=f"{question}\n{answer}", given=list(dict.fromkeys(given))[:100])
    held = [_supported(figure, support, answer) for figure in claimed]
    left = [figure for figure, known in zip(claimed, held, strict=True) if not known]
    if not left:
        return []
    mention(support, [figure for figure, known in zip(claimed, held, strict=True) if known])
    return [figure for figure in left if not _supported(figure, support, answer)]


def _supported(figure: Figure, support: Support, answer: str) -> bool:
    sentence = _sentence(answer, figure)
    wording = Wording(
        per=bool(_PER.search(sentence)),
        up=bool(_UP.search(sentence)),
        down=bool(_DOWN.search(sentence)),
        change=bool(_CHANGE.search(answer[max(0, figure.start - 16) : figure.start])),
    )
    if any(vouches(support, reading, figure=figure, wording=wording) for reading in figure.readings):
        return True
    return bool(figure.parts) and all(_supported(part, support, answer) for part in figure.parts)


def _sentence(text: str, figure: Figure) -> str:
    """Return the sentence or line that a figure stands in, as far as it is near."""
    before, after = text[max(0, figure.start - _NEAR) : figure.start], text[figure.end : figure.end + _NEAR]
    start = max(before.rfind(mark) for mark in _ENDS)
    ends = [at for mark in _ENDS if (at := after.find(mark)) >= 0]
    return before[start + 1 :] + figure.text + after[: min(ends, default=len(after))]


def _values(figure: Figure) -> list[float]:
    percent = any(reading.kind == "percent" for reading in figure.readings)
    return [figure.value, *([figure.value / 100] if percent else []), *(part.value for part in figure.parts)]


def _labels(sources: Sequence[Source], answer: str) -> list[str]:
    """Return the names and text cells with digits in them that the answer repeats, longest first."""
    told = Told(answer)
    found: dict[str, None] = {}
    for source in sources:
        texts: list[object] = [*source.columns, *(cell for row in source.rows[:_LABEL_CELLS] for cell in row)]
        for text in texts:
            if isinstance(text, str) and len(text) <= 200 and told.names(text) and _is_label(text):
                found[text] = None
    return sorted(found, key=len, reverse=True)[:500]


def _is_label(text: str) -> bool:
    """Say whether a name would be read as a figure: it holds digits or number words ("Top Forty", 四川)."""
    return bool(re.search(rf"\d|[{NUMERAL}]", text) or ENGLISH.search(text)) and not re.fullmatch(r"\s*[-+]?[\d.,]+\s*%?\s*", text)
