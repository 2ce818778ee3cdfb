"""Turns over two instances, and what must stand in the threads afterwards."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from benchmarks.aegra.instances import Instance

THREADS = 8
TURNS = 5
ROUNDS = 3
"""How often two messages are sent at once to each thread."""
ORDERS = 400
KILL_AFTER = 12
"""Turns answered when one instance is killed."""
WAIT_S = 240.0
PAUSE_S = 0.2
CONTEXT: Any = {"model_limit": 16_000}


async def ask_pairs(first: Instance, second: Instance) -> list[str]:
    """Send two messages at once to each thread, one to each instance, several times. Return what
    was lost: an empty list is a success.
    """
    began = time.monotonic()
    clients = [get_client(url=first.url), get_client(url=second.url)]
    ids = await _new_threads(clients[0])
    ended: list[set[str]] = []
    for turn in range(0, 2 * ROUNDS, 2):
        sent = [
            _start(client, thread_id, turn + place)
            for thread_id in ids
            for place, client in enumerate(clients)
        ]
        await asyncio.gather(*sent)
        waits = [_last_runs(clients[0], thread_id) for thread_id in ids]
        ended += await asyncio.wait_for(asyncio.gather(*waits), WAIT_S)
    lost = [f"runs ended as {states}" for states in ended if states != {"success"}]
    lost += [
        f"{thread_id}: {texts}"
        for thread_id in ids
        if not has_pairs(texts := await _said(clients[0], thread_id))
    ]
    print(
        f"two messages at once: {2 * ROUNDS * len(ids)} turns on {len(ids)} threads in"
        f" {time.monotonic() - began:.0f} s, {len(lost)} faults"
    )
    return lost


async def ask_with_kill(first: Instance, second: Instance) -> list[str]:
    """Ask on all threads at once, each turn through the other instance; kill the second under way.
    Return what was lost.
    """
    began = time.monotonic()
    answered = Counter[str]()
    clients = [get_client(url=first.url), get_client(url=second.url)]
    ids = await _new_threads(clients[0])

    async def killer() -> None:
        while answered.total() < KILL_AFTER:
            await asyncio.sleep(0.05)
        second.kill()
        print(f"killed one of two instances after {answered.total()} of {THREADS * TURNS} turns")

    async def one(place: int, thread_id: str) -> None:
        for turn in range(TURNS):
            await _ask(clients, (place + turn) % 2, thread_id, turn)
            answered[thread_id] += 1

    turns = [one(place, thread_id) for place, thread_id in enumerate(ids)]
    await asyncio.wait_for(asyncio.gather(killer(), *turns), WAIT_S)
    lost = [
        f"{thread_id}: {texts}"
        for thread_id in ids
        if not is_whole(texts := await _said(clients[0], thread_id))
    ]
    print(
        f"{answered.total()} turns answered in {time.monotonic() - began:.0f} s, {len(lost)}"
        " threads that lack or double something"
    )
    return lost


def question(turn: int) -> str:
    """Return the question of a turn. Each has another answer. The analyst declines a price above
    0, so the first is above 1.
    """
    return f"How many orders have a price above {turn + 1}?"


def is_answer(text: str, turn: int) -> bool:
    """Return whether a text has the number that is right."""
    return text.startswith(f"There are {ORDERS - 2 - turn} orders")


def is_whole(texts: Sequence[str]) -> bool:
    """Return whether each question is there once, in order, behind each its right answer."""
    if len(texts) != 2 * TURNS:
        return False
    return all(
        asked == question(turn) and is_answer(answer, turn)
        for turn, (asked, answer) in enumerate(zip(texts[::2], texts[1::2], strict=True))
    )


def has_pairs(texts: Sequence[str]) -> bool:
    """Return whether each question is there once, behind each its right answer. The two questions
    of one round may stand in either order.
    """
    turns = [turn for asked in texts[::2] for turn in range(2 * ROUNDS) if asked == question(turn)]
    if len(texts) != 4 * ROUNDS or sorted(turns) != [*range(2 * ROUNDS)]:
        return False
    rounds = [turn // 2 for turn in turns]
    return rounds == sorted(rounds) and all(map(is_answer, texts[1::2], turns))


# -- one turn --------------------------------------------------------------------------------------


async def _new_threads(client: LangGraphClient) -> list[str]:
    return [str((await client.threads.create())["thread_id"]) for _ in range(THREADS)]


async def _start(client: LangGraphClient, thread_id: str, turn: int) -> None:
    message = {"type": "human", "id": f"{thread_id}-{turn}", "content": question(turn)}
    body: Any = {"messages": [message]}
    await client.runs.create(thread_id, "longtable", input=body, context=CONTEXT)


async def _last_runs(client: LangGraphClient, thread_id: str) -> set[str]:
    """Wait until no run of a thread is left, and return how its runs ended."""
    while True:
        runs: Any = await client.runs.list(thread_id)
        states = {str(run["status"]) for run in runs}
        if not states & {"pending", "running"}:
            return states
        await asyncio.sleep(PAUSE_S)


async def _ask(clients: list[LangGraphClient], place: int, thread_id: str, turn: int) -> None:
    """Start a turn through one instance, through the other one where it is gone, and wait until it
    is answered.
    """
    for client in (clients[place], clients[0]):
        try:
            await _start(client, thread_id, turn)
            break
        except httpx.HTTPError:
            # Not known whether it was taken in: sent again, the same id is the same message.
            continue
    while len(await _said(clients[0], thread_id)) < 2 * (turn + 1):
        await asyncio.sleep(PAUSE_S)


async def _said(client: LangGraphClient, thread_id: str) -> list[str]:
    """Return the questions and the answers that stand in a thread, in their order."""
    values: Any = (await client.threads.get_state(thread_id))["values"] or {}
    return [
        str(message["content"])
        for message in values.get("messages", [])
        if message["type"] == "human" or (message["type"] == "ai" and not message.get("tool_calls"))
    ]
