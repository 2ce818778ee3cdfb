"""Link spans of words to what they do: operations, numbers, times, units, marks, words of grammar, words left over."""

from dataclasses import replace

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.lexicon import (
    FILLERS,
    LONGEST_PHRASE,
    MONTHS,
    NUMBERS,
    PARTICIPLES,
    PHRASES,
    PREPOSITIONS,
    UNIT_WORDS,
    UNITS,
    WEEKDAYS,
)
from longtable.app.offline.search import costs
from longtable.app.offline.search.model import Kind, Link
from longtable.app.offline.search.vocabulary import AFTER, FUNCTION, IDLE, MORE_PHRASES, ROWS
from longtable.app.offline.states import is_state, unexplained
from longtable.app.offline.text import Token, lemma

_SYMBOLS = {"≥": ">=", "≤": "<=", "!=": "<>"}
_LOWER_MONTHS = frozenset(["may", "mar", "jan", "sep", "dec", "march"])


def word_links(tokens: list[Token], catalog: Catalog) -> list[Link]:
    """Return the links of a question's words that need no schema."""
    found = [*_ops(tokens)]
    for place, token in enumerate(tokens):
        singles = _single(tokens, place, token)
        if unexplained(tokens, place, catalog):
            singles = [replace(link, cost=costs.UNUSED) if link.kind == "filler" else link for link in singles]
        elif is_state(tokens, place, catalog) and not _never(tokens, place):
            singles = [replace(link, cost=link.cost + costs.STATE) if link.kind == "filler" else link for link in singles]
        found += singles
    return found


def _ops(tokens: list[Token]) -> list[Link]:
    found: list[Link] = []
    for start in range(len(tokens)):
        for size in range(1, min(LONGEST_PHRASE, len(tokens) - start) + 1):
            part = tokens[start : start + size]
            if any(token.kind not in ("word", "code") for token in part):
                break
            words = tuple(token.word for token in part)
            text = " ".join(token.text for token in part)
            for table in (PHRASES, MORE_PHRASES):
                if words in table:
                    op, arg = table[words]
                    cost = (
                        costs.PRONOUN
                        if op == "pron"
                        else 0.02
                        if op == "until"
                        else 0.12
                        if text.lower() in ("numbers of", "ordered", "sorted")
                        else 0.0
                    )
                    found.append(Link(start, start + size, "op", cost, text, op=op, arg=arg))
    for start, token in enumerate(tokens):
        if token.kind == "symbol":
            found.append(Link(start, start + 1, "op", costs.LINK, token.text, op="cmp", arg=_SYMBOLS.get(token.text, token.text)))
    return found


def _never(tokens: list[Token], place: int) -> bool:
    """Say whether a verb only carries a denial on: never booked on any rental."""
    follows = [token.word for token in tokens[place + 1 : place + 3]]
    return place > 0 and tokens[place - 1].word == "never" and len(follows) == 2 and follows[0] in PREPOSITIONS and follows[1] in _OBJECT


def _single(tokens: list[Token], place: int, token: Token) -> list[Link]:
    def link(kind: Kind, cost: float, *, number: float | int = 0, unit: str = "", arg: str = "") -> Link:
        return Link(place, place + 1, kind, cost, token.text, number=number, unit=unit, arg=arg)

    before = tokens[place - 1].word if place else ""
    word = token.word
    if token.kind in ("number", "ordinal"):
        number = float(word) if "." in word else int(word)
        found = [link("number", costs.NUMBER, number=number, arg=token.kind)]
        if isinstance(number, int) and 1900 <= number <= 2100 and len(word) == 4 and token.kind == "number":
            told = before in AFTER or (place > 0 and (before in MONTHS or tokens[place - 1].kind in ("number", "comma", "ordinal")))
            found.append(link("time", costs.YEAR if told else costs.LOOSE_YEAR, number=number, unit="year"))
        return found
    if token.kind == "date":
        return [link("time", 0.0, unit="date", arg="-".join(part.zfill(2) for part in word.split("-")))]
    if token.kind == "decade":
        return [link("time", 0.0, unit="decade", number=int(word))]
    if token.kind in ("comma", "stop"):
        return [link("mark", 0.0)]
    if token.kind in ("quoted", "code", "symbol"):
        return [link("unused", costs.UNUSED_NAME)]
    found = []
    if word in MONTHS and not (word in _LOWER_MONTHS and token.text.islower() and before not in ("in", "of", "since", "for")):
        found.append(link("time", 0.0, unit="month", number=MONTHS[word]))
    if lemma(word) in WEEKDAYS:
        found.append(link("time", 0.0, unit="weekday", number=WEEKDAYS[lemma(word)]))
    if len(word) == 2 and word[0] == "q" and word[1] in "1234":
        found.append(link("time", 0.0, unit="quarter", number=int(word[1])))
    if word in NUMBERS:
        found.append(link("number", costs.NUMBER, number=NUMBERS[word], arg="word"))
    if lemma(word) in UNITS:
        found.append(link("unit", 0.0, unit=UNITS[lemma(word)]))
    if word in PREPOSITIONS or word in FUNCTION:
        found.append(link("filler", costs.GRAMMAR))
    elif before == "by" and word in UNITS:
        pass  # by month: never passed over
    elif word in UNIT_WORDS:
        found.append(link("filler", 0.2, unit=lemma(word)))
    elif lemma(word) in _COMPARING or word in _COMPARING:
        found.append(link("unused", costs.UNUSED))
    elif before == "many" and lemma(word) != word and word not in ROWS:
        found.append(link("unused", costs.UNUSED))  # what is counted must be known
    elif word in IDLE or lemma(word) in IDLE or word in FILLERS or word in PARTICIPLES:
        found.append(link("filler", costs.VERB if not token.is_name or place == 0 else costs.UNUSED))
    elif not token.is_name and _carries(tokens, place):
        found.append(link("filler", costs.UNKNOWN_VERB))
    else:
        found.append(link("unused", costs.UNUSED_NAME if token.is_name else costs.UNUSED))
    return found


_COMPARING = frozenset(["exceed", "exceeded", "exceeding"])
_HELPING = frozenset(["do", "does", "did", "to", "can", "will", "would", "we", "they", "you"])
_OBJECT = frozenset(
    ["a", "an", "the", "any", "no", "our", "their", "per", "each", "by", "more", "less", "at", "most", "least", "between", "over", "under"]
)


def _carries(tokens: list[Token], place: int) -> bool:
    """Say whether an unknown word stands where a verb only carries the sentence: 'loans disbursed in 2024', 'do we grow Merlot'."""
    word = tokens[place].word
    follows = tokens[place + 1] if place + 1 < len(tokens) else None
    ends = follows is None or follows.kind == "stop"
    onward = follows is not None and (
        follows.word in PREPOSITIONS or follows.word in _OBJECT | AFTER or follows.kind in ("number", "date", "quoted") or follows.is_name
    )
    if word.endswith("ed") or word in PARTICIPLES:
        asked = tokens[0].word in ("when", "who") or {"first", "last", "latest", "earliest", "most"} & {
            token.word for token in tokens[:place]
        }
        return place > 0 and (onward or (ends and bool(asked)))
    if place and (tokens[place - 1].word in PREPOSITIONS or tokens[place - 1].word in ("a", "an", "the")):
        return False  # with sourdough in the name: a noun
    if place and tokens[place - 1].word in ("be", "been", "being"):
        return False  # jobs that had to be redone: a state
    helped = any(token.word in _HELPING for token in tokens[max(0, place - 5) : place])
    return helped and not word.endswith("s") and (onward or ends)
