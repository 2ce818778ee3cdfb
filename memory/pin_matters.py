"""Name what a standing rule is about, so that a later rule on the same matter supersedes an earlier one.

A matter is a base ("unit:length", "rounding", "language", "definition:delay", "about") and what narrows it: "unit:length|altitude"
and "unit:length" are two matters. Whatever is not understood narrows, so that in doubt two rules both stand.
"""

import re

from longtable.memory.pin_patterns import LANGUAGE, ROUNDING, UNIT
from longtable.memory.pin_rules import core_of, fold
from longtable.memory.pin_words import GENERIC, LANGUAGES, NOISE, NOISE_ZH, NUMBERS, UNITS

SEPARATOR = " & "
"""Stands between the matters of a text that is about several."""
EVERYTHING = "*"
"""The matter of a statement that takes back all rules."""
REPLACES = "filter|instead"
"""Prefix of the matter of a filter that says it takes the place of the one before ("now only LGA", "LGA instead")."""

_WORD = re.compile(r"[a-z_][a-z0-9_'.-]*[a-z0-9_]|[a-z]|\d[\d.,:-]*\d|\d|[\u3400-\u9fff]+")
_CJK_NOISE = re.compile(NOISE_ZH)
_LANGUAGE_NAME = re.compile(rf"\b(?:{LANGUAGES})\b|(?:{LANGUAGES})")
_UNITS = {dimension: re.compile(rf"(?<![a-z])(?:{words})(?![a-z])") for dimension, words in UNITS.items()}
_ALL_RULES = re.compile(
    r"\b(?:forget|disregard|ignore|drop|cancel) (?:everything|(?:all|every|any)(?: of)?(?: my| the| these| those"
    r"| our)? (?:\w+ )?(?:rules?|instructions?|restrictions?|filters?|preferences?))"
    r"|(?:忘[掉记了]|取消|作废|撤销).{0,6}(?:所有|全部|之前的?)(?:的)?(?:规则|限制|要求|约定)|(?:所有"
    r"|全部)(?:的)?(?:规则|限制|要求|约定).{0,4}(?:取消|作废)"
)
_COLUMN = re.compile(
    r"\b(?:where|whose|with) (?:the )?(\w+) (?:is|are|=|equals|equal to|in)\b|(\w+|[\u3400-\u9fff]{1,8}?)\s*(?:==?|等于)\s*\S"
)
_INSTEAD = re.compile(r"\binstead\b|\brather than\b|\bno longer\b|(?<!from )\bnow\b|改[为成看用]|换[成为看]|(?<!从)现在")
_STYLE_LENGTH = re.compile(
    r"\b(?:brief|briefly|short|shorter|concise|long|longer|detailed|detail|terse|verbose|sentences?|words|paragraphs?"
    r"|explanations?)\b|简短|简洁|简明|精简|详细|句话|言简意赅|字以内"
)
_ROW_LIMIT = re.compile(
    r"^(?:(?:always|never|please) )?(?:list|show|limit|return|display|give|print)\b.*\b(?:rows|lines|records)\b"
    r"|最多.*[行条]"
)
_AMOUNT = re.compile(r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twenty|fifty|hundred)\b|[一二两三四五六七八九十百]")
_AMOUNT_ZH = re.compile(r"[零一二两三四五六七八九十百]")
# "Treat X as Y" is left out: two such rules may both add to Y.
_DEFINED = tuple(
    re.compile(pattern)
    for pattern in (
        r"\bby (.{1,60}?),? (?:i|we) mean",
        r"\bwhen (?:i|we) (?:say|speak of|talk about|write|ask (?:for|about)) (.{1,60}?)(?:,| (?:i|we|it|use|take|always|that)\b)",
        r"^(?:.*\b(?:let's|we|i|please) )?(?:define|call) (.{1,60}?) (?:as|to be|\")",
        r"^(?:.*, )?(.{1,60}?) (?:means|refers? to|stands? for|counts? as|is short for|(?:is|are) (?:defined|counted"
        r"|treated|regarded|considered|understood|taken) as)\b",
        r"^(.{1,60}?) (?:is|are) (?:one|someone|any|anyone|an?|when|where|if|the|those|everyone|each|every)\b",
        r"(?:我们?说的|所谓的?)?(.{1,20}?)(?:是指|指的是|的意思是|的定义是|就是指|指代|定义为|意思是|指|是|表示)",
    )
)
_EDGES = re.compile(r"^(?:an?|the|our|any|every|all)\s+|[\"'“”「」『』‘’.,，。：:\s]+$|^[\"'“”「」『』‘’\s]+")


def matter_of(text: str, kind: str) -> str:
    """Return the key of what a statement is about; several joined by `SEPARATOR`."""
    folded = core_of(text) or fold(text)
    if kind == "definition" and (term := _term(folded)):
        return f"definition|{term}"
    if kind == "revocation" and _ALL_RULES.search(folded):
        return EVERYTHING
    if kind == "filter" and not _ROW_LIMIT.search(folded):
        return _filter(folded, instead=bool(_INSTEAD.search(fold(text))))
    bases = _bases(folded, kind)
    about = _about(folded, bases)
    if not bases:
        return f"about|{about}" if about else f"text|{folded}"
    return SEPARATOR.join(f"{base}|{about}" if about else base for base in bases)


def words_about(text: str) -> frozenset[str]:
    """Return the words that tell what a text is about."""
    return frozenset(_words(" ".join(text.split()).casefold()))


def _term(folded: str) -> str:
    for pattern in _DEFINED:
        if match := pattern.search(folded):
            term = match[1]
            while (bare := _EDGES.sub("", term)) != term:
                term = bare
            if term:
                return " ".join(_stem(word) for word in term.split())
    return ""


def _filter(folded: str, *, instead: bool) -> str:
    if match := _COLUMN.search(folded):
        return f"filter|{match[1] or match[2]}"
    about = _about(folded, [])
    return f"{REPLACES} {about}" if instead else f"about|{about}" if about else f"text|{folded}"


def _bases(folded: str, kind: str) -> list[str]:
    loose = kind == "revocation"
    if _ROW_LIMIT.search(folded) and _AMOUNT.search(folded):
        return ["rows"]
    if kind in ("exclusion", "format"):
        return []
    bases = []
    if ROUNDING.search(folded) or (loose and re.search(r"\bround|小数|取整", folded)):
        bases.append("rounding")
    if LANGUAGE.search(folded) or (loose and (_LANGUAGE_NAME.search(folded) or "language" in folded)):
        bases.append("language")
    if UNIT.search(folded) or loose or kind == "unit":
        bases += [f"unit:{dimension}" for dimension, pattern in _UNITS.items() if pattern.search(folded)]
    if not bases and kind in ("style", "constraint", "preference", "rule") and _STYLE_LENGTH.search(folded):
        bases.append("style:length")
    return bases


def _about(folded: str, bases: list[str]) -> str:
    """Return the words that narrow a matter, sorted; those that its bases already say are left out."""
    known: set[str] = set()
    for base in bases:
        name = base.removeprefix("unit:")
        if name != base:
            # Both the unit named and one it is set against ("hours, not minutes") say no more than the dimension.
            folded = _UNITS[name].sub(" ", folded)
            known.update(GENERIC[name].split())
        elif base == "language":
            folded = _LANGUAGE_NAME.sub(" ", folded)
        elif base == "style:length":
            folded = _STYLE_LENGTH.sub(" ", folded)
        elif base == "rows":
            folded = re.sub(r"\b(?:lists?|rows|lines|records|return|at)\b|每次|最多|[行条十百]", " ", folded)
    if bases:
        known |= NUMBERS
    words = [word for word in _words(folded, known) if not (bases and word.isdigit())]
    if bases:
        words = [word for said in words if (word := _AMOUNT_ZH.sub("", said))]
    return " ".join(sorted(set(words)))


def _words(folded: str, known: set[str] | frozenset[str] = frozenset()) -> list[str]:
    words = []
    for word in _WORD.findall(folded):
        if word[0] >= "\u3400":
            for said in sorted(known):
                if said[0] >= "\u3400":
                    word = word.replace(said, " ")
            words += _CJK_NOISE.sub(" ", word).split()
        elif word not in NOISE and word not in known:
            words.append(_stem(word))
    return words


def _stem(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
