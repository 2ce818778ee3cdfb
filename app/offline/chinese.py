"""Turn a simple Chinese question into English tokens in an order the parser reads; schema names and values stay as they are."""

import re
from collections.abc import Container, Iterable

from longtable.app.offline.cedict import kindred, meanings, words_in
from longtable.app.offline.chinese_compound import compounds
from longtable.app.offline.chinese_cut import RUN, cuts, segment
from longtable.app.offline.chinese_deeds import deeds
from longtable.app.offline.chinese_fit import Schema, fit, fitting, is_name
from longtable.app.offline.chinese_order import arrange, is_verb
from longtable.app.offline.chinese_unexplained import explained, values_of
from longtable.app.offline.lexicon_zh import LEXICON, MEASURES, PLAIN, STATE_WORDS
from longtable.app.offline.phrasing_zh import plainly_chinese
from longtable.app.offline.text import Token, lemma, likeness, tokenize

_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")
_HOME = re.compile(
    r"^(我们)?(这个|这家|该)?[\u3400-\u9fff]{1,3}(园|馆|院|校|店|司|厂|场|库|系统|农场)(里|中|内|里面)(?=(一共|总共|共)?有(多少|几))"
)
_RANKED = re.compile(
    r"^(?:请)?(?:列出|找出|显示|查询|给出|哪些是|求)?(?P<by>[\u3400-\u9fff]{2,16}?)最(?P<end>[高低大小])的(?:前)?(?P<count>\d+|[一二两三四五六七八九十]+)"
    r"\s*(?:个|名|位|部|家|种|件|条|座|辆|间|所|支|本|首|项|款|只|笔|场|台|艘|张|次)"
    r"(?P<of>(?:(?![的是哪什各])[\u3400-\u9fff])+?)(?:的(?P<attr>(?:(?![的是哪什各])[\u3400-\u9fff])+?))?(?P<more>(?:及其?|和|以及|与)[\u3400-\u9fff]+?)?(?:是谁|是什么|有哪些|是哪些|分别是谁|是哪\S{1,3}|(?:分别)?是多少|叫什么(?:名字)?)?[？?。]?$"
)
_GLOSSED = re.compile(r"([\u3400-\u9fff·•]+)\s*[(（]\s*([^()（）\u3400-\u9fff]*[A-Za-z\d][^()（）\u3400-\u9fff]*)[)）]")
_QUOTED = re.compile(r"""["“「《'‘]([^"”」》'’]+)["”」》'’]""")


def translate(
    question: str,
    names: Iterable[str],
    schema: Iterable[tuple[str, ...]] = (),
    found: Iterable[str] = (),
    things: Iterable[tuple[str, ...]] = (),
    *,
    as_it_stands: bool = False,
) -> list[Token]:
    """Return English tokens for a Chinese question.

    `names` are schema names and values in Chinese, kept whole; `schema` the words of each table's and column's name, which choose
    among the English words that a Chinese one may stand for, and so do the values that were `found`; `things` are the tables' names.
    """
    known, tables = tuple(dict.fromkeys(schema)), tuple(dict.fromkeys(things))
    there = frozenset(found)
    question = plainly_chinese(question)
    if (ranked := _RANKED.match(question)) is not None and ranked["of"].strip():
        return _ranked(ranked, tuple(names), known, there, tables)
    question = re.sub(
        r"(平均|总)分(?!数|[类组布成红钟店公支行期摊馆部校])", r"\1分数", re.sub(r"最([高低])分(?!数)", r"分数最\1", question)
    )
    question, dated = _dated_by(_whole_verbs(question, known))
    lexicon = _own_words(question, tuple(names), known, there)
    more = explained(question, lexicon, known, there)
    own = lexicon | {word: english for word, english in more.items() if not english.startswith("\0")}
    question = _GLOSSED.sub(lambda match: _gloss(match.group(1), match.group(2).strip(), own, known), question)
    lexicon |= more
    lexicon |= compounds(question, lexicon, known, there, tables)
    lexicon |= deeds(question, lexicon, tables)
    text = _ranges(_dates(_numerals(_at_home(question, lexicon, known))))
    pieces: list[str] = []
    place = 0
    for match in re.finditer(r"""["“「《‘][^"”」》’]+["”」》’]|[\u3400-\u9fff]+""", text):
        pieces.append(text[place : match.start()])
        run = match.group(0)
        pieces += [f' "{run[1:-1]}" '] if _QUOTED.fullmatch(run) else [f" {word} " for word in segment(run, lexicon)]
        place = match.end()
    pieces.append(text[place:])
    words = [word for piece in pieces for word in _parted(piece)]
    if as_it_stands:
        return _tokens(_reorder(words, known))
    words = arrange(_told_apart(words, known), lambda phrase: _reorder(phrase, known))
    if dated:
        words = _with_date(words, [token.word for token in translate(dated, (), known, there, tables)])
    return _tokens(_plural(words, known))


def _own_words(question: str, names: tuple[str, ...], known: Schema, there: frozenset[str]) -> dict[str, str]:
    """Return our own words of the question, each with the English that fits the schema; names and values stand for themselves."""
    lexicon = {chinese: fitting(options, known, there) for chinese, options in LEXICON.items() if chinese in question}
    for chinese in lexicon:  # 领养过: a verb, not the noun
        verb = next((option for option in LEXICON[chinese] if option.endswith("ed")), "")
        nouns = tuple(option for option in LEXICON[chinese] if not option.endswith("ed"))
        if verb and re.search(f"(?:没有?|未|从未){chinese}|{chinese}[过了](?!多少|几)|谁{chinese}的", question):
            lexicon[chinese] = verb
        elif verb and nouns and re.search(f"(?:多少|几)[人次个名位场]?{chinese}(?!的)", question):
            lexicon[chinese] = fitting(nouns, known, there)
    lexicon |= {chinese: "orders" for chinese, english in lexicon.items() if english == "order" and "单" in chinese}  # not how to sort
    lexicon |= _kinds(question, lexicon, known)
    own = {name: f"\0{name}" for name in names if RUN.search(name)}
    return {word: english for word, english in lexicon.items() if not _holds_a_name(word, own)} | own


def _holds_a_name(word: str, names: Container[str]) -> bool:
    """Say whether an own word is a name of the schema, or a value of the data, with a particle after it or a total before it."""
    return (
        (word[:-1] in names and word[-1] in "的了过")
        or (word[1:] in names and word[0] == "总")
        or (word[:2] == "平均" and word[2:] in names)
    )


_SPLIT_VERB = re.compile(rf"([\u3400-\u9fff])[过了](多少|几)([{''.join(MEASURES)}])([\u3400-\u9fff])(?=\W*$)")


def _whole_verbs(question: str, schema: Schema) -> str:
    """Put the two halves of a verb together again: 停过几次电 asks for 几次停电, unless the noun is a thing of its own here."""

    def whole(match: re.Match[str]) -> str:
        verb, many, measure, noun = match.groups()
        own = any(is_name(option, schema) for option in LEXICON.get(noun, ()))
        return f"有{many}{measure}{verb}{noun}" if not own and (verb + noun in LEXICON or meanings(verb + noun)) else match[0]

    return _SPLIT_VERB.sub(whole, question)


_DATED = re.compile(
    r"[(（，,]\s*(?:按照?|以|依据?|根据)\s*([\u3400-\u9fff]{1,6}(?:日期|时间|日))(?:来?计算|来?统计|计|算|为准)?\s*[)）]?(?=\W*$)"
)


def _dated_by(question: str) -> tuple[str, str]:
    """Part the date that a year is meant of, (按下单日期), from a question that names a year."""
    named = _DATED.search(question) if re.search(r"(?:19|20)\d\d", question) else None
    return (question[: named.start()] + question[named.end() :], named[1]) if named else (question, "")


def _with_date(words: list[str], dated: list[str]) -> list[str]:
    """Put the date that was named before the time that is meant of it: with order date in 2024."""
    place = next((place for place, word in enumerate(words) if word == "in" or word.startswith(("in ", "between "))), len(words))
    return [*words[:place], "with", *dated, *words[place:]]


_FIRM = re.compile(
    r"^(?:我们|咱们)?(?:这个|这家|该|本)?(?![每各哪按列请谁])([\u3400-\u9fff]{0,4}?(?:公司|中心|系统|[园馆院校店司厂场库所室社行站]))(?:里面|里|中|内)?"
    r"(?:一共|总共|共|现在|目前)*(?:有|在|养了?|雇了?|拥有|设有?)?(?=(?:多少|几))"
)


def _at_home(question: str, lexicon: dict[str, str], schema: Schema) -> str:
    """Drop the firm whose data this is: in 律所一共有多少名律师 it is no table."""
    firm = _FIRM.match(question)
    named = firm is None or any(is_name(word, schema) for word in segment(firm[1], lexicon))
    return _HOME.sub("", question) if firm is None or named else question[firm.end() :]


def _plural(words: list[str], schema: Schema) -> list[str]:
    """Put what is counted in the plural, which tells things from an attribute: the number of hires is no hire number."""
    out = list(words)
    for place, word in enumerate(words[:-1]):
        noun = words[place + 1]
        if word == "number of" and re.fullmatch(r"[a-z]+[a-rt-z]", noun) and is_name(noun, schema):
            out[place + 1] = (
                f"{noun[:-1]}ies" if re.search(r"[^aeiou]y$", noun) else f"{noun}{'es' if noun.endswith(('sh', 'ch', 'x')) else 's'}"
            )
    return out


def _kinds(question: str, lexicon: dict[str, str], schema: tuple[tuple[str, ...], ...]) -> dict[str, str]:
    """Return the English of a noun with what kind, level or cost of it is asked (工作类型), where one name of the schema has both words."""
    found: dict[str, str] = {}
    for closing in _CLOSINGS:
        for noun in lexicon:
            word = noun + closing
            if noun == closing or len(noun) < 2 or word not in question or word in lexicon:
                continue
            options = (
                f"{of} {kind}" for of in LEXICON[noun] for kind in LEXICON[closing] if of.isascii() and of and kind and "~" not in of + kind
            )
            fits = [(fit(option, schema), option) for option in options]
            if fits and max(fits)[0] >= _WHOLE:
                found[word] = max(fits)[1]
    return found


_CLOSINGS = ("类型", "类别", "种类", "级别", "等级", "状态", "费用", "方式", "原因", "时长", "价格", "总额", "金额")
_WHOLE = 0.98


def _parted(piece: str) -> list[str]:
    """Part marks and times from words in what is not Chinese."""
    if piece.startswith("\0"):
        return [piece]
    return [part.strip() for part in _MARK.split(piece) if part and part.strip()]


def _told_apart(words: list[str], schema: Schema) -> list[str]:
    """Tell a number of rows from a quantity, and what is missing from what is denied, by the words around."""
    out: list[str] = []
    for word in words:
        before = out[-1] if out else ""
        if word == "how many" and before == "how many":
            continue
        if word == "quantity" and is_name(before, schema) and not is_name(f"{before} quantity", schema):
            word = "number of ~"
        elif word in _LONG and before.rpartition(" ")[2] in ("range", "mileage", "reach"):
            word = _LONG[word]  # distances that no English word for length measures
        elif before == "not" and is_name(word, schema) and not word.endswith("ed"):
            out[-1] = "without"
        elif before == "without" and is_verb(word):
            out[-1] = "not"
        elif before.startswith(("total ", "sum ")) and before.endswith("~") and word == "of":
            continue
        elif before in _PER and (rate := _rate(word, _PER[before], schema)):
            out[-1] = rate
            continue
        elif word in _MOST and before == "number of ~":
            out.pop()
            word = _MOST[word]
        elif word in ("highest ~", "lowest ~") and before in _SUMMED:
            place = len(out) - 1
            while place and is_name(out[place - 1], schema) and out[place - 1] not in _STOPS:
                place -= 1
            out[place:] = [word.rstrip(" ~"), "average" if before.startswith("average") else "total", *out[place:-1]]
            continue
        elif word == "of" and before in _ENDS and len(out) > 1 and is_name(out[-2], schema) and out[-2] not in _STOPS:
            out[-2:] = [before, out[-2]]
        if word.startswith("total ") and not word.endswith("~") and out and is_name(before, schema) and before not in _STOPS:
            out.insert(len(out) - 1, "total")
            word = word.removeprefix("total ")
        if re.fullmatch(r"\d[\d.]*", word) and before == "is":
            out.pop()
        if word in ("id", "number", "code") and (noun := next((each for each in reversed(out) if is_name(each, schema)), "")):
            fits = {key: fit(f"{noun} {key}", schema) for key in ("number", "id", "code")}  # 编号: the number people read, then the key
            word = max(fits, key=lambda key: (fits[key], key == word and word != "id"))
        if word.endswith(" order"):
            word += "s"  # an order, not how to sort
        out.append(word)
    return out


_PER = {
    "each hour": ("per hour", "hourly"), "each day": ("per day", "daily"), "each night": ("per night", "nightly"),
    "each week": ("per week", "weekly"), "each month": ("per month", "monthly"), "each year": ("per year", "annual", "yearly"),
}  # fmt: skip


def _rate(word: str, ways: tuple[str, ...], schema: tuple[tuple[str, ...], ...]) -> str:
    """Return the name that the schema has for 每小时 with a noun: capacity per hour, hourly rate."""
    if not is_name(word, schema):
        return ""
    named = [f"{word} {way}" if way.startswith("per ") else f"{way} {word}" for way in ways]
    return next((name for name in named if is_name(name.replace("per ", ""), schema)), "")


_LONG = {"longest": "highest ~", "shortest": "lowest ~"}
_MOST = {"most ~": "most ~", "fewest ~": "fewest ~", "highest ~": "most ~", "lowest ~": "fewest ~"}
_SUMMED = frozenset(["total amount of ~", "sum of ~", "total ~", "average ~"])
_ENDS = frozenset(["longest", "shortest", "oldest", "newest", "earliest", "latest", "largest", "smallest", "fastest", "slowest"])


_MARK = re.compile(
    r"([，。？！；：?!;、]|,(?!\d)|\.(?=\s*$)|\bbetween \d{4}-\S+ and \d{4}-\S+"
    r"|(?<![\w-])(?:(?:Q[1-4]|" + "|".join(_MONTHS) + r") )?(?:19|20)\d\d(?![\w-]))"
)


def _ranked(match: re.Match[str], names: tuple[str, ...], schema: Schema, found: frozenset[str], things: Schema) -> list[Token]:
    """Put 账单总金额最高的前五位客户 as 'top 5 customers by total amount of bills'."""
    of = " ".join(token.text for token in translate(match["of"], names, schema, found, things))
    measure = translate(match["by"], names, schema, found, things, as_it_stands=True)
    words = [token.text for token in measure if token.text not in ("的", "of")]
    if "total" in words and words.index("total"):
        place = words.index("total")
        words = [*words[place:], "of", *words[:place]]
    number = match["count"] if match["count"].isdigit() else str(_value(match["count"]))
    end = "top" if match["end"] in "高大" else "bottom"
    if match["attr"]:
        asked = f"{match['of']}的{match['attr']}{match['more'] or ''}"
        of = " ".join(token.word for token in translate(asked, names, schema, found, things)).replace(f"of {of}", f"of {end} {number} {of}")
        return tokenize(f"{of} by {' '.join(words)}")
    return tokenize(f"{end} {number} {of} by {' '.join(words)}")


def values_meant(question: str, schema: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the English values to look for that the Chinese words of a question may stand for, where no name of the schema does."""
    known = tuple(dict.fromkeys(schema))
    words = [word for word in STATE_WORDS if word in question]
    whole = [word for word in words if not any(word != other and word in other for other in words)]
    meant = [option for word in whole for option in STATE_WORDS[word][:_MOST_VALUES]]
    meant += values_of(question, _own_words(question, (), known, frozenset()), known)[:_MOST_VALUES]
    return list(dict.fromkeys(option.lower() for option in meant if fit(option, known) < 0.99))


def own_texts(question: str, names: Iterable[str]) -> list[str]:
    """Return what is left of a Chinese question between the names of the schema and plain words: maybe values, as they were typed."""
    plain = {*names, *PLAIN}
    longest = max(map(len, (*plain, *LEXICON)))
    texts: list[str] = []
    for run in RUN.findall(question):
        text = ""
        for start, end in cuts(run, LEXICON.keys() | plain, longest):
            word = run[start:end]
            if word not in plain and LEXICON.get(word, ("?",))[0] not in ("", "how many", "which", "each"):
                text += word
            else:
                texts, text = [*texts, text], ""
        texts.append(text)
    texts = [text.rstrip("的了过") for text in texts]
    return list(dict.fromkeys(text for text in texts if 2 <= len(text) <= 12))[:_MOST_VALUES]


def as_asked(question: str, word: str) -> str:
    """Return the Chinese word of the question that an English one was made of; the word itself where it is the user's own."""
    if not word.isascii() or word in question:
        return word
    plain = lemma(word.lower())
    sources = [
        chinese for chinese, options in LEXICON.items() if chinese in question and any(plain == lemma(o.rstrip(" ~")) for o in options)
    ]
    looked_up = (question[start:end] for start, end in words_in(question))
    sources += [chinese for chinese in looked_up if plain in map(lemma, (*meanings(chinese), *kindred(chinese)))] if not sources else []
    return max(sources, key=len, default=word)


_MOST_VALUES = 4


def _gloss(run: str, name: str, lexicon: dict[str, str], schema: Schema) -> str:
    """Let 浊度(turbidity) be the name in the database's own words: what it explains is dropped, known nouns before it stay."""
    spelled = re.search(r"[\u3400-\u9fff]{1,5}(?:[·•][\u3400-\u9fff]+)+$", run)
    if spelled is not None:
        return f"{run[: spelled.start()]} {name} "
    if (said := _said(run, name, lexicon, schema)) and len(said) < len(run):
        return f"{run.removesuffix(said)} {name} "
    return f"{_without_unknown(run, lexicon, name)} {name} " if said != run else f" {name} "


def _said(run: str, name: str, lexicon: dict[str, str], schema: Schema) -> str:
    """Return the end of a run that says what the name in brackets says: the same word, a denial, what the schema has no name for."""
    plain = lemma(name.lower())
    for start in range(max(0, len(run) - 6), len(run) - 1):
        if plain in map(lemma, meanings(run[start:])):
            return run[start:]
    if (people := re.search(r"[\u3400-\u9fff]{2,4}[籍裔]$", run)) is not None:
        word = next((run[start:] for start in range(people.start(), len(run) - 1) if run[start:-1] in lexicon), "")
        return word or people.group(0)
    word = max((word for word, english in lexicon.items() if english and run.endswith(word)), key=len, default="")
    if not word or not (english := lexicon[word]).isascii():
        return ""
    if plain in {lemma(option.lower()) for option in (english, *LEXICON.get(word, ()))}:
        return word
    if english.endswith("ed") and (denied := re.search(rf"(?:还?没有?|尚?未|非){word}$", run)):
        return denied.group(0)
    return word if len(word) > 1 and word not in PLAIN and not is_verb(english) and fit(english, schema) < _SURE else ""


_SURE = 0.75


def _without_unknown(run: str, lexicon: dict[str, str], name: str) -> str:
    """Return a run without the pieces that no word explains, and those that say the name itself."""
    kept, place = "", 0
    longest = max(map(len, lexicon), default=1)
    while place < len(run):
        size = next((size for size in range(min(longest, len(run) - place), 0, -1) if run[place : place + size] in lexicon), 0)
        word = run[place : place + max(size, 1)]
        if size and lexicon[word].lower() != name.lower():
            kept += word
        place += max(size, 1)
    return kept


_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"两": 2}
_POWERS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000}
_NUMERAL = re.compile(r"(?<![第期周每几数])[零一二两三四五六七八九]?[十百千万亿][零一二两三四五六七八九十百千万亿]*(?![分克米瓦升月])")


def _numerals(text: str) -> str:
    """Write numbers in figures: 三百五 -> 350, 2万 -> 20000."""
    text = re.sub(r"(\d+(?:\.\d+)?)\s*([千百]?万|亿|千(?![克米瓦]))", lambda m: f"{float(m[1]) * _value(m[2]):.0f}", text)
    return _NUMERAL.sub(lambda m: str(_value(m.group(0))) if len(m.group(0)) > 1 or m.group(0) == "十" else m.group(0), text)


def _value(numeral: str) -> int:
    total = section = 0
    digit: int | None = None
    for sign in numeral:
        if sign in _DIGITS:
            digit = _DIGITS[sign]
            continue
        power = _POWERS[sign]
        if power >= 10_000:
            total += max(section + (digit or 0), 1) * power
            section = 0
        else:
            section += (1 if digit is None else digit) * power
        digit = None
    return total + section + (digit or 0)


_QUARTERS = {"一": 1, "二": 2, "三": 3, "四": 4, "1": 1, "2": 2, "3": 3, "4": 4}
_HALVES = {"上": ("01-01", "06-30"), "下": ("07-01", "12-31")}


def _ranges(text: str) -> str:
    """Put 3到4之间 as between 3 and 4."""
    unit = r"(?:[元岁年分天日]|公斤|千克|公里|美元|欧元|分钟|小时|平方米|平米|个|块)?"
    return re.sub(
        rf"(?:在|介于)?\s*(\d[\d,.]*)\s*({unit})\s*(?:到|至|和|与|-|~|—)\s*(\d[\d,.]*)\s*({unit})\s*之间", r" between \1 and \3 \4", text
    )


def _dates(text: str) -> str:
    text = re.sub(r"(\d{4})\s*年?\s*的?第?\s*([一二三四1-4])\s*季度", lambda m: f" Q{_QUARTERS[m[2]]} {m[1]} ", text)
    text = re.sub(r"第\s*([一二三四1-4])\s*季度", lambda m: f" Q{_QUARTERS[m[1]]} ", text)
    text = re.sub(r"(\d{4})\s*年?\s*的?([上下])半年", lambda m: f" between {m[1]}-{_HALVES[m[2]][0]} and {m[1]}-{_HALVES[m[2]][1]} ", text)
    text = re.sub(r"(\d{4})\s*年\s*(\d{1,2})\s*月\s*(\d{1,2})\s*[日号]", lambda m: f" {m[1]}-{int(m[2]):02d}-{int(m[3]):02d} ", text)
    text = re.sub(
        r"(\d{4})\s*年\s*(\d{1,2})\s*月份?", lambda m: f" {_MONTHS[int(m[2]) - 1] if 1 <= int(m[2]) <= 12 else m[2]} {m[1]} ", text
    )
    text = re.sub(
        r"(?<!\d)(\d{1,2})\s*月\s*(\d{1,2})\s*[日号]",
        lambda m: f" {_MONTHS[int(m[1]) - 1] if 1 <= int(m[1]) <= 12 else m[1]} {m[2]} ",
        text,
    )
    text = re.sub(r"(?<!\d)(\d{1,2})\s*月份?", lambda m: f" {_MONTHS[int(m[1]) - 1] if 1 <= int(m[1]) <= 12 else m[1]} ", text)
    return re.sub(r"(\d{4})\s*年", r" \1 ", text)


def _reorder(words: list[str], schema: tuple[tuple[str, ...], ...] = ()) -> list[str]:
    """Move postfix words (marked ~) before the noun phrase they close: 航班 最多 -> most flights, 航班 数量 -> number of flights."""
    out: list[str] = []
    for word in words:
        if not word.endswith("~"):
            out.append(word)
            continue
        plain = word[:-1].strip()
        place = len(out)
        if plain in ("highest", "lowest") and (not out or out[-1] in _STOPS):
            out.append(plain)
            continue
        while place and out[place - 1] in ("of", "in", "have", "is"):
            place -= 1
        if place:
            place -= 1
            while place and _joins_noun(out, place, schema):
                place -= 1
        if plain.startswith("number of") and place and out[place - 1] in ("most", "fewest"):
            place -= 1
        out.insert(place, plain)
    return _split_order(_before_than(out))


_STOPS = frozenset([
    "of", "is", "in", "have", "from", "to", "and", "or", "by", "each", "which", "what", "who", "average", "most", "fewest", "highest",
    "lowest", "top", "last", "list", "show", "find", "only", "those", "between", "same", "all", "not", "without", "how many", "more than",
    "less than", "at least", "at most", "number of", "how many distinct", "how", "many", "distinct", "than", "more", "less", "at", "least",
])  # fmt: skip


def _joins_noun(out: list[str], place: int, schema: tuple[tuple[str, ...], ...]) -> bool:
    """Say whether the word before `place` belongs to the same noun, as one name of the schema has both: 'departure' before 'delay'."""
    before = out[place - 1]
    if before in _STOPS or not before.isascii() or not before.islower():
        return False
    words = {lemma(word) for word in (*before.split(), *out[place].split())}
    return any(all(any(likeness(word, part) > 0.9 for part in name) for word in words) for name in schema)


def _before_than(out: list[str]) -> list[str]:
    """Undo 比 X 更: comparisons with words after are read as they stand."""
    return [word for word in out if word != "than"]


def _split_order(out: list[str]) -> list[str]:
    """Turn 'by X order' into 'order by X', and 'top X' without a number as it stands."""
    if "order" in out and "by" in out and out.index("by") < out.index("order"):
        place = out.index("by")
        rest = [word for index, word in enumerate(out) if index != out.index("order")]
        rest[place] = "sort by"
        return rest
    if "by" in out and any(word in ("descending", "ascending") for word in out[out.index("by") :]):
        out[out.index("by")] = "sort by"
    return out


def _tokens(words: list[str]) -> list[Token]:
    tokens: list[Token] = []
    for word in words:
        if word == "of":
            tokens.append(Token("的", "of", "word", len(tokens)))
        elif word.startswith("\0"):
            tokens.append(Token(word[1:], word[1:].lower(), "word", len(tokens)))
        else:
            tokens += [Token(token.text, token.word, token.kind, len(tokens) + place) for place, token in enumerate(tokenize(word))]
    return tokens
