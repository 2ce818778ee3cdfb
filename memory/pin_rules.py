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
    FINITE,
    FOR_REQUESTS,
    FORBID,
    FROM_NOW,
    KINDS,
    LANGUAGE,
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
)
from longtable.memory.pin_words import FILLERS

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
