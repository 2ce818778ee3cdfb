"""Put phrases that people use into the plain words that the rules read, before a question is cut into chunks."""

# ruff: noqa: E501 - a pattern reads best on one line

import re

_I = re.IGNORECASE
_TOP = r"(?:first|at the top|on top)"
_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, _I), plain)
    for pattern, plain in (
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
        (r"\b(?:head ?counts?)(?: of)?\b", "number of"),
        (rf",? ?(?:with )?(?:the )?(?:most (?:common|frequent|popular|numerous|used|visited|booked|ordered|sold|active)|commonest|busiest)(?: \w+)? {_TOP}", " descending"),
        (rf",? ?(?:with )?(?:the )?(?:least (?:common|frequent|popular)|rarest)(?: \w+)? {_TOP}", " ascending"),
        (rf",? ?(?:with )?the (highest|lowest|biggest|largest|smallest|most|fewest|newest|oldest|latest|cheapest|most expensive|longest|shortest)(?: ones?)? {_TOP}", r", \1 first"),
        (r",? (?:starting|beginning) (?:with|from) (?:the )?(highest|lowest|biggest|largest|smallest|newest|oldest|latest|earliest|cheapest|most expensive|longest|shortest|youngest|most recent)(?: ones?| first)?\b", r", \1 first"),
        (r",? (?:from )?(?:most|high(?:est)?|big(?:gest)?|larg(?:e|est)) to (?:least|fewest|low(?:est)?|small(?:est)?)(?: first)?$", " descending"),
        (r",? (?:from )?(?:least|fewest|low(?:est)?|small(?:est)?) to (?:most|high(?:est)?|big(?:gest)?|larg(?:e|est))(?: first)?$", " ascending"),
        (r"\b(?:on|in) average\b", "on average"),
        (r"(?<![\d'])'?([2-9])0s\b", r"19\g<1>0s"),
        (r"\bby (?:the )?(?:total |overall )?(?:(?:amount|money|sum)(?: of money)?(?: (?:they|each))?(?: have| has)? (?:spent|paid|spend)|spend(?:ing)?|money)\b", "by total revenue"),
        (r"\bhow much money\b", "how much"),
        (r"[, ]+(?:so far|to date|until now|up to now|right now|at the moment|at present|these days|nowadays|as of (?:now|today)|in all|all in all|for us|with us|to us)(?=\W*$)", ""),
        (r"\b(?:joint|all)[- ]time (?=best|highest|most)", ""),
        (r"\bbetween (\S+) to (\S+)", r"between \1 and \2"),
        (r"\b(\d+(?:\.\d+)?) ?(?:-|–) ?(\d+(?:\.\d+)?)(?= (?:kg|km|years|minutes|hours|days|dollars|euros)\b)", r"between \1 and \2"),
        (r"\bmore than half of\b", "more than half of"),
    )
)  # fmt: skip


_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}


def _scaled(match: re.Match[str]) -> str:
    value = float(match.group(1).replace(",", "")) * _SCALES[match.group(2).lower()]
    return f"{value:.0f}" if value == int(value) else f"{value:g}"


def plainly(question: str) -> str:
    """Return an English question with such phrases replaced."""
    question = re.sub(r"\b(\d[\d,]*(?:\.\d+)?) (hundred|thousand|million|billion)\b", _scaled, question, flags=_I)
    for pattern, plain in _RULES:
        question = pattern.sub(plain, question)
    return question
