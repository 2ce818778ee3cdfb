"""Put roundabout turns of English into plain words: flying the flag of, takes the longest to play, add up, in date order."""

# ruff: noqa: E501 - a pattern reads best on one line

import re

from longtable.app.offline.labels import plural
from longtable.app.offline.lexicon import PEOPLE
from longtable.app.offline.rewriting import compiled
from longtable.app.offline.text import lemma

_I = re.IGNORECASE
_NOUN = {"long": "length", "wide": "width", "deep": "depth", "high": "height", "tall": "height", "heavy": "weight", "old": "age"}
_EACH = r"(?:each|each one|every one|each of (?:them|these|those)|they|it)"
_MORE = r"(?:more than|at least|over|fewer than|less than|exactly|at most)"


def _participle(verb: str) -> str:
    return verb + "d" if verb.endswith("e") else verb + "ed"


def _gerund(verb: str) -> str:
    return (verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb) + "ing"


def _paying(match: re.Match[str]) -> str:
    every = {"day": "daily "}.get(match[2].lower(), f"{match[2].lower()}ly ") if match[2] else ""
    return f"with a {every}pay {match[1]}"


RULES = compiled(
    (
        (rf"(,| and|, and| with|,? plus) how (long|wide|deep|high|tall|heavy|old) (?:is|are|was|were) {_EACH}(?=\W*$)", lambda m: f" and the {_NOUN[m[2].lower()]}"),
        (r"\b(?:takes?|took) the (longest|shortest|most|least)(?: time)? to (?!(?:the|a|an|be|get)\b)([a-z]{3,})(?=\W*$| (?:in|at|of|for)\b)", lambda m: f"has the {'shortest' if m[1].lower() in ('shortest', 'least') else 'longest'} {_gerund(m[2].lower())} time"),
        (r"^(?:are there|do we have|is there) (?:any |some )?([^.?!;]+?)[.?!;] ?(?:please )?(?:give|show|list|tell|name)(?: me| us)? (?:their|the|those) (names?)(?=\W*$)", r"list the \2 of \1"),
        (r"^(?:are there|do we have|is there) (?:any |some )([^.?!;]+?)[.?!;] ?(?:please )?(?:show|list|name)(?: me| us)? (?:them|these|those|which)(?=\W*$)", r"list the \1"),
        (r"^(?:what (?:are|is) |show |give me |list )?(?:the )?dates? of (?:the |our )?(?:earliest|first|oldest)(?:,? and|,? as well as) (?:the |our )?(?:latest|last|newest|most recent) ([a-z]+)(?=\W*$)", r"minimum and maximum \1 date"),
        (r"^(?:please )?add (?:up|together) ", "sum of "),
        (r"^how (?:often|many times) (?:was|is|were|are|has) each (?:of the )?([\w ]+?) (?:been )?\w+ed (?:on|in|for|by|at|with) (?:an?|any|the|our) ([a-z]+)(?=\W*$)", lambda m: f"number of {plural(lemma(m[2].lower()))} with a {m[1]} per {m[1]}"),
        (r"\bin (?:the )?order of (?:the )?(date|name|time|price|size|age|year|number)(?=\W*$)|\bin (date|name|time|price|size|age|year|number) order\b", lambda m: f"sorted by {m[1] or m[2]}"),
        (r"\b(?:flying|bearing|carrying|wearing|sporting|displaying) (?:the|an?) (?=[a-z]+ (?:of|from)\b)", "with the "),
        (r"\byears? of construction\b|\bconstruction years?\b", "year built"),
        (r"\b(?:paying|that pays?|which pays?) (?=(?:between|more|less|over|under|above|below|at least|at most|[$€£]?\d))([^,;?]*?\d)(?: (?:a|per|each|every) (year|month|week|day|hour))?(?=\W|$)", _paying),
        (r"\bhow many ([\w ]+?) did (?:we|they) ([a-z]+) (?=because\b)", lambda m: f"how many {m[1]} were {_participle(m[2].lower())} "),
        (r"\bbecause of (?:the |an? )?([a-z][a-z -]+?)(?=\W*$)", r'with reason "\1"'),
        (r"\b(?:in|during) (\d{4}),? (?:going|judging|counting|counted|based) (?:by|on|from) (?:the |their |its )?([a-z]+ date)(?=\W*$)", r"with \2 in \1"),
        (r"\b(\w+) times or (more|fewer|less)\b|\b(twice) or (more|fewer|less)\b", lambda m: f"at {'least' if (m[2] or m[4]).lower() == 'more' else 'most'} {m[1] + ' times' if m[1] else m[3]}"),
        (r"^what (?=(?:do|does|did|have|has) (?:the |our |all )?[\w ]*?\b(?:costs?|collect(?:ed)?|spend|spent|pay|paid|earn(?:ed)?|take in|taken in|bring in|brought in|charged?|make|made|raised?|bill(?:ed)?)(?: us)? (?:in total |altogether |overall )?(?:per|by|for each|for every|on each|in each|each|every)\b)", "how much "),
        (r"\b(?:(two|three|four|five|six|seven|eight|nine|ten|\d+) )?(?:biggest|largest|greatest|best|strongest|heaviest) ([a-z]+(?: [a-z]+)?) by (?=(?:the )?(?:total |overall )?(?:number|count|amount|sum|quantity|revenue)\b)", lambda m: f"top {m[1] or 1} {m[2]} by "),
        (r"(?<=\w),? (?:with )?(?:the )?(best|top|worst)(?: ones?)? first(?=\W*$)", lambda m: f", {'lowest' if m[1].lower() == 'worst' else 'highest'} first"),
        (r"^(?:the |our )?([a-z]+) (?:numbers|headcounts?) (?=(?:by|per|for each|across|in each|in every)\b)", lambda m: f"number of {plural(lemma(m[1].lower()))} " if lemma(m[1].lower()) in PEOPLE else m[0]),
        (r"\bsquare footage\b", "sqft"),
        (r"^(?:what (?:is|was) )?(?:the |our )?(?:total )?payroll (?:by|per|for each|of each) ", "total salary per "),
        (r"^(?:what (?:is|was|are|were) )?(?:the |our )?(?!(?:total|average|mean|number|how)\b)((?:[a-z]+ ){0,2}(?:costs?|spend|spending|expenses|revenue|takings|turnover)) (?:by |for each |per (?!hour|day|night|week|month|year|unit|item|piece|person|head|guest|mile|km|kg|ton|sq|m2|litre|gallon))(?=[a-z])", r"total \1 per "),
        (r"^new (?=[a-z]+ (?:that |who )?(?:registered|joined|signed|added|acquired|hired|enrolled)\b)", ""),
        (r",(?: with)? ((?:[a-z]+ )?[a-z]+ [a-z]+) (?:left out|excluded|not counted|not included)(?=\W*$)", r" excluding \1"),
        (r"\bbecause (?:they|it|he|she) (?:was|were|is|are) ([a-z]+)(?=\W*$)", r'with reason "\1"'),
        (r"\b(?:have|has|had|with|having) an? ([a-z]+(?: [a-z]+)?) (?:other than|different from|that is not) (?=\w)", r"whose \1 is not "),
        (r"\b((?:total|average|overall) (?:[a-z]+ )?(?:quantity|quantities|amount|amounts|units|weight|volume|value)) ordered by (?=[a-z])", r"\1 ordered per "),
        (rf"({_MORE} (?:\d+|\w+) times)(?:,? and how (?:often|many times)|,? and the number of times)(?=\W*$)", r"\1, and how many"),
        (r"\b((?:per|by|each|every) (?:year|month|quarter|week)),? (?:going|judging|counting|counted|based|according|measured) (?:by|on|to|from) (?=(?:the |their |its )?\w)", r"\1 by "),
    )
)  # fmt: skip
_TOTAL_QUANTITY = re.compile(
    r"\b(?:what (?:is|was) the )?(?:total|overall|whole|combined|summed) quantit(?:y|ies) of (?=\w)|^what quantity of (?=\w)", _I
)


_SOLD_BEST = re.compile(
    r"^(which|what) ([\w ]+?) (?:(?:has |have )?(?:sold|sells?) (?:the )?(?:best|most)|(?:do|did|have) we (?:sell|sold) (?:the )?most(?: of)?)(?=\W*$| (?:in|on|at|during|since)\b)",
    _I,
)
_BY_PIECES = re.compile(r"\bby (?:the )?(?:number of )?(?:units|pieces|items|copies)(?: sold| ordered)?(?=\W*$)", _I)


def summed_quantity(question: str) -> str:
    """Let what sold best, and the total quantity, be the sum of the column of that name, in a schema that has one, and no number of rows."""
    question = _BY_PIECES.sub("by total quantity", _SOLD_BEST.sub(r"\1 \2 has the highest total quantity", question))
    return _TOTAL_QUANTITY.sub("total quantity for ", question)
