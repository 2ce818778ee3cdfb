"""Tell verbs that stand as a state ('shipped orders', 'are still open') from verbs that only carry the sentence."""

# ruff: noqa: E501 - word lists read best as long lines of plain words

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.lexicon import FILLERS, PARTICIPLES, PREPOSITIONS, VERB_TABLES
from longtable.app.offline.lexicon_measures import SUPERLATIVES
from longtable.app.offline.linking import hits
from longtable.app.offline.text import Token, stem

_PLAIN = frozenset(["open", "live", "present", "current", "available", "owned", "used", "new"])
_NOUNS = frozenset("travel play work land order home lead head drive study deposit share record list hold ship supply design".split())  # noqa: SIM905
_NO_STATE = frozenset([
    "based", "used", "located", "called", "named", "titled", "labelled", "labeled", "situated", "included", "need", "needed", "speed", "made",
    "seen", "known", "born", "given", "taken", "asked", "recorded", "listed", "stored", "contained", "displayed", "shown", "saved", "related",
    "linked", "connected", "associated", "regarding", "involved", "total",
])  # fmt: skip
_BE = frozenset(["is", "are", "was", "were", "be", "been", "being", "not", "isn't", "aren't", "wasn't", "weren't", "never"])
_BETWEEN = frozenset(["still", "already", "currently", "now", "ever", "yet", "all", "both", "being", "either", "neither", "also"])
_MARKS = frozenset(["as", "status", "state", "marked", "flagged", "currently"])
_BEFORE_NOUN = frozenset([
    "many", "all", "the", "any", "list", "show", "find", "give", "get", "of", "which", "what", "our", "my", "every", "each", "per", "total",
    "average", "with", "no", "number", "count", "and", "or", "have", "has", "had", "only", "me", "not", "non", "without", "most", "few",
    "from", "in", "on", "to", "more", "fewer", "recent", "latest", "oldest", "newest", "a", "an", "by", "for",
])  # fmt: skip
_TIMED = frozenset(
    [
        "in",
        "on",
        "after",
        "before",
        "between",
        "since",
        "during",
        "until",
        "at",
        "last",
        "this",
        "from",
        "each",
        "every",
        "per",
        "monthly",
        "yearly",
        "daily",
        "weekly",
    ]
)
_AGENTS = frozenset(["by", "to", "from", "with", "via", "into", "than", "over", "under", "more", "less", "fewer", "out", "up", "off"])


def is_state(tokens: list[Token], place: int, catalog: Catalog) -> bool:
    """Say whether the word at `place`, a verb that is mostly passed over, stands as a state that a column may hold."""
    word = tokens[place].word
    if tokens[place].kind != "word" or not _may_be(word):
        return False
    before = place - 1
    while before >= 0 and tokens[before].word in _BETWEEN:
        before -= 1
    left = tokens[before].word if before >= 0 else ""
    right = tokens[place + 1] if place + 1 < len(tokens) else None
    joined = left in ("and", "or") and before > 0 and _may_be(tokens[before - 1].word)
    still = place > 0 and tokens[place - 1].word in ("still", "already", "currently")
    if left in _BE or left in _MARKS or joined or still:
        follows = right.word if right is not None else ""
        if still and follows in ("in", "at", "on", "for"):
            return True  # jobs still open in Dublin
        if follows in _TIMED or follows in ("each", "every", "per") or (right is not None and right.kind in ("number", "date")):
            return follows not in ("from",) and not _dated(word, catalog)
        return follows not in _AGENTS and not (follows.endswith("ly") and len(follows) > 5)
    if right is not None and right.text == "的":
        return True
    if (
        left in ("only", "just", "and", "about", "the")
        and len(tokens) <= 6
        and (right is None or right.kind == "stop" or right.word == "ones")
    ):
        return True  # 'only shipped ones', 'and the cancelled?': of the rows before
    noun = right is not None and right.kind in ("word", "quoted") and right.word not in FILLERS and right.word not in PREPOSITIONS
    if not noun and right is not None and right.kind == "word" and place + 2 < len(tokens):
        noun = _names_table((right.word, tokens[place + 2].word), catalog)  # open work orders
    if word in _NOUNS:
        return noun and (left in _BEFORE_NOUN or left in SUPERLATIVES)
    paired = right is not None and right.word in ("and", "or") and place + 2 < len(tokens) and _may_be(tokens[place + 2].word)
    return (noun or paired) and (before < 0 or left in _BEFORE_NOUN)


def _may_be(word: str) -> bool:
    if word in _NO_STATE or (word in _PLAIN and word not in FILLERS):
        return False
    return (word.endswith("ed") and len(word) > 4) or word in PARTICIPLES or word in _PLAIN or word in _NOUNS


def _names_table(words: tuple[str, str], catalog: Catalog) -> bool:
    return any(hit.is_table and hit.score >= 0.9 for hit in hits(words, " ".join(words), catalog))


def _dated(word: str, catalog: Catalog) -> bool:
    """Say whether a date column tells when it happened: then a time beside the verb means that column."""
    return any(
        stem(word) in {stem(part) for part in column.words} and (column.is_date or not table.described)
        for table in catalog.tables.values()
        for column in table.columns
    )


_STATUS = frozenset(["shipped", "delivered", "open", "opened", "published", "paid", "closed", "ended"])


def unexplained(tokens: list[Token], place: int, catalog: Catalog) -> bool:
    """Say whether a word tells a state that nothing in the schema records: passing over it would answer another question."""
    word = tokens[place].word
    follows = tokens[place + 1].word if place + 1 < len(tokens) else ""
    if word not in _STATUS or follows in _TIMED or not is_state(tokens, place, catalog):
        return False
    roots = {stem(word), stem(VERB_TABLES.get(word, word))}
    return not any(
        roots & {stem(part) for part in parts}
        for table in catalog.tables.values()
        for parts in (table.words, *(column.words for column in table.columns))
    )


__all__ = ["is_state", "unexplained"]
