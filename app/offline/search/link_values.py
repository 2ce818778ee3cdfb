"""Link spans of words to values that the tools showed: sample rows, and what was looked up."""

from collections.abc import Iterable

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.chunks import Values
from longtable.app.offline.lexicon import GENDERS, PREPOSITIONS
from longtable.app.offline.search import costs
from longtable.app.offline.search.model import Link
from longtable.app.offline.search.vocabulary import FUNCTION, IDLE
from longtable.app.offline.text import Token, lemma, stem

LONGEST = 7
_SAMPLE_CHARS = 40
_ASKING = frozenset(["how", "many", "much"])
MOST = 8
Place = tuple[str, str, str | int | float]
Index = dict[str, list[tuple[float, Place]]]


def value_links(tokens: list[Token], catalog: Catalog, values: Values) -> list[Link]:
    """Return every link of a span to a value of a column."""
    index = index_of(catalog, values)
    found: list[Link] = []
    for start, first in enumerate(tokens):
        if first.kind in ("comma", "stop", "symbol"):
            continue
        for end in range(start + 1, min(start + LONGEST, len(tokens)) + 1):
            part = tokens[start:end]
            if part[-1].kind in ("stop", "symbol"):
                break
            found += _span(part, start, end, index)
    return found


def _span(part: list[Token], start: int, end: int, index: Index) -> list[Link]:
    text = " ".join(token.text for token in part)
    alone = len(part) == 1
    first = part[0]
    named = any(token.is_name or token.kind in ("quoted", "code") for token in part)
    if all(token.word in FUNCTION or token.word in PREPOSITIONS for token in part) and not named:
        return []
    if alone and first.kind in ("number", "ordinal"):
        return []
    best: dict[Place, float] = {}
    for form, cost in forms_of(part):
        for extra, place in index.get(form, ()):
            best[place] = min(best.get(place, 9.0), cost + extra)
    found = []
    for place, cost in sorted(best.items(), key=lambda item: item[1])[:10]:
        if cost >= costs.VALUE_PART and not named:
            cost += 0.5
        idle = alone and first.word in IDLE and not named
        found.append(Link(start, end, "value", costs.LINK + cost + (0.08 if idle else 0.0), text, place[0], place[1], values=(place[2],)))
    return found


def forms_of(part: list[Token]) -> Iterable[tuple[str, float]]:
    """Yield the texts that a span may stand for, with what each costs."""
    words = [token.word for token in part]
    whole = " ".join(words)
    yield whole, costs.VALUE
    plain = whole.replace("-", " ")
    if plain != whole:
        yield plain, costs.VALUE
    single = " ".join([*words[:-1], lemma(words[-1])])
    if single != whole:
        yield single, costs.VALUE_FORM
    if len(words) > 1:
        yield "-".join(words), costs.VALUE_FORM
        yield "".join(words), costs.VALUE_FORM
        yield _unordered(whole.split()), costs.VALUE_FORM  # a 30 l keg: keg 30 l
    if len(words) == 1 and words[0].isalpha() and len(words[0]) > 3:
        yield f"~{stem(words[0])}", costs.VALUE_KIN
    if len(words) == 1 and lemma(words[0]) in GENDERS:
        for other in GENDERS[lemma(words[0])]:
            yield f"sex:{other}", costs.VALUE


def _unordered(words: list[str]) -> str:
    return f"any:{' '.join(sorted(words))}"


def index_of(catalog: Catalog, values: Values) -> Index:
    """Return the values known, by their plain text; a stem stands after a tilde."""
    index: Index = {}
    for table in catalog.tables.values():
        if table.kind != "table":
            continue
        for column in table.columns:
            if column.is_binary or column.is_date or column.truth is not None or column.has_number_type:
                continue
            for sample in dict.fromkeys(map(str, (value for value in column.samples if value is not None))):
                if len(sample) <= _SAMPLE_CHARS:
                    _add(index, (table.name, column.name, sample), 0.0)
    for text, matches in values.items():
        partly = [(match.table, match.column) for match in matches if match.how == "partial"]
        for match in matches:
            known = catalog.column(match.table, match.column)
            if known is None or (known.truth is not None and not str(match.value).isalpha()):
                continue
            place = (match.table, match.column, match.value)
            if match.how == "partial":
                several = partly.count((match.table, match.column)) > 1
                index.setdefault(text, []).append((costs.VALUE_PART - costs.VALUE + (costs.ONE_OF_MANY if several else 0.0), place))
                if len(str(match.value)) <= _SAMPLE_CHARS:
                    _add(index, place, 0.0)  # looked up by a part, asked for whole: nut-free kitchen
            else:
                _add(index, place, 0.0)
                index.setdefault(text, []).append((0.0, place))
    return index


def _add(index: Index, place: Place, extra: float) -> None:
    plain = str(place[2]).lower().strip()
    for form in dict.fromkeys((plain, plain.replace("-", " ").replace("_", " "))):
        index.setdefault(form, []).append((extra, place))
    if plain.isalpha() and len(plain) > 3:
        index.setdefault(f"~{stem(plain)}", []).append((extra, place))
    if " " in plain:
        index.setdefault(_unordered(plain.split()), []).append((extra, place))
    words = place[1].lower()
    if any(word in words for word in ("sex", "gender", "gndr")):
        index.setdefault(f"sex:{plain}", []).append((extra, place))


def more_texts(tokens: list[Token], known: Iterable[str]) -> list[str]:
    """Return further texts worth a look-up where the first reading failed: states of two words, families of words, hyphens."""
    seen = set(known)
    found: list[str] = []
    for place, token in enumerate(tokens):
        follows = tokens[place + 1] if place + 1 < len(tokens) else None
        if token.kind != "word":
            continue
        if follows is not None and follows.kind in ("number", "code"):
            found.append(f"{token.word} {follows.word}")
        if follows is not None and token.word in ("in", "on", "out", "under", "off", "at", "not", "no") and follows.kind == "word":
            if follows.word not in FUNCTION:
                found.append(f"{token.word} {follows.word}")
            if place + 2 < len(tokens) and tokens[place + 1].word in ("of", "the"):
                found.append(f"{token.word} {follows.word} {tokens[place + 2].word}")
        if token.word in FUNCTION | _ASKING or token.word in PREPOSITIONS or len(token.word) < 3:
            continue
        if "-" in token.word:
            found.append(token.word.replace("-", " "))
        found.append(token.word)
        if lemma(token.word) != token.word:
            found.append(lemma(token.word))
        if token.word.endswith("ed") and len(stem(token.word)) >= 3:
            found.append(stem(token.word))
        if follows is not None and follows.kind == "word" and follows.word not in FUNCTION and follows.word not in PREPOSITIONS:
            found.append(f"{token.word} {follows.word}")
            if lemma(follows.word) != follows.word:
                found.append(f"{token.word} {lemma(follows.word)}")
    return [text for text in dict.fromkeys(found) if text not in seen]
