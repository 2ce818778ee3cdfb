"""Read chunks into a draft: who is counted, grouped, filtered, ordered. Rules run in order; each takes up its chunks."""

from longtable.app.offline.chunks import Chunk
from longtable.app.offline.draft import Draft, Filter, Having, Sorting, Superlative
from longtable.app.offline.lexicon import ADJECTIVES, DIMENSIONS, MORE_IS_BETTER, MORE_IS_WORSE, UNIT_WORDS
from longtable.app.offline.text import lemma, split_name

_BREAKS = ("each", "by", "order", "top", "sup", "most", "frequent", "count", "dir")


def parse(chunks: list[Chunk]) -> Draft:
    """Return the draft of a question's chunks."""
    return _Reader(chunks).read()


class _Reader:
    def __init__(self, chunks: list[Chunk]) -> None:
        self.all = chunks
        self.cs = [each for each in chunks if each.kind != "filler"]
        self.draft = Draft(mentions=[each for each in chunks if each.kind == "mention"], words=tuple(each.word for each in chunks))

    def read(self) -> Draft:
        for rule in (
            self.names,
            self.flags,
            self.order,
            self.like,
            self.negation,
            self.missing,
            self.between,
            self.above_average,
            self.compare,
            self.or_more,
            self.limits,
            self.superlatives,
            self.grouping,
            self.counting,
            self.aggregates,
            self.percent,
            self.equal_number,
            self.times,
            self.values,
            self.targets,
        ):
            rule()
        return self.draft

    # -- helpers ----------------------------------------------------------------------------------------------------

    def after(self, index: int, *kinds: str, skip: tuple[str, ...] = ("prep",), ops: tuple[str, ...] = ()) -> int | None:
        """Return the place of the next unused chunk of `kinds`, passing only over `skip` kinds and `ops`."""
        for place in range(index + 1, len(self.cs)):
            each = self.cs[place]
            if each.kind in kinds and not each.used:
                return place
            if each.kind not in skip and not each.is_op(*ops) and not (each.used and "used" in skip):
                return None
        return None

    def before(self, index: int, *kinds: str, skip: tuple[str, ...] = ("prep",), ops: tuple[str, ...] = ("wh",)) -> int | None:
        """Return the place of the chunk of `kinds` just before, passing only over `skip` kinds and `ops`."""
        for place in range(index - 1, -1, -1):
            each = self.cs[place]
            if each.kind in kinds:
                return place
            if each.kind not in skip and not each.is_op(*ops):
                return None
        return None

    def verbs(self, index: int, reach: int = 3) -> tuple[str, ...]:
        """Return the verbs and prepositions just before the chunk at `index`."""
        place = self.cs[index].place
        words: list[str] = []
        for each in reversed(self.all):
            if each.place < place:
                if each.kind in ("filler", "prep") or (each.kind == "word"):
                    words.append(each.word)
                elif each.kind == "mention":
                    words.extend(each.text.lower().split())
                    break
                elif each.kind not in ("time", "comma") and not each.is_op("time", "cmp", "between"):
                    break
                if len(words) >= reach + 2:
                    break
        return tuple(words)

    def names(self) -> None:
        """Take 'total' and the like for the name of a column where they stand like one: 'average total', 'a total above 5'."""
        for index, each in enumerate(self.cs):
            if not (each.is_op("agg") and each.hits):
                continue
            before = self.cs[index - 1] if index else None
            following = next((c for c in self.cs[index + 1 :] if c.kind != "prep" and not c.is_op("each", "by", "pron")), None)
            named = before is not None and (before.is_op("agg", "sup") or (before.kind == "mention" and before.hits[0].is_table))
            if named or following is None or following.is_op("cmp", "between", "post") or following.kind in ("comma", "number", "time"):
                each.kind = "mention"

    # -- flags and order --------------------------------------------------------------------------------------------

    def flags(self) -> None:
        for each in self.cs:
            if each.is_op("pron", "rest", "distinct", "wh", "list", "both", "either"):
                each.used = True
                self.draft.pron |= each.op == "pron"
                self.draft.rest |= each.op == "rest"
                self.draft.distinct |= each.op == "distinct"
                self.draft.which |= each.op == "wh" and each.word in ("which", "who", "whom", "whose")
                self.draft.listing |= each.op == "list"
            if each.is_op("howold"):
                each.used = True
                self.draft.asks.append(each.arg)

    def order(self) -> None:
        for index, each in enumerate(self.cs):
            if each.is_op("dir"):
                each.used = True
                self.draft.desc = each.arg == "desc"
            if not each.is_op("order") or each.used:
                continue
            each.used = True
            self._order_keys(index)
        if self.draft.desc is not None and not self.draft.sorts:
            place = next((i for i, each in enumerate(self.cs) if each.is_op("dir")), 0)
            target = self.after(place, "mention") if self.cs[place].text.endswith("of") else None
            self.draft.sorts.append(Sorting(self._take(target) if target is not None else None))

    def _order_keys(self, index: int) -> None:
        func, place = "", index
        while True:
            following = self.after(place, "op", "mention", "unit", "word", skip=("prep", "comma") if place != index else ("prep",))
            if following is None:
                break
            each = self.cs[following]
            if each.is_op("count", "agg"):
                each.used, func = True, "count" if each.op == "count" else each.arg
            elif each.kind in ("mention", "unit"):
                each.used = True
                self.draft.sorts.append(Sorting(each, func))
                func = ""
            elif (each.kind == "word" and each.word in ADJECTIVES) or (each.word in DIMENSIONS and each.kind == "word"):
                each.used = True
                self.draft.sorts.append(Sorting(None, func, ADJECTIVES.get(each.word, (each.word, ""))[0]))
            elif each.hits and each.kind == "op":
                each.used = True
                self.draft.sorts.append(Sorting(each, func))
            elif not each.is_op("dir", "pron"):
                break
            else:
                each.used = True
            place = following
        if func or not self.draft.sorts:
            self.draft.sorts.append(Sorting(None, func))

    def _take(self, place: int) -> Chunk:
        self.cs[place].used = True
        return self.cs[place]

    # -- conditions -------------------------------------------------------------------------------------------------

    def like(self) -> None:
        for index, each in enumerate(self.cs):
            if not each.is_op("like") or each.used:
                continue
            target = self.after(index, "value", "word", "number", "mention")
            if target is None or not (self.cs[target].quoted or each.arg != "contains" or self.cs[target].kind in ("word", "value")):
                continue
            each.used = True
            text = self._take(target)
            left = self.before(index, "mention")
            right = self.after(target, "mention", skip=("prep", "op"))
            place = right if (right is not None and self.cs[right - 1].word in ("in", "on", "of")) or left is None else left
            if right is not None and left is not None and any(c.is_op("pron") for c in self.cs[target:right]):
                place = right
            self.draft.filters.append(Filter("like", mention=self._take(place) if place is not None else None, op=each.arg, text=text.text))

    def negation(self) -> None:
        for index, each in enumerate(self.cs):
            if not each.is_op("neg") or each.used:
                continue
            end = self._scope_end(index)
            scope = [c for c in self.cs[index + 1 : end] if not c.used]
            last = self.cs[end].place if end < len(self.cs) else 10_000
            verbs = tuple(c.word for c in self.all if c.kind == "filler" and each.place < c.place < last)
            if not [c for c in scope if c.kind != "prep"]:
                if (verbs and "never" in each.text.lower().split() + list(verbs)) or any(_is_participle(verb) for verb in verbs):
                    each.used = True
                    self.draft.absent.append(Draft(words=verbs))
                continue
            each.used = True
            inner = _Reader([c for c in self.all if scope[0].place <= c.place <= scope[-1].place and not c.used]).read()
            for c in scope:
                c.used = True
            self.draft.leftover.extend(inner.leftover)
            inner.leftover = []
            self.draft.absent.append(inner)

    def _scope_end(self, index: int) -> int:
        for place in range(index + 1, len(self.cs)):
            each = self.cs[place]
            if each.kind == "comma" or each.is_op(*_BREAKS) or (each.is_op("neg") and place > index + 1):
                return place
            if place > index + 1 and each.text == "的":
                return place
            if place > index + 1 and each.kind == "prep" and each.word in ("and", "for", "than") and not _same_kind(self.cs, place):
                return place
            if place > index + 2 and each.is_op("wh"):
                before = self.cs[place - 1]
                if before.kind == "prep" and before.word == "and":
                    return place
        return len(self.cs)

    def missing(self) -> None:
        for index, each in enumerate(self.cs):
            if not each.is_op("missing", "present") or each.used:
                continue
            found = self.after(index, "mention") if each.word in ("missing", "unknown", "empty", "blank", "known", "recorded") else None
            found = found if found is not None else self.before(index, "mention")
            if found is not None and not self.cs[found].used:
                each.used = True
                self.draft.filters.append(Filter("null", mention=self._take(found), negated=each.op == "present"))

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
                if _year_like(low) and _year_like(high) and (condition.mention is None or condition.mention.hits[0].is_table):
                    for year in (low, high):
                        year.kind, year.unit = "time", "year"
                    if condition.mention is not None:
                        condition.mention.used = False
                    condition = Filter("time", op="between", times=(low, high), verbs=self.verbs(index), near=self._near(index))
                self.draft.filters.append(condition)
            else:
                self.draft.filters.append(Filter("time", op="between", times=(low, high), verbs=self.verbs(index), near=self._near(index)))

    def _near(self, index: int) -> tuple[Chunk, ...]:
        return tuple(each for each in self.cs[max(0, index - 3) : index + 5] if each.kind == "mention")

    def _on(self, condition: Filter, index: int, last: int) -> Filter:
        """Find the mention a number condition bears on: just before it, else just after it."""
        condition.verbs = self.verbs(index)
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
        if following is not None and following.kind == "mention" and not following.used and lemma(following.text.lower()) in UNIT_WORDS:
            place = self.before(index, "mention")
            if condition.dimension or (place is not None and _measurable(self.cs[place])):
                following.used = True  # 60 minutes: a unit, though a column has that name
                condition.unit = lemma(following.text.lower())
        before = self.before(index, "mention", skip=("prep",), ops=("wh", "pron", "cmp", "each"))
        after = self.after(
            last,
            "mention",
            "op",
            skip=("prep",) if self.cs[last].kind == "number" and last + 1 < len(self.cs) and self.cs[last + 1].word in ("of", "in") else (),
        )
        if after is not None and self.cs[after].kind == "op" and not self.cs[after].hits:
            after = None
        adjacent = after is not None and self.cs[after].kind != "op"
        if before is not None and not self.cs[before].used and _measurable(self.cs[before]) and not self._elsewhere(condition, before):
            condition.mention = self._take(before)
        elif after is not None and adjacent and not (condition.dimension and self.cs[after].hits[0].is_table):
            condition.mention = self._take(after)
        if unit and last + 1 < len(self.cs) and self.cs[last + 1].kind == "unit":
            self.cs[last + 1].used = True
        return condition

    def _elsewhere(self, condition: Filter, before: int) -> bool:
        """'models lighter than 3500': an adjective names its own column, unless the mention is of that dimension."""
        if not condition.dimension:
            return False
        return not _of_dimension(self.cs[before], condition.dimension)

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
        for index, each in enumerate(self.cs):
            if not each.is_op("cmp") or each.used:
                continue
            op, _, dimension = each.arg.partition(":")
            place = self.after(index, "number", "time", "value", "mention", "unit", skip=("prep",))
            if place is None:
                continue
            target = self.cs[place]
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
                    and _is_column(self.cs[left])
                    and _is_column(target)
                ):
                    each.used = True
                    self.draft.filters.append(Filter("columns", op, self._take(left), other=self._take(place)))
                elif op == "<>" and target.kind == "mention":
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
        mention = condition.mention
        if mention is not None and mention.hits[0].is_table and not dimension and self._follows(mention, place):
            self.draft.havings.append(Having(op, number, mention))
        elif mention is None and index and self.cs[index - 1].is_op("count"):
            self.draft.havings.append(Having(op, number, None))
        else:
            self.draft.filters.append(condition)

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
            if self.cs[number].kind == "time":
                self.draft.filters.append(Filter("time", each.arg, times=(self.cs[number],), verbs=self.verbs(index)))
                continue
            condition = self._on(Filter("compare", each.arg, numbers=(self.cs[number].number,)), number, index)
            mention = condition.mention
            if mention is not None and mention.hits[0].is_table and self._follows(mention, index):
                self.draft.havings.append(Having(each.arg, self.cs[number].number, mention))
            else:
                self.draft.filters.append(condition)

    def _value_filter(self, place: int, *, negated: bool = False) -> Filter:
        """Take values joined by and/or from `place` on, with the mention beside them that names their column."""
        values = [self._take(place)]
        both = any(each.is_op("both") for each in self.cs)
        last = place
        while last + 1 < len(self.cs):
            step = last + 1
            while step < len(self.cs) and (self.cs[step].kind == "comma" or self.cs[step].word in ("or", "and")):
                step += 1
            if step == last + 1 or step >= len(self.cs) or self.cs[step].kind != "value" or self.cs[step].used:
                break
            shared = {(m.table, m.column) for m in values[0].matches} & {(m.table, m.column) for m in self.cs[step].matches}
            if not shared:
                break
            values.append(self._take(step))
            last = step
        condition = Filter("value", values=tuple(values), negated=negated, both=both, verbs=self.verbs(place), near=self._near(place))
        condition.mention = self._beside(place, last, values[0])
        return condition

    def _beside(self, first: int, last: int, value: Chunk) -> Chunk | None:
        columns = {(m.table, m.column) for m in value.matches}
        before = self.before(first, "mention", ops=("wh", "cmp", "pron", "neg"))
        after = self.after(last, "mention", skip=())
        trailing = self.after(last, "mention", skip=("prep",))
        if trailing is not None and self.cs[trailing - 1].word != "as":
            trailing = None
        for place in (before, after, trailing):
            if place is None or self.cs[place].used:
                continue
            if any((hit.table, hit.column) in columns for hit in self.cs[place].hits):
                return self.cs[place] if self.cs[place].hits[0].is_table else self._take(place)
        return None

    # -- shape ------------------------------------------------------------------------------------------------------

    def limits(self) -> None:
        for index, each in enumerate(self.cs):
            following = self.cs[index + 1] if index + 1 < len(self.cs) else None
            if each.is_op("top", "first") and not each.used and following is not None and following.kind == "number" and not following.used:
                each.used = following.used = True
                self.draft.limit = int(following.number)
                self.draft.limit_desc = each.arg in ("max", "desc") if each.op == "top" or each.arg == "desc" else None
            elif (
                each.is_op("sup", "most", "frequent")
                and not each.used
                and following is not None
                and following.kind == "number"
                and not following.used
            ):
                following.used = True
                self.draft.limit = int(following.number)
        for index, each in enumerate(self.cs):
            following = self.cs[index + 1] if index + 1 < len(self.cs) else None
            if self.draft.limit is not None or each.kind != "number" or each.used or following is None:
                continue
            if following.is_op("sup", "most", "frequent") or (following.kind == "mention" and self._has_superlative(index)):
                each.used = True
                self.draft.limit = int(each.number)

    def _has_superlative(self, index: int) -> bool:
        return any(each.is_op("sup", "most", "frequent") for each in self.cs[index:]) and not (
            index and self.cs[index - 1].kind == "mention" and _measurable(self.cs[index - 1])
        )

    def superlatives(self) -> None:
        for index, each in enumerate(self.cs):
            if each.used or not (each.is_op("sup", "most", "frequent") or (each.is_op("first", "top") and not self.cs[index].used)):
                continue
            if each.is_op("first", "top"):
                self._first(index)
                continue
            sign, _, dimension = each.arg.partition(":")
            each.used = True
            if each.op == "frequent":
                place = self.after(index, "mention", skip=())
                self.draft.sups.append(Superlative(sign, "frequent", chunk=self._take(place) if place is not None else None))
                continue
            place = self.after(index, "mention", "op", "unit", skip=("prep",) if each.text.endswith("of") else ())
            func, chunk = "", None
            if place is not None and self.cs[place].is_op("agg", "count"):
                func = self._take(place).arg or "count"
                place = self.after(place, "mention", "op", "unit", skip=("prep",))
            if place is not None and (self.cs[place].kind != "op" or self.cs[place].hits):
                chunk = self.cs[place]
                if not dimension or (
                    not chunk.hits[0].is_table and (dimension in ("size", "quality", "wealth") or _of_dimension(chunk, dimension))
                ):
                    chunk.used = True
                elif not chunk.hits[0].is_table:
                    chunk = None
            kind = "dimension" if dimension else "most" if each.op == "most" or each.text.endswith(("number of", "amount of")) else "plain"
            self.draft.sups.append(Superlative(sign, kind, dimension, chunk, func))

    def _first(self, index: int) -> None:
        each = self.cs[index]
        if each.hits and each.op != "first":
            return
        each.used = True
        if each.op == "top":
            place = self.after(index, "mention", skip=())
            chunk = self.cs[place] if place is not None and not self.cs[place].hits[0].is_table else None
            if chunk is not None:
                chunk.used = True
            sign = each.arg
            if each.word in ("best", "worst") and chunk is not None:
                words = {lemma(word) for hit in chunk.hits[:1] for word in split_name(hit.column)}
                if words & MORE_IS_WORSE:
                    sign = "min" if sign == "max" else "max"
                elif not words & MORE_IS_BETTER:
                    self.draft.leftover.append(each.text)
            self.draft.sups.append(Superlative(sign, "plain", chunk=chunk))
        else:
            self.draft.sups.append(Superlative("max" if each.arg == "desc" else "min", "first", "date"))

    def grouping(self) -> None:
        for index, each in enumerate(self.cs):
            if each.used or not each.is_op("each", "by"):
                continue
            start = each.op
            place = self.after(index, "mention", "unit", "op", skip=("prep",) if start == "each" else (), ops=("each",))
            if place is None or (self.cs[place].kind == "op" and not (self.cs[place].hits or self.cs[place].is_op("count", "agg"))):
                each.used = start == "by"
                continue
            if start == "by" and self._passive(index, place):
                each.used = True
                continue
            if start == "by" and (self.cs[place].kind == "op" or self._by_measure(place)):
                self._order_keys_by(index)
                continue
            each.used = True
            self.draft.groups.append(self._take(place))
            while (following := self.after(place, "mention", "unit", skip=("comma", "prep"), ops=("each", "by"))) is not None:
                joiners = self.cs[place + 1 : following]
                if (
                    not joiners
                    or not all(c.kind == "comma" or c.word == "and" or c.is_op("each", "by") for c in joiners)
                    or not any(c.word == "and" or c.kind == "comma" for c in joiners)
                ):
                    break
                if following + 1 < len(self.cs) and self.cs[following + 1].kind in ("value", "number"):
                    break
                for c in joiners:
                    c.used = True
                self.draft.groups.append(self._take(following))
                place = following

    def _passive(self, index: int, place: int) -> bool:
        """'treated by doctor Lopez', 'written by authors': an agent, not a group."""
        following = self.cs[place + 1] if place + 1 < len(self.cs) else None
        if (
            following is not None
            and following.kind == "value"
            and any(hit.table == m.table for hit in self.cs[place].hits for m in following.matches)
        ):
            return True
        before = next((each for each in reversed(self.all) if each.place < self.cs[index].place), None)
        return (
            before is not None
            and before.kind in ("filler", "word")
            and before.word.endswith(("ed", "en", "made", "sold", "sung", "built", "held"))
        )

    def _by_measure(self, place: int) -> bool:
        """'the longest flight by distance', 'top 5 products by price': what follows orders."""
        ranked = self.draft.limit_desc is not None or bool(self.draft.sups)
        return ranked and self.cs[place].kind == "mention" and not self.cs[place].hits[0].is_table and not self.draft.computes

    def _order_keys_by(self, index: int) -> None:
        self.cs[index].used = True
        kept = len(self.draft.sorts)
        self._order_keys(index)
        for sorting in self.draft.sorts[kept:]:
            sorting.desc = (
                self.draft.limit_desc
                if self.draft.limit_desc is not None
                else (self.draft.sups[0].sign == "max" if self.draft.sups else None)
            )

    def counting(self) -> None:
        for index, each in enumerate(self.cs):
            if each.used or not each.is_op("count", "howmuch"):
                continue
            place = self.after(index, "mention", "unit", skip=(), ops=("distinct", "pron", "agg"))
            each.used = True
            if each.op == "howmuch":
                if place is not None and not self.cs[place].hits[0].is_table:
                    self.draft.aggs.append(("sum", self._take(place)))
                continue
            for c in self.cs[index + 1 : place or index + 1]:
                c.used = True
            if place is not None and self.cs[place].kind == "unit":
                self.cs[place].used = True
            self.draft.counts.append(self._take(place) if place is not None and self.cs[place].kind == "mention" else None)
            while (
                place is not None
                and place + 2 < len(self.cs)
                and self.cs[place + 1].word == "and"
                and self.cs[place + 2].kind == "mention"
                and self.cs[place + 2].hits[0].is_table
                and not self.cs[place + 2].used
            ):
                place += 2
                self.draft.counts.append(self._take(place))

    def aggregates(self) -> None:
        pending: list[str] = []
        for index, each in enumerate(self.cs):
            if each.used or not (each.is_op("agg") or each.is_op("difference")):
                continue
            if each.op == "difference":
                each.used = True
                for c in self.cs[index + 1 :]:
                    if c.is_op("agg", "sup") and not c.used:
                        c.used = True
                place = next((i for i in range(index + 1, len(self.cs)) if self.cs[i].kind == "mention" and not self.cs[i].used), None)
                self.draft.spread = True
                self.draft.aggs.append(("spread", self._take(place) if place is not None else None))
                continue
            if self._is_name(index):
                continue
            each.used = True
            pending.append(each.arg)
            place = self.after(index, "mention", "op", "word", skip=("prep", "comma"), ops=("distinct", "pron"))
            if place is not None and self.cs[place].is_op("agg", "sup") and not self._is_name(place):
                if self.cs[place].op == "sup":
                    pending.append(self.cs[place].arg.partition(":")[0])
                    self.cs[place].used = True
                    place = self.after(place, "mention", skip=("prep",))
                else:
                    continue
            chunk = None
            if place is not None and (self.cs[place].kind == "mention" or self.cs[place].hits):
                chunk = self._take(place)
            self.draft.aggs.extend((func, chunk) for func in pending)
            pending = []
            while chunk is not None and place is not None:
                joined = self.after(place, "mention", skip=("comma", "prep"))
                if (
                    joined is None
                    or self.cs[joined].hits[0].is_table
                    or not all(c.kind == "comma" or c.word == "and" for c in self.cs[place + 1 : joined])
                    or not _measurable(self.cs[joined])
                ):
                    break
                if self.cs[joined].used or (
                    (joined + 1 < len(self.cs) and self.cs[joined + 1].kind in ("value", "number"))
                    or any(c.is_op("agg") for c in self.cs[place:joined])
                ):
                    break
                self.draft.aggs.append((self.draft.aggs[-1][0], self._take(joined)))
                place = joined
        self.draft.aggs.extend((func, None) for func in pending)

    def _is_name(self, index: int) -> bool:
        """Take 'total' as the name of a column when an operation stands before it and none of its own follows."""
        each = self.cs[index]
        if not each.hits:
            return False
        following = self.after(index, "mention", skip=("prep",))
        leading = index and (self.cs[index - 1].is_op("agg", "sup", "cmp") or self.cs[index - 1].kind == "mention")
        if leading or following is None:
            each.kind = "mention"
            return True
        return False

    def percent(self) -> None:
        for index, each in enumerate(self.cs):
            if each.is_op("percent") and not each.used:
                each.used = True
                self.draft.percent = True
                place = self.after(index, "mention", skip=("prep",), ops=("pron",))
                if place is not None:
                    self.draft.counts.append(self._take(place))

    def equal_number(self) -> None:
        for index, each in enumerate(self.cs):
            if each.kind != "number" or each.used:
                continue
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
            if (before is not None and not self.cs[before].hits[0].is_table and not self.cs[before].used) or (
                before is not None and _names_key(self.cs[before])
            ):
                self._equal([each, *numbers[1:]], self.cs[before], index)
            elif all(_year_like(number) for number in numbers):
                for number in numbers:
                    number.kind, number.unit = "time", "year"
            elif (after := self.after(index, "mention", skip=())) is not None and self._have_before(index):
                each.used = True
                chunk = self._take(after)
                if chunk.hits[0].is_table:
                    self.draft.havings.append(Having("=", each.number, chunk))
                else:
                    self.draft.filters.append(Filter("compare", "=", chunk, numbers=(each.number,)))

    def _equal(self, numbers: list[Chunk], mention: Chunk, index: int) -> None:
        mention.used = True
        for number in numbers:
            number.used = True
        self.draft.filters.append(
            Filter("compare", "=", mention, numbers=tuple(number.number for number in numbers), near=self._near(index))
        )

    def _have_before(self, index: int) -> bool:
        return any(
            each.word in ("have", "has", "had", "with", "having", "contain", "own", "exactly", "in", "only")
            for each in self.all
            if self.cs[index].place - 3 <= each.place < self.cs[index].place
        )

    def times(self) -> None:
        index = 0
        while index < len(self.cs):
            each = self.cs[index]
            if each.kind != "time" or each.used:
                index += 1
                continue
            group = [each]
            last = index
            while last + 1 < len(self.cs):
                step = last + 1
                while step < len(self.cs) and (
                    self.cs[step].kind in ("comma", "prep") and self.cs[step].word in ("of", "in", ",", "or", "and")
                ):
                    step += 1
                if step >= len(self.cs) or self.cs[step].kind not in ("time", "number") or self.cs[step].used:
                    break
                following = self.cs[step]
                if following.kind == "number":
                    if group[-1].unit == "month" and _year_like(following):
                        following.kind, following.unit = "time", "year"
                    elif group[-1].unit == "month" and step == last + 1 and 1 <= following.number <= 31:
                        following.kind, following.unit = "time", "day"
                    else:
                        break
                group.append(following)
                last = step
            if (
                index
                and self.cs[index - 1].kind == "number"
                and not self.cs[index - 1].used
                and each.unit == "month"
                and self.cs[index - 1].number <= 31
            ):
                day = self.cs[index - 1]
                day.kind, day.unit = "time", "day"
                group.append(day)
            earlier = self.cs[index - 1] if index else None
            op = "="
            if earlier is not None and earlier.is_op("time", "cmp") and not earlier.used:
                earlier.used = True
                op = earlier.arg.partition(":")[0]
            for c in group:
                c.used = True
            mention = None
            if earlier is not None and earlier.kind == "mention" and not earlier.used and not earlier.hits[0].is_table:
                mention = earlier
                earlier.used = True
            elif earlier is not None and earlier.kind in ("unit", "op") and index >= 2 and not earlier.used and earlier.kind == "unit":
                earlier.used = True
            both = any(c.is_op("both") for c in self.cs)
            self.draft.filters.append(
                Filter("time", op, mention, times=tuple(group), verbs=self.verbs(index), near=self._near(index), both=both)
            )
            index = last + 1

    def values(self) -> None:
        for index, each in enumerate(self.cs):
            if each.kind == "value" and not each.used:
                self.draft.filters.append(self._value_filter(index))

    def targets(self) -> None:
        for index, each in enumerate(self.cs):
            if each.used or each.kind in ("prep", "comma"):
                continue
            if each.kind == "mention" or (each.kind in ("op", "unit") and each.hits):
                each.used = True
                self.draft.targets.append(each)
            elif each.kind == "op" and each.op in (
                "each",
                "by",
                "time",
                "cmp",
                "post",
                "both",
                "either",
                "list",
                "wh",
                "order",
                "between",
                "distinct",
                "neg",
                "agg",
                "top",
                "first",
            ):
                if each.op in ("cmp", "post", "between", "neg", "like", "time", "agg", "top"):
                    self.draft.leftover.append(each.text)
            elif each.kind == "unit" and index and self.cs[index - 1].kind == "time":
                each.used = True
            else:
                self.draft.leftover.append(each.text)


def _measurable(chunk: Chunk) -> bool:
    best = chunk.best
    return any(hit.numeric and hit.score >= best - 0.15 for hit in chunk.hits)


def _of_dimension(chunk: Chunk, dimension: str) -> bool:
    words = {word.lstrip("-") for word in DIMENSIONS[dimension]}
    return any(words & set(map(lemma, split_name(hit.column))) for hit in chunk.hits if hit.column)


def _is_column(chunk: Chunk) -> bool:
    return not chunk.hits[0].is_table


def _is_participle(word: str) -> bool:
    return word.endswith("ed") and len(word) > 4


def _names_key(chunk: Chunk) -> bool:
    return lemma(chunk.word) in ("id", "number", "no", "code")


def _year_like(chunk: Chunk) -> bool:
    return isinstance(chunk.number, int) and 1000 <= chunk.number <= 2100 and len(chunk.word) == 4


def _same_kind(chunks: list[Chunk], place: int) -> bool:
    """Say whether a joiner stands between two chunks of one kind (values, numbers), and so does not end a scope."""
    if not 0 < place < len(chunks) - 1:
        return False
    left, right = chunks[place - 1], chunks[place + 1]
    return left.kind == right.kind and left.kind in ("value", "number", "time", "mention") and chunks[place].word != "for"
