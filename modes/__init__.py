"""Games for a team: modes that use only the public names of `longtable.graph`."""

from longtable.modes.quiz import Quiz
from longtable.modes.werewolf import Werewolf

__all__ = ["Quiz", "Werewolf"]
