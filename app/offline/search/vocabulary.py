"""Name the words of grammar that a question may hold without meaning anything by them, beyond the general vocabulary."""

# ruff: noqa: E501, SIM905 - word lists read best as long lines of plain words

from typing import Final

from longtable.app.offline.lexicon import FILLERS

FUNCTION: Final = frozenset(
    """a an the is are was were be been being am do does did has have had having will would can could should shall may might must there here
    this that which who where when what whom whose please me us i we you my our your hello hi hey thanks thank ok okay so then also just now
    all any some only well if about want like need see know tell show give list display find get let one ones too once
    along together with as well i'd i'll i'm it's let's what's who's how's there's to s t re ve ll d m
    each's us both respectively by of in on at from for and than into within during among via through or off toward towards
    currently presently now today yet already still ever even exactly actually really quite just simply kindly n't wish""".split()
)
"""Words that cost nothing."""

IDLE: Final = (
    frozenset(
        """everything everyone everybody anybody somebody someone people person thing things stuff kind kinds sort way ways time times place
    total overall entire complete plain single record records case cases item items entry entries figure figures count counts number numbers
    amount amounts value values piece pieces unit units data detail details info information list lists table name names
    moment momentarily present turn turned put add adds adding up come comes call calls called go goes going gone run runs running
    say says said look looks looking ask asks asked asking use used uses using want wanted have had keep keeps kept hold holds held
    happen happened take takes took taken bring brings brought fall falls fell fallen appear appears appeared lead leads led rank ranked
    break down broken counted count breakdown leaving leave left out sit sits stand stands stay stays live lives come found based home
    business company ours system database catalogue catalog stock fleet hand ground field side part parts
    order sequence separately individual individually altogether different various certain particular given total together respective
    possible available apart lately file member members staffs recently recent ever made make makes done doing does gets got getting been""".split()
    )
    | FILLERS
)
"""Words that may be passed over at a small cost: they carry a sentence more often than a condition."""

DROPPED: Final = frozenset("of the a an s and to in on at for by with our my your their its his her".split())
"""Words inside a name that need not stand in the schema's name."""

AFTER: Final = frozenset(
    "in on since from before after until till during of for by between and to through than the year years early late".split()
)
"""Words after which a number of four digits is a year."""

ROWS: Final = frozenset("rows records entries times items people persons ones things".split())
"""Words that count the rows of whatever is spoken of."""

TAILS: Final = frozenset("address addresses number numbers date dates amount value figure level time data name names".split())
"""Words that close the name of a column without standing in it."""

EVERYONE: Final = frozenset("everyone everybody people person persons anyone anybody someone".split())
"""Words that stand for the people of whatever table holds them."""

NO: Final = {
    "1": "0", "yes": "no", "Yes": "No", "YES": "NO", "Y": "N", "y": "n", "T": "F", "t": "f", "true": "false", "True": "False", "是": "否",
}  # fmt: skip
"""What stands for no beside what stands for yes."""

FLAG_WORDS: Final = frozenset("is has flag flg yn ind indicator fl was can require required reqd req allow allowed needs".split())
"""Words of a flag column's name that say only that it is one."""

_PHRASES: Final = """
    each || month by month, year by year, for every, by each, in every, of every, apiece
    order || rank the, rank, in sequence of
    dir | desc | highest at the top, best at the top, most frequent at the top, newest at the top, largest at the top, longest at the top
    dir | asc | soonest first, earliest first, longest-serving first, nearest first, from longest-serving to newest
    agg | sum | add up to, adds up to, add up, sum up, summed up, bring in, in all, come to
    agg | avg | average, mean
    neg || without a single, not a single, no single, don't have a single, never had, not yet, not been, haven't had, don't have any, lacking, not any, nor, aren't, no
    cmp | > | more, exceeded, have exceeded, longer than, later than
    post | >= | or better, or higher, and higher, or greater, or larger
    post | <= | or fewer
    until || through, to
    time | <= | by the end of
    sup | min:date | soonest, earliest
    sup | max:date | latest, newest
"""
MORE_PHRASES: Final[dict[tuple[str, ...], tuple[str, str]]] = {
    tuple(phrase.split()): (op.strip(), arg.strip())
    for op, arg, phrases in (line.split("|", 2) for line in _PHRASES.strip().splitlines())
    for phrase in phrases.split(",")
}
"""Phrases that say what to do, beyond those of the general vocabulary."""
