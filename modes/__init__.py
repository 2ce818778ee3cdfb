"""Games for a team: modes that use the public names of `longtable.graph` alone."""

from longtable.modes.quiz import Quiz
from longtable.modes.werewolf import Werewolf

__all__ = ["Quiz", "Werewolf"]
