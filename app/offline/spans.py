"""Find what the words of a question may be, as spans that compete: the heaviest win."""

from dataclasses import dataclass

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.channels import channels
from longtable.app.offline.chunks import STATE, Chunk, Match, Values
from longtable.app.offline.lexicon import (
    FILLERS,
    GENDERS,
    GREETINGS,
    IRREGULAR,
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
from longtable.app.offline.lexicon_abbreviations import ALTERNATIVES
from longtable.app.offline.lexicon_events import events
from longtable.app.offline.linking import QUALIFIERS, Hit, hits
from longtable.app.offline.states import is_state, unexplained
from longtable.app.offline.text import Token, lemma
from longtable.app.offline.value_forms import forms, is_standing, written

_SKIPPED = frozenset({"of", "the", "a", "an", "s"})


@dataclass(frozen=True)
class Span:
    """Words from `start` to `end` with what they may be, and how much speaks for it."""

    start: int
    end: int
    weight: float
    chunk: Chunk


def all_spans(tokens: list[Token], catalog: Catalog, values: Values) -> list[Span]:
    """Return every span of a question, heaviest first."""
    mentions = _mentions(tokens, catalog)
    things = {span.start for span in mentions if span.chunk.hits[0].is_table}
    ways = [place for place in channels(tokens) if place not in things]
    spans = [
        *_ops(tokens, catalog),
        *mentions,
        *_values(tokens, values, ways),
        *_states(tokens, catalog, values),
        *_singles(tokens),
        *_currencies(tokens, catalog),
    ]
    return sorted(spans, key=lambda span: (-span.weight, span.start))


def text_of(tokens: list[Token]) -> str:
    """Return tokens as typed, a blank between them."""
    return " ".join(token.text for token in tokens)


def _ops(tokens: list[Token], catalog: Catalog) -> list[Span]:
    found: list[Span] = []
    for start in range(len(tokens)):
        for size in range(min(LONGEST_PHRASE, len(tokens) - start), 0, -1):
            part = tokens[start : start + size]
            if any(token.kind not in ("word", "code") for token in part):
                continue
            entry = PHRASES.get(tuple(token.word for token in part))
            if (
                start
                and [token.word for token in part] in (["numbers", "of"], ["number", "of"])
                and _heads_number(tokens[:start], tokens[start + size :])
            ):
                continue  # the claim numbers of: no count
            if entry is not None and part[0].word == "quantity" and _keeps_quantities(catalog):
                continue
            if entry is not None:
                found.append(
                    Span(start, start + size, size * 10 + 1.5, Chunk("op", text_of(part), part[0].word, op=entry[0], arg=entry[1]))
                )
    for start in range(len(tokens) - 2):
        words = [token.word for token in tokens[start : start + 4]]
        if lemma(words[0]) == "day" and words[1] == "of" and words[-1 if words[2] == "the" else 2] in ("week", "weeks"):
            size = 4 if words[2] == "the" else 3
            found.append(Span(start, start + size, size * 10 + 3, Chunk("unit", "day of the week", "weekday", unit="weekday")))
    for start, token in enumerate(tokens):
        quarter = _quarter(token, tokens[start - 1] if start else None)
        if quarter:
            size = 2 if token.word == "quarter" else 1
            found.append(Span(start + 1 - size, start + 1, 25, Chunk("time", token.text, token.word, unit="quarter", number=quarter)))
        if token.kind == "symbol":
            op = {"≥": ">=", "≤": "<=", "!=": "<>"}.get(token.text, token.text)
            found.append(Span(start, start + 1, 20, Chunk("op", token.text, token.text, op="cmp", arg=op)))
    return found


def _keeps_quantities(catalog: Catalog) -> bool:
    """Say whether a column holds quantities: what quantity of tape then asks for it, and not how many rows there are."""
    tables = (table for table in catalog.tables.values() if table.kind == "table")
    return any("quantity" in column.words and column.is_number for table in tables for column in table.columns)


def _heads_number(before: list[Token], after: list[Token]) -> bool:
    """Say whether 'number of' ends a noun: the claim numbers of, phone number of."""
    last, opener = before[-1], before[-2].word if len(before) > 1 else ""
    plain = last.kind == "word" and last.word not in FILLERS and last.word not in PREPOSITIONS and (last.word,) not in PHRASES
    opens = opener in _SKIPPED or opener in ("", "and", ",", "their", "our", "with", "list", "show", "give", "me")
    if after and after[0].word in ("most", "fewest", "least"):
        return False
    return plain and opens and last.word not in ("numbers", "record", "exact")


def _quarter(token: Token, before: Token | None) -> int:
    """Return which quarter is named: 'q1', 'the first quarter', '2nd quarter'; 0 for none."""
    if len(token.word) == 2 and token.word[0] == "q" and token.word[1] in "1234":
        return int(token.word[1])
    if token.word != "quarter" or before is None:
        return 0
    ordinals = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4}
    return ordinals.get(before.word, int(before.word) if before.kind == "ordinal" and before.word in ("1", "2", "3", "4") else 0)


def _mentions(tokens: list[Token], catalog: Catalog) -> list[Span]:
    found: list[Span] = []
    asked = any(token.word in ("do", "does", "did") for token in tokens)
    for start, first in enumerate(tokens):
        if (
            first.kind not in ("word", "quoted", "code")
            or first.word in _SKIPPED
            or (first.word in PREPOSITIONS and (first.text.islower() or not start) and not _names_state(tokens, start, catalog))
            or first.word in _ASKING
        ):
            continue
        for end in range(start + 1, min(start + 6, len(tokens)) + 1):
            part = tokens[start:end]
            last = part[-1]
            alone = len(part) == 1
            if not (last.kind == "word" or (last.kind == "number" and not alone) or (last.kind in ("quoted", "code") and alone)):
                break
            if last.word in ("those", "these", "their", "that", "this"):
                break
            if last.text == "的":
                break  # in Chinese what follows 的 is another noun
            if last.word in _SKIPPED:
                continue
            if not alone and end < len(tokens) and tokens[end].word in FILLERS and _is_a_name([last, tokens[end]], catalog):
                continue  # the amount of shipment items: no shipment's amount
            if first.word == "no" and not alone and first.text.islower():
                break  # no meter is none, not its number
            if start and not alone and first.is_name and first.word in QUALIFIERS:
                break  # Home products: a name, no home
            words = tuple(token.word for token in part if token.word not in _SKIPPED)
            linked = tuple(hit for hit in hits(words, text_of(part), catalog) if _fits(hit, part, words, catalog))
            if not linked and len(words) > 1 and lemma(words[-1]) in ("piece", "unit", "item"):
                said = (*words[:-1], "quantity")  # good pieces: the good quantity
                linked = tuple(hit for hit in hits(said, " ".join(said), catalog) if hit.numeric and hit.own > 1)
            if alone and last.word in _ADVERBS and linked and linked[0].score < 0.97:
                continue  # monthly revenue: no monthly pay
            if alone and last.word in UNITS and linked and not linked[0].dated and linked[0].score < 0.9 and _groups(tokens, start):
                continue  # by month: no payment method
            if len(words) == 2 and linked and linked[0].is_table and _runs(tokens, start, end, catalog):
                continue  # which press runs at the highest speed
            if linked and not _verb(tokens, start, end, linked[0].score, asked):
                chunk_ = Chunk("mention", text_of(part), last.word, hits=linked, name=first.is_name and start > 0)
                found.append(Span(start, end, _mention_weight(len(part), len(words), linked[0].score), chunk_))
    return found


def _is_a_name(part: list[Token], catalog: Catalog) -> bool:
    """Say whether words are the whole name of a table that ends in a word mostly passed over: shipment items, sales data."""
    words = [lemma(token.word) for token in part]
    return any(words == [lemma(word) for word in table.words] for table in catalog.tables.values())


def _groups(tokens: list[Token], start: int) -> bool:
    return start > 0 and tokens[start - 1].word in ("by", "per", "each", "every")


def _runs(tokens: list[Token], start: int, end: int, catalog: Catalog) -> bool:
    """Say whether the second of two words is the verb of the first, though a table has both in its name."""
    asked = start > 0 and tokens[start - 1].word in ("which", "what") and end < len(tokens) and tokens[end].word in PREPOSITIONS
    first = tokens[start].word
    if not asked or tokens[end - 1].word not in _ACTS or lemma(first) != first:
        return False
    return any(hit.is_table and hit.score >= 0.95 for hit in hits((first,), first, catalog))


def _names_state(tokens: list[Token], start: int, catalog: Catalog) -> bool:
    """Say whether a preposition begins a column's whole name: 'on display', 'in stock'."""
    if start + 1 >= len(tokens) or tokens[start + 1].kind != "word":
        return False
    words = (tokens[start].word, tokens[start + 1].word)
    return any(column.words[-2:] == words and len(column.words) <= 3 for table in catalog.tables.values() for column in table.columns)


def _mention_weight(size: int, words: int, score: float) -> float:
    """Weigh a mention; a column's whole name of several words ('number of products') is more than the operation it looks like."""
    if words > 1 and score >= 0.98:
        return size * 10 + 2
    return words * 10 * min(score, 1.0) + (1 if score >= 0.9 else 0)


_NOUN_ENDS = ("ion", "ry", "al", "ment", "ure", "date", "day", "time", "birth", "dob", "ing", "ship", "ings")
_ADVERBS = frozenset(["monthly", "yearly", "daily", "weekly", "quarterly", "annual", "hourly"])
_ANY = frozenset(["a", "an", "any", "each", "every", "no", "without", "of", "the", "many", "open"])
_NUMBERING = frozenset(["number", "numbers", "id", "ids"])
_EACH = frozenset(["per", "each", "every"])
_COMMANDS = frozenset(["list", "show", "give", "find", "display", "get", "tell", "count"])
_ASKING = frozenset([
    "what", "which", "who", "whose", "whom", "where", "when", "how", "is", "are", "was", "were", "do", "does", "did", "has", "have",
    "had",
])  # fmt: skip


def _fits(hit: Hit, part: list[Token], words: tuple[str, ...], catalog: Catalog) -> bool:
    """Refuse 'drivers hired' as a column and 'trucks of brand' as one name: the table's own word must not lead there."""
    if [token.word for token in part[:2]] == ["number", "of"] and not hit.is_table and not hit.numeric and lemma(words[-1]) != words[-1]:
        return False  # the number of orders is a count, not the number of each order
    if part[-1].word in PREPOSITIONS and part[-1].text.islower():
        return hit.own == len(words) and hit.score >= 0.97  # "directed by" as a column's whole name
    if len(words) > 1 and (words[-1] in FILLERS or words[0] in _ADVERBS | _EACH) and hit.score < 0.95:
        return False
    ranked = words[0] in ("first", "last", "top", "best", "next") and lemma(words[-1]) != "name"
    if ranked and not hit.is_table and hit.own < len(words) and hit.score < 0.97:
        return False  # the first donor has a date, but is none
    if hit.is_table or len(words) < 2 or hit.own == len(words):
        return True
    if len(words) == 2 and hit.score < 0.9 and _is_thing_of(part, words, hit, catalog):
        return False
    past = [word for word in words if (word.endswith("ed") and len(word) > 4) or (word in PARTICIPLES and word != words[-1])]
    if hit.dated and lemma(words[0]) != words[0] and events(words[-1]) and not words[-1].endswith(_NOUN_ENDS):
        return False  # policies expire: the verb
    if past or words[-1] in FILLERS:
        return False
    places = [place for place, token in enumerate(part) if token.word == "of"]
    if not places:
        return True
    head = tuple(token.word for token in part[: places[0]] if token.word not in _SKIPPED)
    if any(other.is_table and other.score >= 0.95 for other in hits(head, text_of(part[: places[0]]), catalog)):
        return False
    return any((other.table, other.column) == (hit.table, hit.column) for other in hits(head, text_of(part[: places[0]]), catalog))


_ACTS = frozenset("charges earns costs pays orders works rates runs weighs holds ranks scores visits rents stocks".split())  # noqa: SIM905


def _is_thing_of(part: list[Token], words: tuple[str, ...], hit: Hit, catalog: Catalog) -> bool:
    """Say whether two words are one thing of another, or a thing behind a weak word of its column: department employees, credit cards."""
    first, last = (hits((word,), word, catalog) for word in words)
    ends = bool(last) and last[0].is_table and last[0].score >= 0.95 and last[0].table == hit.table
    begins = bool(first) and first[0].is_table and first[0].score >= 0.95
    if begins and hit.score < 0.72 and lemma(words[0]) == words[0] and lemma(words[1]) != words[1] and words[1] in _ACTS:
        return True  # the trainer charges
    return ends and part[0].text.islower() and (begins or hit.score < 0.8)


def _verb(tokens: list[Token], start: int, end: int, score: float, asked: bool) -> bool:
    """Say whether a lone word is a verb of the question and not a name: 'make' in 'how many cars does he make'."""
    if end - start > 1:
        content = [token.word for token in tokens[start:end] if token.word not in _SKIPPED]
        before = tokens[start - 1].word if start else ""
        return score < (0.95 if before in _ANY else 0.99) and all(word in FILLERS for word in content)
    word = tokens[start].word
    if word not in FILLERS:
        return False
    before = next((token.word for token in reversed(tokens[:start])), "")
    if before in ("most", "many", "fewest", "all") and word.endswith("s") and score >= 0.86:
        return False  # the most works: a noun
    if before in ("highest", "lowest", "best", "worst", "average", "mean", "total", "maximum", "minimum") and score >= 0.75:
        return False  # the highest score
    if score < 0.95 or word in (
        "list",
        "show",
        "name",
        "data",
        "table",
        "record",
        "is",
        "has",
        "have",
        "value",
        "what",
        "who",
        "are",
        "no",
        "in",
    ):
        return True
    return (
        (asked and start == len(tokens) - 1)
        or (before in ("to", "who", "that", "which", "they", "we", "you", "was", "were", "been") and not (before == "which" and start == 1))
        or word.endswith("ed")
    )


def _values(tokens: list[Token], values: Values, ways: list[int]) -> list[Span]:
    found: list[Span] = []
    for start in range(len(tokens)):
        for end in range(start + 1, min(start + 9, len(tokens)) + 1):
            part = tokens[start:end]
            matches = _matches(part, values) or _scattered(part, values)
            if matches and end - start == 1 and matches[0].how == "partial" and _in_longer_name(tokens, start):
                continue
            if not matches or (end - start == 1 and not part[0].is_name and [t for t in tokens[end : end + 1] if t.word in _NUMBERING]):
                continue  # the phone number is no call by phone
            quoted = any(token.kind == "quoted" for token in part)
            name = part[0].is_name or quoted
            exact = matches[0].how != "partial"
            weight = (
                (end - start) * (10.2 if exact and name else 9.2 if exact else 8.0)
                + (5 if quoted else 0)
                + (2 if end - start > 1 and exact else 0)
            )
            if end - start == 1 and part[0].text.isupper() and exact and len(part[0].text) >= 2:
                weight += 2
            if exact and is_standing(part):
                weight += 2  # open or under review
            if exact and end - 1 in ways:
                weight += 4  # by phone: the way, not the number
            found.append(Span(start, end, weight, Chunk("value", text_of(part), part[-1].word, matches=matches, quoted=quoted, name=name)))
    return found


def _states(tokens: list[Token], catalog: Catalog, values: Values) -> list[Span]:
    """Find verbs that are the value of a column ('shipped orders'), and those that tell a state nothing records."""
    found: list[Span] = []
    for place, token in enumerate(tokens):
        if not is_state(tokens, place, catalog):
            continue
        exact = next(filter(None, (_whole(values, form) for form in (token.word, *forms(token.word)))), ())
        exact = exact or _under_way(tokens, place, values)
        if exact:
            found.append(Span(place, place + 1, 9.2, Chunk("value", token.text, token.word, matches=exact, arg=STATE)))
        elif unexplained(tokens, place, catalog):
            found.append(Span(place, place + 1, 5.0, Chunk("word", token.text, token.word)))
    return found


def _under_way(tokens: list[Token], place: int, values: Values) -> tuple[Match, ...]:
    """Return the state of what is being done: being repaired, in repair."""
    if not place or tokens[place - 1].word != "being":
        return ()
    told = {f"{word} {form}" for word in ("in", "under") for form in forms(tokens[place].word)}
    return tuple(match for form in forms(tokens[place].word) for match in values.get(form, ()) if str(match.value).lower() in told)


def _whole(values: Values, text: str) -> tuple[Match, ...]:
    return tuple(match for match in values.get(text, ()) if match.how != "partial")


def _matches(part: list[Token], values: Values) -> tuple[Match, ...]:
    if len(part) == 1 and lemma(part[0].word) in GENDERS and part[0].kind == "word":
        wanted = GENDERS[lemma(part[0].word)]
        return tuple(
            match for word in wanted for match in values.get(word, ()) if match.how != "partial" and str(match.value).lower() in wanted
        )
    letter = len(part) == 1 and len(part[0].text) == 1 and part[0].text.isupper() and part[0].text != "I" and part[0].start > 0
    if not letter and all(token.kind == "word" and (token.word in FILLERS or token.word in PREPOSITIONS) for token in part):
        whole_text = values.get(" ".join(token.word for token in part), ()) if is_standing(part) else ()
        if not whole_text and is_standing(part) and len(part) == 2 and part[0].word == "on":
            whole_text = values.get(part[1].word, ())  # on hold: HOLD
        return tuple(match for match in whole_text if match.how != "partial")
    if part[0].kind == "word" and part[0].word in _SKIPPED and part[0].text.islower():
        return ()
    for place, form in enumerate(written(part)):
        if matches := values.get(form, ()):
            exact = tuple(match for match in matches if match.how != "partial")
            if exact:
                return exact
            if place > 0:
                continue  # another form of the word must be the whole value: cases are no 'case management'
            if any(token.is_name for token in part):
                return matches
    return ()


def _scattered(part: list[Token], values: Values) -> tuple[Match, ...]:
    """Find a name that the data writes together: North Carolina as NorthCarolina."""
    if len(part) < 2 or not all(token.kind == "word" and token.is_name for token in part):
        return ()
    wanted = "".join(token.word for token in part)
    return tuple(match for token in part for match in values.get(token.word, ()) if "".join(str(match.value).lower().split()) == wanted)


def _in_longer_name(tokens: list[Token], place: int) -> bool:
    """Say whether a capitalised word is only part of a name of several words, so that a partial match means little."""
    if not tokens[place].is_name or tokens[place].kind == "quoted":
        return False
    beside = [tokens[other] for other in (place - 1, place + 1) if 0 < other < len(tokens)]
    return any(token.kind == "word" and token.is_name for token in beside)


def _singles(tokens: list[Token]) -> list[Span]:
    return [Span(index, index + 1, *_single(token, tokens[index - 1] if index else None)) for index, token in enumerate(tokens)]


def _currencies(tokens: list[Token], catalog: Catalog) -> list[Span]:
    """'orders in EUR' are some of the orders where a column tells the currency of each."""
    told = any(
        "currency" in (*column.words, *ALTERNATIVES.get(column.words[-1], ())) for t in catalog.tables.values() for column in t.columns
    )
    codes = [place for place, token in enumerate(tokens) if len(token.text) == 3 and token.text.isupper() and token.word in UNIT_WORDS]
    return [Span(each, each + 1, 1.6, Chunk("word", tokens[each].text, tokens[each].word, name=True)) for each in codes if told]


def _single(token: Token, before: Token | None) -> tuple[float, Chunk]:
    text, word = token.text, token.word
    if token.kind in ("number", "ordinal"):
        return 10.0, Chunk("number", text, word, number=float(word) if "." in word else int(word))
    if token.kind == "date":
        return 10.0, Chunk("time", text, word, unit="date", arg="-".join(part.zfill(2) for part in word.split("-")))
    if token.kind == "decade":
        return 10.0, Chunk("time", text, word, unit="decade", number=int(word))
    if token.kind in ("comma", "stop"):
        return 1.0, Chunk("comma", text, text)
    if token.kind in ("quoted", "code"):
        return 9.0, Chunk("word", text, word, quoted=token.kind == "quoted", name=True)
    return _plain(token, before)


def _plain(token: Token, before: Token | None) -> tuple[float, Chunk]:
    text, word = token.text, token.word
    if word in MONTHS and not (
        word in ("may", "mar", "jan", "sep", "dec", "march")
        and text.islower()
        and (before is None or before.word not in ("in", "of", "since", "for"))
    ):
        return 10.3, Chunk("time", text, word, unit="month", number=MONTHS[word])
    if lemma(word) in WEEKDAYS:
        return 10.3, Chunk("time", text, word, unit="weekday", number=WEEKDAYS[lemma(word)])
    if word in NUMBERS:
        return 5.0, Chunk("number", text, word, number=NUMBERS[word])
    if lemma(word) in UNITS:
        return 5.0, Chunk("unit", text, word, unit=UNITS[lemma(word)])
    if word in PREPOSITIONS or word == "versus":
        return 3.0, Chunk("prep", text, word)
    if text == "US" or (before is not None and len(text) == 1 and text.isupper() and text != "I" and word in FILLERS):
        return 1.0, Chunk("word", text, word, name=True)
    if word in GREETINGS or word in FILLERS or (lemma(word) in FILLERS and word not in IRREGULAR and not word.endswith("ings")):
        return 2.0, Chunk("filler", text, word)
    if word in UNIT_WORDS:
        return 1.5, Chunk("filler", text, word, unit=lemma(word))
    return 1.0, Chunk("word", text, word, name=token.is_name)
