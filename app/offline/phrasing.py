"""Put phrases that people use into the plain words that the rules read, before a question is cut into chunks."""

# ruff: noqa: E501 - a pattern reads best on one line

import re

from longtable.app.offline.lexicon import NUMBERS
from longtable.app.offline.phrasing_asides import RULES
from longtable.app.offline.phrasing_dates import written_dates
from longtable.app.offline.phrasing_roundabout import RULES as ROUNDABOUT
from longtable.app.offline.phrasing_roundabout import summed_quantity
from longtable.app.offline.plainer import plainer
from longtable.app.offline.rewriting import compiled, rewritten

_I = re.IGNORECASE
_DONE = {"win": "won", "lose": "lost", "cancel": "cancelled", "deny": "denied"}
_TOP = r"(?:first|at the top|on top)"
_RULES = compiled(
    (
        (r"\b(than|over|under|least|most) an? (?=(second|minute|hour|day|kilo|ton|mile|pound|million)\w*)", r"\1 1 "),
        (r"\b(first|last|family|given) and (first|last|family|given) (names?)\b", r"\1 \3 and \2 \3"),
        (r"\b(?:ever )?since the (?:very )?(?:start|beginning|outset) of (?=\w)", "since "),
        (r"\bfrom the (?:start|beginning) of (?=\w)", "since "),
        (r"\b(?:by|until|till|up to|before) the end of (?=(?:january|february|march|april|may|june|july|august|september|october|november|december)?\s*\d{4})", "until "),
        (r"\bbefore the (?:start|beginning) of (?=\w)", "before "),
        (r"\bafter the end of (?=\w)", "after "),
        (r"\b(?:from |in )?(\d{4}) (?:onwards?|and later|and after|or after)\b", r"since \1"),
        (r"\bfrom (\d{4}) on\b", r"since \1"),
        (r"\b(\d{4}) (?:or|and) (?:before|earlier)\b", r"until \1"),
        (r"\b(?:with(?:out)? |no )(?:any )?(?:repeats?|repetitions?|duplicates?|doubles)(?: please| allowed)?\b", " distinct "),
        (rf",? ?(?:with )?(?:the )?(?:most (?:common|frequent|popular|numerous|used|visited|booked|ordered|sold|active)|commonest|busiest)(?: \w+)? {_TOP}", " descending"),
        (rf",? ?(?:with )?(?:the )?(?:least (?:common|frequent|popular)|rarest)(?: \w+)? {_TOP}", " ascending"),
        (rf",? ?(?:with )?the (highest|lowest|biggest|largest|smallest|most|fewest|newest|oldest|latest|cheapest|most expensive|longest|shortest)(?: ones?)? {_TOP}", r", \1 first"),
        (r"[,.;?]? (?:please )?(?:start|begin)(?:ing)? (?:with|from) (?:the )?(highest|lowest|biggest|largest|smallest|newest|oldest|latest|earliest|cheapest|most expensive|longest|shortest|youngest|most recent)(?: ones?| first)?\b", r", \1 first"),
        (r",? (?:from )?(?:most|high(?:est)?|big(?:gest)?|larg(?:e|est)) to (?:least|fewest|low(?:est)?|small(?:est)?)(?: first)?$", " descending"),
        (r",? (?:from )?(?:least|fewest|low(?:est)?|small(?:est)?) to (?:most|high(?:est)?|big(?:gest)?|larg(?:e|est))(?: first)?$", " ascending"),
        (r"\b(?:on|in) average\b", "on average"),
        (r"(?<![\d'])'?([2-9])0s\b", r"19\g<1>0s"),
        (r"\bby (?:the )?(?:total |overall )?(?:(?:amount|money|sum)(?: of money)?(?: (?:they|each))?(?: have| has)? (?:spent|paid|spend)|spend(?:ing)?|money)\b", "by total revenue"),
        (r"\bsquare (?:metres?|meters?)\b", "sqm"),
        (r"\bsquare (?:feet|foot)\b", "sqft"),
        (r"\bsquare (?:kilometres?|kilometers?|km)\b", "sqkm"),
        (r"\bhow much money\b", "how much"),
        (r"(?<!\bup)[, ]+(?:so far|to date|until now|up to now|right now|at the moment|at present|these days|nowadays|as of (?:now|today)|in all|all in all|for us|with us|to us)(?=\W*$)", ""),
        (r"\b(?:joint|all)[- ]time (?=best|highest|most)", ""),
        (r"\bbetween (\S+) to (\S+)", r"between \1 and \2"),
        (r"\b(\d+(?:\.\d+)?) ?(?:-|–) ?(\d+(?:\.\d+)?)(?= (?:kg|km|years|minutes|hours|days|dollars|euros)\b)", r"between \1 and \2"),
        (r"\bsigned up\b|\bsigned on\b", "registered"),
        (r"\bsign(s)? up\b", r"register\1"),
        (r"\b(?:came|come|went) out\b", "released"),
        (r"\b(set|setting) up\b", "established"),
        (r"\bpicked up\b", "collected"),
        (r"\b(?:took|taken) on\b(?! (?:an?|the|each|every|our|all) )", "hired"),
        (r"\b(?:carried|carry) out\b", "made"),
        (r"\b(paid|sent|given|handed|shipped|lent|rented|hired) out\b", r"\1"),
        (r"\b(pay|send|give|hand|ship|lend) out\b", r"\1"),
        (r"\b(?:is |are |was |were )?no longer active\b", "are inactive"),
        (r"\bno longer (?:with us|here|working here|employed|working for us|in service|there)\b", "have left"),
        (r"\b(?:has|have|had) been (?:our|an?|the) (\w+) (?:with us |here )?(?:for )?(?:the )?longest(?: (?:time|of all))?\b", r"is the longest-serving \1"),
        (r"\b(?:have|has|had|having)?\s*(?:been|worked|served|stayed)(?: (?:open|in business|running|with us|here|for us|in the job|in service|on board|around|a \w+|an \w+|our \w+|on the books|employed))?,? (?:for )?(?:the )?longest(?: (?:time|of all))?\b", "the longest-serving"),
        (r"\blong(?:est)?[- ](?:serving|standing|term)\b", "longest-serving"),
        (r"\bmost senior\b", "longest-serving"),
        (r"\b(?:longest|most)[- ](?:established)\b", "oldest"),
        (r"\bwith the (?:most|longest) (?:years of )?(?:service|seniority|tenure)\b", "longest-serving"),
        (r"\bhow much does (?:an?|the|one) ([\w' -]+?) (weigh|cost)(?=\W*$)", r"\2 of the \1"),
        (r"\b(?:for sale|to rent|to let) (?:at|for) (?=\d)", "at "),
        (r"\b(?:priced|listed|valued) at (?=(?:more|less|over|under|above|below|at least|at most))", "costing "),
        (r"\b(?:outside|out) of (?=[A-Z])|\boutside (?=[A-Z])", "not in "),
        (r"\bon (?:a|the) (monday|tuesday|wednesday|thursday|friday|saturday|sunday)s?\b", r"on \1"),
        (r"\bat (?:the )?weekends?\b|\bon (?:a |the )?weekends?\b", "on saturday or sunday"),
        (r"\b(?:in|during) the first half of (\d{4})\b", r"between \1-01-01 and \1-06-30"),
        (r"\b(?:in|during) the second half of (\d{4})\b", r"between \1-07-01 and \1-12-31"),
        (r"\b(?:in|during) (?:the )?spring (?:of )?(\d{4})\b", r"between \1-03-01 and \1-05-31"),
        (r"\b(?:in|during|over) (?:the )?summer (?:of )?(\d{4})\b", r"between \1-06-01 and \1-08-31"),
        (r"\b(?:in|during) (?:the )?(?:autumn|fall) (?:of )?(\d{4})\b", r"between \1-09-01 and \1-11-30"),
        (r"(,| and| with|,? plus) when (?:they|each(?: one| of them)?|it|he|she) (?:was|were|got) (\w+(?:ed|n|t))(?=\W*$)", r"\1 the \2 date"),
        (r"(,| and| with|,? plus) (?:the )?(\w+(?: \w+)?) (?:that )?(?:each(?: one| of them)?|they|it) (?:is|are|was|were|has|have|belongs?|comes?|works?|lives?|stands?)(?: \w+ed)?(?: (?:in|at|from|on|to|for|of|under|by))?(?=\W*$|,)", r"\1 the \2"),
        (r"\b((?:with|have|has|had|having)\b[^?,;]*?)(?: \w+(?:ed|de|nt))? (?:on|in|to|at|under|by|for|against|from) (?:it|them|him|her)(?=\W*$|,| and\b)", r"\1"),
        (r"^(?:which|what) ((?:\w+ )?\w+) (?:do|did|have) we have no ([\w ]+?) (?:for|of|on|from)(?=\W*$)", r"which \1 have no \2"),
        (r"\b(\w+) (?:that |which |whom? |where )?we (?:have|hold|know|got|'ve got) no ([\w ]+?)(?: (?:for|of|on|from))?(?=\W*$)", r"\1 with no \2"),
        (r"\b(\w+) (?:that |which |whom? |where )?we (?:do not|don't|haven't got|haven't) (?:have|hold|know|got)?(?: an?| any| the)? ([\w ]+?) (?:for|of|on|from)(?=\W*$)", r"\1 with no \2"),
        (r"\bon the (?:price ?list|menu|shelf|shelves|books|market|team|roster)\b(?=\W*$)", ""),
        (r"\b(?:left|joined|quit|entered) (?:the |our )?(?:company|firm|business|organi[sz]ation|us|team)\b(?=\W|$)", lambda m: m.group(0).split()[0]),
        (r"\bstill (?:in service|in use|employed(?: here| by us| with us)?|with us|work(?:ing|s)? (?:here|for us|with us)|on (?:the )?(?:staff|payroll|team)|in the fleet|on the books)\b,?(?: i\.e\.,? not \w+)?", "not left"),
        (r",? i\.e\.,? ", " "),
        (r"\b(?:can (?:take|hold|seat|fit|accommodate|house|carry)|(?:holds?|seats?|fits?|accommodates?) (?=the \w+ (?:people|persons|guests))) ?the (most|fewest) \w+", lambda m: f"has the {'highest' if m.group(1) == 'most' else 'lowest'} capacity"),
        (r"\b(largest|biggest|highest|smallest|lowest|longest|shortest|heaviest|most expensive|cheapest) (?:single|individual|one)\b", r"\1"),
        (r"\bwhose ([\w ]+?) (?:we (?:do not|don't) (?:know|have)|(?:is|are) (?:not known|unknown|missing|not recorded))(?=\W|$)", r"with no \1"),
        (r"^where do most of (?:our|the) ([\w ]+?) come from\b", r"what is the most common source of \1"),
        (r"\b(with|have|has|had) no ((?:\w+ )?(?:phone|telephone|mobile|id|licen[cs]e|plate|account|tax|vat) )number\b", r"\1 no \2"),
        (r"\b(?:single|individual) (?=(?:largest|biggest|highest|smallest|lowest|longest|shortest|heaviest|most expensive|cheapest|best|worst)\b)", ""),
        (r"\b(?:compared|in comparison|as opposed) (?:with|to)\b|\bvs\.?(?=\s)|\bcompared against\b", "versus"),
        (r"\bin (?:the )?order (?:that |in which )?(?:they|these|those) (?:were |was |have |had |been )*(\w+)(?=\W*$)", r"sorted by \1"),
        (r"\b(\w+) and a half (?=(?:hour|minute|day|year|month|kilo|ton|mile|million)\w*)", lambda m: _half(m.group(1), m.group(0))),
        (r"\ban? (hour|day|year|mile|million) and a half\b", r"1.5 \1s"),
        (r"\bhalf an hour\b", "30 minutes"),
        (r"\b(?:three quarters of an hour)\b", "45 minutes"),
        (r"\b(?:a )?quarter of an hour\b", "15 minutes"),
        (r",? and (?:how (?:much|long|big|high|large|old|many)|what|when) (?:was|is|were|are) (?:it|that|they|this)(?=\W*$)", ""),
        (r"^(?:(?:list|show|give)(?: me)? )(?:all |the |our )*(\w+) (?:and|with|together with|along with) (?:the )?(?:number of|how many) ([\w ]+?) (?:each|they|each one|each of them) (?:have|has|had)(?=\W*$)", r"number of \2 per \1"),
        (r"\b(after|before) (?:they|it|these) (?:were|was|is|are|fell|became|had been) due\b", r"\1 the due date"),
        (r"\b(?:have|had|do|did) we (?:had|have|known|kept|served|worked with) (?:for )?the longest\b", "is the longest-serving"),
        (r"\bdid (?:we|they) (win|lose|settle|reject|approve|cancel|complete|close|finish|refuse|deny|accept)(?=\W*$| (?:in|during|since|before|after)\b)", lambda m: f"were {_DONE.get(m.group(1).lower()) or m.group(1).rstrip('e') + 'ed'}"),
        (r"\bmore than half of\b", "more than half of"),
    )
)  # fmt: skip


def _half(word: str, whole: str) -> str:
    number = NUMBERS.get(word.lower(), int(word) if word.isdigit() else None)
    return f"{number}.5 " if number is not None else whole


_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}


def _scaled(match: re.Match[str]) -> str:
    value = float(match.group(1).replace(",", "")) * _SCALES[match.group(2).lower()]
    return f"{value:.0f}" if value == int(value) else f"{value:g}"


_HEADCOUNT = re.compile(r"\b(?:head ?counts?)(?: of)?\b", _I)


def plainly(question: str, *, headcounts: bool = False, quantities: bool = False) -> str:
    """Return an English question with such phrases replaced; `headcounts`, `quantities`: the schema has such a column."""
    question = question if headcounts else _HEADCOUNT.sub("number of", question)
    question = summed_quantity(question) if quantities else question
    question = rewritten(question, ROUNDABOUT)
    question = plainer(question)
    question = re.sub(r"\b(\d[\d,]*(?:\.\d+)?) (hundred|thousand|million|billion)\b", _scaled, question, flags=_I)
    return written_dates(rewritten(question, (*RULES, *_RULES)))
