"""Put denials, repetitions and courtesies of an English question plainly, before its other phrases are read."""

# ruff: noqa: E501 - a pattern reads best on one line

import re

from longtable.app.offline.lexicon import MONTHS
from longtable.app.offline.rewriting import compiled, rewritten

_MONTH = "(?:" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\.?"
_IS = "is|are|was|were"
_TIME = r"an? (?:night|hour|day|week|month|year) (?:in|at|of|with|on) "
_NEGATED = r"(?:n't|n’t|\bno|\bnot|\bwithout|\bnever|\blacks?|\blacking)\b"


def _dated(match: re.Match[str]) -> str:
    """Write 31/12/2024 as a day where only one reading is possible."""
    first, second, year = int(match[1]), int(match[2]), match[3]
    day, month = (first, second) if first > 12 >= second else (second, first) if second > 12 >= first else (0, 0)
    return f"{year}-{month:02d}-{day:02d}" if day and day <= 31 else match[0]


_DONE = r"[a-z]{3,}ed|taken|seen|sold|bought|made|given|sent|paid|met|done|held|built|won|written|driven|flown|led|taught|found|chosen|bid"


def _doer(verb: str) -> str:
    """Return who does it, from the stem of a verb in the third person: coordinator of coordinate(s), owner of own(s)."""
    root = verb.removesuffix("e")
    return root + ("or" if root.endswith(("at", "ct", "is", "it", "ut")) else "er")


_RULES = compiled(
    (
        (r"\b(\d{1,2})[/.](\d{1,2})[/.](\d{4})\b", _dated),
        (rf"\b(end(?:s|ed|ing)?) in (?=(?:the )?(?:year )?(?:19|20)\d\d\b|{_MONTH}\b)", r"\1 during "),
        # courtesies
        (r"\b(?:i am|i'm|we are|we're) (?:only |just )?(?:interested in|looking for|after)\b", "show"),
        (r"\b(most|highest|lowest|least|fewest|best|worst|biggest|largest|longest|oldest|newest)\b([^.?]*?),? overall(?=\W*$|, (?:and|with)\b)", r"\1\2"),
        (r"\b(list|show|name|give|mention) (?:me )?(each|every) ([\w ]+?) (?:only |just )?once\b", r"\1 distinct \3"),
        (r",? (?:each|every) (?:one )?(?:listed |shown |named )?(?:only |just )?once(?=\W*$)", " distinct"),
        # what is said in two words
        (r"\bno one\b", "nobody"),
        (r"\bwho['’]s\b", "who is"),
        (r"\b(?:that |who )?(?:(?:heard|learne?d|knew|know) (?:about|of)|found|came to|come to) us (?=(?:from|through|via|by|on|in)\b)", ""),
        (rf"(?:\b(?:that|which|whom?) )?\bnobody (?:(?:has|have|had|ever|yet) )+({_DONE})", r"never \1"),
        (rf"(?:\b(?:that|which|whom?) )?\bnobody ({_DONE})(?=\W*$)", r"never \1"),
        (r"\b(?:that|which|whom?) nobody ([a-z]{3,})s(?=\W*$)", lambda m: f"without a {_doer(m[1].lower())}"),
        (r"\b(who|they|we|that|which|i|you)['’]ve\b", r"\1 have"),
        (r"\bcan['’]?t\b|\bcan not\b", "cannot"),
        (r"\b(call)(s|ed)? off\b", lambda m: "cancelled" if m[2] == "ed" else "cancel"),
        (r"\b(?:sent|came|come|brought|handed|given|gave) back\b", "returned"),
        (r"\bturn(ed)? down\b", lambda m: "rejected" if m[1] else "reject"),
        (r"\bwork(?:s|ing)? from home\b", "are remote"),
        (r"\b(work(?:s|ing|ed)?|operat(?:es?|ing)|based) out of\b", r"\1 at"),
        (r"\ba?round the clock\b|\b24/7\b|\b24 hours a day\b|\bday and night\b", "24h"),
        (r"\b(?:starts?|starting|begins?|beginning|ends?|ending) with the word\b", lambda m: m[0].rsplit(" ", 2)[0]),
        (r"\b(?:an|1) (hour|day|week|month|year) and a half\b", r"1.5 \1s"),
        (r"^((?!which|what|who|how|list|show|give|where|when)[^.?!:;]{4,}?)(?::|;|,| -) (?:how many|how many (?:of them )?(?:are there|do we have|did we have|were there))(?=\W*$)", r"how many \1"),
        (r"\b(have|has|had) (?:quit|resigned)\b", r"\1 left"),
        (r"\bwithin (\d+|[a-z]+) (days?|hours?|minutes?|weeks?|months?|years?)\b(?! of\b)", r"at most \1 \2"),
        (r"^((?!which|what|who|how|list|show|give|where|when)[^.?!:;]{4,}?),? (?:counted|tallied)(?: up)? (?:by|per) (?=[a-z])", r"how many \1 per "),
        (r"\bput in(?= (?:more|less|fewer|at least|at most|over|under|the most|the fewest|\d+)\b|\W*$| (?:in|during|on|since|for|last|this)\b)", "worked"),
        (r"\bhow long (do|does|did) ((?:[a-z]+ ){1,4}?)last\b(?! (?:week|month|year|quarter|summer|winter|night)\b)", r"how long \1 \2take"),
        (r"(,| and|, and) for how (?:many (days|hours|minutes|weeks|months|years)|long)(?=\W*$)", lambda m: f"{m[1]} the {m[2] or 'duration'}"),
        (r"\b(older|newer|younger) than (?=(?:1[6-9]|20)\d\d\b)", lambda m: "from before " if m[1] == "older" else "from after "),
        # what one of them costs
        (r"^(?:what|how much) do (?:we|you|they) (?:charge|ask|take|want) for (?=\w)", "what is the price of "),
        (rf"^how much (?:{_IS}) (?=(?:an?|one) \w)", "what is the price of "),
        (rf"^(?:how much|what) (?:does|do|did|would|will) (?:{_TIME})?(?!it\b|they\b|we\b|you\b|each\b|every\b|all\b|the most\b)([^,?]+?) costs?(?=\W*$)", r"what is the price of \1"),
        (r"^(?:what|how much) (did|do|have|has) (we|they|the [a-z]+) (spend|spent|pay|paid) ((?:on|for) [^,?]+?)(?: in total| altogether| overall| in all)?(?=\W*$)", r"how much \1 \2 \3 \4"),
        (r"(,| and|, and) what (?:do|does|did) (?:each|every|the|their) (totals?|sums?|amounts?|counts?|figures?) (?:come|amount|add up|run) to(?=\W*$)", r"\1 the \2"),
        (r"\b(?:have|has|had|with|having) ([a-z]+(?: [a-z]+)?) (?:which |that )?(?:adding up to|add up to|added up to|amounting to|amount to|summing up to|sum up to|coming to|come to|totalling|totaling|that total) ((?:more than|less than|over|under|at least|at most|above|below) [$€£]?[\d,.]*\d)(?=\W*$|,)", r"brought in \2 in \1"),
        (r"\b(?:that |who |which )?(?:became|become|becoming) (?:an? |our |the )?members?\b", "joined"),
        (r"(\bby (?:the |their )?total\b[^.?]*?),? (?:with|and|plus|showing) (?:the|their|those|each) totals?(?=\W*$)", r"\1"),
        # one of each
        (rf"({_NEGATED}[^,.?]*?) (?:even )?(?:a|one) single\b", r"\1 any"),
        (rf"({_NEGATED}[^,.?]*?) (?:so much as|even) (?:a|an|one)\b", r"\1 any"),
        (r"\b(most|highest|lowest|largest|biggest|longest|smallest|best)\b([^,.?]*?) (?:in|on|at|for|from) (?:a|one|any)(?: one)? single\b", r"\1\2 of a"),
        (r"\bneither ([^,.?]+?) nor\b", r"not \1 or"),
        (r",? (?:counted |broken down |split |grouped )?\b(month|year|day|week|quarter) (?:by|for|after) \1\b", r" per \1"),
        # what it comes to
        (r"^what (?:do|does|did) (?:all )?(?:of )?(?:the |our )?(.+?) (?:bring|brought) in(?: in total| altogether| together| overall)?(?=\W*$)", r"what is the total revenue of the \1"),
        (r"\bthe most( money)? (?:in total|altogether|all told|in all)(?=\W*$|,)", r"the most\1"),
        (r"^(?:what|how much) (?:do|does|did) (?:we|they|the [a-z]+) (?:pay|spend|take|earn|make|collect) (?:in|as) (?=[a-z])(?!.*\bin total\b)", "what is the total "),
        (r"\b(?:leaving out|leave out|ignoring|ignore|disregarding|disregard|not counting|not including|omitting|skipping|without counting)\b", "excluding"),
        (r"\b((?:each|every|per|by) )([a-z]+(?: [a-z]+)?)(?:[,.;?]| -)? (?:please )?excluding (?:the |those |any |all )?(?:ones |[a-z]+s )?(?:(?:who|that|which) (?:do not|don't|have|has)|with|without)(?: have)? (?:none|any|one|it|such)(?=\W*$)", r"\1\2 whose \2 is not missing"),
        (r"\bexcluding (?:the |those |any |all )?(?:\w+ )?(?:with no|without(?: an?y?)?|that have no|with missing) (\w+)", r"whose \1 is not missing"),
        (r"\b(?:with|have|has|having|containing|contain) the word ([\"'“‘]?)(\w+)\1[\"'”’]? in (?:the|its|their) (\w+)", r'with \3 containing "\2"'),
        (r"\b(?:for |of )?(more than|less than|fewer than|over|under|at least|at most) ([\d,.]+) (\w+) (?:in all|altogether|in total|all told|overall|combined|across all (?:of )?(?:the|their|its|his|her) \w+)(?=\W*$|,)", r"a total of \1 \2 \3"),
        (r"\b(cheapest|dearest|costliest|priciest|most expensive|least expensive) (?:per|by the|a) (?:unit|piece|item|head)\b", r"\1"),
        (r"(,| and|, and| with|,? plus) how (?:many \w+|much) (?:do|does|did) (?:they|it|each|each of them) weigh(?=\W*$)", r"\1 the weight"),
        (r"(,| and|, and| with|,? plus) how (?:many \w+|much) (?:do|does|did) (?:they|it|each|each of them) cost(?=\W*$)", r"\1 the price"),
        (r"(,| and|, and| with|,? plus) how (?:many (?:minutes|hours|days|weeks|months)|long) (?:do|does|did) (?:they|it|each|each of them) (?:last|take|run)(?=\W*$)", r"\1 the duration"),
        (r"\b(?:that |who |which )?(?:paying|pays?|charging|charges?|earning|earns?|having|has|have|getting|gets?|with|taking|takes?) (more|higher|less|lower|fewer) ([a-z]+(?: [a-z]+)?) than (?:the |an )?average(?: \w+)?(?=\W*$|,| in\b| and\b)", lambda m: f"with {m[2]} {'above' if m[1].lower() in ('more', 'higher') else 'below'} the average"),
        (r"\b(one|two|three|four|five|[0-9])[- ]star (reviews?|ratings?)\b", r"\2 with \1 stars"),
        (r"\b(?:(?:that |which |who )?(?:have|has|had) )?(?:fallen|dropped|gone|sunk|come|slipped|risen) (below|under|above|over)\b", r"\1"),
        (r"\b(?:(?:that |which |who )?(?:have|has|had) )?(?:exceeded|surpassed|overshot)\b", "exceeding"),
        (r"\b(?:an? )?@?([\w-]+(?:\.[a-z]{2,})+) (e-?mails?(?: address(?:es)?)?|web ?sites?)\b", r'\2 containing "\1"'),
        (r"\bwhose ([a-z]+) (?:has|have|had) (?:an? )?(?=[a-z]+(?: address(?:es)?)? containing)", r"whose \1 "),
        (r",? (?:for|of|among|counting) (?:only |just )?the ([a-z]+ed|paid|sold|sent|lost) ones(?: only)?(?=\W*$)", r" that are \1"),
        (r"\b(most|fewest)\b([^.?]*?),? and how many(?=\W*$)", r"\1\2"),
        (r"\b(?-i:[A-Z][a-z]+) \(((?-i:[A-Z]{2,3}))\)", r"\1"),  # Texas (TX)
        # none, and no more than
        (r"\b(have|has|having|with|had) (?:nothing|none|zero) (on hand|in stock|left|on order)\b", r"\1 0 \2"),
        (r"\b(is|are|was|were|of|equals?|at) zero\b(?! \w)", r"\1 0"),
        (r"\b(?:that |which |who )?(?:can't|can’t|cannot|can not) (?:even )?(?:do|take|hold|print|handle|carry|seat|fit|have|run) more than (?=\d)", "with at most "),
        # order
        (r",? (?:from (?:the )?)longest[- ](?:serving|standing) to (?:the )?(?:newest|most recent|latest)(?=\W*$)", ", longest-serving first"),
        (r",? (?:from (?:the )?)(?:newest|latest|most recent) to (?:the )?longest[- ](?:serving|standing)(?=\W*$)", ", newest first"),
        (r",? (?:with )?(?:the )?((?:best|worst|highest|lowest|longest)[- ]\w+(?:ed|id|ing))(?: ones?)? (?:at the top|on top|at the head|up top)(?=\W*$)", r", \1 first"),
    )
)  # fmt: skip


def plainer(question: str) -> str:
    """Return an English question with such phrases replaced."""
    return rewritten(question, _RULES)
