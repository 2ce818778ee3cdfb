"""The mode in which everybody answers, or only the personas that the message mentions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from longtable.memory.policy import CompactionPolicy
from longtable.nodes.team.mode_hook import Mode, Scene


@dataclass(frozen=True, kw_only=True)
class FreeChat(Mode):
    """The personas that the user mentions answer, in the team's order. If the user mentions nobody,
    all personas answer.
    """

    name: ClassVar[str] = "free_chat"
    together: bool = True
    policy: CompactionPolicy | None = None

    def speakers(self, scene: Scene) -> Sequence[str]:
        """Return the personas that the user mentions; all personas if the user mentions nobody."""
        return [id_ for id_ in scene.names if id_ in (scene.mentioned or scene.names)]
