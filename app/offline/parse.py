"""Read chunks into a draft: who is counted, grouped, filtered, ordered. Rules run in order; each takes up its chunks."""

import itertools

from longtable.app.offline.chunks import PRODUCT, Chunk
from longtable.app.offline.columns import entity
from longtable.app.offline.draft import Draft
from longtable.app.offline.lexicon import PEOPLE
from longtable.app.offline.reading_shape import Shape
from longtable.app.offline.text import lemma, split_name

_ASKING = frozenset(["how", "what", "what's", "when", "where", "who", "which"])
_TAILS = frozenset(["address", "amount", "value", "number", "date", "figure", "level", "data", "bill", "spend"])


_INCOME = frozenset(["income", "revenue", "turnover", "taking"])


def parse(chunks: list[Chunk]) -> Draft:
    """Return the draft of a question's chunks."""
    return Reader(chunks).read()


class Reader(Shape):
    """All rules, in their order."""

    def read(self) -> Draft:
        for rule in (
            self.names,
            self.flags,
            self.order,
            self.like,
            self.negation,
            self.missing,
            self.between,
            self.difference,
            self.dates_compared,
            self.above_average,
            self.or_more,
            self.compare,
            self.joined_ends,
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

    def names(self) -> None:
        """Take 'total' and the like for the name of a column where they stand like one: 'average total', 'a total above 5'."""
        for each, following in zip(self.cs, self.cs[1:], strict=False):
            if each.is_op("first") and each.word == "last" and following.is_op("cmp"):
                each.kind = "filler"  # courses that last less than an hour
            elif each.kind == "mention" and following.kind == "word" and self.closes(each, following):
                following.kind = "filler"  # the email address, the freight amount
            elif each.kind == "mention" and entity(each) and following.kind == "word" and following.word in ("value", "amount"):
                following.kind = "filler"  # the total deal value
                self.draft.money = True
            elif each.kind == following.kind == "mention" and following.order == each.order + 1 and self.is_tail(each, following):
                following.kind = "filler"  # the running time: no second column
        self.cs = [each for each in self.cs if each.kind != "filler"]
        for index, each in enumerate(self.cs):
            if not (each.is_op("agg") and each.hits) or each.text.lower().startswith("in "):
                continue
            before = self.cs[index - 1] if index else None
            then = next((c for c in self.cs[index + 1 :] if c.kind != "prep" and not c.is_op("each", "by", "pron")), None)
            named = before is not None and (before.is_op("agg", "sup") or (before.kind == "mention" and before.hits[0].is_table))
            if named or then is None or then.is_op("cmp", "between", "post") or then.kind in ("comma", "number", "time"):
                each.kind = "mention"

    def closes(self, each: Chunk, tail: Chunk) -> bool:
        """Say whether a word only closes a noun that names a column; a bill or what was spent is money, and so must be the column."""
        money = lemma(tail.word) in ("bill", "spend")
        return lemma(tail.word) in _TAILS and not each.hits[0].is_table and (each.hits[0].numeric or not money)

    def is_tail(self, first: Chunk, second: Chunk) -> bool:
        """Say whether a weak mention only closes the noun that a column of numbers began."""
        whole = first.hits[0].numeric or (second.word == "address" and first.best >= 0.95 and not first.hits[0].is_table)
        return (
            (lemma(second.word) in ("time", *_TAILS) or (lemma(second.word) in _INCOME and " " in first.text))  # the total fare income
            and second.best < 0.9
            and whole
            and " " not in second.text
        )

    def flags(self) -> None:
        for each in self.cs:
            if each.is_op("pron", "rest", "distinct", "wh", "list", "both", "either"):
                each.used = True
                self.draft.pron |= each.op == "pron"
                self.draft.back |= each.op == "pron" and not self.spoken_of(each)
                self.draft.rest |= each.op == "rest"
                self.draft.distinct |= each.op == "distinct"
                self.draft.which |= each.op == "wh" and each.word in ("which", "who", "whom", "whose")
                self.draft.listing |= each.op == "list"
            if each.is_op("howold"):
                each.used = True
                self.draft.asks.append(each.arg)
        for first, second in zip(self.cs, self.cs[1:], strict=False):
            if first.is_op("time", "neg", "cmp") and lemma(second.word) == "discount" and any(c.arg == PRODUCT for c in self.cs):
                first.used = second.used = True  # revenue before, or after, discount: which price is meant
        for first, verb in itertools.pairwise([each for each in self.all if each.kind != "comma"][-2:]):
            if first.word == "can" and verb.kind == "filler":
                self.draft.leftover.append(verb.text)  # who can teach: nothing here says so
        self.draft.alternative = any(each.kind == "prep" and each.word == "or" for each in self.cs)
        self.pointers()

    def spoken_of(self, pronoun: Chunk) -> bool:
        """Say whether a pronoun stands for something named before it in the same question: 'albums and their artists'."""
        before, word = [each for each in self.all if each.place < pronoun.place], pronoun.text.lower().split()[-1]
        following = next((each for each in self.all if each.place > pronoun.place), None)
        if word in ("those", "these") and following is not None and following.kind == "mention":
            return False
        if self.in_second_part(before):
            return True
        if word in ("it", "he", "she", "they") and before and before[-1].word in ("do", "does", "did", "is", "was", "were", "has", "have"):
            return False
        if any(each.kind == "value" for each in before):
            return True
        tables = [each.hits[0] for each in before if each.kind == "mention" and each.hits[0].score >= 0.72 and entity(each)]
        if word in ("he", "him", "his", "she", "her"):
            return any(lemma(word) in PEOPLE for hit in tables for word in split_name(hit.table))
        if word in ("their", "its", "theirs", "they"):
            return any(each.kind == "mention" for each in before)
        return bool(tables)

    def in_second_part(self, before: list[Chunk]) -> bool:
        """Say whether the question asks two things, and the second goes on from the first: 'the oldest shop, and when did it open'."""
        joins = [
            place
            for place, each in enumerate(before[:-1])
            if place
            and each.word in ("and", ",", ";")
            and (before[place + 1].is_op("wh", "howold", "howmuch", "count") or before[place + 1].word in _ASKING)
        ]
        return any(each.kind in ("mention", "value") for each in before[: joins[0]]) if joins else False

    def pointers(self) -> None:
        """'that shop', 'this song' speak of what was found before; 'that year' speaks of a time that nobody can look up."""
        for first, second, third in zip(self.cs, self.cs[1:], self.cs[2:], strict=False):
            if first.is_op("pron") and second.kind == "number" and third.kind == "mention" and entity(third):
                second.used = True
        for place, (each, following) in enumerate(itertools.pairwise(self.all)):
            before = self.all[place - 1] if place else None
            if each.kind != "filler" or each.word not in ("that", "this") or (before is not None and before.kind in ("mention", "value")):
                continue
            if following.kind == "mention" and lemma(following.word) == following.word:
                self.draft.pron = self.draft.back = True
            elif following.kind == "unit" and each.word == "that":
                self.draft.leftover.append(f"{each.text} {following.text}")

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
