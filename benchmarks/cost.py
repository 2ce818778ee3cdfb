"""What a conversation of a hundred turns costs with the prompt caches of Claude and OpenAI, beside
langchain's agent and deepagents.

python -m benchmarks.cost [--limit N] [SYSTEM ...]

Real clients speak to a server on loopback that bills as the provider does (`costs/caches.py`), and
people think between turns: most for less than five minutes, some for longer. All are told the same
threshold where they can be told one. "Tuned" keeps as many turns as longtable and counts exactly.
"""

import argparse
import logging
import random
import statistics
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, tool

from benchmarks.costs.endpoint import Endpoint, Provider, served
from benchmarks.memories import worst, worst_fresh
from benchmarks.memories.models import ENCODING
from benchmarks.memories.systems import CONFIG, KEPT_TURNS, SYSTEM, exact
from benchmarks.memories.worst_case import KINDS, quiet
from longtable.graph import Context, build_graph, open_persistence
from longtable.memory.counting.tokens import counter
from longtable.store.persistence import Persistence

LINES = ((8_000, 800), (8_000, 1_500), (32_000, 400), (32_000, 1_500), (200_000, 1_500))
"""Limits, with the tokens of a round."""
TURNS = 100
PLANTED = 32_000
"""Tokens of the part of a thread in which things are planted, at most."""
SEED = 1
REMEMBERS_EVERY = 10
"""Turns, where the model pins words of the user."""
PAUSES = ((15, 90), (90, 280), (300, 1_800), (3_700, 7_200))
"""Seconds that a person thinks before a question, from and to."""
WEIGHTS = (55, 30, 10, 5)
"""Of a hundred pauses."""
PROVIDERS: tuple[Provider, ...] = ("claude", "openai")

Say = Callable[[str], object]
Maker = Callable[[BaseChatModel, BaseTool, int, Persistence], Say]


def think_times() -> Iterator[float]:
    """Yield the seconds that a person lets pass before each question."""
    rng = random.Random("a person thinks")
    while True:
        low, high = rng.choices(PAUSES, WEIGHTS)[0]
        yield rng.uniform(low, high)


# -- systems ---------------------------------------------------------------------------------------


def longtable(
    model: BaseChatModel,
    look_up: BaseTool,
    limit: int,
    persistence: Persistence,
    **settings: Any,
) -> Say:
    """Return how to ask longtable, with its default policy."""
    context = Context(
        model_limit=limit, system_prompt=SYSTEM, max_message_chars=100_000, **settings
    )
    graph = build_graph(model=model, tools=[look_up])
    app = graph.compile(checkpointer=persistence.checkpointer, store=persistence.store)
    return partial(_say, partial(app.invoke, context=context, durability="sync"))


def langchain(
    model: BaseChatModel,
    look_up: BaseTool,
    limit: int,
    persistence: Persistence,
    *,
    tuned: bool = False,
) -> Say:
    """Return how to ask langchain's agent with its own middleware for summaries and caching."""
    options: dict[str, Any] = {"trigger": ("tokens", int(0.6 * limit))}
    if tuned:
        options["keep"] = ("messages", KEPT_TURNS * 4)
        options["trim_tokens_to_summarize"] = None
        options["token_counter"] = exact
    middleware = [
        SummarizationMiddleware(model, **options),
        AnthropicPromptCachingMiddleware(unsupported_model_behavior="ignore"),
    ]
    app: Any = create_agent(
        model,
        [look_up],
        system_prompt=SYSTEM,
        middleware=middleware,
        checkpointer=persistence.checkpointer,
    )
    return partial(_say, partial(app.invoke, durability="sync"))


def deepagents(
    model: BaseChatModel, look_up: BaseTool, limit: int, persistence: Persistence
) -> Say:
    """Return how to ask deepagents, which takes its threshold from the model's own limit."""
    del limit
    app: Any = create_deep_agent(
        model, [look_up], system_prompt=SYSTEM, checkpointer=persistence.checkpointer
    )
    return partial(_say, partial(app.invoke, durability="sync"))


def _say(invoke: Callable[..., object], text: str) -> None:
    invoke({"messages": [HumanMessage(text)]}, CONFIG)


SYSTEMS: dict[str, Maker] = {
    "longtable": longtable,
    "longtable, 1h": partial(longtable, prompt_cache="1h"),
    "longtable, no marks": partial(longtable, prompt_cache="off"),
    "longtable, remembers": longtable,
    "langchain": langchain,
    "langchain, tuned": partial(langchain, tuned=True),
    "deepagents": deepagents,
}


# -- one conversation ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One conversation with one system."""

    system: str
    provider: Provider
    limit: int
    tokens: int
    """Of a round."""


@dataclass(frozen=True)
class Cost:
    """What it cost. Prices in plain input tokens."""

    billed: float
    """All calls, summaries included."""
    summaries: float
    """The part of it that summary calls have."""
    summary_calls: int
    summary_written: int
    """Tokens of all summaries; billed apart, at the price of output."""
    read: float
    """Share of the sent tokens that came from the cache."""
    over: int
    """Calls over the limit."""
    held: Mapping[str, float]
    """Shares of what was planted that the last call still saw, by kind."""
    failed: str
    """Why the conversation ended early, "" if it did not."""


def converse(case: Case) -> Cost:
    """Hold one conversation."""
    quiet()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    count = counter(ENCODING).text
    thread = worst_fresh.thread(SEED, min(case.limit, PLANTED), "en", count)
    endpoint = Endpoint(thread, case.provider, count, int(0.15 * case.limit))

    @tool
    def look_up(number: int) -> str:
        """Return a table."""
        del number
        return endpoint.turn.result

    failed = ""
    with open_persistence("memory://") as persistence, served(endpoint, case.limit) as model:
        say = SYSTEMS[case.system](model, look_up, case.limit, persistence)
        pauses = think_times()
        for number, turn in enumerate(_turns(case, thread)):
            is_remembered = "remembers" in case.system and number % REMEMBERS_EVERY == 0
            endpoint.begin(turn, number, turn.user[:80] if is_remembered else "")
            try:
                say(turn.user)
            except Exception as error:  # whatever a framework makes of its own failure
                failed = f"turn {number}: {type(error).__name__} {error}"[:100]
                break
            endpoint.now += next(pauses)
    return _cost(case, endpoint, failed)


def _turns(case: Case, thread: worst.Thread) -> Iterator[worst.Turn]:
    count = counter(ENCODING).text
    planted = [turn for turn in thread.planted if turn.user.strip()]
    yield from planted
    for n in range(TURNS - len(planted)):
        yield worst_fresh.filler(SEED, n, case.tokens, "en", count)


def _cost(case: Case, endpoint: Endpoint, failed: str) -> Cost:
    calls = endpoint.calls
    summaries = endpoint.summaries
    held: dict[str, float] = {
        kind: statistics.mean(
            worst_fresh.holds(item, endpoint.view)
            for item in endpoint.thread.items
            if item.kind == kind
        )
        for kind in KINDS
    }
    return Cost(
        billed=sum(bill.billed for bill in (*calls, *summaries)),
        summaries=sum(bill.billed for bill in summaries),
        summary_calls=len(summaries),
        summary_written=endpoint.summary_written,
        read=sum(bill.read for bill in calls) / sum(bill.tokens for bill in calls),
        over=sum(bill.tokens > case.limit for bill in calls),
        held=held,
        failed=failed or ("summaries bear marks" if endpoint.marked_summaries else ""),
    )


# -- what is shown ---------------------------------------------------------------------------------


def main() -> None:
    """Read the arguments, measure and print one table a provider."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("systems", nargs="*", help="words of their names")
    parser.add_argument("--limit", type=int, action="append", help="only these limits")
    parser.add_argument("--provider", choices=PROVIDERS, action="append")
    args = parser.parse_args([] if __name__ != "__main__" else None)
    names = [name for name in SYSTEMS if any(word in name for word in args.systems or [""])]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for provider in args.provider or PROVIDERS:
            print(_table(pool, provider, names, args.limit), flush=True)


def _table(
    pool: ProcessPoolExecutor,
    provider: Provider,
    names: Sequence[str],
    limits: Sequence[int] | None,
) -> str:
    cases = [
        Case(name, provider, limit, tokens)
        for limit, tokens in LINES
        if limits is None or limit in limits
        for name in names
        if provider == "claude" or not ("1h" in name or "marks" in name)
    ]
    heads = [f"{provider}, {TURNS} turns", "limit / round", "billed", "of it summaries"]
    heads += ["summary calls", "written", "read from cache", "calls over limit"]
    lines = [
        [*heads, "figures, facts, rules at the end", ""],
        ["---", *["---:"] * (len(heads) + 1)],
    ]
    for case, cost in zip(cases, pool.map(converse, cases), strict=True):
        row = [case.system, f"{case.limit:,} / {case.tokens:,}", f"{cost.billed:,.0f}"]
        row += [f"{cost.summaries / cost.billed:.0%}", f"{cost.summary_calls}"]
        row += [f"{cost.summary_written:,}", f"{cost.read:.0%}", f"{cost.over}"]
        held = ", ".join(f"{share:.2f}" for share in cost.held.values())
        lines.append([*row, held, cost.failed])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
