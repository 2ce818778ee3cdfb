"""A simulated person: a seeded plan of turns, and how it is carried out on an open page."""

import asyncio
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from html import unescape
from typing import Literal

import httpx

from benchmarks.people.open_page import Followed, OpenPage, PageError
from benchmarks.people.talk_model import Kind, model_seconds, question_of

Act = Literal["read", "reload", "leave", "stop", "stop and go on"]
KINDS: dict[Kind, int] = {"talk": 35, "query": 50, "costly": 15}
"""Kinds of a hundred turns. A costly query waits for the person."""
ACTS: dict[Act, int] = {"read": 70, "reload": 12, "leave": 8, "stop": 6, "stop and go on": 4}
"""What the person does in mid-turn, of a hundred turns. Whoever leaves closes the tab and comes
back after a pause."""
APPROVED = 0.7
TURNS = (3, 4, 5)
THINK_MEDIAN_S = 20.0
THINK_SPREAD = 0.8
"""Think times are log-normal: in one of six over 44 s, in one of six under 9 s."""
MOST_THINK_S = 120.0
_SQL = re.compile(r'<textarea[^>]* name="sql"[^>]*>(.*?)</textarea>', re.DOTALL)


@dataclass(frozen=True)
class PlannedTurn:
    """One turn as the person will take it."""

    key: str
    kind: Kind
    act: Act
    after_s: float
    """From the question to what the person does in mid-turn, if the model is not stretched."""
    think_s: float
    """From the end of the turn to the next question, and before an approval."""
    approves: bool


@dataclass
class TakenTurn:
    """One turn whose question the server acknowledged, and what the person saw."""

    plan: PlannedTurn
    question: str
    answer: str = ""
    """The words of the answer, if the person saw it to its end."""
    is_cut: bool = False
    """Whether the person stopped it for good."""
    waited: bool = False
    """Whether it waited for the person to decide on a query."""
    first_s: float | None = None
    """Seconds to the first words less the model's; None if something came between."""
    whole_s: float | None = None


def planned_turns(person: int, seed: int, scale: float) -> list[PlannedTurn]:
    """Return the turns of a person. `scale` shortens think times."""
    drawn = random.Random(f"{seed} {person}")
    turns: list[PlannedTurn] = []
    for number in range(drawn.choice(TURNS)):
        think = THINK_MEDIAN_S * drawn.lognormvariate(0.0, THINK_SPREAD)
        turns.append(
            PlannedTurn(
                key=f"{_letters(person)}-{_letters(number)}",
                kind=drawn.choices(list(KINDS), list(KINDS.values()))[0],
                act=drawn.choices(list(ACTS), list(ACTS.values()))[0],
                after_s=drawn.uniform(0.2, 2.5),
                think_s=scale * min(MOST_THINK_S, think),
                approves=drawn.random() < APPROVED,
            )
        )
    return turns


def _letters(number: int) -> str:
    """Return a number in letters: an answer that repeats them has no figures to check."""
    letters = ""
    while number or not letters:
        number, digit = divmod(number, 26)
        letters = chr(ord("a") + digit) + letters
    return letters


@dataclass
class Person:
    """One person with one page and one thread."""

    page: OpenPage
    turns: list[PlannedTurn]
    stretch: float
    """By which the model's times are stretched."""
    taken: list[TakenTurn] = field(default_factory=list)
    is_talking: bool = False

    async def talk(self, arrives_s: float, complain: Callable[[Exception], None]) -> None:
        """Arrive, take all turns, and leave. An error ends the conversation."""
        await asyncio.sleep(arrives_s)
        self.is_talking = True
        try:
            await self.page.open()
            for turn in self.turns:
                await asyncio.sleep(turn.think_s)
                await self._take(turn)
        except (PageError, httpx.HTTPError, TimeoutError) as error:
            complain(error)
        finally:
            await self.page.close()
            self.is_talking = False

    async def _take(self, plan: PlannedTurn) -> None:
        question = question_of(plan.key, plan.kind)
        asked = time.monotonic()
        await self.page.ask(question)
        turn = TakenTurn(plan, question)
        self.taken.append(turn)
        await self.page.load_list()
        shown = await self._watched(plan)
        waited = shown.end - asked
        if shown.waits:
            turn.waited = True
            await asyncio.sleep(plan.think_s)
            asked = time.monotonic() - waited
            shown = await self._decided(shown, approves=plan.approves)
        if shown.failed and plan.act == "stop":
            turn.is_cut = True
        elif shown.failed:
            raise PageError("turn failed", shown.body)
        else:
            turn.answer = shown.answer
        if plan.act == "read" and shown.first is not None:
            first, whole = model_seconds(plan.key, plan.kind, self.stretch)
            turn.first_s = shown.first - asked - first
            turn.whole_s = shown.end - asked - whole
        await self.page.load_list()
        await self.page.load_panel()

    async def _watched(self, plan: PlannedTurn) -> Followed:
        """Follow a turn, with what the person does in between."""
        if plan.act == "read":
            return await self.page.follow()
        shown = await self.page.follow(plan.after_s * self.stretch)
        if plan.act in ("reload", "leave"):
            await self.page.close()
            await asyncio.sleep(plan.think_s if plan.act == "leave" else 0.0)
            return await self.page.newest_turn()
        await self.page.post("stop")
        shown = await self.page.follow()
        if plan.act == "stop and go on" and shown.failed:
            await self.page.post("retry")
            shown = await self.page.follow()
        return shown

    async def _decided(self, shown: Followed, *, approves: bool) -> Followed:
        """Decide on the query that waits, and follow the turn to its end."""
        sql = _SQL.findall(shown.body)
        decision = "approve" if approves else "reject"
        await self.page.post("decide", decision=decision, sql=unescape(sql[-1]) if sql else "")
        return await self.page.follow()
