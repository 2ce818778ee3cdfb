"""Our worst case beside the peers: threads as long as the limit, results of 40 rows, summarisers
that write no heading for pins, that are lazy, that invent; and what a conversation costs.

`python -m benchmarks.memories.worst_case` prints both tables. The threads and the summarisers were
written blind: those of `worst.py` were looked at while the memory was mended, those of
`worst_fresh.py` after their first run.
"""

import argparse
import itertools
import logging
import statistics
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from types import ModuleType
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, tool
from pydantic import Field

from benchmarks.costs.caches import common_beginning
from benchmarks.memories import worst, worst_fresh
from benchmarks.memories.models import ANSWER, ENCODING, SUMMARY, waited_for
from benchmarks.memories.systems import Fakes, LangChain, LangMem, Longtable, Maker, Setting
from longtable.graph import open_persistence
from longtable.memory.counting.tokens import counter

COMPACTIONS = 5
"""After each of these the next view is looked at."""
MOST_TURNS = 400
SEEDS = (1, 2, 3, 4)
CACHED = 0.1
"""Price of a cached input token, in input tokens."""
LIMITS = ((8_000, 800), (8_000, 1_500), (32_000, 1_500))
"""Limits, with the tokens of a round."""
COST_TURNS = 100
GENERATORS: Mapping[str, ModuleType] = {"fresh": worst_fresh, "seen": worst}
"""Of threads and summaries, by name."""
KINDS: tuple[worst.Kind, ...] = ("generated", "semantic", "rule")
LANGUAGES: tuple[worst.Language, ...] = ("en", "zh")


class Narrator(BaseChatModel):
    """Plays the assistant's part of a thread: calls `look_up` in a turn that has a result, and
    answers as the turn says.
    """

    turns: list[worst.Turn] = Field(default_factory=list)
    """The turn that is played stands last."""
    sent: list[list[BaseMessage]] = Field(default_factory=list)
    log: Any = None

    @property
    def _llm_type(self) -> str:
        return "narrator"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        """Return the model itself: it knows the one tool it calls."""
        del tools, tool_choice, kwargs
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del stop, run_manager, kwargs
        self.sent.append(messages)
        self.log.append(ANSWER)
        turn = self.turns[-1]
        if turn.result and not isinstance(messages[-1], ToolMessage):
            call = {
                "name": "look_up",
                "args": {"number": len(self.turns)},
                "id": f"call_{len(self.turns)}",
                "type": "tool_call",
            }
            return _result(AIMessage("", tool_calls=[call]))
        return _result(AIMessage(turn.answer))

    def tool(self) -> BaseTool:
        """Return the tool that gives the turn's result."""

        @tool
        def look_up(number: int) -> str:
            """Return a table."""
            del number
            return self.turns[-1].result

        return look_up


class BlindSummariser(BaseChatModel):
    """Writes what `worst.summarise` says of the prompt it is sent."""

    thread: worst.Thread
    generator: str
    character: worst.Character
    allowed: int
    window: int
    inputs: list[int] = Field(default_factory=list)
    outputs: list[int] = Field(default_factory=list)
    log: Any = None

    @property
    def _llm_type(self) -> str:
        return "blind-summariser"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del stop, run_manager, kwargs
        count = counter(ENCODING)
        self.log.append(SUMMARY)
        self.inputs.append(count.messages(messages))
        if self.inputs[-1] > self.window:
            raise ContextOverflowError("longer than the window")
        prompt = "\n".join(message.text for message in messages)
        text = GENERATORS[self.generator].summarise(
            self.thread, self.character, prompt, self.allowed, len(self.inputs) - 1, count.text
        )
        self.outputs.append(count.text(text))
        return _result(AIMessage(text))


def _result(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])


@dataclass(frozen=True)
class Held:
    """Shares of what was said and planted that stand in a view; counts of what must not."""

    shares: Mapping[str, float]
    revoked_alone: int
    """Rules that were taken back and stand without the words that did it."""
    invented: int
    broken_pairs: int


def held(
    view: Sequence[BaseMessage],
    thread: worst.Thread,
    said: Sequence[worst.Turn],
    calls: int,
    generator: str = "fresh",
) -> Held:
    """Look for each thing that was said in what a model is sent; `calls`: of an inventing
    summariser.
    """
    text = "\n".join(message.text for message in view)
    spoken = "\n".join(f"{turn.user}\n{turn.answer}" for turn in said)
    stands: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    alone = 0
    for item in thread.items:
        is_there = GENERATORS[generator].holds(item, text)
        if item.kind == "revoked":
            is_revoked = item.ended_by in spoken
            alone += is_revoked and is_there and not _says_the_end(text, item)
        elif item.source in spoken:
            stands[item.kind].append(is_there)
    made_up = GENERATORS[generator].invented(thread, range(calls))
    return Held(
        shares={kind: statistics.mean(each) for kind, each in stands.items() if each},
        revoked_alone=alone,
        invented=sum(figure in text for figure in made_up),
        broken_pairs=_broken_pairs(view),
    )


def _says_the_end(text: str, item: worst.Item) -> bool:
    words = item.ended_by.rstrip(".。!！")
    return words.casefold() in text.casefold()


def _broken_pairs(view: Sequence[BaseMessage]) -> int:
    calls: set[str] = set()
    answers: set[str] = set()
    for message in view:
        if isinstance(message, AIMessage):
            calls |= {call["id"] or "" for call in message.tool_calls}
        elif isinstance(message, ToolMessage):
            answers.add(message.tool_call_id)
    return len(calls ^ answers)


@dataclass(frozen=True)
class Case:
    """One thread in one framework."""

    make: Maker
    character: worst.Character
    limit: int
    tokens: int
    """Of a round after what is planted."""
    seed: int = 1
    language: worst.Language = "en"
    generator: str = "fresh"


def play(case: Case) -> list[Held]:
    """Play a thread as long as the limit, talk on, and look at the first view after each
    compaction that made a memory.
    """
    views: list[Held] = []
    said: list[worst.Turn] = []
    with open_persistence("memory://") as persistence:
        thread = _thread(case)
        narrator, summariser, setting = _setting(case, thread)
        system = case.make(setting, persistence)
        for turn in itertools.islice(_turns(case, thread), MOST_TURNS):
            compacted = system.compactions() > len(views)
            narrator.turns.append(turn)
            narrator.sent.clear()
            try:
                system.say(turn.user)
            except ContextOverflowError:
                break  # no later turn comes through, either
            if compacted:
                calls = len(summariser.inputs) if case.character == "inventing" else 0
                views.append(held(narrator.sent[0], thread, said, calls, case.generator))
            said.append(turn)
            if len(views) == COMPACTIONS:
                break
    return views


def _thread(case: Case) -> worst.Thread:
    count = counter(ENCODING).text
    generator = GENERATORS[case.generator]
    thread: worst.Thread = generator.thread(case.seed, case.limit, case.language, count)
    return thread


def _turns(case: Case, thread: worst.Thread) -> Iterator[worst.Turn]:
    # The generator leaves one of its turns without words of the user: nobody can say that.
    yield from (turn for turn in thread.planted if turn.user.strip())
    count = counter(ENCODING).text
    for n in itertools.count():
        yield GENERATORS[case.generator].filler(case.seed, n, case.tokens, case.language, count)


def _setting(case: Case, thread: worst.Thread) -> tuple[Narrator, BlindSummariser, Setting]:
    log: list[str] = []
    narrator = Narrator(log=log)
    setting = Setting(case.limit, turn_messages=4, language=case.language)
    summariser = BlindSummariser(
        thread=thread,
        generator=case.generator,
        character=case.character,
        allowed=setting.summary,
        window=case.limit,
        log=log,
    )
    fakes = Fakes(narrator, summariser, log, narrator.tool())
    return narrator, summariser, replace(setting, fakes=fakes)


# -- cost ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """What a hundred turns with a result each cost. Sizes in tokens."""

    summary_calls: int
    waited: int
    """Summary calls that an answer waited for."""
    read: int
    """By the summariser."""
    written: int
    sent: int
    """To the conversation's model."""
    cached: int
    """Of these as much as the call before began with, word for word."""
    largest: int
    """Call, as a share of the limit in percent."""

    @property
    def shared(self) -> float:
        """Return the share of the sent tokens that a prefix cache serves."""
        return self.cached / self.sent

    @property
    def billed(self) -> int:
        """Return the tokens billed, cached ones at a tenth; what is written is not among them."""
        return round(self.read + self.sent - (1 - CACHED) * self.cached)


def cost(case: Case) -> Cost:
    """Play a hundred turns with a result each."""
    thread = _thread(case)
    count = counter(ENCODING)
    sent = 0
    cached = 0
    largest = 0
    waited = 0
    before: list[BaseMessage] = []
    with open_persistence("memory://") as persistence:
        narrator, summariser, setting = _setting(case, thread)
        system = case.make(setting, persistence)
        for n in range(COST_TURNS):
            generator = GENERATORS[case.generator]
            turn = generator.filler(case.seed, n, case.tokens, case.language, count.text)
            narrator.turns.append(turn)
            narrator.sent.clear()
            narrator.log.clear()
            try:
                system.say(turn.user)
            except ContextOverflowError:
                break
            waited += waited_for(narrator.log)
            for view in narrator.sent:
                tokens = count.messages(view)
                sent += tokens
                cached += shared_prefix(before, view)
                largest = max(largest, round(100 * tokens / case.limit))
                before = view
    read = sum(summariser.inputs)
    written = sum(summariser.outputs)
    calls = len(summariser.inputs)
    return Cost(calls, waited, read, written, sent, cached, largest)


def shared_prefix(before: Sequence[BaseMessage], view: Sequence[BaseMessage]) -> int:
    """Return the tokens that two calls begin with alike: whole messages, and of the first one that
    differs what its text begins with.
    """
    count = counter(ENCODING)
    tokens = 0
    for old, new in zip(before, view, strict=False):
        if old.text == new.text and old.type == new.type:
            tokens += count.message(new)
            continue
        return tokens + count.text(common_beginning(old.text, new.text))
    return tokens


# -- what is shown ---------------------------------------------------------------------------------

BY_CODE = partial(Longtable, by_code=True)
WITHOUT_AHEAD = partial(Longtable, ahead=False)
SYSTEMS: Mapping[str, tuple[Maker, Sequence[worst.Character]]] = {
    "longtable, by code": (BY_CODE, ("honest",)),
    "longtable": (Longtable, ("honest", "lazy", "inventing")),
    "langchain": (LangChain, ("honest", "lazy", "inventing")),
    "langchain, defaults": (partial(LangChain, defaults=True), ("honest",)),
    "langmem": (LangMem, ("honest", "lazy", "inventing")),
    "langmem, defaults": (partial(LangMem, defaults=True), ("honest",)),
}
COSTS: Mapping[str, Maker] = {
    "longtable": Longtable,
    "longtable, not ahead": WITHOUT_AHEAD,
    "longtable, by code": BY_CODE,
    "langchain": LangChain,
    "langmem": LangMem,
}


def main() -> None:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("systems", nargs="*", default=[""], help="words of their names")
    parser.add_argument("--threads", choices=[*GENERATORS], default="fresh")
    parser.add_argument("--limit", type=int, action="append", help="only these limits")
    parser.add_argument("--lang", choices=LANGUAGES, action="append")
    args = parser.parse_args()
    report(args.systems, args.threads, args.limit, args.lang or LANGUAGES)


def report(
    wanted: Sequence[str] = ("",),
    generator: str = "fresh",
    limits: Sequence[int] | None = None,
    languages: Sequence[worst.Language] = LANGUAGES,
) -> None:
    """Measure and print the tables of the systems whose names hold one of the words; `limits` None:
    all.
    """
    with ProcessPoolExecutor(2, get_context("spawn"), quiet) as pool:
        for limit, tokens in LIMITS:
            for language in languages:
                if limits is None or limit in limits:
                    case = Case(Longtable, "honest", limit, tokens, 1, language, generator)
                    print(_held_table(pool, case, wanted), flush=True)
        print(_cost_table(pool, wanted))


def quiet() -> None:
    """Leave out warnings of a worker about the fakes and about langmem's own state."""
    warnings.simplefilter("ignore")
    logging.getLogger("langgraph").setLevel(logging.ERROR)


def _held_table(pool: ProcessPoolExecutor, like: Case, wanted: Sequence[str]) -> str:
    """Return the table of what views hold after 1 and 5 compactions, the mean of the seeds, in
    cases like this one.
    """
    title = f"{like.generator} {like.language}, limit {like.limit:,}, rounds of {like.tokens:,}"
    heads = [title, *KINDS, "revoked alone", "invented", "broken pairs"]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    for name, (make, characters) in SYSTEMS.items():
        if not any(word in name for word in wanted):
            continue
        for character in characters:
            cases = [replace(like, make=make, character=character, seed=seed) for seed in SEEDS]
            played = list(pool.map(play, cases))
            lines.append([f"{name}, {character}", *_held_cells(played)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _held_cells(played: Sequence[Sequence[Held]]) -> list[str]:
    cells: list[str] = []
    for kind in KINDS:
        values = [
            _mean([each[k - 1].shares[kind] for each in played if len(each) >= k]) for k in (1, 5)
        ]
        cells.append(" / ".join(values))
    every = [view for views in played for view in views]
    cells.append(str(sum(view.revoked_alone for view in every)))
    cells.append(str(sum(view.invented for view in every)))
    cells.append(str(sum(view.broken_pairs for view in every)))
    return cells


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.mean(values):.2f}" if values else "-"


def _cost_table(pool: ProcessPoolExecutor, wanted: Sequence[str]) -> str:
    """Return the table of costs."""
    heads = [f"{COST_TURNS} turns with a result", "limit / round", "summary calls", "waited for"]
    heads += ["read", "written", "sent", "prefix shared", "billed", "largest call"]
    lines = [heads, ["---", "---:", *["---:"] * (len(heads) - 2)]]
    for limit, tokens in LIMITS:
        names = [name for name in COSTS if any(word in name for word in wanted)]
        cases = [Case(COSTS[name], "honest", limit, tokens) for name in names]
        for name, each in zip(names, pool.map(cost, cases), strict=True):
            cells = [each.summary_calls, each.waited, each.read, each.written, each.sent]
            shown = [f"{cell:,}" for cell in cells]
            shown += [f"{each.shared:.0%}", f"{each.billed:,}", f"{each.largest} %"]
            lines.append([name, f"{limit:,} / {tokens:,}", *shown])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    main()
