"""Spell out what a schema abbreviates in ways of its own: where plants are asked for and nothing is called so, the table plt holds them.

The question decides, for the whole schema at once: every name with the same letters is spelled the same way, the analyst reads the
spelled schema, and its query is put back into the real names.
"""

import itertools
from dataclasses import replace

from longtable.app.offline.catalog import Catalog, Table
from longtable.app.offline.chunks import Values
from longtable.app.offline.cut import chunk
from longtable.app.offline.lexicon import FILLERS, PREPOSITIONS
from longtable.app.offline.lexicon_abbreviations import ALTERNATIVES, EXPANDED
from longtable.app.offline.lexicon_measures import UNIT_NAMES
from longtable.app.offline.names import Names
from longtable.app.offline.solid import cuts
from longtable.app.offline.text import Token, lemma, likeness, parts_of, skeleton, split_name

_CLEAR = 0.45
"""The cost up to which letters alone tell the word."""
_HELPED = 0.75
"""The cost up to which they do where the name is that of a table, or its next word is the question's next word."""
_VOWELS = frozenset("aeiou")
_COMPARED = frozenset(["than", "more", "less", "most", "least", "fewer"])  # AMT is no amount more than


def spelled_out(tokens: list[Token], catalog: Catalog) -> Catalog:
    """Return the catalogue in the names that a question gives it: as it is where its words are explained already."""
    solid = cuts(tokens, catalog)
    apart = _renamed(catalog, solid) if solid else catalog
    words = _assigned(tokens, apart) if _abbreviates(apart) else {}
    if not words:
        return apart
    spelled = {part: tuple(words.get(piece, piece) for piece in pieces) for part, pieces in solid.items()}
    return _renamed(catalog, {short: (word,) for short, word in words.items()} | spelled)


def _renamed(catalog: Catalog, pieces: dict[str, tuple[str, ...]]) -> Catalog:
    names = _names(catalog, pieces)
    tables = [_table(table, names) for table in catalog.tables.values()]
    carded = frozenset(names.spell(name).casefold() for name in catalog.carded)
    return replace(catalog, tables={table.name.casefold(): table for table in tables}, carded=carded, names=names)


def in_names(values: Values, catalog: Catalog) -> Values:
    """Return found values at their places in the names of a catalogue that was spelled out."""
    spell = catalog.names.spell
    return {
        text: tuple(replace(each, table=spell(each.table), column=spell(each.table, each.column)) for each in matches)
        for text, matches in values.items()
    }


def _names(catalog: Catalog, pieces: dict[str, tuple[str, ...]]) -> Names:
    spelled: dict[tuple[str, str], str] = {}
    real: dict[tuple[str, str], str] = {}
    for table in catalog.tables.values():
        title = _spell(table.name, pieces, {other.casefold() for other in catalog.tables})
        spelled[table.name.casefold(), ""] = title
        real[title.casefold(), ""] = table.name
        for column in table.columns:
            name = _spell(column.name, pieces, set(table.by_name))
            spelled[table.name.casefold(), column.name.casefold()] = name
            real[title.casefold(), name.casefold()] = column.name
    return Names(spelled, real)


def _table(table: Table, names: Names) -> Table:
    def place(real: str) -> str:
        other, dot, column = (part.strip('"') for part in real.rpartition("."))
        return f"{names.spell(other)}{dot}{names.spell(other, column)}" if other else real

    columns = tuple(
        replace(
            each,
            table=names.spell(table.name),
            name=names.spell(table.name, each.name),
            references=place(each.references),
            guess=place(each.guess),
        )
        for each in table.columns
    )
    return replace(table, name=names.spell(table.name), columns=columns)


def _spell(name: str, pieces: dict[str, tuple[str, ...]], others: set[str]) -> str:
    """Return a name with its abbreviations spelled out, itself where another has that name."""
    parts = parts_of(name)
    spelled = "_".join(piece for part in parts for piece in pieces.get(part, (part,)))
    return name if spelled == "_".join(parts) or spelled in others else spelled


def _assigned(tokens: list[Token], catalog: Catalog) -> dict[str, str]:
    """Return the word that each abbreviation stands for: the cheapest pairs first, each word and each abbreviation once."""
    loose = [each.place for each in chunk(tokens, catalog, {}) if each.kind == "word" and not each.name and not each.quoted]
    said = {lemma(token.word) for token in tokens}
    names = {parts_of(name) for table in catalog.tables.values() for name in (table.name, *(column.name for column in table.columns))}
    shorts = {part for name in names for part in name if part.isascii() and part.isalpha() and len(part) > 1 and part not in said}
    titles = {table.words[0] for table in catalog.tables.values() if len(table.words) == 1}
    titles |= {title for table in catalog.tables.values() if (title := _own_prefix(table))}
    words = _initials(tokens, shorts, {parts_of(table.name)[0] for table in catalog.tables.values()})
    found: list[tuple[float, str, str]] = []
    for place in loose:
        word = lemma(tokens[place].word)
        for short in shorts if word.isascii() and word.isalpha() else ():
            cost = misfit(word, short)
            if cost > _HELPED or max(likeness(word, part) for part in split_name(short)) >= 0.86:
                continue  # what is linked lacks something else than letters
            helped = short in titles or _beside(tokens, place, short, names)
            known = short in UNIT_NAMES or (len(short) == 2 and (short in EXPANDED or short in ALTERNATIVES))
            if helped or (cost <= _CLEAR and not known):
                found.append((cost - (0.2 if helped else 0.0), short, word))
    for _, short, word in sorted(found):
        if short not in words and word not in words.values() and not any(likeness(other, short) >= 0.86 for other in said - {word}):
            words[short] = word
    return words


def _own_prefix(table: Table) -> str:
    """Return what the key of a table and some name in it begin with: vt of vt_id and vt_nm."""
    key = parts_of(table.key[0].name) if len(table.key) == 1 else ()
    others = [parts_of(column.name) for column in table.columns if column not in table.key and not column.references]
    return key[0] if len(key) == 2 and any(parts[0] == key[0] and split_name(parts[-1])[-1] == "name" for parts in others) else ""


def _abbreviates(catalog: Catalog) -> bool:
    """Say whether a schema abbreviates: a tenth of its words at least. In the schemas of evals/ it is a quarter or a hundredth."""
    names = (name for table in catalog.tables.values() for name in (table.name, *(column.name for column in table.columns)))
    parts = {part for name in names for part in parts_of(name) if len(part) > 1 and part.isalpha()} - UNIT_NAMES - {"id", "no"}
    short = [part for part in parts if part in EXPANDED or not set(part) & {*_VOWELS, "y"}]
    return len(short) >= 0.1 * len(parts)


def _initials(tokens: list[Token], shorts: set[str], titles: set[str]) -> dict[str, str]:
    """Return the words whose first letters a name is made of: purchase orders in PO_HDR, a unit of measure in UOM."""
    words: dict[str, str] = {}
    for start in range(len(tokens)):
        for end in range(start + 2, min(start + 4, len(tokens)) + 1):
            run = [token.word for token in tokens[start:end]]
            if not all(token.kind == "word" and token.text.islower() for token in tokens[start:end]):
                break
            short = "".join(word[0] for word in run)
            read = {*ALTERNATIVES.get(short, ()), EXPANDED.get(short, "")} & {*map(lemma, run)}
            other = short in UNIT_NAMES or ((short in EXPANDED or short in ALTERNATIVES) and not read)
            idle = (not read and {run[0], run[-1]} & (FILLERS | PREPOSITIONS)) or _COMPARED & {*run}
            if short in shorts and not idle and not other and min(map(len, (run[0], run[-1]))) > 2 and (len(run) > 2 or short in titles):
                words.setdefault(short, "_".join(map(lemma, run)))
    return words


def _beside(tokens: list[Token], place: int, short: str, names: set[tuple[str, ...]]) -> bool:
    """Say whether the next word of the question is the next of a name too: of 'fuel surcharge' the fl in fl_srchg."""
    for name in names:
        for first, second in itertools.pairwise(name):
            beside = [(place + 1, second)] if first == short else [(place - 1, first)] if second == short else []
            if any(0 <= other < len(tokens) and likeness(tokens[other].word, part) >= 0.86 for other, part in beside):
                return True
    return False


def misfit(word: str, short: str) -> float:
    """Return how badly letters abbreviate a word: 0 for its consonants, 1 where they do not; after the shared start all are consonants."""
    if word[0] == "e" and word[1:2] == short[:1] == "x" and len(short) > 2:
        return misfit(word[1:], short) if word[1:] != short else 0.0  # xtra of extra
    if short[0] != word[0] or not 2 <= len(short) < len(word) or (word.endswith(("ed", "ing")) and short[-1] != word[-1]):
        return 1.0
    if skeleton(word) == short:
        return 0.0
    shared = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(word, short, strict=False))))
    rest = iter(word[shared:])
    if not short[shared:] or set(short[shared:]) & _VOWELS or not all(letter in rest for letter in short[shared:]):
        return 1.0  # a mere beginning may be a word of its own: home is not short for homework
    consonants = skeleton(word) or word
    kept = min(1.0, len(short) / len(consonants))
    return 0.2 + 0.5 * (1 - kept) + (0.0 if short[-1] == consonants[-1] else 0.15) + (0.2 if len(short) == 2 else 0.0)
