"""Read order, limits and superlatives off the chunks."""

import itertools

from longtable.app.offline.chunks import Chunk
from longtable.app.offline.draft import Sorting, Superlative
from longtable.app.offline.lexicon import MORE_IS_BETTER, MORE_IS_WORSE, ORDINALS
from longtable.app.offline.lexicon_measures import ADJECTIVES, DIMENSIONS, SUPERLATIVES
from longtable.app.offline.reading import measurable, of_dimension, year_like
from longtable.app.offline.reading_numbers import Numbers
from longtable.app.offline.text import lemma, split_name

_TOTALS = frozenset(["in total", "total", "altogether", "combined", "summed"])


class Ordering(Numbers):
    """Rules for order."""

    def order(self) -> None:
        for index, each in enumerate(self.cs):
            if each.is_op("dir"):
                each.used = True
                self.draft.desc = each.arg == "desc"
                adjective = next((word for word in each.text.lower().split() if word in SUPERLATIVES), "")
                if adjective and not any(c.is_op("order", "by") for c in self.cs):
                    dimension, sign = SUPERLATIVES[adjective]
                    self.draft.sorts.append(Sorting(None, "", dimension, sign == "max"))
            if not each.is_op("order") or each.used:
                continue
            each.used = True
            self._order_keys(index)
        self._end_named()
        self._end_first()
        if self.draft.desc is not None and not self.draft.sorts:
            place = next((i for i, each in enumerate(self.cs) if each.is_op("dir")), 0)
            target = self.after(place, "mention") if self.cs[place].text.endswith("of") else None
            self.draft.sorts.append(Sorting(self._take(target) if target is not None else None))

    def _end_named(self) -> None:
        """'highest salary first': the column is between."""
        for first, second, third in zip(self.cs, self.cs[1:], self.cs[2:], strict=False):
            ends = first.is_op("sup", "most", "top") and second.kind == "mention" and third.is_op("first") and third.arg == "asc"
            if ends and not first.used and second.hits[0].is_table and any(c.is_op("count", "agg") for c in self.cs[: first.order]):
                first.used = second.used = third.used = True  # the pupils per class, biggest class first
                self.draft.desc = first.arg.partition(":")[0] == "max"
                self.draft.sorts.append(Sorting(None, "", "size", self.draft.desc))
            if ends and not first.used and not second.hits[0].is_table:
                first.used = second.used = third.used = True
                self.draft.sorts = [each for each in self.draft.sorts if each.chunk is not None or each.func or each.dimension]
                self.draft.sorts.append(Sorting(second, "", "", first.arg.partition(":")[0] == "max"))

    def _end_first(self) -> None:
        """'heaviest first': a direction, and the key too where none is named."""
        for each, following in zip(self.cs, self.cs[1:], strict=False):
            sign, _, dimension = each.arg.partition(":")
            if each.used or not (following.is_op("first") and following.arg == "asc"):
                continue
            if each.is_op("top") and any(c.is_op("agg", "count") for c in self.cs):
                each.used = following.used = True
                self.draft.desc = sign == "max"  # the average stars, best first
                continue
            if not (each.is_op("sup") and dimension):
                continue
            each.used = following.used = True
            named = bool(self.draft.sorts) or any(c.is_op("by") for c in self.cs[: each.order])
            if not named:
                self.draft.sorts.append(Sorting(None, "", dimension, sign == "max"))
            self.draft.desc = sign == "max"

    def _order_keys(self, index: int) -> None:
        func, place = "", index
        while True:
            skip = ("prep", "comma", "used") if place != index else ("prep", "used")
            ops = ("by", "list") if place == index else ()
            following = self.after(place, "mention", "unit", "word", "op", skip=skip, ops=ops)
            if following is not None and self.cs[following].is_op(*ops):
                self.cs[following].used = True
                place = following
                continue
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
            if self.draft.limit is not None or each.kind != "number" or each.used or following is None or each.text.lower() in ORDINALS:
                continue
            if year_like(each) and index and self.cs[index - 1].word in ("of", "in", "for", "during"):
                continue  # which month of 2022 had the most
            if following.is_op("sup", "most", "frequent") or (
                following.kind == "mention" and self._has_superlative(index) and not self._have_before(index)
            ):
                each.used = True
                self.draft.limit = int(each.number)

    def _has_superlative(self, index: int) -> bool:
        ends = any(a.is_op("first", "top") and b.kind == "mention" for a, b in itertools.pairwise(self.cs[index + 1 :]))
        return (ends or any(each.is_op("sup", "most", "frequent") for each in self.cs[index:])) and not (
            index and self.cs[index - 1].kind == "mention" and measurable(self.cs[index - 1])
        )

    def superlatives(self) -> None:
        for index, each in enumerate(self.cs):
            if each.used or not (each.is_op("sup", "most", "frequent") or (each.is_op("first", "top") and not self.cs[index].used)):
                continue
            self._rank(each)
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
                    not chunk.hits[0].is_table and (dimension in ("size", "quality", "wealth") or of_dimension(chunk, dimension))
                ):
                    chunk.used = True
                elif not chunk.hits[0].is_table:
                    chunk = None
            total = next((c for c in self.cs[index + 1 :] if c.is_op("agg") and not c.used and c.text.lower() in _TOTALS), None)
            if chunk is not None and not func and total is not None and measurable(chunk) and not chunk.hits[0].is_table:
                total.used = chunk.used = True
                func = "sum"
            if chunk is not None and not func and self._is_added_up(chunk):
                func = "sum"
            kind = "dimension" if dimension else "most" if each.op == "most" or each.text.endswith(("number of", "amount of")) else "plain"
            self.draft.sups.append(Superlative(sign, kind, dimension, chunk, func))

    def _is_added_up(self, chunk: Chunk) -> bool:
        """'the highest total balance': a sum, where no column is called a total."""
        words = chunk.text.lower().split()
        return words[0] in ("total", "combined") and measurable(chunk) and "total" not in split_name(chunk.hits[0].column)

    def _rank(self, superlative: Chunk) -> None:
        """'the second most expensive', 'the 3rd largest': those before it are passed over."""
        before = next((each for each in self.all if each.order == superlative.order - 1), None)
        place = ORDINALS.get(before.text.lower(), 0) if before is not None else 0
        if before is not None and place:
            before.used = True
            self.draft.rank = place - 1
            self.draft.leftover = [word for word in self.draft.leftover if word != before.text]

    def _aggregated(self, index: int) -> Chunk | None:
        """Return what an aggregate right after measures: 'the worst average delay'."""
        agg = self.after(index, "op", skip=())
        if agg is None or not self.cs[agg].is_op("agg"):
            return None
        place = self.after(agg, "mention")
        return self.cs[place] if place is not None else None

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
            measured = chunk if chunk is not None else self._aggregated(index)
            if each.word in ("best", "worst") and measured is not None:
                words = {lemma(word) for hit in measured.hits[:1] for word in split_name(hit.column)}
                if words & MORE_IS_WORSE:
                    sign = "min" if sign == "max" else "max"
                elif not words & MORE_IS_BETTER:
                    self.draft.leftover.append(each.text)
            self.draft.sups.append(Superlative(sign, "plain", chunk=chunk))
        else:
            self.draft.sups.append(Superlative("max" if each.arg == "desc" else "min", "first", "date"))
