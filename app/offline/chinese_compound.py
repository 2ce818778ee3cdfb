"""Explain a Chinese compound that no list has by its parts: its close names a column or a person, what stands before says which."""

from collections.abc import Container, Iterator
from functools import lru_cache
from typing import Final

from longtable.app.offline.cedict import meanings
from longtable.app.offline.chinese_cut import RUN, cuts
from longtable.app.offline.chinese_fit import Schema, fit
from longtable.app.offline.chinese_unexplained import unnamed
from longtable.app.offline.lexicon import PEOPLE
from longtable.app.offline.lexicon_zh import LEXICON, PLAIN, pairs
from longtable.app.offline.text import lemma, likeness, stem

_LONGEST: Final = 7
_MOST_SIGNS: Final = 120  # of a question; what is longer is no question
_UNKNOWN, _UNNAMED = 2, 1  # how open a word is
_SURE: Final = 0.85
_SAME: Final = 0.95
_KEYS: Final = frozenset(["id", "no", "number", "code", "name"])
_KINDS: Final = pairs(
    """额=amount/total/value|费=fee/cost/charge/price/amount|价=price/cost/amount/rate|价格=price/cost/rate|量=quantity/amount/volume/count/weight
数=count/number/quantity/units|数量=quantity/count/number/units|率=rate/percent/percentage|费率=rate/percent/charge|期=date/days/term/period|日=date
日期=date/day|号=number/code/id|款=amount/payment|金=amount/payment|薪=pay/wage/rate/salary|长=length/duration|宽=width|高=height|深=depth|重=weight
度=degree/level|时间=time/minutes/duration/hours|里程=mileage/distance/range/km|地点=place/city/location/venue|地=place/city/location|名=name/title
型=type/kind/model|类型=type/kind/category|种类=type/kind/category|类别=category/type/kind/group|状态=status|品牌=brand/make|型号=model
时段=slot/time/period|金额=amount/total|费用=cost/fee/charge|总额=amount/total|项目=item/service/activity/type|国=country|龄=age/years|分=score/points
容量=capacity/size|等级=level/grade/class/tier|尺寸=size|材质=material|原因=reason/cause|方式=method/way|读数=reading|天数=days|次数=count/times|人数=people/persons"""
)
"""What closes the name of a column, with the words that a schema has for it."""
_SELF: Final = frozenset(["类型", "种类", "类别", "型", "项目", "原因", "国", "名", "读数"])
"""故障类型 is the fault, where nothing else is the type of one."""
_TYPES: Final = frozenset(["类型", "种类", "类别"])
_ONE: Final = frozenset(["品牌", "型号", "时段", "状态", "项目", "里程", "材质", "尺寸", "方式", "原因", "地点", "等级"])
"""The only brand is the 逆变器品牌."""
_SPANS: Final = pairs(
    "日=daily/day|周=weekly/week|月=monthly/month|年=annual/yearly/year|时=hourly/hour|季=quarterly/quarter|晚=nightly/night"
)
_AGENTS: Final = pairs(
    "工=worker|户=household/holder|员=member|商=dealer/company|者=person|师=master|手=hand|家=expert|方=party|主=owner|人=person|客=guest"
)
_DOERS: Final = pairs(
    """deliver=carrier/courier/driver|teach=teacher/instructor/tutor|sell=seller/vendor|repair=mechanic/technician/repairer|supply=supplier/vendor
make=manufacturer/maker|carry=carrier/porter|treat=doctor|sail=sailor/captain|study=student/pupil|consign=client/customer|raise=owner/keeper|plant=grower"""
)
"""Who does it, where that is no word made of the verb."""


def compounds(question: str, lexicon: dict[str, str], schema: Schema, found: Container[str], things: Schema) -> dict[str, str]:
    """Return what unknown words of a question with the words beside them name."""
    more: dict[str, str] = {}
    longest = max(map(len, lexicon), default=1)
    for match in RUN.finditer(question if len(question) <= _MOST_SIGNS else ""):
        run = match.group(0)
        pieces = [(start, end, _openness(run[start:end], lexicon, schema, found)) for start, end in cuts(run, lexicon, longest)]
        taken: set[int] = set()
        for start, end, whole in _spans(run, pieces):
            if taken.isdisjoint(range(start, end)) and (english := compound(run[start:end], schema, things, unknown=whole == _UNKNOWN)):
                more[run[start:end]] = english
                taken |= set(range(start, end))
    return more


def _openness(word: str, lexicon: dict[str, str], schema: Schema, found: Container[str]) -> int:
    """Tell a word that nothing explains from an own one that the schema has no name for."""
    if lexicon.get(word, "\0").startswith("\0"):
        return _UNKNOWN
    if " " in lexicon[word].removesuffix(" ~") or not unnamed(word, lexicon, schema, found):
        return 0
    return _UNKNOWN if word in _AGENTS else _UNNAMED


def _spans(run: str, pieces: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield the stretches of words that hold an open one, long ones first."""
    stretches: list[tuple[int, int, int]] = []
    for first in range(len(pieces)):
        unknown = 0
        for start, end, openness in pieces[first:]:
            word = run[start:end]
            closes = start > pieces[first][0] and (word in _KINDS or word in _AGENTS)
            if not closes and (word in PLAIN or (word in LEXICON and not LEXICON[word][0])):
                break
            unknown = max(unknown, openness, _UNKNOWN if word in _TYPES and start > pieces[first][0] else 0)
            if unknown and 2 <= end - pieces[first][0] <= _LONGEST:
                stretches.append((pieces[first][0], end, unknown))
    yield from sorted(stretches, key=lambda each: each[0] - each[1])


@lru_cache(maxsize=4_096)
def compound(word: str, schema: Schema, things: Schema, *, unknown: bool) -> str:
    """Return the English of a compound that a name of the schema holds, or nothing."""
    ways = [(word[:place], word[place:]) for place in range(len(word) - 1, 0, -1)]
    score, english = max((_pair(*way, schema) for way in ways), key=lambda each: each[0])  # the shortest head of those as good
    if score >= _SURE or not unknown:
        return english
    return next((name for way in ways for name in [_agent(*way, schema, things) or _kind(*way, schema, things)] if name), "")


def _pair(before: str, after: str, schema: Schema) -> tuple[float, str]:
    """Return the two words that one name of the schema has for both parts, and how well."""
    best = (0.0, "")
    for place, head in enumerate(_closing(after)):
        for name, at, held in _holders(head, schema):
            for kind in _opening(before):
                score = min(held, max((likeness(kind, part) for other, part in enumerate(name) if other != at), default=0.0))
                if score >= _SURE:
                    best = max(best, (score + 0.1 - 0.02 * (len(name) + place), f"{kind} {head}"))
    return best


@lru_cache(maxsize=1_024)
def _holders(head: str, schema: Schema) -> list[tuple[tuple[str, ...], int, float]]:
    """Return the names that hold a word, where in them and how well."""
    return [(*place, held) for part, places in _by_part(schema).items() if (held := likeness(head, part)) >= _SURE for place in places]


@lru_cache(maxsize=16)
def _by_part(schema: Schema) -> dict[str, list[tuple[tuple[str, ...], int]]]:
    """Return where each word of the schema's names stands."""
    found: dict[str, list[tuple[tuple[str, ...], int]]] = {}
    for name in schema:
        for at, part in enumerate(name):
            found.setdefault(part, []).append((name, at))
    return found


def _closing(word: str) -> tuple[str, ...]:
    own = tuple(option for option in LEXICON.get(word, ()) if option.isalpha() and len(word) > 1)
    return tuple(dict.fromkeys((*_KINDS.get(word, ()), *own, *(meanings(word) if len(word) > 1 else ()))))


def _opening(word: str) -> tuple[str, ...]:
    """Return what a modifier may mean; one that no list has, what its signs mean."""
    own = (*_SPANS.get(word, ()), *(option for option in LEXICON.get(word, ()) if option.isalpha()), *meanings(word))
    own = own or tuple(gloss for sign in reversed(word) if len(word) == 2 for gloss in meanings(sign)[:3])
    return tuple(dict.fromkeys(part for gloss in own for part in (gloss, *gloss.split()[-1:]) if " " not in part and len(part) > 2))


def _agent(before: str, after: str, schema: Schema, things: Schema) -> str:
    """Return who does what the verb before says: 采摘工 is the picker; 饲主 the owner; else the only people that there are."""
    if after not in _AGENTS:
        return ""
    verbs = [stem(verb.removesuffix("ed")) for verb in _opening(before)]
    done = [verb + close for verb in verbs for close in ("r" if verb.endswith("e") else "er", "or", "ee")] + [
        who for verb in _opening(before) for who in _DOERS.get(verb, ())
    ]
    doers = [(max((held for *_, held in _holders(doer, schema)), default=0.0), doer) for doer in done] + [
        (fit(doer, things), doer) for doer in _AGENTS[after]
    ]
    score, doer = max(doers, key=lambda each: each[0], default=(0.0, ""))
    if score >= _SURE:
        return doer
    people = [name for name in things if PEOPLE & set(map(lemma, name))]
    return " ".join(people[0]) if len(people) == 1 and after != "商" else ""


def _kind(before: str, after: str, schema: Schema, things: Schema) -> str:
    """Return the only column of such a kind, or the column that the word before names by itself."""
    if after not in _KINDS:
        return ""
    if after in _SELF:
        columns = tuple(name for name in schema if name not in things and name[-1] not in _KEYS)
        own = next((gloss for gloss in _opening(before) if fit(gloss, columns) >= _SURE > fit(gloss, things)), "")
        if own:
            return own
    names = [_core(name) for name in schema if name not in things] if after in _ONE else []
    cores = {core for core in names if any(likeness(head, core[-1]) >= _SAME for head in _KINDS[after][:3])}
    return " ".join(cores.pop()) if len(cores) == 1 else ""


def _core(name: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part for part in name if part not in _KEYS) or name
