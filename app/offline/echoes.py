"""Let a short name that comes after a longer one mean the same column: 'the highest annual premium: number and premium'."""

import itertools
from dataclasses import replace

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.chunks import Chunk
from longtable.app.offline.columns import entity
from longtable.app.offline.lexicon import VERB_TABLES
from longtable.app.offline.lexicon_events import events, same_event
from longtable.app.offline.linking import date_hit
from longtable.app.offline.text import lemma, likeness, stem


def echoes(chunks: list[Chunk], catalog: Catalog) -> None:
    """Settle what mentions mean by those around them."""
    _verbs_of_columns(chunks)
    _counts_named(chunks)
    _whens(chunks, catalog)
    _tails(chunks)
    _things_done(chunks, catalog)


def _tails(chunks: list[Chunk]) -> None:
    """'with an annual premium ... the premium': the tail of a name that was said in full."""
    told: list[Chunk] = []
    for each in chunks:
        if each.kind != "mention":
            continue
        word = lemma(each.text.lower())
        for earlier in told:
            tail = lemma(earlier.word) == word and not entity(earlier) and earlier.best > each.best
            if " " not in each.text and tail and each.best < 0.95 and not _is_own(each, chunks):
                each.hits = earlier.hits
                break
        if " " in each.text and each.hits and not each.hits[0].is_table:
            told.append(each)


def _verbs_of_columns(chunks: list[Chunk]) -> None:
    """'watched for 500 minutes': of several minutes, those watched."""
    mentions = [each for each in chunks if each.kind == "mention" and " " not in each.text]
    for verb in mentions:
        if not (verb.word.endswith("ed") and len(verb.word) > 4) or verb.best >= 0.9 or verb.hits[0].is_table:
            continue
        told = {(hit.table, hit.column) for hit in verb.hits if not hit.is_table}
        for other in mentions:
            shared = [hit for hit in other.hits if (hit.table, hit.column) in told]
            if other is not verb and len(shared) == 1 and other.best < 0.95 and not entity(other):
                other.hits = (replace(shared[0], score=1.0),)
                verb.kind, verb.hits = "filler", ()
                break


def _counts_named(chunks: list[Chunk]) -> None:
    """'the lowest calorie count': a noun that closes the name of a column of numbers."""
    for before, each in itertools.pairwise(chunks):
        if each.is_op("count") and each.text.lower() == "count" and before.kind == "mention" and before.hits[0].numeric:
            each.kind, each.op = "filler", ""


def _whens(chunks: list[Chunk], catalog: Catalog) -> None:
    """'when does the insurance of X expire': the noun and the verb together name a date."""
    if not any(each.is_op("wh") and each.word == "when" for each in chunks):
        return
    verb = next((each for each in reversed(chunks) if each.kind in ("filler", "word") and events(each.word)), None)
    dates = [c for table in catalog.tables.values() if table.kind == "table" for c in table.columns if c.is_date]
    for each in chunks if verb is not None else ():
        if each.kind != "word" or each is verb or each.name or not each.text.islower() or verb is None:
            continue
        found = [c for c in dates if same_event(verb.word, c.words) and any(likeness(each.word, word) >= 0.9 for word in c.words)]
        if len(found) == 1:
            each.kind, each.hits = "mention", (date_hit(found[0]),)
            verb.kind = "filler"


def _is_own(each: Chunk, chunks: list[Chunk]) -> bool:
    """Say whether an aggregate before a mention makes it a thing counted, not a column shown."""
    before = chunks[each.order - 1] if each.order else None
    return before is not None and before.is_op("count", "cmp", "each", "by", "neg")


def _things_done(chunks: list[Chunk], catalog: Catalog) -> None:
    """'how many passes were sold': of the types of passes and their sales, the sales."""
    words = {each.word for each in chunks}
    nouns = {stem(VERB_TABLES[word]) for word in words if word in VERB_TABLES} | {stem(word) for word in words if word.endswith("ed")}
    for each in chunks:
        whole = [hit for hit in each.hits if hit.is_table] if each.kind == "mention" and entity(each) else []
        tables = [hit for hit in whole if hit.score >= whole[0].score - 0.03]
        if len(tables) < 2:
            continue
        done = [hit for hit in tables if (table := catalog.table(hit.table)) is not None and nouns & set(map(stem, table.words[1:]))]
        if len(done) == 1 and done[0] is not each.hits[0]:
            each.hits = (replace(done[0], score=each.best), *(hit for hit in each.hits if hit is not done[0]))
