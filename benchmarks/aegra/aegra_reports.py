"""What our routes report, asked of two instances."""

import httpx

from benchmarks.aegra.instances import Instance

ROUTE_S = 60.0
USAGE = "/longtable/usage?by=day,model,purpose"
BY_THREAD = "/longtable/usage?by=thread"
LIST = "/longtable/threads"
SEARCH = "/longtable/search?q=price+above+3"
AUDIT = "/longtable/audit?limit=1000"
"""Paths over all threads. The parts of one thread follow, one from each of some threads."""
PARTS = ("history", "usage", "turns", "results", "results/r1.csv")
PARTS_OF = 3


def report_differences(first: Instance, second: Instance, threads: int) -> list[str]:
    """Return where two instances answer differently, or do not know all of this number of
    threads.
    """
    paths = [USAGE, BY_THREAD, LIST, SEARCH, AUDIT]
    listed = [str(row["thread_id"]) for row in _rows(first, LIST, "threads")]
    for thread_id in listed[:PARTS_OF]:
        paths += [f"/longtable/threads/{thread_id}/{part}" for part in PARTS]
    faults: list[str] = []
    for path in paths:
        faults += _differences(first, second, path)
    spent = _rows(first, BY_THREAD, "usage")
    hits = _rows(first, SEARCH, "hits")
    queries = _rows(first, AUDIT, "audit")
    if len(listed) != threads or len(spent) != threads or not hits:
        faults.append(f"{threads} threads: {len(listed)} listed, {len(spent)} in the usage")
    print(
        f"two instances asked {len(paths)} routes: {len(listed)} threads,"
        f" {sum(int(str(row['calls'])) for row in spent)} calls, {len(queries)} queries,"
        f" {len(hits)} hits of a search, {len(faults)} faults"
    )
    return faults


def _differences(first: Instance, second: Instance, path: str) -> list[str]:
    ours = _get(first, path)
    theirs = _get(second, path)
    if ours.status_code == theirs.status_code == 200 and ours.content == theirs.content:
        return []
    return [
        f"{path}: {each.url.port} answers {each.status_code} {each.text[:600]}"
        for each in (ours, theirs)
    ]


def _rows(server: Instance, path: str, name: str) -> list[dict[str, object]]:
    """Return the rows of a report, an empty list if the server fails."""
    answer = _get(server, path)
    rows: list[dict[str, object]] = answer.json().get(name, [])
    return rows


def _get(server: Instance, path: str) -> httpx.Response:
    return httpx.get(f"{server.url}{path}", timeout=ROUTE_S)
