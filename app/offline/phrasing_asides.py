"""Put asides, second sentences and roundabout questions of English into plain words, before a question is cut into chunks."""

# ruff: noqa: E501 - a pattern reads best on one line

import re

from longtable.app.offline.rewriting import compiled

_I = re.IGNORECASE
_HIGH = "highest|biggest|largest|greatest"
_LOW = "lowest|smallest|least"
_BY_DATE = "newest|latest|oldest|earliest|soonest|most recent"
_NOUNS = "amounts?|totals?|numbers?|counts?|figures?|sums?|values?|ones?"
_EACH = r"(?:each|every one|they|each of (?:them|these|those)|each one)"
_HAD = r"(?:have|has|had|get|got|do|does|did|receive|received|hold|holds|held|own|owns|owned)"
_NOUN = {"weigh": "weight", "cost": "price", "last": "duration", "earn": "pay"}


def _added(match: re.Match[str]) -> str:
    what = re.sub(r"^(?:all )?(?:of )?(?:the |our )?(?:total )?", "", match[1], flags=_I)
    summed = re.match(
        r"(?:\w+ )?(?:prices|amounts|costs|fees|values|charges|payments|hours|quantities) (?:of|on|for|from)\b", what, flags=_I
    )
    return f"what is the sum of {what}" if summed else f"what is the total amount of {what}"


def _dated(match: re.Match[str]) -> str:
    """'whose permit expires in 2026, and on what date': the date that the verb tells."""
    noun = {"expire": "expiry", "begin": "start"}.get(match[1].lower(), match[1].lower())
    return f"{match[1]}{match[2] or ''}{match[3]} and the {noun} date"


def _bounds(match: re.Match[str]) -> str:
    """'when their contract started': the contract's start date."""
    return f"and their {match[1]} {'start' if match[2].lower().startswith(('start', 'beg')) else 'end'} date"


RULES = compiled(
    (
        # asides
        (r"\b(?:i'd|i would|we'd|we would) like(?: to (?:see|know|have|get))?\b", "show"),
        (r"\b(every|each|any) single (?=\w)", r"\1 "),
        (r"\bto (?:their|his|her|its) (?:name|credit)s?(?=\W*$)", ""),
        (r",? (?:in|to|from|at) (?:the|our) (?:whole |entire )?(?:database|records|system|catalogue|catalog)(?=\W*$|,)", ""),
        (r"[.?!;] (?:also |please )*(?:show|give|list|include|add|name)(?: me)? (?:the |its |their )?([\w ]+?)(?: too| as well| also)(?=\W*$)", r" with their \1"),
        (r"\b(?:runs|run|ran|running) out\b(?! of)", "expires"),
        (r"\b(?:took|taken|take) in\b(?=\W*$| (?:between|since|before|after|in|during|on|last|from|\d))", "arrived"),
        (r"\bdriving (?=licen[cs]e)", ""),
        (r",? (?:too|as well)(?=\W*$|[.,;?!])", ""),
        # what is added up
        (r"^what (?:do|does|did) (.+?) (?:add up to|amount to|sum up to|total up to)(?: in total| altogether| together| overall)?(?=\W*$)", _added),
        (r"\b(?:summed|added|totall?ed) (?:up|together)\b", "summed"),
        (r"^how much is (?=the [a-z])", "what is "),
        (r"\bsince before (?=\d{4})", "before "),
        (r"\b(by|in order of) (?:the )?date (?:on which |that |when )?(?:they|it|he|she) (?:became|were|was) (?:one|it|so|that)\b", r"\1 date"),
        (r"\b(odometer|mileage) readings?\b", r"\1"),
        (r",? and how many (?:of them )?they (?:each )?(?:have|has|had|own|hold)(?=\W*$)", ", and how many"),
        (r"((?:n't|n’t|\bnot|\bno|\bwithout)\b[^,.?]*?) (?:entered|filled in|on file|on record|noted|set|listed|recorded)(?=\W*$)", r"\1"),
        (r", ([a-z]+(?: [a-z]+){0,2}) plus (?=(?:the |their )?[a-z]+(?: [a-z]+)?\W*$)", r", \1 and "),
        (r"\band (?:please )?(?:tell|show|give) me (?=when|where|what|how|the|their)", "and "),
        (r"\band when (?:did )?(?:their|its|the) (\w+) (start|end|expire|began|begin)(?:ed|s|d)?(?=\W*$)", _bounds),
        (r"\b(?:do |does |did )?(?:fall|falls|fell|come|comes|came|belong|belongs|sit|sits|go|goes) (?:under|into|within|to|in) (?=(?:each|every)\b)", "per "),
        # order
        (r",? (?:sorted |ordered |ranked )?from (?:the )?most ([a-z]+) to (?:the )?(?:fewest|least)\b", r", sorted by \1 descending"),
        (r",? (?:sorted |ordered |ranked )?from (?:the )?(?:fewest|least) ([a-z]+) to (?:the )?most\b", r", sorted by \1 ascending"),
        (r",? (?:starting|beginning) (?:with|from) the \w+ (?:that (?:has|had)|which has|with|having) (?:the )?(?:most|highest)(?: \w+)?(?=\W*$)", " descending"),
        (r",? (?:starting|beginning) (?:with|from) the \w+ (?:that (?:has|had)|which has|with|having) (?:the )?(?:fewest|least|lowest)(?: \w+)?(?=\W*$)", " ascending"),
        (rf",? (?:with )?(?:the )?({_HIGH}|{_LOW}|{_BY_DATE}|longest|shortest|cheapest|best|worst|most \w+|least \w+)(?: (?:{_NOUNS}))? (?:at the top|on top|come first|comes first|listed first)", r", \1 first"),
        (rf"[,.?;:]? (?:the )?({_HIGH}|{_LOW}) (?:{_NOUNS}) first\b", r", \1 first"),
        (rf"[,.?;:]? (?:the )?({_BY_DATE}) \w+ first\b", r", \1 first"),
        (r"[,.?;:]? (?:the )?best (\w+) first\b", r", highest \1 first"),
        (r"[,.?;:]? (?:the )?worst (\w+) first\b", r", lowest \1 first"),
        (r"\bsoonest first\b", "earliest first"),
        (r"^rank (?:all )?(?:the |our )?(.+?) by ", r"list \1 sorted by "),
        (r"[.;,?]? (?:please )?(?:put|list|show|sort|order|arrange) (?:them|these|those|it) in (?:the )?([a-z]+ing order)(?=\W*$)", r", sorted by \1"),
        (r"[.;,?]? (?:please )?(?:put|list|show|sort|order|arrange) (?:them|these|those|it) in (?:the )?(?:order of (?:the )?)?(?=\w+\W*$)(?!(?:ascending|descending|alphabetical|reverse|order))", ", sorted by "),
        (rf",? (?:ordered |sorted |ranked )?from (?:the )?(?:best|most|{_HIGH}|top)[- ]?(?:paid|\w+ed|\w+)?(?: first)? to (?:the )?(?:worst|{_LOW}|bottom|poorest)(?:[- ]?\w+)?(?=\W*$)", " descending"),
        (rf",? (?:ordered |sorted |ranked )?from (?:the )?(?:worst|{_LOW}|bottom|poorest)[- ]?(?:paid|\w+ed|\w+)? to (?:the )?(?:best|most|{_HIGH}|top)(?:[- ]?\w+)?(?=\W*$)", " ascending"),
        (r"(?<=\w) across (?:all (?:of )?(?:the |our |its |their )?|their |its )[\w ]+?(?=\W*$)", ""),
        (rf",? (?:going |working )?from (?:the )?((?:{_HIGH}|{_LOW}|{_BY_DATE}|longest|shortest|cheapest|most expensive|youngest)(?: [a-z]+)?) (?:up|down|upwards?|downwards?|onwards?)(?=\W*$)", r", \1 first"),
        # a second question about the same
        (r"\b(expire|end|start|begin)(s|d|ed)?\b([^,.?;]*),? and (?:on|in|at) (?:what|which) (?:date|day)(?=\W*$)", _dated),
        (r",? and (?:on|in|at|from|to|by|for) (?:what|which) (\w+(?: \w+)?) (?:is|was|were|are|did|does|do|has|had) (?:it|he|she|they|that|this)((?: \w+)?)(?=\W*$)", r" and the \1\2"),
        (r",? and (?:what|which) (\w+) (?:is|was|are|were) (?:it|they|he|she|that) (?:in|at|from|on|of|for)(?=\W*$)", r" and the \1"),
        (r",? and (?:on|in|at) (?:what|which) (date|day|year|month|city|town|country|place)(?=\W*$)", r" and the \1"),
        (r"\b(\w+) \1\b(?=\W*$)", r"\1"),
        (r"(\b(\w+)\b.*?),? and (?:those|these|the corresponding|their) \2(?=\W*$)", r"\1"),
        (r",? and how (?:much|many)(?: \w+)? (?:do|does|did) (?:they|it|each|he|she|each of them) (weigh|cost|last|earn)(?=\W*$)", lambda m: f" and their {_NOUN[m[1].lower()]}"),
        # what is not there
        (r"\b(with(?:out)?|no|any|an?) (?:stated|given|known|recorded|specified|listed|noted) (?=\w)", r"\1 "),
        (r"\bwith ([a-z]+) in (?:their|its) ([a-z]+)\b", r'whose \2 contains "\1"'),
        # groups
        (r"^break down (?:the )?(.+?) (?:by|per) ", r"\1 per "),
        # both ends
        (rf"\b(?:the )?(?:{_LOW})(,| and|, and|,? as well as) (?:the )?(?:{_HIGH})\b", r"minimum\1 maximum"),
        (rf"\b(?:the )?(?:{_HIGH})(,| and|, and|,? as well as) (?:the )?(?:{_LOW})\b", r"maximum\1 minimum"),
        # whose rows are counted
        (r"\b(\w+) (?:where|in which|for which|from which|with whom) we (?:have|had|'ve got|got|hold|keep) (?=at least|at most|more|fewer|less|over|\d)", r"\1 with "),
        (r"\b(?:that |which |who )?(?:are|is) home to (?=at least|at most|more|fewer|less|over|\d)", "with "),
        (r"\b((?:at least|at most|more than|fewer than|less than|over|exactly) (?:\d+|\w+)) of (?:our|the) (?=\w+)", r"\1 "),
        (r"^((?:which|what) [\w ]+?) (?:do|did) we have (the (?:most|fewest|least) [\w ]+?) (?:in|at|from|for|on|of|with)(?=\W*$)", r"\1 has \2"),
    )
)  # fmt: skip
