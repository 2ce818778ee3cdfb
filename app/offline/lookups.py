"""Say which words of a question may be values of the database, to be looked up before it is read."""

import itertools

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.channels import channels
from longtable.app.offline.cut import chunk
from longtable.app.offline.far_values import far_mentions
from longtable.app.offline.lexicon import FILLERS, GENDERS, PREPOSITIONS, UNIT_WORDS
from longtable.app.offline.states import is_state
from longtable.app.offline.text import Token, lemma
from longtable.app.offline.value_forms import forms, standing

MOST = 10
DEMONYMS = {
    "american": "usa", "british": "uk", "french": "france", "german": "germany", "italian": "italy", "spanish": "spain",
    "japanese": "japan", "chinese": "china", "canadian": "canada", "brazilian": "brazil", "mexican": "mexico", "indian": "india",
    "dutch": "netherlands", "swedish": "sweden", "norwegian": "norway", "danish": "denmark", "finnish": "finland", "polish": "poland",
    "portuguese": "portugal", "australian": "australia", "russian": "russia", "korean": "korea", "austrian": "austria",
    "swiss": "switzerland", "belgian": "belgium", "irish": "ireland", "greek": "greece", "turkish": "turkey", "argentine": "argentina",
}  # fmt: skip
_DENYING = frozenset(["no", "not", "nobody", "never", "none", "non", "un"])
_OFTEN = frozenset(["monthly", "weekly", "daily", "yearly", "annually", "quarterly", "biweekly", "annual"])
_STRONG = 0.9


def value_texts(tokens: list[Token], catalog: Catalog) -> list[str]:
    """Return the texts to look up, most telling first, at most `MOST`: quoted ones, names, words that no table or column explains."""
    if not tokens:  # marks and pictures only
        return []
    chunks = chunk(tokens, catalog, {})
    loose: list[bool] = [False] * len(tokens)
    ends = [each.place for each in chunks[1:]] + [len(tokens)]
    far = [each for each, _ in far_mentions(chunks) if not each.hits[0].numeric and not each.hits[0].dated]
    for each, end in zip(chunks, ends, strict=True):
        strong = (
            each.kind == "mention"
            and each not in far
            and (each.best >= _STRONG or (not each.name and each.best >= 0.75))
            and not (each.name and each.text.isupper() and len(each.text) <= 5)
        )
        for place in range(each.place, end):
            token = tokens[place]
            if (
                token.kind == "quoted"
                or (each.kind == "word")
                or (each.kind == "mention" and not strong)
                or (each.kind == "mention" and token.is_name and place > 0 and not _in_title(tokens, place))
            ):
                loose[place] = True
    for each, following in itertools.pairwise(chunks):
        weak = each.kind == following.kind == "mention" and each.best < _STRONG and not each.hits[0].is_table and " " not in each.text
        if weak and following.hits[0].is_table:
            loose[each.place] = True  # credit cards: a value, though a limit is of credit
    texts: dict[str, float] = {}
    for place, token in enumerate(tokens):
        if is_state(tokens, place, catalog):
            texts.setdefault(token.word, 2.2)
            for form in forms(token.word):
                texts.setdefault(form, 1.1)
    for place, (before, token) in enumerate(itertools.pairwise(tokens), 1):
        if loose[place] and not loose[place - 1] and token.kind == before.kind == "word" and before.word not in FILLERS | PREPOSITIONS:
            texts.setdefault(f"{before.word} {token.word}", 1.95)  # store manager: a value, though there are stores
        if before.kind == "number" and loose[place] and token.start == before.start + len(before.text) + 1:
            run = list(itertools.takewhile(lambda each: each.kind == "word" and each.is_name, tokens[place:]))
            texts.setdefault(" ".join([f"{before.word}-{token.word}", *(each.word for each in run[1:])]), 2.9)  # a 3-Day Youth pass
    for text in standing(tokens, loose):
        texts.setdefault(text, 2.6)
    for start, end in _runs(tokens, loose):
        _add_run(texts, tokens[start:end])
    for place, token in enumerate(tokens):
        stands = place + 1 >= len(tokens) or tokens[place + 1].kind != "word" or tokens[place + 1].word in ("or", "and", "in", "by")
        if token.word in _OFTEN and stands:
            texts.setdefault(token.word, 1.7)  # paid monthly: a value, maybe
    for text in _joined(tokens):
        texts.setdefault(text, 1.9)
    for place in channels(tokens):
        texts.setdefault(tokens[place].word, 1.8)
    for before, token in itertools.pairwise(tokens):
        if before.word in _DENYING and token.kind == "word" and (token.word not in FILLERS or token.word.endswith("ed")):
            texts.setdefault(f"{before.word} {token.word}", 1.9)  # nobody home, no show: a value, maybe
    for token in tokens:
        if (
            (lemma(token.word) in GENDERS)
            and token.kind == "word"
            and any(_is_gender(column.name) for table in catalog.tables.values() for column in table.columns)
        ):
            for word in GENDERS[lemma(token.word)]:
                texts.setdefault(word, 0.5)
    return sorted(texts, key=lambda text: -texts[text])[:MOST]


def _joined(tokens: list[Token]) -> list[str]:
    """Return small words on either side of an 'and' that may be values: 'the night and express routes'."""
    found: list[str] = []
    for first, joiner, last in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if joiner.word in ("and", "or") and first.kind == last.kind == "word" and first.text.islower() and lemma(first.word) == first.word:
            found += [word for word in (first.word, last.word) if lemma(word) in UNIT_WORDS or word in FILLERS]
        if joiner.word in ("and", "or") and all(lemma(each.word) != each.word and lemma(each.word) in FILLERS for each in (first,)):
            found.append(lemma(first.word))  # tables and chairs
    for before, token, following in zip((None, *tokens), tokens, tokens[1:], strict=False):
        plain = token.kind == following.kind == "word" and lemma(token.word) == token.word and token.word in UNIT_WORDS
        noun = following.word not in PREPOSITIONS and following.word not in FILLERS
        if plain and noun and (before is None or (before.kind == "word" and before.word not in ("per", "each", "every", "by", "a", "an"))):
            found.append(token.word)  # night shift operators
    return found[:2]


def _is_gender(name: str) -> bool:
    return any(word in name.lower() for word in ("sex", "gender", "性别"))


def _in_title(tokens: list[Token], place: int) -> bool:
    """Say whether the whole question is in capitals, where they mean nothing."""
    del place
    words = [token for token in tokens if token.kind == "word"]
    return sum(token.text[:1].isupper() for token in words) > 0.7 * len(words)


def _runs(tokens: list[Token], loose: list[bool]) -> list[tuple[int, int]]:
    """Return runs of loose words, with the small words that stand inside names (Bank of America)."""
    runs: list[tuple[int, int]] = []
    start: int | None = None
    for place in range(len(tokens) + 1):
        inside = place < len(tokens) and (
            loose[place]
            or (
                start is not None
                and place + 1 < len(tokens)
                and tokens[place].word in ("of", "the", "and", "in", "de", "la", "for", "to", "a")
                and loose[place + 1]
                and tokens[place - 1].is_name
                and tokens[place + 1].is_name
            )
            or (start is not None and tokens[place].kind == "number" and loose[place - 1])
        )
        if inside and start is None:
            start = place
        elif not inside and start is not None:
            runs.append((start, place))
            start = None
    return runs


def _add_run(texts: dict[str, float], run: list[Token]) -> None:
    words = [token for token in run if token.word]
    whole = " ".join(token.word for token in words)
    name = 1.0 if any(token.is_name for token in words) else 0.0
    if len(words) <= 8 and len(words) > 1:
        texts.setdefault(whole, 3.0 + name)
        last = lemma(words[-1].word)
        if last != words[-1].word:
            texts.setdefault(" ".join([*(token.word for token in words[:-1]), last]), 2.0 + name)
    for token in words:
        weak = token.kind != "quoted" and (
            (token.word in FILLERS and not (len(token.text) == 1 and token.text.isupper() and token.text != "I"))
            or token.word in PREPOSITIONS
            or (len(token.word) < 2 and not token.text.isupper())
        )
        if not weak:
            texts.setdefault(token.word, 2.0 + name + (0.5 if len(words) == 1 else 0))
            if token.word in DEMONYMS:
                texts.setdefault(DEMONYMS[token.word], 1.5)
            if token.kind == "word" and not token.text.isupper():
                for form in forms(token.word):
                    texts.setdefault(form, 1.9 if "-" in token.word else 1.0 if lemma(token.word) == form else 0.9)
    for size in (2, 3):
        for start in range(len(words) - size + 1) if len(words) > size else ():
            part = words[start : start + size]
            if all(token.is_name or token.word not in PREPOSITIONS for token in part):
                texts.setdefault(" ".join(token.word for token in part), 1.2 + name)
    if len(words) == 2 and not name and not any(token.word in FILLERS for token in words):
        texts.setdefault("-".join(token.word for token in words), 0.8)
