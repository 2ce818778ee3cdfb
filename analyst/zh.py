"""Turn a Chinese question into tokens with English words. This module is loaded for Chinese
questions only.
"""

import re
from calendar import month_name
from collections.abc import Iterable
from functools import cache, lru_cache

from longtable.analyst.lexicon import Token, costs, read_lines, tokenize
from longtable.analyst.links import name_meanings
from longtable.analyst.schema import Catalog

_PIECE = re.compile(
    r"""(?P<quoted>["“「《‘][^"”」》’]+["”」》’]) | (?P<date>\d{4}年\d{1,2}月\d{1,2}[日号]) | (?P<year>(?:19|20)\d{2})(?:年(?:度)?)
  | (?P<month>\d{1,2})月(?:份)? | (?P<day>\d{1,2})[日号] | (?P<run>[\u3400-\u9fff]+)""",
    re.VERBOSE,
)
_LONGEST = 12


@cache
def lexicon() -> dict[str, tuple[str, ...]]:
    """Return the English words that each Chinese word may mean. The file is read only once."""
    words: dict[str, tuple[str, ...]] = {}
    for chinese, english, *_ in read_lines("chinese.tsv"):
        words[chinese] = tuple(map(str.strip, english.replace("~", "").split("|")))
    return words


def translate(question: str, catalog: Catalog | None, names: Iterable[str] = ()) -> list[Token]:
    """Return the tokens of a question. Each token has its Chinese text and an English word.

    `names` are Chinese values and names, which are kept unchanged. If a word has several English
    meanings, the meaning that fits the schema is chosen.
    """
    known = frozenset(
        name for name in (*names, *_own_names(catalog)) if re.search(r"[\u3400-\u9fff]", name)
    )
    tokens: list[Token] = []
    place = 0
    for match in _PIECE.finditer(question):
        tokens += tokenize(question[place : match.start()])
        tokens += _piece(match, catalog, known)
        place = match.end()
    tokens += tokenize(question[place:])
    return tokens


@lru_cache(maxsize=16)
def _own_names(catalog: Catalog | None) -> frozenset[str]:
    tables = catalog.plain if catalog is not None else ()
    names: set[str] = set()
    for table in tables:
        names |= {table.name, *(column.name for column in table.columns)}
    return frozenset(names)


def _piece(match: re.Match[str], catalog: Catalog | None, known: frozenset[str]) -> list[Token]:
    text = match.group(0)
    if match.group("quoted"):
        return [Token(text[1:-1], text[1:-1].lower(), "quoted", match.start())]
    if match.group("date"):
        year, month, day = (int(part) for part in re.findall(r"\d+", text))
        return [Token(text, f"{year:04}-{month:02}-{day:02}", "date", match.start())]
    if match.group("year"):
        return [Token(text, match.group("year"), "number", match.start(), int(match.group("year")))]
    if match.group("month") and 1 <= int(match.group("month")) <= 12:
        return [Token(text, month_name[int(match.group("month"))].lower(), "word", match.start())]
    if match.group("day"):
        return [Token(text, match.group("day"), "ordinal", match.start(), int(match.group("day")))]
    tokens: list[Token] = []
    for word, is_known in _segments(text, known):
        if is_known and word not in known:
            options = lexicon()[word]
            counts = options[0] == "number of" and tokens and _is_table(tokens[-1].word, catalog)
            english = options[0] if counts else _fitting(options, catalog)
            tokens += [
                Token(word, each.word, each.kind, match.start() + 1, each.number)
                for each in tokenize(english)
            ]
        else:
            tokens.append(Token(word, word.lower(), "word", match.start() + 1))
    return tokens


def _is_table(word: str, catalog: Catalog | None) -> bool:
    """Return whether a word names a table. Then 数量 after it means the number of rows."""
    meanings = name_meanings(catalog, (word,)) if catalog is not None else ()
    return any(each.kind == "table" and each.cost < costs.CHINESE_FITS for each in meanings)


def _segments(run: str, known: frozenset[str]) -> list[tuple[str, bool]]:
    """Cut a run of characters into as few words as possible, preferring long words. Each word is
    returned with whether it is known. Characters in no list are joined into unknown words.
    """
    words = lexicon()
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(run) + 1):
        ways = [(best[end - 1][0] + costs.UNKNOWN, end - 1)]
        for start in range(max(0, end - _LONGEST), end):
            word = run[start:end]
            if word in known:
                ways.append((best[start][0] + 0.5 - 0.01 * len(word), start))
            elif word in words:
                price = (
                    1.3
                    if len(word) == 1
                    else 1.0 - 0.01 * len(word) ** 2 + (0.15 if word[-1] in "的了过" else 0.0)
                )
                ways.append((best[start][0] + price, start))
        best.append(min(ways))
    cuts: list[tuple[str, bool]] = []
    end = len(run)
    while end:
        start = best[end][1]
        word = run[start:end]
        cuts.append((word, word in words or word in known))
        end = start
    merged: list[tuple[str, bool]] = []
    for word, is_known in reversed(cuts):
        if merged and not is_known and not merged[-1][1]:
            merged[-1] = (merged[-1][0] + word, False)
        else:
            merged.append((word, is_known))
    return merged


def _price(option: str, catalog: Catalog) -> float:
    """Return the price of the cheapest meaning of some words in the schema, 9 if they have none."""
    meanings = name_meanings(catalog, tuple(option.lower().split()))
    return min((each.cost for each in meanings), default=9.0)


def _fitting(options: tuple[str, ...], catalog: Catalog | None) -> str:
    """Return the English option that best names something in the schema. If none does, return the
    first option.
    """
    if catalog is None or len(options) == 1:
        return options[0]
    prices = [_price(option, catalog) for option in options if option]
    best = min(range(len(prices)), key=lambda place: prices[place], default=0)
    return options[best] if prices and prices[best] < costs.CHINESE_FITS else options[0]
