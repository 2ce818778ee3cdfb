"""Read conditions off the chunks: values, times, texts, what is missing, what is denied."""

from longtable.app.offline.chunks import LACKING, OWN_YEAR, Chunk
from longtable.app.offline.draft import Draft, Filter
from longtable.app.offline.lexicon import PARTICIPLES
from longtable.app.offline.lexicon_events import events
from longtable.app.offline.reading import Reading, is_participle, measurable, same_kind, year_like
from longtable.app.offline.text import lemma

_BREAKS = ("each", "by", "order", "top", "sup", "most", "frequent", "count", "dir")


class Conditions(Reading):
    """Rules for conditions."""

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
            if left is not None and measurable(self.cs[left]) and text.kind == "value" and text.matches[0].how != "partial":
                text.used = False  # the weight of packages that contain medicine: what they contain is a value
                continue
            right = self.after(target, "mention", skip=("prep", "op"))
            place = right if (right is not None and self.cs[right - 1].word in ("in", "on", "of")) or left is None else left
            if right is not None and left is not None and any(c.is_op("pron") for c in self.cs[target:right]):
                place = right
            opens = place is not None and all(c.is_op("list", "wh", "both") for c in self.cs[:place])
            if place is not None and opens and lemma(self.cs[place].text.lower().split()[0]) == "name":
                self.draft.targets.append(self.cs[place])  # names of packages that contain a word: the names are asked for
            self.draft.filters.append(Filter("like", mention=self._take(place) if place is not None else None, op=each.arg, text=text.text))

    def negation(self) -> None:
        for index, each in enumerate(self.cs):
            if not each.is_op("neg") or each.used:
                continue
            self.draft.never |= "never" in each.text.lower().split()
            end = self._scope_end(index)
            scope = [c for c in self.cs[index + 1 : end] if not c.used]
            last = self.cs[end].place if end < len(self.cs) else 10_000
            verbs = tuple(c.word for c in self.all if c.kind == "filler" and each.place < c.place < last)
            if not [c for c in scope if c.kind != "prep"]:
                if (verbs and "never" in each.text.lower().split() + list(verbs)) or any(
                    is_participle(verb) or verb in PARTICIPLES for verb in verbs
                ):
                    each.used = True
                    self.draft.absent.append(Draft(words=verbs))
                continue
            each.used = True
            inner = type(self)([c for c in self.all if scope[0].place <= c.place <= scope[-1].place and not c.used]).read()
            for c in scope:
                c.used = True
            self.draft.leftover.extend(inner.leftover)
            inner.leftover = []
            self.draft.absent.append(inner)

    def _scope_end(self, index: int) -> int:
        for place in range(index + 1, len(self.cs)):
            each = self.cs[place]
            if each.is_op("by") and self._is_agent(place):
                continue
            if (each.kind == "comma" and not self._lists(place)) or each.is_op(*_BREAKS) or (each.is_op("neg") and place > index + 1):
                return place
            if place > index + 1 and each.text == "的":
                return place
            if place > index + 1 and each.is_op("cmp") and self._is_relative(place):
                return place
            if place > index + 1 and each.kind == "prep" and each.word in ("and", "for", "than") and not same_kind(self.cs, place):
                return place
            if place > index + 2 and each.is_op("wh"):
                before = self.cs[place - 1]
                if before.kind == "prep" and before.word == "and":
                    return place
        return len(self.cs)

    def _lists(self, place: int) -> bool:
        """'outside Portugal, Spain and France': a comma between values of one column, of which 'and' or 'or' brings the last."""
        columns = [{(match.table, match.column) for match in each.matches} for each in self.cs[place - 1 : place + 2 : 2]]
        tail = [each for each in self.cs[place:] if each.kind not in ("value", "comma")][:1]
        return len(columns) == 2 and bool(columns[0] & columns[1]) and bool(tail) and tail[0].word in ("and", "or")

    def _is_relative(self, place: int) -> bool:
        """'plans without ads that cost less than 10': a clause after a column that is denied is of the thing itself."""
        before, each = self.cs[place - 1], self.cs[place]
        between = {c.word for c in self.all if before.place < c.place < each.place}
        return before.kind == "mention" and not before.hits[0].is_table and bool({"that", "which", "who", "costing"} & between)

    def _is_agent(self, place: int) -> bool:
        """'not written by Todd Casey', 'never checked by a vet': who did it belongs to what is denied."""
        following = self.cs[place + 1] if place + 1 < len(self.cs) else None
        before = next((each for each in reversed(self.all) if each.place < self.cs[place].place), None)
        verb = before is not None and before.kind == "filler" and is_participle(before.word)
        return following is not None and (following.kind == "value" or (verb and following.kind == "mention"))

    def missing(self) -> None:
        for index, each in enumerate(self.cs):
            if not each.is_op("missing", "present") or each.used:
                continue
            if each.arg == LACKING:
                each.used = True
                self.draft.filters.append(
                    Filter("null", mention=Chunk("mention", each.text, each.word, each.place, hits=each.hits), negated=each.op == "present")
                )
                continue
            found = self.after(index, "mention") if each.word in ("missing", "unknown", "empty", "blank", "known", "recorded") else None
            found = found if found is not None else self.before(index, "mention")
            table = found is not None and self.cs[found].hits[0].is_table
            if each.op == "present" and each.text in ("given", "known", "recorded") and (found is None or table):
                each.used = True  # 'has given', 'are known': a verb
            elif each.text.lower().split()[-1] in ("empty", "vacant") and table:
                each.used = True
                self.draft.absent.append(Draft(words=("used",)))  # enclosures that are empty: without any
            elif found is not None and not self.cs[found].used and not table:
                each.used = True
                self.draft.filters.append(Filter("null", mention=self._take(found), negated=each.op == "present"))

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
                    if group[-1].unit == "month" and year_like(following):
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
            if mention is None and (place := self.before(index, "mention", ops=("time", "cmp"))) is not None:
                dated = self.cs[place]
                if not dated.used and (dated.hits[0].dated or (is_participle(dated.word) and dated.hits[0].numeric)):
                    mention, dated.used = dated, True
                    if self._is_listed(place):
                        self.draft.targets.append(dated)  # names and hire dates of everyone hired before 2016
            both = any(c.is_op("both") for c in self.cs)
            opens = not any(c.kind in ("mention", "value", "filler", "word") for c in self.all if c.place < each.place)
            verbs = tuple(c.word for c in self.all if c.kind == "filler") if opens else self.verbs(index)  # in 2023 how many were sold
            verbs = self._told_when(each, verbs)
            item = Filter("time", op, mention, times=tuple(group), verbs=verbs, near=self._near(index), both=both)
            item.unit = OWN_YEAR if mention is None and op == "=" and self._is_own_year(each, group) else ""
            self.draft.filters.append(item)
            index = last + 1

    def _is_own_year(self, year: Chunk, group: list[Chunk]) -> bool:
        """'the 2021 Hillside Chardonnay', 'the 2018 models': the year belongs to the thing itself."""
        before = next((c for c in reversed(self.all) if c.order < year.order), None)
        following = next((c for c in self.all if c.order == year.order + 1), None)
        alone = len(group) == 1 and year.unit == "year" and (before is None or before.word in ("the", "a", "our", "all", "any"))
        return alone and following is not None and following.kind in ("value", "mention")

    def _is_listed(self, place: int) -> bool:
        """Say whether a column is shown beside another named before it, and the condition on it stands in a verb of its own."""
        joined = place > 1 and self.cs[place - 1].word in ("and", ",") and self.cs[place - 2].kind == "mention"
        counted = any(c.is_op("count", "agg", "percent", "howmuch", "sup", "most") for c in self.cs[:place])
        return joined and not counted

    def _told_when(self, time: Chunk, verbs: tuple[str, ...]) -> tuple[str, ...]:
        """'rented a snowboard in 2025': the verb that the time belongs to, past its object."""
        if any(events(verb) for verb in verbs):
            return verbs
        for each in reversed([each for each in self.all if each.place < time.place]):
            if each.kind == "comma" or each.is_op("wh"):
                break
            lone = each.kind in ("filler", "word", "mention") and " " not in each.text
            if lone and (is_participle(each.word) or each.word in PARTICIPLES) and events(each.word):
                return (*verbs, each.word)
        return verbs

    def values(self) -> None:
        for index, each in enumerate(self.cs):
            if each.kind == "value" and not each.used:
                self.draft.filters.append(self._value_filter(index))

    def _value_filter(self, place: int, *, negated: bool = False) -> Filter:
        """Take values joined by and/or from `place` on, with the mention beside them that names their column."""
        values = [self._take(place)]
        both = any(each.is_op("both") for each in self.cs)
        last = place
        while last + 1 < len(self.cs):
            step = last + 1
            while step < len(self.cs) and (self.cs[step].kind == "comma" or self.cs[step].word in ("or", "and")):
                step += 1
            if step > last + 1 and step < len(self.cs) and (self.cs[step].kind == "prep" or self.cs[step].is_op("by")):
                step += 1  # online or by phone
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
        before = self.before(first, "mention", ops=("wh", "cmp", "pron", "neg", "by"))
        after = self.after(last, "mention", skip=())
        trailing = self.after(last, "mention", skip=("prep",))
        if trailing is not None and self.cs[trailing - 1].word != "as":
            trailing = None
        places = [place for place in (before, after, trailing) if place is not None and not self.cs[place].used]
        places.sort(key=lambda place: self.cs[place].hits[0].is_table)  # services in the repair category: of the category
        for place in places:
            if any((hit.table, hit.column) in columns for hit in self.cs[place].hits):
                if place == before and place + 1 < first and self._is_listed(place) and not self.cs[place - 2].hits[0].is_table:
                    self.draft.targets.append(self.cs[place])  # the names and towns of customers in Ripon
                return self.cs[place] if self.cs[place].hits[0].is_table else self._take(place)
        return None
