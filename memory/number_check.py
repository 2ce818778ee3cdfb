"""Check that each figure of an answer follows from the results of its turn.

One idea: evidence is near or far. Near is what the figure's sentence speaks of: the rows that it names (Canada, 2022, UA), and
totals, averages, differences and shares of them where its words say so. Far is all the rest, and vouches only for a figure that a
made-up one would seldom hit. A sentence that names no row has the whole result near.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from statistics import median

from longtable.memory.figures import Figure, Reading, figures, number_in

MOST_ROWS = 200
"""Rows up to which a sentence that names no row may mean any cell, whatever the chance of a hit."""
MOST_WORK = 1_000_000
"""Cells times sentences up to which each sentence is held against the results by itself; else the answer is one sentence."""
MOST_OPERANDS = 30
MOST_COLUMNS = 20
CHANCE_NAMED, CHANCE_OPEN = 0.2, 0.6
"""Chance of a hit up to which far evidence counts: where the sentence names a row, and where it names none."""
_TIME_FACTORS = (1.0, 60.0, 3600.0, 86400.0, 0.001)


@dataclass(frozen=True)
class Source:
    """One result that the turn used; `rows` hold JSON-safe cells, `row_count` counts also rows that are not in `rows`."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    row_count: int
    sql: str = ""


# -- words ----------------------------------------------------------------------------------------------------------

_WORDS = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "sum": r"\b(?:total\w*|sums?|altogether|together|overall|combined?|cumulative\w*|in all|all|both|jointly|whole|entire|rest"
        r"|remain\w*|others?|halves|half|quarters?|plus|two|three|four|five|six|seven|eight|nine|ten|add(?:s|ed)?|make up|years?)\b"
        r"|[总共合累其余剩]|全[部年体国]|[两三四五六七八九]|加起来|一半|半年|季度|之和",
        "mean": r"\b(?:averag\w*|mean|median|typical\w*|per|each|every|ratio|a (?:day|week|month|year|customer|user))\b"
        r"|[均每]|中位|比例|单价",
        "gap": r"\b(?:differ\w*|gap|more|less|fewer|higher|lower|than|above|below|over|under|ahead|behind|lead\w*|trail\w*|margin|rang\w*"
        r"|spread|chang\w*|exce\w+|net|left|surplus|deficit|short\w*|apart|not|without|between|by|from|gr[eo]w\w*|ris\w+|rose|increas\w+|gain\w*|fell|fall\w*"
        r"|drop\w*|decreas\w+|declin\w+|los[st]\w*|up|down|minus|points?|pp|shr[aiu]nk\w*|climb\w*|jump\w*|add(?:s|ed)?)\b"
        r"|[差超比未非不增减降升涨跌多少高低余净]|领先|落后|变化|百分点",
        "change": r"\b(?:gr[eo]w\w*|rose|ris\w+|increas\w+|gain\w*|up|more|higher|larger|bigger|faster"
        r"|longer|above|exceed\w*|climb\w*|jump\w*"
        r"|better|recover\w*|expensive|gap|differ\w*|ahead|chang\w*|fell|fall\w*|drop\w*|decreas\w+|declin\w+|los[st]\w*|down|less|fewer"
        r"|lower|smaller|slower|shorter|below|under|behind|cheaper|reduc\w+|shr[aiu]nk\w*|worse|than|surg\w*|slip\w*)\b"
        r"|[增涨升多高超快长降减跌少低慢短亏差]|环比|同比|变化|变动|领先|落后",
        "share": r"\b(?:shares?|portion|proportion|account\w*|contribut\w*|of (?:all|the|its|total|them))\b|[(（][\d.]+ ?%"
        r"|占|比重|份额|其中|贡献",
        "by": r"\bby\s(?:about\s|around\s|roughly\s|some\s|only\s|a\s)?\d|[增降减涨跌升][长幅加少]?(?:了|率?(?:约?为|达)?)?\s?约?\s?\d",
        "extreme": r"\b(?:top|most|least|\w+est|best|worst|max\w*|min\w*|peak\w*|next|lead\w*|first|last|rang\w*|bottom|from|between)\b"
        r"|[最首末]|第[一二三]|前|后|峰|领先|居|之间|冠|垫底",
    }.items()
}
_RATE = re.compile(r"rate|pct|percent|share|ratio|%|率|比|margin", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:^|[_\s])(?:ids?|code|year|month|quarter|day|hour|week|zip|phone|rank|no|nr)$|^(?:年份?|月份?|季度|日期?|编号|序号|排名)$|_?id$",
    re.IGNORECASE,
)
"""Columns whose numbers name things: they are never added."""
_COLUMN_SCALES = (
    (re.compile(r"(?:^|[_\s(（])wan(?:$|[_\s)）])|万", re.IGNORECASE), 1e4),
    (re.compile(r"(?:^|[_\s(（])yi(?:$|[_\s)）])|亿", re.IGNORECASE), 1e8),
    (re.compile(r"(?:^|[_\s(])(?:k|thousands?)(?:$|[_\s)])", re.IGNORECASE), 1e3),
    (re.compile(r"(?:^|[_\s(])(?:m|mn|mio|millions?)(?:$|[_\s)])", re.IGNORECASE), 1e6),
    (re.compile(r"(?:^|[_\s(])(?:bn|billions?)(?:$|[_\s)])", re.IGNORECASE), 1e9),
)
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_QUARTERS = [
    [f"Q{at}", f"第{at}季度", f"第{char}季度", f"{char}季度", f"{word} quarter"]
    for at, char, word in zip((1, 2, 3, 4), "一二三四", ("first", "second", "third", "fourth"), strict=True)
]
_HALVES = [["H1", "first half", "上半年"], ["H2", "second half", "下半年"]]
_SENTENCE = re.compile(r"[^\n。！？；;]+?(?:[.!?](?=\s)|[\n。！？；;]|$)")
_RANGE = re.compile(r"\s?(?:-|–|—|to|through|until|至|到|~)\s?")
_MONTH_OF = re.compile(r"(?:month|月)[^=]*=0?(1[0-2]|[1-9])$|=\d{4}-(\d\d)(?:\D|$)", re.IGNORECASE)
_QUARTER_OF = re.compile(r"(?:(?:quarter|季)[^=]*=|=(?:\d{4})?[- ]?Q)([1-4])$", re.IGNORECASE)
_YEAR_OF = re.compile(r"=((?:1[5-9]|20)\d\d)(?:[-Q ].*)?$")


def _forms(cell: object, column: str) -> Iterator[tuple[str, str]]:
    """Yield how an answer may name a row by this cell: (what the name is of, the name)."""
    text = f"{column}={cell}"
    if month := _MONTH_OF.search(text):
        name = _MONTHS[(int(month[1] or month[2]) - 1) % 12]
        yield from ((f"{column} month", form) for form in (name, name[:3], f"{int(month[1] or month[2])}月"))
        quarter, half = (_MONTHS.index(name) // 3, _MONTHS.index(name) // 6)
        yield from ((f"{column} quarter", form) for form in _QUARTERS[quarter])
        yield from ((f"{column} half", form) for form in _HALVES[half])
    if named := _QUARTER_OF.search(text):
        yield from ((f"{column} quarter", form) for form in _QUARTERS[int(named[1]) - 1])
    if year := _YEAR_OF.search(text):
        yield f"{column} year", year[1]
    if isinstance(cell, str) and 2 <= len(cell) <= 200 and number_in(cell) is None:
        initials = "".join(word[0] for word in cell.split()) if cell.istitle() else ""
        forms = (cell, re.sub(r"(?:特别行政区|自治区|[市省县]|(?<=[a-z]{3})s)$", "", cell), initials)
        yield from ((column, form) for form in forms if len(form) > 1)


class _Bag:
    """Numbers, ratios to look percentages up in, and quotients for "2.3 times"."""

    def __init__(self) -> None:
        self.numbers: list[float] = []
        self.ratios: list[float] = []
        self.times: list[float] = []

    def pair(self, a: float, b: float, words: set[str]) -> None:
        """Add what the sentence's words make of two numbers; their ratio always."""
        self.numbers += [a - b] * ("gap" in words) + [a + b] * ("sum" in words)
        self.ratios += [a - b, (a - b) / 100] * ("gap" in words)
        quotients = [over / under for over, under in ((a, b), (b, a)) if under]
        self.numbers += quotients * ("mean" in words)
        self.times += quotients + [quotient - 1 for quotient in quotients] * ("change" in words)
        self.ratios += quotients * ("share" in words or "by" not in words) + [quotient - 1 for quotient in quotients] * ("change" in words)

    def sort(self) -> "_Bag":
        """Make ready for look-ups."""
        self.numbers, self.ratios, self.times = (sorted(set(some)) for some in (self.numbers, self.ratios, self.times))
        return self

    def vouches(self, figure: Figure, reading: Reading, chance: float) -> bool:
        """Return whether a reading is here and a wrong figure of its size would be so at most with this chance."""
        values = {"percent": self.ratios, "points": self.ratios, "times": self.times}.get(reading.kind, self.numbers)
        factors = {"seconds": _TIME_FACTORS, "percent": (100.0,), "points": (100.0,)}.get(reading.kind, (1.0,))
        for low, high in ((reading.low / factor, reading.high / factor) for factor in factors):
            size = max(abs(low), abs(high))
            near = _count(values, size / 3, size * 3) * (high - low) / max(size * 8 / 3, 1e-300)
            if (near <= chance or chance >= 1) and (_count(values, -high, -low) or (not figure.negative and _count(values, low, high))):
                return True
        return False


def _count(ordered: list[float], low: float, high: float) -> int:
    return bisect_right(ordered, high) - bisect_left(ordered, low)


class _Table:
    """One result, read once for an answer; `text` is question and answer."""

    def __init__(self, source: Source, text: str) -> None:
        self.source, self.rows, self.all = source, source.rows, set(range(len(source.rows)))
        columns = [(str(name), [row[at] if at < len(row) else None for row in self.rows]) for at, name in enumerate(source.columns[:200])]
        folded, found = text.casefold(), defaultdict[tuple[str, str], set[int]](set)
        for name, cells in columns[:MOST_COLUMNS]:
            forms = {cell: list(_forms(cell, name)) for cell in {cell for cell in cells if isinstance(cell, str | int)}}
            known = {cell: [form for form in named if form[1].casefold() in folded] for cell, named in forms.items()}
            for at, cell in enumerate(cells):
                for form in known.get(cell, ()) if isinstance(cell, str | int) else ():
                    found[form].add(at)
        # Longest first: "New York" is not a place called York. What names every row names none.
        some = [(form, of, rows) for (of, form), rows in found.items() if len(rows) < max(len(self.rows), 2)]
        self.names = [(_pattern(form), of, rows) for form, of, rows in sorted(some, key=lambda name: -len(name[0]))]
        numbers = [(name, {at: n for at, cell in enumerate(cells) if (n := number_in(cell)) is not None}) for name, cells in columns]
        scales = [(name, cells, [1.0, *(by for mark, by in _COLUMN_SCALES if mark.search(name))]) for name, cells in numbers if cells]
        self.columns = [(name, {at: n * by for at, n in cells.items()}) for name, cells, factors in scales for by in factors]
        self.measures = [cells for name, cells in self.columns if not _LABEL.search(name)][:MOST_COLUMNS]
        self.sizes = [Counter(map(str, cells)) for _, cells in columns[:MOST_COLUMNS]]
        by_value = [defaultdict[str, set[int]](set) for _ in self.sizes]
        for at, row in enumerate(self.rows):
            for rows, cell in zip(by_value, row, strict=False):
                rows[str(cell)].add(at)
        self.groups = [rows for groups in by_value if 1 < len(groups) < min(60, len(self.rows)) for rows in groups.values()]
        self.limits = [0.0, *(float(n) for n in re.findall(r"(?<![\d.])\d{1,9}(?:\.\d+)?", text.replace(",", ""))[:40])]
        self.topic = self.named(text)[0]

    def named(self, text: str) -> tuple[set[int], list[set[int]]]:
        """Return the rows that a text names, and those of each name. Names of several columns hold together."""
        by_column = defaultdict[str, set[int]](set)
        groups: list[set[int]] = []
        spans: list[tuple[int, int, str, set[int]]] = []
        for pattern, of, rows in self.names:
            if match := pattern.search(text):
                text = pattern.sub(lambda match: "\ufffc" * len(match[0]), text)
                by_column[of] |= rows
                groups.append(rows)
                spans.append((*match.span(), of, rows))
        for (_, end, of, rows), (start, _, other, more) in pairwise(sorted(spans, key=lambda span: span[0])):
            if of == other and _RANGE.fullmatch(text[end:start]):  # "January to June"
                groups.append(set(range(min(rows | more), max(rows | more) + 1)))
                by_column[of] |= groups[-1]
        sets = list(by_column.values()) or [set[int]()]
        return set.intersection(*sets) or set.union(*sets), groups[:MOST_OPERANDS]

    def add_to(self, near: _Bag, far: _Bag, sentence: str, words: set[str]) -> bool:
        """Add what this result says on a sentence; return whether the sentence names rows of it."""
        scope, groups = self.named(sentence)
        rest = far if scope else near
        parts = near if "share" in words or "by" not in words else _Bag()
        self._cells(near, scope)
        self._cells(rest, self.all)
        self._counts(near, [*groups, *(scope & rows for rows in self.groups), scope or self.all])
        own = scope or self.topic or set(range(min(len(self.rows), 12)))
        for cells in self.measures:
            values, listed = [cells[at] for at in sorted(own) if at in cells], list(cells.values())
            ordered, total = sorted(listed), sum(listed)
            sets = [values, *([cells[at] for at in group if at in cells] for group in [*groups, self.all, self.all - own])]
            sums, means = [sum(some) for some in sets], [m for some in sets if some for m in (sum(some) / len(some), float(median(some)))]
            runs = [sum(run[:end]) for run in (listed, listed[::-1], ordered, ordered[::-1]) for end in range(2, min(len(listed), 21))]
            several = [n for some in sets[: 1 + len(groups)] if scope and len(some) > 1 for n in (sum(some), sum(some) / len(some))]
            near.numbers += (
                several + sums * ("sum" in words) + means * ("mean" in words) + (ordered[:3] + ordered[-3:]) * ("extreme" in words)
            )
            near.ratios += [rate for mean in means for rate in (mean, mean / 100)] * ("mean" in words)
            rest.numbers += [sum(run[:end]) / end for run in (listed, listed[::-1]) for end in range(2, min(len(listed), 21))] * (
                "mean" in words
            )
            rest.numbers += (runs + [total - value for value in values]) * ("sum" in words or "gap" in words)
            parts.ratios += [part / total for part in [*values, *sums, *([] if scope else listed[:MOST_ROWS])] if total]
            (far if scope else parts).ratios += [part / total for part in runs if total]
            others = ordered[:2] + ordered[-2:] + (listed[:1] + listed[-1:] if len(listed) > 12 else listed)
            others += sums * ("sum" in words) + means * ("mean" in words)
            for at, beside in ((near_by, near_by + step) for near_by in sorted(own)[:MOST_OPERANDS] for step in (-1, 1)):
                if at in cells and beside in cells:
                    near.pair(cells[at], cells[beside], words)
            for rows in self.groups if not scope else ():
                some = [cells[at] for at in rows if at in cells]
                near.numbers += [sum(some)] * ("sum" in words) + [sum(some) / max(1, len(some))] * ("mean" in words)
                parts.ratios += [sum(some) / total] * bool(total)
            for bag, operands in ((near, values[:MOST_OPERANDS]), (far, [*values[:MOST_OPERANDS], *others[:MOST_OPERANDS]])):
                for a, b in combinations(dict.fromkeys(operands), 2):
                    bag.pair(a, b, words)
        lines = [[cells[at] for cells in self.measures[:12] if at in cells] for at in sorted(own)[:MOST_OPERANDS]]
        for line in [*lines, [sum(cells.values()) for cells in self.measures[:12]]]:
            near.numbers += [sum(line[at:end]) for at in range(len(line)) for end in range(at + 2, len(line) + 1)] * ("sum" in words)
            parts.ratios += [part / sum(line) for part in line if sum(line)]
            for a, b in combinations(line, 2):
                near.pair(a, b, words)
        return bool(scope)

    def operands(self, sentence: str) -> list[float]:
        """Return the numbers of the rows that a sentence names and the totals, to compare with those of another result."""
        rows = sorted(self.named(sentence)[0] or self.topic or self.all)[:12]
        return [cells[at] for cells in self.measures for at in rows if at in cells][: MOST_OPERANDS // 2] + [
            sum(cells.values()) for cells in self.measures
        ]

    def _cells(self, bag: _Bag, rows: set[int]) -> None:
        for name, cells in self.columns:
            some = [cells[at] for at in rows if at in cells]
            bag.numbers += some
            rate = "100" in self.source.sql or _RATE.search(name)
            bag.ratios += [n / 100 for n in some if rate or n % 1] + [n for n in some if n % 1 or n in (0, 1)]
        texts = [
            c for at in sorted(rows)[:MOST_ROWS] for c in self.rows[at] if isinstance(c, str) and len(c) <= 2_000 and number_in(c) is None
        ]
        bag.numbers += [float(digits) for text in texts for digits in re.findall(r"\d{1,15}(?:\.\d{1,6})?", text)]

    def _counts(self, bag: _Bag, groups: Sequence[set[int]]) -> None:
        """Add how many rows, columns, names and values there are, and rows over and under each number that the text names."""
        counts = [self.source.row_count, len(self.rows), len(self.sizes), len(self.topic), *map(len, groups)]
        counts += [n for sizes in self.sizes for n in (len(sizes), sizes["None"], *(sizes.values() if len(sizes) < 60 else ()))]
        for cells in self.measures:
            for ordered in (sorted(cells.values()), sorted(cells[at] for at in groups[-1] if at in cells)):
                for limit in [*self.limits, sum(ordered) / max(1, len(ordered))]:
                    low, high = bisect_left(ordered, limit), bisect_right(ordered, limit)
                    counts += [low, high, len(ordered) - low, len(ordered) - high]
        bag.numbers += map(float, counts)
        bag.ratios += [count / len(self.rows) for count in counts if count < len(self.rows)]


def _pattern(form: str) -> re.Pattern[str]:
    before = r"(?<!\d)" if form[0].isdigit() else r"(?<![A-Za-z0-9])" if form[0].isascii() else ""
    after = r"s?(?![A-Za-z0-9])" if form[-1].isascii() else ""
    return re.compile(before + re.escape(form) + after, 0 if len(form) <= 3 or form in _MONTHS else re.IGNORECASE)


# -- the answer -----------------------------------------------------------------------------------------------------


def unsupported(
    answer: str, sources: Sequence[Source], question: str = "", said: Iterable[float] = (), earlier: Iterable[float] = ()
) -> list[Figure]:
    """Return the figures of `answer` that the results do not give: not as a cell, nor by a step that its sentence speaks of.

    A step is a sum, mean, difference, ratio, share, growth or count. Figures of the question and the SQL may be repeated, so may the
    numbers that other tools of the turn `said`; those of `earlier` messages are far evidence.
    """
    labels = _labels(sources, answer)
    claimed, asked = figures(answer, labels), figures(question, labels)
    if not claimed:
        return []
    repeated = [value for figure in asked for value in (figure.value, *(part.value for part in figure.parts))]
    repeated += [float(digits) for source in sources for digits in re.findall(r"(?<![\w.])\d{1,15}(?:\.\d{1,9})?(?![\w.])", source.sql)]
    tables = [_Table(source, f"{question}\n{answer}") for source in sources]
    repeated, before = [*repeated, *said], list(earlier)
    checks: list[tuple[Figure, _Bag, _Bag, set[str], float]] = []
    sentences = list(_sentences(answer, claimed))
    if len(sentences) * sum(len(source.rows) * len(source.columns) for source in sources) > MOST_WORK:
        sentences = [(answer, claimed)]
    for sentence, inside in sentences:
        words = {name for name, pattern in _WORDS.items() if pattern.search(sentence)}
        # A line such as "Weekend: 412" does not say what its figure is: it may be a sum or mean.
        if not words and not any(table.named(sentence)[0] for table in tables):
            words = {"sum", "mean"}
        near, far = _Bag(), _Bag()
        named = [table.add_to(near, far, sentence, words) for table in tables]
        near.numbers += repeated
        for bag, numbers in ((near, repeated), (far, before)):
            bag.ratios += [rate for number in numbers for rate in (number, number / 100)]
        far.numbers += before
        for one, other in combinations(tables, 2) if words & {"gap", "change", "share"} else ():
            for a, b in product(one.operands(sentence), other.operands(sentence)):
                near.pair(a, b, words)
        checks += [(figure, near.sort(), far.sort(), words, CHANCE_NAMED if any(named) else CHANCE_OPEN) for figure in inside]
    left = [check for check in checks if not _supported(check[0], *check[1:3], check[4])]
    wrong = {figure.start for figure, *_ in left}
    close = {
        id(near): [value for value, at in ((f.value, f.start) for f, other, *_ in checks if other is near) if at not in wrong]
        for _, near, *_ in left
    }
    known = [figure.value for figure in claimed if figure.start not in wrong]
    known = list(dict.fromkeys([*known, *repeated, *(float(source.row_count) for source in sources)]))[: 2 * MOST_OPERANDS]
    flagged = []
    for figure, near, _, words, chance in left:
        steps, far_steps = _Bag(), _Bag()
        for bag, numbers in ((steps, [*close[id(near)], *(f.value for f in asked)][:MOST_OPERANDS]), (far_steps, known)):
            for a, b in combinations(numbers, 2):
                bag.pair(a, b, words)
        if not _supported(figure, steps.sort(), far_steps.sort(), chance):
            flagged.append(figure)
    return flagged


def _supported(figure: Figure, near: _Bag, far: _Bag, chance: float) -> bool:
    if any(near.vouches(figure, reading, 1.0) or far.vouches(figure, reading, chance) for reading in figure.readings):
        return True
    return bool(figure.parts) and all(_supported(part, near, far, chance) for part in figure.parts)


def _sentences(answer: str, claimed: Sequence[Figure]) -> Iterator[tuple[str, list[Figure]]]:
    """Yield each sentence or line with figures in it, after the line that leads to it (a heading, "...:", a table's head)."""
    lead = ""
    for match in _SENTENCE.finditer(answer):
        text = match[0].strip()
        inside = [figure for figure in claimed if match.start() <= figure.start < match.end()]
        if inside:
            yield f"{lead}\n{text}", inside
        if text.endswith((":", "：")) or (text.startswith(("#", "|")) and not inside and re.search(r"\w", text)):
            lead = text
        elif not re.match(r"[-*|•]|\d+[.)、]", text):
            lead = ""


def _labels(sources: Sequence[Source], answer: str) -> list[str]:
    """Return the names and text cells with digits in them that the answer repeats, longest first."""
    folded = answer.casefold()
    texts = {cell for source in sources for row in [source.columns, *source.rows[:5_000]] for cell in row if isinstance(cell, str)}
    found = [text for text in texts if 2 <= len(text) <= 200 and re.search(r"\d", text) and number_in(text) is None]
    return sorted((text for text in found if text.casefold() in folded), key=len, reverse=True)[:500]
