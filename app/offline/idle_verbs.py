"""Let verbs stand aside that only join what is before them with what follows: 'drew the most visits', 'eat plants'."""

# ruff: noqa: E501, SIM905 - word lists read best as long lines of plain words

import itertools

from longtable.app.offline.catalog import Catalog
from longtable.app.offline.chunks import AGENT, Chunk
from longtable.app.offline.columns import entity
from longtable.app.offline.lexicon import MONEY_VERBS, PARTICIPLES
from longtable.app.offline.lexicon_events import events, same_event
from longtable.app.offline.lexicon_measures import VERB_DIMENSIONS
from longtable.app.offline.text import lemma, stem

_GOT = frozenset(
    """draw drew draws drawn attract attracted attracts see sees saw log logged receive record records generate generated generates bring brought
    brings gather gathered collect collected racked accumulated boast boasts feature features featured employ employs employed enjoy enjoyed get got
    gets count counts counted cover covers covered pull pulled complete completed produce produced produces score scored scores contain contains take turn turned yield yielded clock clocked net netted rack incur incurred cause caused
    took takes process processed processes handle handled handles book booked books place placed rack put submit submitted file filed raise raised
    issue issued host hosted hosts""".split()
)
_OWN = frozenset(
    [
        "represent",
        "cover",
        "manage",
        "supervise",
        "advise",
        "support",
        "use",
        "host",
        "train",
        "assist",
        "mentor",
        "coach",
        "organise",
        "organize",
        "recommend",
        "prefer",
        "speak",
        "ride",
    ]
)
_PARTICLES = frozenset("in up with through out over round around on for".split())
_IRREGULAR_PASTS = frozenset(
    "dealt shown spent kept found lost fed sent paid met heard ran led taught drove flew wrote sang sold bought made gave held had won rode swam caught shot built brought spoke".split()
)
_TURNED = frozenset("dislike avoid lack miss hate skip refuse lose lost missed avoided reject rejected cancel cancelled".split())
_BE = frozenset(["were", "was", "are", "is", "have", "has", "had", "been"])
_AFTER_CARE = frozenset(["look", "looks", "looking", "looked"])


def idle_verbs(chunks: list[Chunk], catalog: Catalog) -> None:
    """Turn verbs that need no place in a query into fillers."""
    _verbs_of_rankings(chunks)
    _looked_after(chunks)
    _before_someone(chunks)
    _verbs_of_events(chunks, catalog)
    _verbs_of_people(chunks, catalog)
    _verbs_of_measures(chunks)
    _to_do(chunks, catalog)
    _last_verb(chunks)
    _verb_before_place(chunks, catalog)
    _verb_of_value(chunks)


def _verbs_of_rankings(chunks: list[Chunk]) -> None:
    """'which exhibition drew the most visits', 'which clerk handled more than 5 cases': to have them is all it says."""
    for place, each in enumerate(chunks):
        past = (each.word.endswith("ed") and len(each.word) > 4 and each.word not in _TURNED) or each.word in _IRREGULAR_PASTS
        particle = chunks[place + 1] if place + 1 < len(chunks) else None
        if each.kind == "filler" and (past or each.word in PARTICIPLES) and particle is not None and particle.kind == "word":
            particle.kind = "filler" if particle.word in _PARTICLES else "word"  # shown round
        if each.kind != "word" or not (each.word in _GOT or (past and each.text.islower())) or place == 0:
            continue
        rest = [c for c in chunks[place + 1 :] if c.kind != "filler"]
        if rest and rest[0].kind in ("prep", "word") and rest[0].word in _PARTICLES:
            rest[0].kind = "filler" if rest[1:] and rest[1].is_op("most", "sup", "cmp") else rest[0].kind
            rest = rest[1:]
        several = len(rest) > 1 and rest[0].kind == "number" and rest[1].is_op("post")
        if rest and (several or rest[0].is_op("most", "sup", "cmp", "frequent")):
            each.kind = "filler"


def _verbs_of_events(chunks: list[Chunk], catalog: Catalog) -> None:
    """'which products did we launch in 2012': a date column tells of that event, and the time will find it."""
    named = {table for each in chunks if each.kind == "mention" and (table := entity(each))}
    tables = [table for table in catalog.tables.values() if not named or table.name in named]
    for before, each in zip((None, *chunks), chunks, strict=False):
        if before is not None and before.word in ("being", "still"):
            continue  # being repaired, still open: a state, at no time
        if each.kind == "word" and each.text.islower() and not each.quoted and events(each.word):
            told = any(column.is_date and same_event(each.word, column.words) for table in tables for column in table.columns)
            each.kind = "filler" if told else each.kind


def _verbs_of_people(chunks: list[Chunk], catalog: Catalog) -> None:
    """'which styles do we brew', 'the price we sold it for', 'volume brewed': verbs, though a table or column has their stem."""
    for place, each in enumerate(chunks):
        if (
            each.kind not in ("mention", "word")
            or " " in each.text
            or not each.text.islower()
            or each.quoted
            or each.arg == AGENT
            or not place
            or each.word in MONEY_VERBS
        ):
            continue
        before = [c.word for c in chunks[max(0, place - 2) : place]]
        asked = (
            (before[-1:] == ["we"] and before[0] in ("do", "did", "we", "that", "which", "have"))
            or before == ["do", "we"]
            or before == ["did", "we"]
            or (before[-1:] == ["we"] and place > 1 and chunks[place - 2].kind == "mention" and bool(entity(chunks[place - 2])))
        )
        past = each.word.endswith("ed") or each.word in PARTICIPLES
        spoken = before[-1:] in (["we"], ["they"]) and (asked or past) and each.word not in _TURNED
        doer = each.kind == "mention" and past and each.hits[0].is_table and each.best < 0.95
        table = catalog.table(each.hits[0].table) if doer else None
        if (each.kind == "mention" and spoken) or (table is not None and lemma(table.words[-1]).endswith(("er", "or"))):
            each.kind, each.hits = "filler", ()


def _verbs_of_measures(chunks: list[Chunk]) -> None:
    """'classes costing between 50 and 100': a verb that tells what is measured of the thing before it, not of another table."""
    for before, each in itertools.pairwise(chunks):
        weak = each.kind == "mention" and each.word in VERB_DIMENSIONS and each.best < 0.95
        named = before.kind == "mention" and " of " in before.text  # names of plants: the plants
        table = (before.hits[0].table if named else entity(before)) if before.kind == "mention" else ""
        if weak and table and all(hit.table != table for hit in each.hits):
            each.kind, each.hits = "filler", ()


def _last_verb(chunks: list[Chunk]) -> None:
    """'how many tickets did Borealis raise?': the verb at the end says no more than that they are its own."""
    said = [each for each in chunks if each.kind != "comma"]
    while len(said) > 1 and said[-1].kind == "filler" and said[-1].word in ("up", "in", "out", "there"):
        said.pop()  # how many faults did it turn up
    asked = any(each.word in ("did", "does", "do") for each in said)
    verb = said[-1] if said else None
    if verb is None or not asked or verb.kind != "word" or verb.name or verb.quoted or verb.word not in _GOT | _OWN:
        return
    verb.kind = "filler"


def _verb_before_place(chunks: list[Chunk], catalog: Catalog) -> None:
    """'which actors appeared in Iron Tide': what follows says it all."""
    for place, verb in enumerate(chunks[1:-1], 1):
        before = next((each for each in reversed(chunks[:place]) if each.word not in _BE), chunks[0])
        then, last = chunks[place + 1], chunks[min(place + 2, len(chunks) - 1)]
        table = catalog.table(entity(before)) if before.kind == "mention" else None
        lone = verb.kind == "word" and verb.text.islower() and table is not None
        past = verb.word.endswith("ed") and len(verb.word) > 4 and verb.word not in _TURNED
        timed = last.kind in ("time", "number")
        if timed and table is not None and sum(column.is_date for column in table.columns) != 1:
            continue  # which of the dates is meant nobody knows
        if lone and past and ((then.kind == "prep" and then.word != "by") or (then.word == "by" and last.kind == "value")):
            verb.kind = "filler"


def _verb_of_value(chunks: list[Chunk]) -> None:
    """'animals that eat plants', 'students speaking French': the value says which column, the verb nothing more."""
    told = [each for each in chunks if each.kind != "filler" and not (each.is_op("wh") and each.word in ("who", "which", "that"))]
    for before, verb, value in zip(told, told[1:], told[2:], strict=False):
        lone = verb.kind == "word" and verb.text.islower() and before.kind == "mention" and bool(entity(before))
        if lone and value.kind == "value" and verb.word.isalpha() and verb.word not in _TURNED:
            verb.kind = "filler"


def _looked_after(chunks: list[Chunk]) -> None:
    for first, second in itertools.pairwise(chunks):
        if first.word in _AFTER_CARE and second.word == "after":
            first.kind = second.kind = "filler"
            second.op = ""


def _before_someone(chunks: list[Chunk]) -> None:
    """'hearings before Judge Osei': a place, and no time."""
    for first, second in itertools.pairwise(chunks):
        if first.is_op("time") and first.word in ("before", "after") and second.kind == "value":
            first.kind, first.op = "filler", ""


def _to_do(chunks: list[Chunk], catalog: Catalog) -> None:
    """'the first customer to sign up', 'the last person to join': a verb that the date column has in its name."""
    dated = {stem(word) for table in catalog.tables.values() for column in table.columns if column.is_date for word in column.words}
    joined = {"".join(column.words) for table in catalog.tables.values() for column in table.columns if column.is_date}
    for place, each in enumerate(chunks):
        if each.word != "to" or place + 1 >= len(chunks) or not any(c.is_op("first", "sup") for c in chunks[:place]):
            continue
        verb = chunks[place + 1]
        if verb.kind == "word" and (stem(verb.word) in dated or any(name.startswith(verb.word) for name in joined)):
            each.kind = verb.kind = "filler"
