"""Tell the sentences that bind later turns (rules, preferences, definitions, units, filters ...) from ordinary questions, by pattern.

A miss loses a rule, a false hit costs a line of the pins' budget: where unsure a sentence is taken for a rule.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from longtable.memory.pin_patterns import (
    AGAIN,
    ALL,
    ASKS_EN,
    ASKS_ZH,
    BY_I_MEAN,
    CJK,
    COLON,
    CONDITION,
    FILLERS,
    FINITE,
    FOR_REQUESTS,
    FORBID,
    FROM_NOW,
    GENERIC,
    KINDS,
    LANGUAGE,
    LANGUAGES,
    NOISE,
    NOISE_ZH,
    NUMBERS,
    ORDER_TO_DO,
    OWN,
    PARTICULAR,
    POINTING,
    RELATIVE_WORD,
    REMEMBER,
    REQUEST_EN,
    REQUEST_ZH,
    ROUNDING,
    SAID_ZH,
    STANDING,
    STRONG,
    SUM_ZH,
    UNIT,
    UNITS,
)

LONG = 400
"""Characters past which a sentence is read clause by clause: pasted text has few full stops."""

REQUEST_WORDS = 14
"""Words up to which "show ... in kilometres" is taken for a rule; a longer one describes the data it asks for."""
WRAPPED = 60
"""Characters from which a line that goes on in lower case is taken for a wrapped one."""

_LABEL = re.compile(r"(?:[^:：]{1,12}|\w+ \d+)[:：]\s*(\S.*)")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|approx|mr|mrs|ms|dr|no|st|fig|cf|u\.s)|\b[a-z])\.$", re.IGNORECASE)
_STOP = re.compile(r"[。！？；;\n]+[”’」』\"'）)]*|[.!?]+[\"'”’)\]]*(?=\s|$)")
_COMMA = re.compile(r"[,，、]")
_LEAD = re.compile(r"\s*(?:[-*•·]+\s+|\(?\d{1,2}[.)、]\s*|[a-zA-Z][)]\s+|#+\s+)?\s*")
_CLAUSE = re.compile(r"[,;:，；：—–]+|\s+-\s+|\b(?:and|but|so|then|because|unless)\b")
_FILLER = re.compile(rf"(?:{FILLERS})+", re.IGNORECASE)
_POLITE = re.compile(r"(?:can|could|would|will) (?:you|we)(?: please| kindly| always| also| just)?\s+")
_POLITE_END = re.compile(r"(?:好吗|可以吗|行吗|好不好|行不行|可否|，?谢谢|ok|okay|please|thanks|thank you|for me)?[\s?？!！.。,，~～]*$")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text as they stand in it, without code blocks, bullets and outer blanks."""
    place = 0
    for fence in _FENCE.finditer(text):
        yield from _sentences(text[place : fence.start()])
        place = fence.end()
    yield from _sentences(text[place:])


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for stop in _STOP.finditer(text):
        # The word before the stop alone: an abbreviation is short, and the whole text before it need not be read again.
        if stop[0] == "\n" and _wrapped(text, start, stop):
            continue
        if stop[0] == "." and _ABBREVIATION.search(text[max(start, stop.start() - 8) : stop.end()]):
            continue
        yield from _pieces(text[start : stop.end()])
        start = stop.end()
    yield from _pieces(text[start:])


def _wrapped(text: str, start: int, stop: re.Match[str]) -> bool:
    """Tell a line end that only wraps a long sentence from one that ends it."""
    line = stop.start() - max(start, text.rfind("\n", start, stop.start()) + 1)
    return line >= WRAPPED and text[stop.end() : stop.end() + 1].islower()


def _pieces(sentence: str) -> Iterator[str]:
    lead = _LEAD.match(sentence)
    sentence = sentence[lead.end() if lead else 0 :].rstrip()
    if len(sentence) <= LONG:
        if sentence:
            yield sentence
        return
    for clause in _COMMA.split(sentence):
        # A run without any comma is no sentence of a person: cut so that no pattern reads it whole.
        yield from (piece for at in range(0, len(clause), LONG) if (piece := clause[at : at + LONG].strip()))


def kind_of(sentence: str) -> str:
    """Return the kind of standing rule that one sentence states, "" for none."""
    return _kind(fold(sentence))


def fold(text: str) -> str:
    """Return a text on one line, in lower case, with plain apostrophes."""
    return " ".join(text.replace("’", "'").split()).casefold()


def core_of(sentence: str) -> str:
    """Return a folded sentence without greetings, thanks and polite wrapping."""
    return _core(fold(sentence))[0]


def _kind(text: str) -> str:
    body, polite = _core(text)
    if not body or (" " not in body and not CJK.search(body)):
        return ""  # one word alone says nothing that lasts
    labelled = _LABEL.match(body)
    if labelled and (REQUEST_EN.match(labelled[1]) or REQUEST_ZH.match(labelled[1]) or _asks(labelled[1], labelled[1])):
        return _kind(labelled[1])  # "question 3: show me ...": what counts is behind the label
    clauses = [
        _FILLER.sub("", clause.strip(), count=1) if _FILLER.match(clause.strip()) else clause.strip() for clause in _CLAUSE.split(body)
    ]
    clauses = [clause for clause in clauses if clause]
    clauses += [bare for clause in (body, *clauses) if (bare := FROM_NOW.sub("", clause)) and bare != clause]
    if not polite and not STANDING.search(body) and _asks(text, body):
        return _beside_question(body)
    wholes = [body, *clauses]
    request = REQUEST_EN.match(body) or REQUEST_ZH.match(body)
    if request:
        return _of_request(body, wholes)
    return _first_of(KINDS, wholes) or ("" if polite else _statement(body))


def _first_of(kinds: Iterable[tuple[str, re.Pattern[str]]], wholes: Sequence[str]) -> str:
    return next((kind for kind, pattern in kinds if any(pattern.search(whole) for whole in wholes)), "")


def _beside_question(body: str) -> str:
    """Read a question that a comma joins to a rule: "use km, how far is it?", "how many are late, by late I mean ...?"."""
    first, *others = [clause.strip() for clause in _COMMA.split(body)]
    if not others:
        return ""
    leading = _kind(first) if first and not first.endswith(("的话", "时")) else ""
    if leading in ("unit", "rounding", "language", "constraint", "definition"):
        return leading
    return "definition" if any(BY_I_MEAN.search(clause) for clause in others) else ""


def _statement(body: str) -> str:
    """Return "note" for a plain statement or order that asks for no data, "" for a fragment, a reply or small talk."""
    if POINTING.match(body) or AGAIN.match(body):
        return ""
    if CJK.search(body):
        return "note" if len(body) > 3 and SAID_ZH.search(body) and not SUM_ZH.search(body) else ""
    words = body.split()
    if len(words) < 3:
        return ""
    if ORDER_TO_DO.match(body) or OWN.match(body) or CONDITION.match(body) or COLON.match(body):
        return "note"
    finite = FINITE.search(body, len(words[0]))
    relative = RELATIVE_WORD.search(body)
    return "note" if finite and not (relative and relative.start() < finite.start()) else ""


def _core(text: str) -> tuple[str, bool]:
    """Return a sentence without fillers and polite wrapping, and whether it was a request put as a question."""
    body = text.strip()
    if len(body) > 1 and body[0] + body[-1] in ('""', "''", "“”", "「」"):
        body = body[1:-1].strip()
    while match := _FILLER.match(body):
        if not match[0]:
            break
        body = body[match.end() :]
    polite = False
    if match := _POLITE.search(body):
        before = body[: match.start()].strip()
        if not before or before.endswith((",", ":")):
            body, polite = f"{before} {body[match.end() :]}".strip(), True
    if end := _POLITE_END.search(body):
        polite = polite or end[0][:2] in ("好吗", "可以", "行吗", "好不", "行不", "可否")
        body = body[: end.start()]
    return body, polite


def _asks(text: str, body: str) -> bool:
    return (
        text.rstrip("\"'”’ )").endswith(("?", "？"))
        or bool(ASKS_EN.match(body))
        or bool(ASKS_ZH.search(body) and not REMEMBER.search(body))
    )


def _of_request(body: str, wholes: list[str]) -> str:
    """Read a sentence that begins like a request for data: it binds later turns only when it says so or is about no particular data."""
    if any(STRONG.search(whole) for whole in wholes):
        return _first_of(KINDS, wholes) or "rule"
    if PARTICULAR.search(body) and not ALL.search(body):
        return next(("constraint" for whole in wholes[1:] if FORBID.match(whole)), "")
    named = _first_of((("rounding", ROUNDING), ("language", LANGUAGE), ("unit", UNIT)), [body])
    if named and len(body.split()) <= REQUEST_WORDS:
        return named
    return _first_of(((kind, pattern) for kind, pattern in KINDS if kind in FOR_REQUESTS), wholes)


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
