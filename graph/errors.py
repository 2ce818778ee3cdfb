"""The old place of `longtable.base.errors`. Deprecated; it goes with 0.3."""

import sys
import warnings

from longtable.base import errors

warnings.warn(
    "longtable.graph.errors is now longtable.base.errors", DeprecationWarning, stacklevel=2
)
sys.modules[__name__] = errors
