"""The mode in which everybody answers, or whom the message mentions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from longtable.memory.policy import CompactionPolicy
from longtable.nodes.team.mode_hook import Mode, Scene


@dataclass(frozen=True, kw_only=True)
class FreeChat(Mode):
    """Those whom the user mentions answer, else all, in the team's order."""

    name: ClassVar[str] = "free_chat"
    together: bool = True
    policy: CompactionPolicy | None = None

    def speakers(self, scene: Scene) -> Sequence[str]:
        """Return those whom the user mentions, else all."""
        return [id_ for id_ in scene.names if id_ in (scene.mentioned or scene.names)]
