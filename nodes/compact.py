"""Fold the oldest rounds into memory: before a call that is due, or because a person asked."""

import time
from dataclasses import dataclass
from typing import Any

from langgraph.runtime import Runtime

from longtable.base.context import Context
from longtable.memory.plan import When
from longtable.nodes.folding import Folding, concluded
from longtable.nodes.state import State, turn_of


@dataclass(frozen=True)
class Compact:
    """The node: appends one compaction record, or says why there is none."""

    folding: Folding

    def __call__(self, state: State, *, runtime: Runtime[Context]) -> dict[str, Any]:
        started = time.perf_counter()
        return concluded(state, self.folding.fold(state, runtime, _when(state)), runtime, started)

    async def acall(self, state: State, *, runtime: Runtime[Context]) -> dict[str, Any]:
        """Do the same without blocking the event loop on the summariser."""
        started = time.perf_counter()
        return concluded(state, await self.folding.afold(state, runtime, _when(state)), runtime, started)


def _when(state: State) -> When:
    return "asked" if turn_of(state).get("status") == "compacting" else "due"
