"""Import the built-in analyst by its old name, with a warning: it is `longtable.analyst.model`."""

import warnings

from longtable.analyst.model import BuiltInAnalyst

warnings.warn(
    "longtable.app.offline.model is longtable.analyst.model now", DeprecationWarning, stacklevel=2
)

__all__ = ["BuiltInAnalyst"]
