"""Hide distributions from a Python that starts with this folder on its path: see
tests/support/installed.py.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import DistributionFinder, PathDistribution
from pathlib import Path
from types import ModuleType


class Visible(PathFinder):
    """Find modules and metadata as Python does, but those of hidden distributions."""

    modules: frozenset[str]
    distributions: frozenset[str]

    @classmethod
    def hide(cls, file: str) -> None:
        """Hide what a file lists, and nothing else."""
        hidden = json.loads(Path(file).read_text())
        cls.modules, cls.distributions = (
            frozenset(hidden["modules"]),
            frozenset(hidden["distributions"]),
        )

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if fullname in cls.modules else super().find_spec(fullname, path, target)

    @staticmethod
    def find_distributions(
        context: DistributionFinder.Context | None = None,
    ) -> Iterable[PathDistribution]:
        for each in PathFinder.find_distributions(context or DistributionFinder.Context()):
            if re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower() not in Visible.distributions:
                yield each


Visible.hide(os.environ["TESTS_HIDDEN_DISTRIBUTIONS"])
sys.meta_path[sys.meta_path.index(PathFinder)] = Visible
