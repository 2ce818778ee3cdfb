"""Read groups, counts, aggregates and percentages off the chunks."""

from longtable.app.offline.chunks import UNTRUE, Chunk
from longtable.app.offline.lexicon import DOERS, PARTICIPLES, PEOPLE
from longtable.app.offline.linking import Hit
from longtable.app.offline.reading import is_column, measurable
from longtable.app.offline.reading_order import Ordering
from longtable.app.offline.text import lemma, split_name

_TRAILERS = frozenset(["in total", "altogether", "overall", "combined", "on average"])


class Shape(Ordering):
    """Rules for what is computed."""

    def joined_ends(self) -> None:
        """'average and highest wage', 'the lowest, highest and average price': a superlative joined to an aggregate is one too."""
        for first, joiner, last in [*zip(self.cs, self.cs[1:], self.cs[2:], strict=False)] * 2:
            if joiner.word not in ("and", ",", "or") or {first.op, last.op} != {"agg", "sup"}:
                continue
            sup = first if first.op == "sup" else last
            if not (first.used or last.used) and sup.arg in ("max", "min"):
                sup.op = "agg"

    def grouping(self) -> None:
        for index, each in enumerate(self.cs):
            asked = index > 0 and self.cs[index - 1].is_op("wh") and self.cs[index - 1].word in ("which", "what")
            if each.kind == "unit" and not each.hits and not each.used and asked and (self.draft.sups or self.draft.sorts):
                each.used = True
                self.draft.groups.append(each)
        for index, each in enumerate(self.cs):
            if each.used or not each.is_op("each", "by"):
                continue
            start = each.op
            if start == "each" and (doer := self._doer_after(index)) is not None:
                each.used = True
                self.draft.groups.append(doer)
                continue
            place = self.after(index, "mention", "unit", "op", skip=("prep",) if start == "each" else (), ops=("each", "pron"))
            if place is None or (self.cs[place].kind == "op" and not (self.cs[place].hits or self.cs[place].is_op("count", "agg"))):
                each.used = start == "by"
                continue
            counted = self.cs[place + 1] if place + 1 < len(self.cs) else None
            plain = (
                self.draft.limit is None
                and self.draft.desc is None
                and not self.draft.sups
                and any(c.is_op("agg") for c in self.cs[:index])
            )
            measured = counted is not None and counted.kind == "mention" and not counted.hits[0].is_table and counted.hits[0].numeric
            if start == "by" and self.cs[place].is_op("count") and plain and measured and counted is not None:
                each.used = self.cs[place].used = counted.used = True
                self.draft.groups.append(counted)  # the average area by number of bedrooms
                continue
            if counted is not None and self._is_of(self.cs[place], counted):
                self.cs[place].used, place = True, place + 1  # per client kind: the kind
            elif start == "by" and self._passive(index, place):
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

    def _doer_after(self, index: int) -> Chunk | None:
        """'done by each lab technician': of people of one kind, each; the kind stays a condition."""
        value = self.cs[index + 1] if index + 1 < len(self.cs) else None
        if value is None or value.kind != "value" or value.name or not (value.word in PEOPLE or value.word.endswith(DOERS)):
            return None
        homes = {match.table for match in value.matches}
        hits = tuple(Hit(home, "", 1.0) for home in homes if len(homes) == 1)
        return Chunk("mention", value.text, value.word, value.place, hits=hits, order=value.order) if hits else None

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
        if (
            following is None
            and self.cs[place].kind == "mention"
            and (any(c.is_op("agg") and c.arg in ("sum", "avg") for c in self.cs[:index]) or self._opens_with_measure())
        ):
            return False  # (total) hours worked by attorney
        if before is None and index == 0 and self.cs[place].kind == "mention" and not self.cs[place].hits[0].is_table:
            return self.cs[0].order > 0  # 'never checked by a vet'; but 'by status?' groups what was asked before
        if before is not None and before.kind == "mention" and (self.cs[place].kind != "mention" or not self.cs[place].hits[0].is_table):
            return False
        named = self.cs[place]
        ends = following is None or following.is_op("dir", "order") or following.kind == "comma"
        if ends and named.kind == "mention" and (is_column(named) or lemma(named.word) == named.word) and not self.draft.listing:
            doer = {lemma(word) for word in (*named.text.lower().split(), *split_name(named.hits[0].column))} & PEOPLE
            bare = lemma(named.word) == named.word and named.order == self.cs[index].order + 1  # by doctor, not by a doctor nor by doctors
            if (bare or not doer) and self.cs[0].kind == "mention" and self.cs[0] is not named:
                return False  # handsets sold by brand: a brand does nothing
        return (
            before is not None
            and before.kind in ("filler", "word", "mention")
            and (before.word in PARTICIPLES or before.word.endswith(("ed", "en", "made", "sold", "sung", "built", "held")))
        )

    def _is_of(self, thing: Chunk, column: Chunk) -> bool:
        """Say whether a column that is no number stands right after the thing that it is of."""
        beside = thing.kind == column.kind == "mention" and column.order == thing.order + 1 and not column.used
        own = (
            [hit for hit in column.hits if hit.table == thing.hits[0].table and hit.score >= 0.9]
            if beside and thing.hits[0].is_table
            else []
        )
        if own and not own[0].is_table and not own[0].numeric and not own[0].dated and lemma(column.word) != "name":
            column.hits = tuple(own)
            return True
        return False

    def _opens_with_measure(self) -> bool:
        first = self.cs[0]
        return first.kind == "mention" and not first.hits[0].is_table and first.hits[0].numeric

    def _by_measure(self, place: int) -> bool:
        """'the longest flight by distance', 'top 5 products by price': what follows orders."""
        listed = self.draft.desc is not None and not any(each.is_op("count", "agg") for each in self.cs)
        amounts = any(each.kind == "mention" and measurable(each) and not each.hits[0].is_table for each in self.cs[:place])
        key = self.cs[place]
        listed &= not amounts or (bool(key.hits) and (measurable(key) or key.hits[0].dated))  # kilos by variety, high to low: by the kilos
        ranked = self.draft.limit_desc is not None or bool(self.draft.sups) or listed
        return ranked and self.cs[place].kind == "mention" and not self.cs[place].hits[0].is_table and not self.draft.computes

    def _order_keys_by(self, index: int) -> None:
        self.cs[index].used = True
        self.draft.sorts = [each for each in self.draft.sorts if each.chunk is not None or each.func or each.dimension]
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
                else:
                    self.draft.spent = True
                continue
            following = next((c for c in self.all if c.order == each.order + 1), None)
            if following is not None and following.kind == "filler" and following.word in ("spent", "paid", "earned", "cost", "spend"):
                self.draft.leftover.append(f"{each.text} {following.text}")  # how much was meant
            between = self.cs[index + 1 : place or index + 1]
            for c in between:
                c.used = True
            if place is not None and self._qualifies(place):
                place += 1
            if place is not None and self.cs[place].kind == "mention" and any(self._stands_alone(c) for c in between):
                place = None  # how many of them have rentals: they are counted, not the rentals
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

    def _qualifies(self, place: int) -> bool:
        """'how many male singers': a column right before an entity says which of them."""
        first, second = self.cs[place], self.cs[place + 1] if place + 1 < len(self.cs) else None
        return (
            second is not None
            and first.kind == second.kind == "mention"
            and not first.hits[0].is_table
            and second.hits[0].is_table
            and second.order == first.order + 1
        )

    def _stands_alone(self, chunk: Chunk) -> bool:
        """Say whether a pronoun stands for the rows before by itself: 'of them', but not 'those students'."""
        if not chunk.is_op("pron"):
            return False
        following = next((c for c in self.all if c.order == chunk.order + 1), None)
        return following is None or following.kind != "mention" or chunk.text.lower().split()[-1] in ("them", "they", "it")

    def aggregates(self) -> None:
        pending: list[str] = []
        for index, each in enumerate(self.cs):
            if each.used or not each.is_op("agg"):
                continue
            if self._is_name(index):
                continue
            if self._trails(index):
                each.used = True
                self._trailing(each.arg)
                continue
            each.used = True
            self.draft.money |= "amount" in each.text.lower() or "value" in each.text.lower()
            pending.append(each.arg)
            place = self.after(index, "mention", "op", "word", skip=("prep", "comma"), ops=("distinct", "pron"))
            if place is not None and self.cs[place].arg == UNTRUE and place + 1 < len(self.cs) and self.cs[place + 1].kind == "mention":
                place += 1  # the total of unpaid fines
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
                following = self.cs[place + 1] if place + 1 < len(self.cs) else None
                if chunk.arg == UNTRUE and following is not None and following.kind == "mention" and not following.used:
                    chunk.used, place = False, place + 1  # the total of unpaid fines: the flag is a condition
                    chunk = self._take(place)
                elif following is not None and (self._of_its_table(chunk, following) or self._heads(chunk, following)):
                    place += 1
                    chunk = self._take(place)
            for func in pending:
                if chunk is None:
                    self._trailing(func)
                else:
                    self.draft.aggs.append((func, chunk))
            pending = []
            while chunk is not None and place is not None:
                joined = self.after(place, "mention", skip=("comma", "prep"))
                if (
                    joined is None
                    or self.cs[joined].hits[0].is_table
                    or joined == place + 1
                    or not all(c.kind == "comma" or c.word == "and" for c in self.cs[place + 1 : joined])
                    or not measurable(self.cs[joined])
                ):
                    break
                if self.cs[joined].used or (
                    (joined + 1 < len(self.cs) and self.cs[joined + 1].kind in ("value", "number"))
                    or any(c.is_op("agg") for c in self.cs[place:joined])
                ):
                    break
                self.draft.aggs.append((self.draft.aggs[-1][0], self._take(joined)))
                place = joined
        for func in pending:
            self._trailing(func)

    def _heads(self, first: Chunk, second: Chunk) -> bool:
        """'the average ticket price': of two nouns the last is what is measured, where the first names no column wholly."""
        if first.kind != "mention" or second.kind != "mention" or second.used or second.order != first.order + 1:
            return False
        return first.best < 0.9 and not second.hits[0].is_table and second.hits[0].numeric

    def _of_its_table(self, first: Chunk, second: Chunk) -> bool:
        """'the average survey score': the table's name before its column."""
        if first.kind != "mention" or second.kind != "mention" or second.used or second.order != first.order + 1:
            return False
        return (
            first.hits[0].is_table
            and not second.hits[0].is_table
            and second.hits[0].table == first.hits[0].table
            and second.hits[0].numeric
        )

    def _trailing(self, func: str) -> None:
        """'how many tons in total', 'what did it cost altogether': the measure stands before."""
        counted = bool(self.draft.counts) or any(chunk is not None for _, chunk in self.draft.aggs)
        if func == "sum" and counted:
            return
        last = next((c for c in reversed(self.cs) if c.kind == "mention" and not c.used and measurable(c) and not c.hits[0].is_table), None)
        if last is not None:
            last.used = True
        self.draft.aggs.append((func, last))

    def _trails(self, index: int) -> bool:
        """'the shipping cost in total on orders', 'spent altogether on visits': what is added up stands before."""
        each, following = self.cs[index], self.cs[index + 1] if index + 1 < len(self.cs) else None
        if each.text.lower() not in _TRAILERS or not index:
            return False
        told = self.draft.spent or bool(self.draft.aggs) or any(chunk is not None and measurable(chunk) for chunk in self.draft.counts)
        return (
            told and (following is None or following.kind in ("prep", "comma")) and not (following is not None and following.word == "of")
        )

    def _is_name(self, index: int) -> bool:
        """Take 'total' as the name of a column when an operation stands before it and none of its own follows."""
        each = self.cs[index]
        if not each.hits or each.text.lower().startswith("in "):
            return False
        following = self.after(index, "mention", skip=("prep",))
        leading = index and (self.cs[index - 1].is_op("agg", "sup", "cmp") or self.cs[index - 1].kind == "mention")
        if leading or following is None:
            each.kind = "mention"
            return True
        return False

    def difference(self) -> None:
        """'the difference between the highest and the lowest price': the spread of one column."""
        for index, each in enumerate(self.cs):
            if each.used or not each.is_op("difference"):
                continue
            each.used = True
            for c in self.cs[index + 1 :]:
                c.used = c.used or c.is_op("agg", "sup") or c.word == "and"
            place = next((i for i in range(index + 1, len(self.cs)) if self.cs[i].kind == "mention" and not self.cs[i].used), None)
            self.draft.spread = True
            self.draft.aggs.append(("spread", self._take(place) if place is not None else None))

    def percent(self) -> None:
        for index, each in enumerate(self.cs):
            if each.is_op("percent") and not each.used:
                each.used = True
                self.draft.percent = True
                place = self.after(index, "mention", skip=("prep",), ops=("pron",))
                if place is not None:
                    self.draft.counts.append(self._take(place))
