"""Set the links of chunks right where one tells what another means: keys, attributes, verbs."""

import itertools
from dataclasses import replace

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.chunks import Chunk
from longtable.app.offline.columns import entity
from longtable.app.offline.lexicon import PARTICIPLES, UNIT_WORDS
from longtable.app.offline.lexicon_measures import ADJECTIVES
from longtable.app.offline.linking import Hit
from longtable.app.offline.text import lemma, stem

TIMES = frozenset(["once", "twice", "thrice", "times"])
"""Words of a number that says how often."""


def relink(chunks: list[Chunk], catalog: Catalog) -> None:
    """Let chunks that stand together settle what each of them means."""
    for first, second in itertools.pairwise(chunks):
        if first.kind == second.kind == "mention" and (table := entity(second)) and not entity(first) and points_at(catalog, first, table):
            second.kind = "filler"  # 'origin airport': the key says it all
    for kind, joiner, thing in zip(chunks, chunks[1:], chunks[2:], strict=False):
        typed = kind.kind == thing.kind == "mention" and lemma(kind.text.lower()) in ("type", "kind", "sort") and joiner.word == "of"
        if typed and not any(hit.is_table or hit.numeric for hit in thing.hits[:1]) and thing.best >= 0.95:
            kind.kind = joiner.kind = "filler"  # each type of cargo, where the cargo tells it
    for first, second in itertools.pairwise(chunks):
        if first.word == "ordered" and first.is_op("order") and (second.is_op("cmp") or second.kind == "number"):
            first.kind, first.op, first.hits = "filler", "", ()  # customers who ordered more than once: nothing is sorted
        if first.kind == "number" and second.kind == "mention" and second.text.lower() == "times":
            second.kind, second.hits, second.unit = "filler", (), ""
            first.word = first.word if first.word in TIMES else "times"  # more than four times: how often, no time of day
    as_entities(chunks, catalog)
    own_keys(chunks, catalog)
    for each in chunks:
        weak = each.kind == "mention" and " " not in each.text and each.best < 0.9 and not each.hits[0].is_table
        if weak and (each.hits[0].dated or catalog_key(catalog, each)) and (each.word.endswith("ed") or each.word in PARTICIPLES):
            each.kind = "filler"  # 'were fed', 'was sold': the verb, which a time may need
        named = each.kind == "word" and each.word.endswith("ed") and not each.name
        if named and any(stem(each.word) == stem(word) for table in catalog.tables.values() for word in table.words):
            each.kind = "filler"  # 'never rated': the verb of a table
    for before, each in itertools.pairwise(chunks):
        measured = before.unit or lemma(before.word) in UNIT_WORDS
        if measured and each.kind in ("word", "value") and each.word in ADJECTIVES:
            each.kind = "filler"  # 120 minutes long


def as_entities(chunks: list[Chunk], catalog: Catalog) -> None:
    """Let a key stand for the table it points at, where a column of that table is asked for: 'the package of all channels'."""
    for before, each in itertools.pairwise([each for each in chunks if each.kind == "mention"]):
        if entity(each) or entity(before) or each.hits[0].is_table:
            continue
        hit = each.hits[0]
        target = next((link.one for link in catalog.links if link.many == hit.table and link.many_columns == (hit.column,)), "")
        own = [other for other in before.hits if not other.is_table and other.score >= before.best - 0.05]
        if (
            target
            and target != hit.table
            and own
            and all(other.table == target for other in own)
            and each.word not in ("id", "ids", "code")
        ):
            tables = tuple(other for other in each.hits if other.is_table and other.table == target)
            if tables:
                each.hits = (replace(tables[0], score=1.0), *(other for other in each.hits if other is not tables[0]))


def own_keys(chunks: list[Chunk], catalog: Catalog) -> None:
    """'the student with id 14', 'student IDs': the key is that of the thing just named."""
    named = ""
    for before, each in itertools.pairwise(chunks):
        if before.kind == "mention" and lemma(before.word) == "id" and lemma(each.word) in ("number", "no"):
            each.kind = "filler"  # the id number is the id
        if before.kind == "mention" and each.kind == "mention" and each.text.lower() == "number" and each.best < 0.8:
            home = catalog.table(entity(before) or before.hits[0].table)
            if home is not None and len(home.key) == 1 and home.key[0].is_id:
                each.hits = (Hit(home.name, home.key[0].name, 1.0),)  # transcript number 5
                continue
        if before.kind == "mention":
            named = entity(before)
        elif before.kind not in ("prep", "filler"):
            named = ""
        if each.kind != "mention" or lemma(each.word) != "id":
            continue
        if not any(entity(other) for other in chunks if other.kind == "mention" and other is not each):
            pointed_at(each, catalog)
        alone = " " not in each.text
        tables = [hit.table for hit in each.hits if hit.is_table]
        home = catalog.table(named) if alone and named else None
        if home is None or len(home.key) != 1 or tables:
            continue
        own = [hit for hit in each.hits if (hit.table, hit.column) == (home.name, home.key[0].name)]
        if own:
            each.hits = (replace(own[0], score=1.1), *(hit for hit in each.hits if hit is not own[0]))


def pointed_at(mention: Chunk, catalog: Catalog) -> None:
    """Let 'student IDs' be the key of the students before the keys that point there."""
    first = mention.hits[0]
    for link in catalog.links:
        if (link.many, link.many_columns) != (first.table, (first.column,)):
            continue
        own = [hit for hit in mention.hits if (hit.table, hit.column) == (link.one, link.one_columns[0]) and hit.score >= 0.85]
        if own:
            mention.hits = (replace(own[0], score=1.1), *(hit for hit in mention.hits if hit is not own[0]))
            return


def catalog_key(catalog: Catalog, mention: Chunk) -> bool:
    """Say whether a mention's best column is a key."""
    column = catalog.column(mention.hits[0].table, mention.hits[0].column)
    return column is not None and column.is_id


def points_at(catalog: Catalog, mention: Chunk, table: str) -> bool:
    """Say whether a mention is a key that points at `table`."""
    hit = mention.hits[0]
    return any(link.one == table and link.many_columns == (column,) for link in catalog.links for column in (hit.column,) if column)
