"""Hold the general vocabulary of questions about tables: no name of any schema is here."""

# ruff: noqa: E501, SIM905 - word lists read best as long lines of plain words

from typing import Final

from longtable.app.offline.lexicon_measures import ADJECTIVES, ASKED, COMPARATIVES, MEASURED_BY, MUCH, SUPERLATIVES

IRREGULAR: Final[dict[str, str]] = {
    "people": "person", "persons": "person", "children": "child", "men": "man", "women": "woman", "staffs": "staff", "indices": "index",
    "lives": "life", "movies": "movie", "series": "series", "species": "species", "data": "data", "news": "news", "status": "status",
    "bus": "bus", "buses": "bus", "gas": "gas", "has": "has", "was": "was", "does": "does", "is": "is", "this": "this", "its": "its",
    "lenses": "lens", "analyses": "analysis", "diagnoses": "diagnosis", "taxes": "tax", "sizes": "size", "prizes": "prize", "houses": "house", "cases": "case",
    "expenses": "expense", "warehouses": "warehouse", "purchases": "purchase", "courses": "course", "nurses": "nurse", "databases": "database",
    "ids": "id", "id's": "id", "leaves": "leave", "feet": "foot", "criteria": "criterion", "shoes": "shoe", "tries": "try", "ties": "tie", "dies": "die", "less": "less",
    "kilometre": "kilometer", "kilometres": "kilometer", "metre": "meter", "metres": "meter", "litre": "liter", "litres": "liter", "centimetres": "centimeter",
    "colour": "color", "colours": "color", "centre": "center", "centres": "center", "licence": "license", "licences": "license", "programme": "program",
    "programmes": "program", "theatre": "theater", "theatres": "theater", "cheque": "check", "cheques": "check", "tyre": "tire", "tyres": "tire", "catalogue": "catalog",
    "organisation": "organization", "organisations": "organization", "organiser": "organizer", "jewellery": "jewelry", "harbour": "harbor", "harbours": "harbor",
    "grey": "gray", "labour": "labor", "favourite": "favorite", "defence": "defense", "practise": "practice", "specialities": "specialty", "speciality": "specialty",
    "fibre": "fiber", "storey": "story", "storeys": "story", "kerb": "curb", "aeroplane": "airplane", "enrolment": "enrollment", "enrolments": "enrollment",
    "instalment": "installment", "flavour": "flavor", "flavours": "flavor", "neighbourhood": "neighborhood", "honours": "honor", "moulds": "mold",
    "countries": "country", "cookies": "cookie", "aliases": "alias", "messages": "message", "invoices": "invoice", "places": "place",
    "axes": "axis", "responses": "response", "licenses": "license", "exercises": "exercise", "diseases": "disease", "releases": "release",
    "phases": "phase", "calories": "calorie", "smoothies": "smoothie", "brownies": "brownie", "hoodies": "hoodie", "rookies": "rookie", "pies": "pie", "veggies": "veggie", "birdies": "birdie", "prairies": "prairie", "selfies": "selfie", "bases": "base", "leases": "lease", "horses": "horse", "doses": "dose", "caches": "cache", "headaches": "headache",
}  # fmt: skip

ABBREVIATIONS: Final[dict[str, tuple[str, ...]]] = {
    "quantity": ("qty", "quant"), "amount": ("amt",), "number": ("num", "no", "nr", "nbr"), "address": ("addr",), "average": ("avg",),
    "identifier": ("id",), "identification": ("id",), "department": ("dept", "dpt"), "manager": ("mgr",), "employee": ("emp",),
    "telephone": ("tel", "phone"), "description": ("desc", "descr"), "category": ("cat",), "customer": ("cust",), "product": ("prod", "prd"),
    "longitude": ("lon", "lng", "long"), "latitude": ("lat",), "altitude": ("alt",), "destination": ("dest",), "arrival": ("arr",),
    "departure": ("dep",), "actual": ("act",), "scheduled": ("sched",), "transaction": ("txn", "trans"), "account": ("acct", "acc"),
    "date": ("dt", "at", "on"), "closing": ("close", "closed"), "year": ("yr",), "month": ("mon", "mth"), "minute": ("min",), "second": ("sec",), "hour": ("hr",), "kilometer": ("km",),
    "kilogram": ("kg",), "liter": ("l", "ltr"), "gram": ("g",), "meter": ("m",), "hectare": ("ha",), "tonne": ("ton", "t"), "kilo": ("kg",), "millisecond": ("ms", "msec"), "percent": ("pct",), "percentage": ("pct",), "temperature": ("temp",), "pressure": ("pres",),
    "weight": ("wt", "wgt"), "height": ("ht", "hgt"), "organization": ("org",), "reference": ("ref",), "sequence": ("seq",), "name": ("nm",),
    "birthday": ("dob", "birthdate"), "birth": ("dob",), "status": ("stat",), "position": ("pos",), "language": ("lang",),
    "horsepower": ("hp",), "mileage": ("mpg",), "value": ("val",), "maximum": ("max",), "minimum": ("min",), "level": ("lvl",), "message": ("msg",),
}  # fmt: skip

# Words that stand for one another in questions; each row is one idea.
_GROUPS: Final = """
    customer client buyer shopper patron | employee staff worker personnel | vendor supplier seller provider | store shop outlet branch
    student pupil highschooler schooler learner child kid | teacher instructor professor lecturer faculty tutor | doctor physician clinician prescriber | patient
    airline carrier | plane aircraft airplane jet | airport airfield | flight | car automobile vehicle | truck lorry vehicle | ship vessel boat
    song track tune | singer artist musician vocalist performer band | album record | movie film picture | series show | author writer | cartoon
    book title | member reader subscriber user borrower | loan lending checkout borrowing | genre category kind type | nation country citizenship nationality
    sex gender | salary wage pay income earnings | price cost fee charge rate fare | revenue sale turnover income | amount total sum | quantity
    bill invoice | payment transaction | order purchase | product item good article merchandise | warehouse depot storehouse | shipment delivery consignment parcel package
    mark grade score result point | city town municipality | state province | postcode zip zipcode postal | street address road | phone telephone
    mail email | manager boss supervisor head | maker manufacturer producer brand make | model | build make manufacture construct produce | date day time
    begin start commence | end finish | duration length runtime | distance mileage length | seat capacity | rank position ranking place | population inhabitant resident
    department division unit | job occupation profession role title position | company firm corporation business enterprise | team club
    match game | player athlete | hospital clinic | visit appointment consultation admission | disease illness diagnosis condition ailment
    drug medicine medication | ward room | course class subject | enrolment enrollment registration | lesson lecture | college university school
    late delay | delay lateness | hire employ recruit | birth born | death die | route line | driver chauffeur | stock inventory
    rating review | stay visit | language tongue | weight mass payload | odometer mileage | height elevation altitude | velocity speed | income profit
    comment remark note | text content body | website url homepage | picture image photo | person individual people human | owner holder | animal pet
    bus coach vehicle | van vehicle | tail registration | journey trip ride | ticket pass | concert performance | stadium arena venue | museum gallery | festival event
    origin source | case matter | publication paper article | expense expenditure spending outlay | destination target | kid child | discount rebate reduction | fine penalty | surgery operation procedure | publisher press | property listing estate | copy
    attorney lawyer solicitor barrister counsel | incident accident mishap | slope piste run | variety grape cultivar | apartment flat | tenant renter lodger
    holiday vacation leave | garage workshop | quote estimate quotation | award prize | agreement contract | bike bicycle cycle | mobile cell cellphone
    reason cause | reply response answer | industry sector | target goal quota | trip tour excursion | complaint grievance | area zone district region territory
    location site place premises | surname lastname | crop plant | hull body | permit license | cinema theater | lift elevator | task assignment
"""

_ROWS: Final = [row.split() for line in _GROUPS.strip().splitlines() for row in line.split("|")]
SYNONYMS_OF: Final[dict[str, frozenset[str]]] = {
    word: frozenset(other for row in _ROWS if word in row for other in row if other != word) for row in _ROWS for word in row
}
SYNONYMS_OF["payment"] |= {"paid"}  # payment date: paid_dt, but what was paid is no payment status

# Phrases that say what to do. "op | arg | phrase, phrase ..."; the longest phrase that fits is taken.
_PHRASES: Final = """
    count || how many, number of, count of, count, total number of, total count of, the number of, how many different records of, how many times, numbers of, tally of, quantity of
    howmuch || how much
    agg | avg | average, mean, avg, typical, typically, on average, average of, average number of, mean of, averaged
    agg | sum | total, sum, sum of, total of, total amount of, total value of, combined value of, sum total of the, overall, altogether, combined, in total, summed, cumulative, sum total of, total sum of
    agg | min | minimum, min, minimum of, minimal
    agg | max | maximum, max, maximum of, maximal
    sup | max | highest, greatest, most amount of, top most, topmost, maximum number of, highest number of, biggest number of, largest number of, greatest number of, highest amount of, largest amount of, most number of, maximum amount of
    sup | min | lowest, minimum number of, lowest number of, smallest number of, least number of, fewest number of, smallest amount of, lowest amount of
    most | max | most, most of
    most | min | least, fewest
    frequent | max | most common, most popular, most frequent, most often, commonest, most commonly, most frequently, most used, busiest, most active, most commonly used, most frequently used
    frequent | min | least common, least popular, least frequent, least often, rarest, least used, least commonly, least frequently, least active
    cmp | > | more than, greater than, larger than, bigger than, higher than, above, over, exceeds, exceed, exceeding, bigger, is more, greater, upwards of, in excess of, beyond, better than, exceeded, has exceeded, have exceeded, went over, gone over, went above, gone above, rose above, risen above
    cmp | < | less than, fewer than, lower than, smaller than, below, under, lower, less, fewer, beneath, worse than, fallen below, fell below, dropped below, dropped under, fallen under, gone below, went below
    cmp | >= | at least, no less than, not less than, no fewer than, greater than or equal to, more than or equal to, minimum of, or more than, not below, not under, not fewer than
    cmp | <= | at most, no more than, not more than, less than or equal to, up to, maximum of, not over, not above, not exceeding, a maximum of
    cmp | = | equal to, equals, equal, exactly, precisely
    cmp | <> | not equal to, other than, different from, except, excluding, except for, apart from, besides, but not, rather than
    post | >= | or more, or higher, or above, or greater, and above, and over, or over, and up, or later, or longer, or older, or better, plus
    post | <= | or less, or fewer, or lower, or below, or under, or earlier, and below, and under, or younger, or shorter
    time | > | after, later than, since after
    time | < | before, earlier than, prior to
    time | >= | since, starting from, from the year
    time | <= | until, till, up until
    between || between, ranging from, in the range of, in the range
    each || each, every, per, for each, for every, in each, by each, of each, at each, on each, grouped by, group by, broken down by, broken down per, break it down by, break them down by, break that down by, break this down by, split it by, split them by, split that by, group that by, break down by, split by, respective, with respect to each, each of the, for all the different, breakdown by, group them by, group it by, group those by, across, for each of the, in every
    by || by
    order || sorted by, sort by, order by, ordered by, ranked by, rank by, arranged by, arrange by, in order of, sort them by, sort it by, order them by, order it by, sorted in order of, sort these by, sort those by, order these by, sorted according to, ordered according to, sorted on, in the order of, list them by, rank them by, sort that by, order that by, sort the result by, sort the results by, ordered based on
    order || sort, sorted, order them, ordered, sort them, sort it, order it, ranked, rank them, sort the list, order the list
    dir | desc | descending, desc, in descending order, in descending order of, descending order, decreasing, in decreasing order, from highest to lowest, highest first, from high to low, largest first, from most to least, from largest to smallest, in reverse order, reversed, reverse, in reverse, from newest to oldest, newest first, latest first, most recent first, biggest first, most first, descendingly, from big to small, the other way round, the other way around, from oldest to youngest, oldest first, in reverse alphabetical order, from most expensive to cheapest, from longest to shortest, longest first
    dir | asc | ascending, asc, in ascending order, in ascending order of, ascending order, increasing, in increasing order, from lowest to highest, lowest first, from low to high, smallest first, from least to most, from smallest to largest, alphabetically, in alphabetical order, in alphabetic order, alphabetical order, alphabetical, from oldest to newest, oldest to newest, earliest first, chronologically, in chronological order, from a to z, cheapest first, youngest first, from youngest to oldest, from cheapest to most expensive, shortest first
    top | max | top, best, leading, highest ranked
    top | min | bottom, worst
    first | asc | first, earliest
    first | desc | last, final
    neg || without, without any, with no, not, n't, no, never, none of, do not, does not, did not, is not, are not, was not, were not, have not, has not, had not, have no, has no, had no, that have no, who have no, which have no, having no, don't, doesn't, didn't, isn't, aren't, wasn't, weren't, haven't, hasn't, hadn't, cannot, lack, lacks, lacking, have never, has never, had never, were never, was never, never had, never been, zero, not any, do not have, does not have, did not have, do not have any, does not have any, don't have, don't have any, doesn't have, doesn't have any, didn't have any, didn't have, have not been, has not been, haven't been, hasn't been, nobody, neither, non, non-
    missing || missing, null, is null, are null, empty, blank, unknown, is missing, are missing, is empty, is unknown, are unknown, are empty, not known, not given, not recorded, not set, not available, undefined, unspecified, unset, not specified, is not known, is not recorded, is not set, is not specified, not assigned, unassigned, is blank, are blank
    present || not null, is not null, are not null, not empty, is not empty, non-null, known, is known, recorded, is recorded, is present, not missing, is not missing, given, has a value
    distinct || distinct, different, unique, various, distinct values of, different values of, different kinds of, different types of, unique values of, kinds of, all different
    like | contains | containing, contain, contains, includes, include, including, has the substring, with the substring, the substring, substring, contains the word, containing the word, with the word, includes the word, have the word, has the word, that contain, that contains, include the word, contain the word, like, with the letters, containing the letters, contains the letter, contain the letter, with the letter, containing the string, contains the text, containing the text, contains the phrase, mentioning, mention, mentions
    like | starts | starting with, starts with, start with, begins with, begin with, beginning with, starting with the letter, starts with the letter, start with the letter, begins with the letter, begin with the letter, beginning with the letter, prefixed with
    like | ends | ending with, ends with, end with, ending in, ends in, end in, ending with the letter, ends with the letter, end with the letter
    percent || percentage, percentage of, percent of, what percent, what percentage, what percentage of, proportion of, share of, fraction of, proportion, what share of, what share, what fraction of, what proportion of, percent
    both || both
    either || either
    pron || they, them, those, these, their, theirs, it, its, that one, ones, he, she, his, her, him, those ones, such, of them, of those, of these, the above, above ones, the latter
    rest || others, the others, the rest, the other ones, rest, the remaining, the remaining ones, remaining, the other
    wh || what, which, who, whom, whose, when, where
    list || list, show, give, display, find, tell, return, get, name all, enumerate, select, provide, print, present
    difference || difference between, range of, spread of, difference between the, gap between, difference in
    ratio || ratio of, ratio
"""


def _phrases() -> dict[tuple[str, ...], tuple[str, str]]:
    table: dict[tuple[str, ...], tuple[str, str]] = {}
    for line in _PHRASES.strip().splitlines():
        op, arg, phrases = (part.strip() for part in line.split("|", 2))
        for phrase in phrases.split(","):
            table[tuple(phrase.split())] = (op, arg)
    for word, (dimension, sign) in ADJECTIVES.items():
        table[("most", word)] = ("sup", f"{sign}:{dimension}")
        table[("least", word)] = ("sup", f"{'min' if sign == 'max' else 'max'}:{dimension}")
        table[("more", word, "than")] = ("cmp", f"{'>' if sign == 'max' else '<'}:{dimension}")
        table[("less", word, "than")] = ("cmp", f"{'<' if sign == 'max' else '>'}:{dimension}")
    for word, (dimension, sign) in SUPERLATIVES.items():
        table.setdefault((word,), ("sup", f"{sign}:{dimension}"))
    for word, (dimension, sign) in COMPARATIVES.items():
        table.setdefault((word, "than"), ("cmp", f"{'>' if sign == 'max' else '<'}:{dimension}"))
        table.setdefault((word,), ("cmp", f"{'>' if sign == 'max' else '<'}:{dimension}"))
    table[("most", "recently")] = table[("the", "latest")] = ("sup", "max:date")
    for word, sign in MUCH.items():
        for participle, dimension in MEASURED_BY.items():
            table[(word, participle)] = table[(f"{word}-{participle}",)] = ("sup", f"{sign}:{dimension}")
    for word in ASKED:
        table[("how", word)] = ("howold", "delay" if word == "late" else ADJECTIVES[word][0])
    for word in ("top", "best"):
        table[(word,)] = ("top", "max")
    for word in ("bottom", "worst"):
        table[(word,)] = ("top", "min")
    return table


PHRASES: Final = _phrases()
LONGEST_PHRASE: Final = max(map(len, PHRASES))

NUMBERS: Final[dict[str, int]] = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "hundred": 100, "thousand": 1000, "once": 1, "twice": 2, "dozen": 12,
}  # fmt: skip

ORDINALS: Final[dict[str, int]] = {
    word: place for place, words in enumerate(("second 2nd", "third 3rd", "fourth 4th", "fifth 5th"), 2) for word in words.split()
}

MONTHS: Final[dict[str, int]] = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug", "september sep sept",
         "october oct", "november nov", "december dec"), 1)
    for name in names.split()
}  # fmt: skip
WEEKDAYS: Final = {"monday": 1, "tuesday": 2, "wednesday": 3, "thursday": 4, "friday": 5, "saturday": 6, "sunday": 0}

UNITS: Final[dict[str, str]] = {
    "year": "year", "yearly": "year", "annual": "year", "annually": "year", "month": "month", "monthly": "month", "day": "day", "daily": "day",
    "quarter": "quarter", "quarterly": "quarter", "hour": "hour", "hourly": "hour", "weekday": "weekday", "decade": "decade",
}  # fmt: skip

# Words of grammar: kept as marks for the patterns.
PREPOSITIONS: Final = frozenset(
    "of in by from to at on with for and or than into within during among as via through off toward towards".split()
)

# Words that ask or are polite and carry no condition: safe to pass over.
FILLERS: Final = frozenset("""
    a an the is are was were be been being am do does did has have had having will would can could should shall may might must there here this that which
    please me us i we you my our your hello hi hey thanks thank ok okay so then also just now all any some only well good great nice alright
    want like need see know tell show give list display find get let if about regarding concerning information info detail data
    record entry table row column database dataset list result answer question value item's what's whats who's how's it's i'd i'll i'm let's
    currently available exist exists existing present total's overall whole entire full actual really actually whether yes sure
    same one ones other together along each's corresponding associated respectively according based using use used belong belongs belonging
    recorded registered listed stored contained called named titled labelled labeled who where when while whose whom how many that's there's
    come comes came coming made make makes making live lives living lived work works working worked located situated found based happen happens happened
    take takes took taken taking place hold held holds get gets got go goes went run runs ran own owns owned owning play plays played
    possess sit sits include included appear appears appearing belong sold sell sells selling bought buy buys placed place places
    visited visit attend attended produced produce produces producing written released issued bear bore handle handled handles
    involve involved involving share shares kind kinds sort type's related relate linked connected assigned under out up down
    been both's even still ever already yet again more's first's s t re ve ll d m please? check look looking let pull fetch compute calculate determine
    identify retrieve report return display could've number's amount's their's much say what'd per's go going be't ago
    treat treated treats teach teaches taught give gave given carry carried carries operate operated operates serve served serves
    worth valued receive received receives write wrote writes sing sang sings perform performed performs study studies studied lend lent borrow borrowed borrows
    charges earn earns earned cost costs spend spends spent pay pays paid weigh weighs last lasts lasted ship shipped deliver delivered order ordered
    fly flies flew flown leave leaves left depart departs departed arrive arrives arrived land lands landed drive drives drove driven
    contain contains hire hired employ employed employs born build built made manufactured open opened start started end ended
    enrolled enroll register join joined join's publish published admit admitted diagnose diagnosed prescribe prescribed manage manages managed
    direct directed air aired supply supplied supplies supervise supervised head headed lead led reach reached score scored win won wins
    year's designed design designs developed develops created create creates hosted hosts composed composes organized organised featuring features featured playing carrying serving wrote painted paints filmed published introduced establish set borne presented displayed ther thier pls plz whats saved shown amongst owned following those's entries records details rows values items actually exactly's whatever currently there're
    become hear move moved stay stayed send sent travel traveled travelled bring brought keep kept offer offered offers
    very done doing stationed parked housed docked moored deployed garaged berthed anchored headquartered shelved stocked
    belongs need needs needed ask asked know known think mean means thing things something anything everything anyone everyone each other
""".split())  # fmt: skip

# Of the fillers, verbs whose stem may point at a column (hired -> HireDate, born -> birth year): tried on dates and roles before they are dropped.
FROM_WORDS: Final = frozenset("from leave leaves left leaving depart departs departed departing departure out outbound".split())
TO_WORDS: Final = frozenset(
    "to into arrive arrives arrived arriving arrival land lands landed toward towards inbound bound heading headed".split()
)
FROM_COLUMNS: Final = frozenset("origin source from departure dep start sender pickup".split())
TO_COLUMNS: Final = frozenset("dest destination to arrival arr target end receiver recipient dropoff".split())

GENDERS: Final[dict[str, tuple[str, ...]]] = {
    "female": ("female", "f", "w", "woman", "女"), "woman": ("female", "f", "w", "woman", "女"), "girl": ("female", "f", "w", "girl", "女"),
    "male": ("male", "m", "man", "男"), "man": ("male", "m", "man", "男"), "boy": ("male", "m", "boy", "男"),
}  # fmt: skip

GENERIC_NAMES: Final = frozenset("name title label".split())
DOERS: Final = ("er", "or", "ist", "ant", "ian")
NAME_WORDS: Final = ("name", "title", "fullname", "label", "名称", "姓名", "名字", "标题", "名")
MEASURE_UNITS: Final[dict[str, float]] = {
    "millisecond": 0.001,
    "ms": 0.001,
    "second": 1,
    "sec": 1,
    "minute": 60,
    "min": 60,
    "hour": 3600,
    "day": 86400,
}
UNIT_WORDS: Final = frozenset("""
    mile miles km kilometer kilometers kilometre kilometres kg kilogram kilograms pound pounds lb lbs dollar dollars usd euro euros eur yuan rmb percent % people persons
    minute minutes second seconds hour hours day days foot feet meter meters metre metres year years old ton tons liter liters person point points time times
    hectare hectares acre acres tonne tonnes gram grams g litre litres kwh mw kw watt watts knot knots mph kmh cm mm inch inches yard yards
    sqm sqft sqkm m2 m3 star stars knot litres mph rpm barrel barrels pint pints ounce ounces oz night nights week weeks month months hr hrs kilo kilos
    degree degrees page pages unit units $ bucks cent cents byte bytes word words
""".split())  # fmt: skip
GREETINGS: Final = frozenset("hello hi hey hallo greetings howdy".split())

# Who does what: the noun a verb asks for after "who".
AGENTS: Final[dict[str, tuple[str, ...]]] = {
    "wrote": ("author", "writer"), "write": ("author", "writer"), "written": ("author", "writer"), "sang": ("singer", "artist"), "sing": ("singer", "artist"),
    "teach": ("teacher", "instructor", "professor"), "taught": ("teacher", "instructor", "professor"), "treat": ("doctor", "physician"),
    "direct": ("director",), "drove": ("driver",), "drive": ("driver",), "bought": ("customer", "client"), "buy": ("customer", "client"),
    "order": ("customer", "client"), "borrow": ("member", "reader", "borrower"), "manag": ("manager", "employee"), "sold": ("seller", "employee", "salesperson"),
    "play": ("player", "artist"), "perform": ("artist", "performer"), "publish": ("publisher",), "supply": ("supplier", "vendor"), "visit": ("visitor",),
    "enroll": ("student",), "attend": ("student", "attendee"), "study": ("student",), "prescrib": ("doctor", "physician"), "operat": ("surgeon", "doctor"),
    "own": ("owner",), "act": ("actor",), "compos": ("composer", "artist"),
}  # fmt: skip
PEOPLE: Final = frozenset(
    """patron shopper person people employee staff customer client student pupil highschooler teacher instructor professor doctor physician nurse patient author writer artist singer musician actor
director driver pilot player athlete member user manager owner visitor guest passenger employee worker candidate applicant voter subscriber buyer seller agent coach officer
trainer keeper chef cook guard clerk cashier technician mechanic waiter volunteer donor referee curator editor journalist therapist dentist vet
judge lawyer lecturer faculty researcher scientist engineer friend contact performer composer reader borrower tenant resident citizen soldier crew host reviewer borrower victim suspect
attorney broker adjuster paralegal supervisor inspector surveyor architect farmer skipper captain conductor ranger warden usher carpenter electrician plumber
tutor counselor pharmacist courier dispatcher jockey breeder groomer stylist barber speaker delegate landlord patrolman firefighter pensioner juror broker""".split()
)

MORE_IS_WORSE: Final = frozenset("delay late lateness error defect penalty fine loss complaint risk debt accident failure absence".split())
MORE_IS_BETTER: Final = frozenset("rating score grade mark point star quality review profit revenue sale rate capacity".split())
# Verbs whose time or object is kept in a table of that name ("customers who ordered in 2016").
VERB_TABLES: Final[dict[str, str]] = {
    "shown": "showing", "screened": "screening", "flew": "flight", "fly": "flight", "flown": "flight", "flies": "flight", "bought": "purchase", "buy": "purchase", "sold": "sale", "borrowed": "loan",
    "lent": "loan", "drove": "trip", "paid": "payment", "traveled": "trip", "travelled": "trip", "treated": "appointment", "enrolled": "enrolment",
}  # fmt: skip
REVENUE: Final = frozenset(["sale", "revenue", "turnover", "income", "earning", "taking", "proceed", "receipt"])
PARTICIPLES: Final = frozenset(
    "shown fed sold bought born paid sent held made left built begun written given taken seen done lent met drawn won lost".split()
)
PAID: Final = frozenset(
    "payment sale donation fee fine expense deposit refund contribution salary bonus".split()
)  # tables of money by their name
ADDITIVE: Final = frozenset(
    """amount total volume quantity cost hour minute kg ton tonne liter catch yield output production donation spending expense revenue turnover profit unit
    rent freight consumption attendance budget tonnage acreage footage spend bill payroll""".split()
)
SINGLE: Final = frozenset(
    """price rate wage salary pay tariff premium percent percentage pct share ratio score rating grade mark star rank level index idx age year temperature speed
    height width depth length duration size weight limit minimum maximum average mean median unit list latitude longitude altitude elevation version floor
    strength power alcohol abv ph margin hourly number code position priority target capacity""".split()
)  # words of columns that say something of each row, and mean nothing added up
MONEY_VERBS: Final = frozenset(
    "paid pay billed bill charged charge claimed claim donated donate spent spend refunded refund invoiced invoice raised raise earned earn collected awarded".split()
)
EARNING: Final = frozenset(["earn", "earns", "earned", "earning"])
