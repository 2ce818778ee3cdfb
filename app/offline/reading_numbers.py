"""Read comparisons with numbers off the chunks."""

import itertools

from longtable.app.offline.chunks import Chunk
from longtable.app.offline.draft import Filter, Having
from longtable.app.offline.lexicon import UNIT_WORDS
from longtable.app.offline.linking import Hit
from longtable.app.offline.reading import is_column, measurable, names_key, of_dimension, year_like
from longtable.app.offline.reading_conditions import Conditions
from longtable.app.offline.relink import TIMES
from longtable.app.offline.text import lemma, likeness, split_name

_HAVING = frozenset(
    "have has had with having contain own exactly in only got get gets received receive given gave scored earned rated awarded".split()  # noqa: SIM905
)


class Numbers(Conditions):
    """Rules for numbers."""

    def between(self) -> None:
        for index, each in enumerate(self.cs):
            if each.used or not (each.is_op("between") or (each.kind == "prep" and each.word == "from")):
                continue
            first = self.after(index, "number", "time", skip=("unit",))
            joiner = first + 1 if first is not None else len(self.cs)
            if first is None or joiner >= len(self.cs) or self.cs[joiner].word not in ("and", "to", "until", "till", "through"):
                continue
            second = self.after(joiner, "number", "time", skip=("unit",))
            if second is None:
                continue
            each.used = self.cs[joiner].used = True
            low, high = self._take(first), self._take(second)
            if low.kind == "number" and high.kind == "number":
                condition = self._on(Filter("between", numbers=(low.number, high.number)), index, second)
                if (
                    year_like(low)
                    and year_like(high)
                    and not condition.unit
                    and (condition.mention is None or condition.mention.hits[0].is_table)
                ):
                    for year in (low, high):
                        year.kind, year.unit = "time", "year"
                    if condition.mention is not None:
                        condition.mention.used = False
                    condition = Filter("time", op="between", times=(low, high), verbs=self.verbs(index), near=self._near(index))
                self.draft.filters.append(condition)
            else:
                self.draft.filters.append(Filter("time", op="between", times=(low, high), verbs=self.verbs(index), near=self._near(index)))

    def _on(self, condition: Filter, index: int, last: int) -> Filter:
        """Find the mention a number condition bears on: just before it, else just after it."""
        condition.verbs = self.verbs(index)
        taken = next((c for c in reversed(self.cs[:index]) if c.kind == "mention"), None)
        if taken is not None and taken.used and any(item.mention is taken for item in self.draft.filters):
            gone = set(taken.text.lower().split())  # three or more bedrooms under 600k: another column is meant
            condition.verbs = tuple(verb for verb in condition.verbs if verb not in gone)
        condition.near = self._near(index)
        unit = next(
            (
                c.unit
                for c in self.all
                if c.kind in ("filler", "unit") and c.unit and self.cs[last].place < c.place <= self.cs[last].place + 1
            ),
            "",
        )
        condition.unit = unit
        following = self.cs[last + 1] if last + 1 < len(self.cs) else None
        if (
            following is not None
            and following.kind == "mention"
            and not following.used
            and (lemma(following.text.lower()) in UNIT_WORDS or lemma(following.text.lower()) in ("month", "week", "night"))
        ):
            place = self.before(index, "mention", ops=("wh", "by"))
            if condition.dimension or (place is not None and measurable(self.cs[place])):
                following.used = True  # 60 minutes: a unit, though a column has that name
                condition.unit = lemma(following.text.lower())
            elif following.best < 0.9:
                following.used = True  # 'between 1000 and 2000 miles': the unit says which column
                condition.unit = lemma(following.text.lower())
        before = self.before(index, "mention", skip=("prep",), ops=("wh", "pron", "cmp", "each", "by"))
        after = self.after(
            last,
            "mention",
            "op",
            skip=("prep",) if self.cs[last].kind == "number" and last + 1 < len(self.cs) and self.cs[last + 1].word in ("of", "in") else (),
        )
        if after is None and last + 2 < len(self.cs) and self.cs[last + 1].kind == "value":
            counted = self.cs[last + 2]
            after = last + 2 if counted.kind == "mention" and counted.hits[0].is_table and not counted.used else None
        if after is not None and self.cs[after].kind == "op" and not self.cs[after].hits:
            after = None
        adjacent = after is not None and self.cs[after].kind != "op"
        if before is not None and not self.cs[before].used and measurable(self.cs[before]) and not self._elsewhere(condition, before):
            condition.mention = self._take(before)
            listed = before >= 2 and self.cs[before - 1].word == "and" and self.cs[before - 2].kind == "mention"
            asked = any(c.is_op("count", "agg", "percent", "howmuch", "sup", "most") for c in self.cs[:before])
            if listed and not asked:
                self.draft.targets.append(self.cs[before])  # it is to be shown too
        elif after is not None and adjacent and not (condition.dimension and self.cs[after].hits[0].is_table):
            condition.mention = self._take(after)
        if unit and last + 1 < len(self.cs) and self.cs[last + 1].kind == "unit":
            self.cs[last + 1].used = True
        return condition

    def _elsewhere(self, condition: Filter, before: int) -> bool:
        """'models lighter than 3500': an adjective names its own column, unless the mention is of that dimension."""
        if not condition.dimension:
            return False
        return not of_dimension(self.cs[before], condition.dimension)

    def dates_compared(self) -> None:
        """'paid after the due date': one date column against another."""
        for index, each in enumerate(self.cs):
            if not each.is_op("time") or each.used or not 0 < index < len(self.cs) - 1:
                continue
            left, right = self.cs[index - 1], self.cs[index + 1]
            if right.is_op("pron") and index + 2 < len(self.cs):
                right = self.cs[index + 2]  # finished after their due date
            bound = right.kind == "mention" and not right.used and right.hits[0].dated and not self._date_told(right)
            if bound and not (left.kind == "mention" and left.hits[0].dated):
                each.used = right.used = True
                self.draft.filters.append(Filter("columns", each.arg, None, other=right, verbs=self.verbs(index)))
                continue
            dated = all(c.kind == "mention" and not c.used and c.hits[0].dated for c in (left, right))
            if dated and {left.hits[0].column} != {right.hits[0].column}:
                each.used = left.used = right.used = True
                self.draft.filters.append(Filter("columns", each.arg, left, other=right))

    def _date_told(self, mention: Chunk) -> bool:
        """Say whether a time follows a date column: before the start date 2020-01-01."""
        place = self.cs.index(mention)
        return self.after(place, "time", "number", skip=("prep",)) is not None

    def above_average(self) -> None:
        for index, each in enumerate(self.cs):
            if not each.is_op("cmp") or each.used:
                continue
            op, _, dimension = each.arg.partition(":")
            following = self.cs[index + 1] if index + 1 < len(self.cs) else None
            if following is None or not (following.is_op("agg") and following.arg in ("avg", "min", "max")):
                continue
            each.used = following.used = True
            func = following.arg
            after = self.after(index + 1, "mention")
            before = self.before(index, "mention")
            right = self.cs[after] if after is not None else None
            mention = right if right is not None and not right.hits[0].is_table else None
            if mention is not None:
                mention.used = True
            if (
                before is not None
                and not self.cs[before].hits[0].is_table
                and not self.cs[before].used
                and (mention is None or mention.hits[0] == self.cs[before].hits[0])
            ):
                mention = self._take(before)
            elif right is not None and right.hits[0].is_table and before is None:
                pass
            verbs = self.verbs(index)
            self.draft.filters.append(
                Filter("beats", op=op, mention=mention, dimension=dimension, func=func, near=self._near(index), verbs=verbs)
            )

    def compare(self) -> None:
        for first, second in itertools.pairwise(self.cs):
            if first.kind == "word" and first.word in ("negative", "positive") and second.kind == "mention" and measurable(second):
                first.used = second.used = True
                self.draft.filters.append(Filter("compare", "<" if first.word == "negative" else ">", second, numbers=(0,)))
        for index, each in enumerate(self.cs):
            if not each.is_op("cmp") or each.used:
                continue
            op, _, dimension = each.arg.partition(":")
            place = self.after(index, "number", "time", "value", "mention", "unit", skip=("prep",), ops=("pron",))
            if place is None:
                continue
            target = self.cs[place]
            if self._bounds(index, place):
                each.used = target.used = True
                self.draft.filters.append(Filter("columns", op, None, other=target, verbs=self.verbs(index)))
                continue
            if target.kind == "mention" or target.kind == "unit":
                number = self.after(place, "number", skip=("prep",))
                if number is not None:  # over the age of 20
                    each.used = True
                    self.draft.filters.append(
                        Filter("compare", op, self._take(place), numbers=(self._take(number).number,), near=self._near(index))
                    )
                elif (
                    target.kind == "mention"
                    and (left := self.before(index, "mention")) is not None
                    and is_column(self.cs[left])
                    and is_column(target)
                ):
                    each.used = True
                    self.draft.filters.append(Filter("columns", op, self._take(left), other=self._take(place)))
                elif target.kind == "mention" and op in ("<", ">") and is_column(target) and target.hits[0].numeric:
                    each.used = True
                    near = tuple(c for c in self.all if c.kind == "mention")
                    self.draft.filters.append(Filter("columns", op, None, other=self._take(place), near=near))
                elif op == "<>" and target.kind == "mention":
                    continue
            elif target.kind == "number" and self._totalled(index, place, op):
                continue
            elif target.kind == "number":
                self._compare_number(index, place, op, dimension)
            elif target.kind == "time":
                each.used = target.used = True
                self.draft.filters.append(
                    Filter("time", op, times=(target,), verbs=self.verbs(index), near=self._near(index), dimension=dimension)
                )
            elif op in ("<>", "="):
                each.used = target.used = True
                self.draft.filters.append(self._value_filter(place, negated=op == "<>"))

    def _totalled(self, index: int, place: int, op: str) -> bool:
        """'a total of more than 1500 minutes': the sum is compared."""
        total = self.cs[index - 1] if index else None
        measure = self.cs[place + 1] if place + 1 < len(self.cs) else None
        if total is None or not total.is_op("agg") or total.used or measure is None or measure.kind != "mention" or measure.used:
            return False
        if not measurable(measure) or measure.hits[0].is_table:
            return False
        self.cs[index].used = total.used = True
        self.draft.havings.append(Having(op, self._take(place).number, self._take(place + 1), func=total.arg))
        return True

    def _bounds(self, index: int, place: int) -> bool:
        """'have exceeded their shot life', 'fallen below its reorder level': one column is named, the other is left to say itself."""
        target = self.cs[place]
        own = place > index + 1 and self.cs[place - 1].is_op("pron") and self.cs[place - 1].word in ("their", "its", "his", "her")
        alone = self.after(place, "number", skip=("prep",)) is None
        left = self.before(index, "mention")
        named = left is not None and is_column(self.cs[left]) and not self.cs[left].used
        return own and alone and not named and target.kind == "mention" and is_column(target) and target.hits[0].numeric

    def _compare_number(self, index: int, place: int, op: str, dimension: str) -> None:
        each = self.cs[index]
        each.used = self.cs[place].used = True
        number = self.cs[place].number
        counted = self.before(index, "mention")
        operation = self.cs[counted - 1] if counted else None
        if (
            counted
            and operation is not None
            and operation.is_op("count", "agg")
            and not operation.used
            and not self._is_question(counted - 1)
        ):
            operation.used = True
            func = "count" if operation.op == "count" else operation.arg
            self.draft.havings.append(Having(op, number, self._take(counted), func=func))
            return
        condition = self._on(Filter("compare", op, numbers=(number,), dimension=dimension), index, place)
        self._same_again(condition, index)
        mention = condition.mention
        if mention is not None and mention.hits[0].is_table and not dimension and self._follows(mention, place):
            self.draft.havings.append(Having(op, number, mention))
        elif mention is None and index and self.cs[index - 1].is_op("count"):
            self.draft.havings.append(Having(op, number, None))
        elif mention is None and self.cs[place].word in TIMES:
            self.draft.havings.append(Having(op, number, None, verbs=self.verbs(index)))
        else:
            self.draft.filters.append(condition)

    def _same_again(self, condition: Filter, index: int) -> None:
        """'at least 12 but no more than 16': the second number bears on what the first did."""
        steps = [each for each in self.cs[max(0, index - 2) : index] if each.word in ("but", "and") or each.kind == "number"]
        before = self.draft.filters[-1] if self.draft.filters else None
        joined = len(steps) == 2 and steps[0].kind == "number" and steps[1].kind in ("word", "prep")
        if not joined or before is None or before.kind != "compare" or condition.mention is not None or condition.dimension:
            return
        steps[1].used = True
        condition.mention, condition.dimension, condition.verbs, condition.near = (
            before.mention,
            before.dimension,
            before.verbs,
            before.near,
        )
        condition.unit = condition.unit or before.unit

    def _is_question(self, place: int) -> bool:
        return place == 0 or all(each.is_op("wh", "list", "pron") or each.kind == "prep" for each in self.cs[:place])

    def _follows(self, mention: Chunk, place: int) -> bool:
        return mention.place > self.cs[place].place

    def or_more(self) -> None:
        for index, each in enumerate(self.cs):
            if not each.is_op("post") or each.used or index == 0:
                continue
            number = index - 1
            if self.cs[number].kind == "unit" and number:
                number -= 1
            if self.cs[number].kind not in ("number", "time") or self.cs[number].used:
                continue
            each.used = self.cs[number].used = True
            if each.text in ("or later", "or earlier") and year_like(self.cs[number]):
                self.cs[number].kind, self.cs[number].unit = "time", "year"
            if self.cs[number].kind == "time":
                self.draft.filters.append(Filter("time", each.arg, times=(self.cs[number],), verbs=self.verbs(index)))
                continue
            condition = self._on(Filter("compare", each.arg, numbers=(self.cs[number].number,)), number, index)
            mention = condition.mention
            if mention is not None and mention.hits[0].is_table and self._follows(mention, index):
                self.draft.havings.append(Having(each.arg, self.cs[number].number, mention))
            else:
                self.draft.filters.append(condition)

    def equal_number(self) -> None:
        for index, each in enumerate(self.cs):
            if each.kind != "number" or each.used:
                continue
            if each.word == "one" and index and self.cs[index - 1].word == "in":
                continue  # 'in one semester': of each one, which no condition here says
            before = self.before(index, "mention", skip=(), ops=("wh", "pron")) if index else None
            joined = index
            numbers: list[Chunk] = [each]
            while joined + 1 < len(self.cs):
                step = joined + 1
                while step < len(self.cs) and (self.cs[step].kind == "comma" or self.cs[step].word in ("or", "and")):
                    step += 1
                if step == joined + 1 or step >= len(self.cs) or self.cs[step].kind != "number" or self.cs[step].used:
                    break
                numbers.append(self.cs[step])
                joined = step
            alone = index + 1 >= len(self.cs) or self.cs[index + 1].kind not in ("mention", "value")
            if (
                before is None
                and alone
                and index > 1
                and self.cs[index - 1].word == "of"
                and self.cs[index - 2].kind == "mention"
                and measurable(self.cs[index - 2])
            ):
                before = index - 2  # a score of 5
            if before is not None and self._numbers_row(before, numbers):
                hit = self.cs[before].hits[0]
                row = Chunk("mention", hit.table, place=self.cs[before].place, hits=(Hit(hit.table, "", 1.0),))
                self._equal(numbers, row, index)
            elif (before is not None and not self.cs[before].hits[0].is_table and not self.cs[before].used) or (
                before is not None and names_key(self.cs[before])
            ):
                self._equal([each, *numbers[1:]], self.cs[before], index)
            elif all(year_like(number) for number in numbers):
                for number in numbers:
                    number.kind, number.unit = "time", "year"
            elif (after := self.after(index, "mention", skip=())) is not None and self._have_before(index):
                each.used = True
                chunk = self._take(after)
                if chunk.hits[0].is_table:
                    self.draft.havings.append(Having("=", each.number, chunk))
                else:
                    self.draft.filters.append(Filter("compare", "=", chunk, numbers=(each.number,)))

    def _numbers_row(self, place: int, numbers: list[Chunk]) -> bool:
        """'bike 2', 'the brand of bike 2': a number right after an entity is its key."""
        mention = self.cs[place]
        hit = mention.hits[0]
        years = any(year_like(each) and 1900 <= each.number < 2100 for each in numbers)
        if years or mention.place + len(mention.text.split()) != numbers[0].place:
            return False
        if any(map(year_like, numbers)) and (not hit.is_table or lemma(mention.word) != mention.word):
            return False
        of_table = " of " in mention.text and any(likeness(mention.word, word) >= 0.9 for word in split_name(hit.table))
        return hit.is_table or of_table or (hit.own < hit.words and likeness(mention.word, split_name(hit.column)[-1]) < 0.75)

    def _equal(self, numbers: list[Chunk], mention: Chunk, index: int) -> None:
        mention.used = True
        for number in numbers:
            number.used = True
        self.draft.filters.append(
            Filter("compare", "=", mention, numbers=tuple(number.number for number in numbers), near=self._near(index))
        )

    def _have_before(self, index: int) -> bool:
        return any(each.word in _HAVING for each in self.all if self.cs[index].place - 3 <= each.place < self.cs[index].place)
