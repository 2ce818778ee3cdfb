"""Say what adjectives measure: 'dearest' a price, 'roomiest' an area, 'longest-serving' the date of joining."""

# ruff: noqa: E501 - word lists read best as long lines of plain words

from typing import Final

# A dimension is what an adjective measures: words of columns, best first; a leading minus turns the direction (older = born earlier).
_DIMENSIONS: Final = """
    age: age -birth -dob -birthdate -birthday -born -founded -built -established -opened -constructed -launched -commissioned -manufactured -made -planted -installed -bought -purchased -acquired -year -date -hire
    tenure: tenure seniority service -hired -hire -joined -join -employed -since -appointed -started -start -recruited -engaged -registered -signup -enrolled -member -onboarded -admitted -arrived -opened experience
    experience: experience seniority tenure year -hired -hire -joined -employed -since -licensed -qualified -started
    date: date time year timestamp created released published started opened founded hire launched joined registered issued bought purchased received posted signed held
    length: length duration runtime millisecond distance minute min second hour hrs night day week month page time mile kilometer km stay
    distance: distance mile mileage kilometer km meter range length odometer
    price: price cost fee fare rate charge tariff rent tuition premium amount total value
    value: value worth valuation appraisal price amount total cost
    size: size area floor sqm sqft sqkm acre acreage hectare footage space capacity population byte volume tonnage total amount length seat bed room chair quantity staff employee headcount member
    room: area floor sqm sqft size space capacity hectare acre volume seat room bed
    weight: weight mass load kilogram kg gram pound ton tonne tonnage payload
    height: height elevation altitude tall stature cm
    width: width breadth wide beam wingspan span
    depth: depth deep
    thickness: thickness thick depth gauge page
    speed: speed velocity horsepower mph kmh knot pace
    power: power horsepower hp kw mw watt output capacity thrust engine
    strength: strength abv alcohol magnitude force power proof grade dose concentration
    noise: noise decibel db volume loudness
    brightness: brightness magnitude lumen luminosity
    bitterness: ibu bitterness
    sugar: sugar sweetness brix
    sale: sale revenue turnover total amount fee payment
    revenue: revenue sale turnover total amount fee payment paid
    turnover: turnover revenue sale total amount fee payment
    profit: profit margin earning net
    money: amount paid payment price revenue total fee cost
    wealth: wealth worth balance income salary money revenue budget
    generosity: amount donated donation given contribution gift
    pay: salary wage pay income compensation remuneration stipend earning hourly rate
    quality: rating score grade mark rank star point stars review feedback satisfaction
    delay: delay late lateness overdue
    seats: capacity seat size
    heat: temperature temp heat
    rain: rain rainfall precipitation humidity moisture precip
    windiness: wind
    crowd: visitor attendance guest passenger audience population participant attendee viewer occupancy
    population: population inhabitant resident people
    output: output yield production produced harvest catch generation quantity
    risk: risk severity danger hazard
    severity: severity priority risk damage cost
    urgency: urgency priority
    difficulty: difficulty level grade
    efficiency: efficiency mpg consumption economy
    success: win won victory point score goal
    calorie: calorie kcal energy
"""
DIMENSIONS: Final[dict[str, tuple[str, ...]]] = {
    name.strip(): tuple(words.split()) for line in _DIMENSIONS.strip().splitlines() for name, _, words in [line.partition(":")]
}

# dimension, then the adjective for much of it with its comparative and superlative, then that for little of it; "-" where there is none.
_DEGREES: Final = """
    age old older oldest young younger youngest | age elderly - eldest - - - | age ancient - - - - - | age aged - - - - -
    length long longer longest short shorter shortest | length lengthy lengthier lengthiest brief briefer briefest
    price expensive - - cheap cheaper cheapest | price costly costlier costliest inexpensive - - | price pricey pricier priciest affordable - -
    price dear dearer dearest - - - | value valuable - - worthless - - | value precious - - - - -
    size large larger largest small smaller smallest | size big bigger biggest tiny tinier tiniest | size huge - - little littler littlest | size great - - - - -
    room roomy roomier roomiest cramped - - | room spacious - - - - - | weight heavy heavier heaviest light lighter lightest
    height tall taller tallest - - - | height high - - low - - | width wide wider widest narrow narrower narrowest | width broad broader broadest - - -
    depth deep deeper deepest shallow shallower shallowest | thickness thick thicker thickest thin thinner thinnest
    speed fast faster fastest slow slower slowest | speed quick quicker quickest - - - | wealth rich richer richest poor poorer poorest | wealth wealthy wealthier wealthiest - - -
    power powerful - - - - - | strength strong stronger strongest weak weaker weakest | strength potent - - - - -
    noise loud louder loudest quiet quieter quietest | noise noisy noisier noisiest - - - | brightness bright brighter brightest dim dimmer dimmest
    bitterness bitter bitterer bitterest - - - | sugar sweet sweeter sweetest - - -
    date recent - - early earlier earliest | date late later latest - - - | date new newer newest - - -
    delay delayed - - punctual - - | delay overdue - - - - -
    heat hot hotter hottest cold colder coldest | heat warm warmer warmest cool cooler coolest | rain wet wetter wettest dry drier driest | rain rainy rainier rainiest - - - | windiness windy windier windiest calm calmer calmest
    crowd crowded - - - - - | population populous - - - - - | population populated - - - - -
    quality good - best bad - worst | distance far farther farthest near nearer nearest | distance far further furthest close closer closest | distance distant - - - - -
    tenure senior - - junior - - | tenure longest-serving - longest-serving - - - | tenure long-serving - - - - - | experience experienced - - - - -
    profit profitable - - - - - | generosity generous - - - - - | output productive - - - - - | risk dangerous - - safe safer safest | risk risky riskier riskiest - - -
    severity severe severer severest mild milder mildest | severity serious - - - - - | urgency urgent - - - - - | difficulty difficult - - easy easier easiest | difficulty hard harder hardest - - -
    efficiency efficient - - - - - | success successful - - - - - | pay well-paid - - - - - | calorie calorific - - - - -
"""


def _degrees() -> tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]], dict[str, tuple[str, str]]]:
    plain: dict[str, tuple[str, str]] = {}
    more: dict[str, tuple[str, str]] = {}
    most: dict[str, tuple[str, str]] = {}
    for row in (part.split() for line in _DEGREES.strip().splitlines() for part in line.split("|")):
        for sign, forms in (("max", row[1:4]), ("min", row[4:7])):
            for home, form in zip((plain, more, most), forms, strict=True):
                if form != "-":
                    home.setdefault(form, (row[0], sign))
    return plain, more, most


ADJECTIVES, COMPARATIVES, SUPERLATIVES = _degrees()

# A unit in a column's name says what it measures: floor_sqm is the floor area.
UNITS_OF: Final[dict[str, frozenset[str]]] = {
    noun: frozenset(units.split())
    for nouns, units in (
        ("area space size surface", "sqm sqft sqkm m2 ha hectare acre"), ("weight mass load payload", "kg gram g ton tonne lb lbs"),
        ("distance mileage length odometer range", "km mile kilometer meter"), ("duration length time runtime", "min minute hour hr second sec day week ms"),
        ("volume capacity usage consumption", "l liter ml m3 barrel gallon hl"), ("temperature", "celsius fahrenheit degree degc"), ("power output capacity", "kw mw hp watt"),
        ("height width depth length", "cm mm meter foot ft"), ("speed", "kmh mph knot"), ("price cost fee amount value", "eur usd gbp euro dollar"),
        ("percentage percent share", "pct percent"), ("energy", "kwh kcal"), ("noise", "db"), ("strength alcohol", "abv"), ("bitterness", "ibu"),
    )
    for noun in nouns.split()
}  # fmt: skip
UNIT_NAMES: Final = frozenset(unit for units in UNITS_OF.values() for unit in units)

# 'the best paid', 'highest rated': a participle that names the measure, after a word of degree.
MEASURED_BY: Final[dict[str, str]] = {
    "paid": "pay", "earning": "pay", "salaried": "pay", "remunerated": "pay", "rated": "quality", "scored": "quality", "scoring": "quality", "reviewed": "quality",
    "ranked": "quality", "graded": "quality", "marked": "quality", "priced": "price", "costing": "price", "valued": "value", "grossing": "revenue", "selling": "sale",
    "yielding": "output", "tasting": "quality", "liked": "quality", "loved": "quality", "regarded": "quality", "producing": "output", "performing": "quality",
}  # fmt: skip
MUCH: Final = {
    "best": "max",
    "highest": "max",
    "top": "max",
    "most": "max",
    "worst": "min",
    "lowest": "min",
    "least": "min",
    "poorest": "min",
}

# Adjectives that ask for their measure after 'how': how old, how far.
ASKED: Final = [
    "old",
    "long",
    "tall",
    "high",
    "heavy",
    "big",
    "large",
    "fast",
    "quick",
    "expensive",
    "deep",
    "wide",
    "far",
    "strong",
    "powerful",
    "hot",
    "cold",
    "warm",
    "bright",
    "loud",
    "thick",
    "severe",
    "experienced",
    "senior",
    "valuable",
    "dear",
    "pricey",
    "spacious",
    "difficult",
    "late",
]

VERB_DIMENSIONS: Final[dict[str, str]] = {
    "cost": "price", "costs": "price", "weigh": "weight", "weighs": "weight", "weighed": "weight", "weighing": "weight", "last": "length", "lasts": "length",
    "lasted": "length", "lasting": "length", "took": "length", "take": "length", "takes": "length", "taking": "length", "earn": "pay", "earns": "pay",
    "earned": "pay", "earning": "pay", "making": "pay", "costing": "price", "charging": "price", "worth": "price", "valued": "price", "priced": "price", "paid": "pay",
    "scored": "quality", "scoring": "quality", "rated": "quality", "covering": "size", "holding": "size", "seating": "size", "measuring": "length",
}  # fmt: skip
UNIT_DIMENSIONS: Final[dict[str, str]] = {
    "foot": "height", "meter": "height", "mile": "length", "km": "length", "kilometer": "length", "minute": "length", "hour": "length", "kg": "weight",
    "kilogram": "weight", "pound": "weight", "ton": "weight", "tonne": "weight", "gram": "weight", "dollar": "price", "euro": "price", "usd": "price", "eur": "price",
    "yuan": "price", "rmb": "price", "$": "price", "hectare": "room", "acre": "room", "sqm": "room", "sqft": "room", "degree": "heat", "star": "quality",
    "knot": "speed", "kmh": "speed", "mph": "speed", "watt": "power", "kw": "power",
}  # fmt: skip
