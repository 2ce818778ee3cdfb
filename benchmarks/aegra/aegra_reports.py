"""What our routes report, asked of two instances."""

from typing import Any

import httpx

from benchmarks.aegra.aegra_turns import question
from benchmarks.aegra.instances import Instance

ROUTE_S = 60.0
REPORTS = {
    "usage": "/longtable/usage?by=day,model,purpose",
    "usage by thread": "/longtable/usage?by=thread",
    "search": "/longtable/search?q=price+above+3",
    "list": "/longtable/threads?text=price",
    "audit": "/longtable/audit?limit=1000",
}


def report_differences(first: Instance, second: Instance) -> list[str]:
    """Return where two instances report differently or nothing: totals, search, lists, audit, and
    the results of a thread.
    """
    faults: list[str] = []
    for name, path in REPORTS.items():
        faults += _differences(first, second, name, path)
    thread_id = _get(first, REPORTS["search"]).json()["hits"][0]["thread_id"]
    below = f"/longtable/threads/{thread_id}"
    faults += _differences(first, second, "results", f"{below}/results")
    faults += _differences(first, second, "rows of a result", f"{below}/results/r1.csv")
    faults += _differences(first, second, "history", f"{below}/history")
    days = _get(first, REPORTS["usage"]).json()["usage"]
    hits = _get(first, REPORTS["search"]).json()["hits"]
    calls = sum(row["calls"] for row in days)
    print(
        f"two instances report {calls} calls and {len(hits)} hits for {question(2)!r}:"
        f" {len(faults)} differences"
    )
    return faults


def _differences(first: Instance, second: Instance, name: str, path: str) -> list[str]:
    ours: Any = _get(first, path)
    theirs: Any = _get(second, path)
    if ours.status_code != 200 or not ours.content:
        return [f"{name}: {ours.status_code} {ours.text[:300]}"]
    if ours.content == theirs.content:
        return []
    return [f"{name}: {ours.text[:600]} and {theirs.status_code} {theirs.text[:600]}"]


def _get(server: Instance, path: str) -> httpx.Response:
    return httpx.get(f"{server.url}{path}", timeout=ROUTE_S)
