"""Tell which table keeps what somebody did: 没有租过车 is without a rental; and drop the verb that only joins in 酿了多少批次."""

import re
from typing import Final

from longtable.app.offline.cedict import meanings
from longtable.app.offline.chinese_fit import Schema, fit
from longtable.app.offline.lexicon_zh import LEXICON, MEASURES, pairs
from longtable.app.offline.spelling import misfit

_HAN: Final = r"[\u3400-\u9fff]"
_NEVER: Final = re.compile(rf"(?:没有?|未曾?|从未)(?P<deed>(?P<verb>{_HAN}{{1,2}}?)过(?P<what>{_HAN}{{0,4}}?))(?=的|\W|$)")
_MANY: Final = re.compile(rf"(?P<verb>{_HAN}{{1,2}})[了过](?=(?:多少|几)[{''.join(MEASURES)}]?{_HAN}{{2}})")
_ANYTHING: Final = frozenset(["", "东西", "什么", "任何", "任何东西"])
_DEEDS: Final = pairs(
    """买=order/purchase/sale/transaction|购买=order/purchase/sale/transaction|下单=order|订=booking/order/reservation|租=rental/hire/lease/loan/booking
借=loan/borrowing/checkout|来=visit/appointment/stay|去=visit/trip|看=viewing/visit|看诊=appointment/visit|就诊=appointment/visit|付=payment|缴=payment/fine
报名=enrolment/enrollment/registration/entry|修=repair/service|发货=shipment/delivery/dispatch|寄=shipment/parcel|停=stay/parking|停靠=stay/call/mooring|住=stay/booking
洗=wash/order/service|播=broadcast/airing/broadcasting/play|播出=broadcast/airing|演=performance/showing|考=exam/test|写=review|骑=ride/trip|坐=trip/ride|捐=donation
酿=batch/brew|印=run/print|签=contract|投诉=complaint|交=payment|参加=attendance/registration/entry|用=usage/use|送=delivery|换=replacement/exchange"""
)
"""What is done, with the tables that may keep it."""


def deeds(question: str, lexicon: dict[str, str], things: Schema) -> dict[str, str]:
    """Return what was never done as the table of it, and a verb that no word explains before 'how many' as having."""
    found: dict[str, str] = {}
    for match in _NEVER.finditer(question[:300]):
        verb, what = match["verb"], match["what"]
        whole = verb + what
        apart = whole in LEXICON or whole in _DEEDS or bool(meanings(whole))  # 报过名 is 报名
        object_ = [option for option in (lexicon.get(what, ""), *LEXICON.get(what, ())) if option.isalpha()]
        if not (apart or what in _ANYTHING or any(_names(option, things) for option in object_)):
            continue
        options = [option for word in (whole, verb) for option in (*_DEEDS.get(word, ()), *LEXICON.get(word, ()), *meanings(word))]
        table = next((option for option in options if option.isalpha() and _names(option, things)), "")
        if table:
            found[match["deed"]] = table
    for match in _MANY.finditer(question if re.search("[每各]", question) else ""):
        verb = next((word for word in (match["verb"], match["verb"][-1]) if len(word) == 1 or word in lexicon or meanings(word)), "")
        if lexicon.get(verb, "\0").startswith("\0") and question[match.end() - 1 - len(verb) : match.end()] not in lexicon:
            found[question[match.end() - 1 - len(verb) : match.end()]] = "have"
    return found


def _names(option: str, things: Schema) -> bool:
    clipped = any(len(name) == 1 and misfit(form, name[0]) == 0 for name in things for form in (option, f"{option}s"))  # sls
    return clipped or fit(option, things) >= _SURE


_SURE: Final = 0.9
