"""Import the built-in analyst from its old place, `longtable.app.offline.model`, with a warning.

Deprecated; it goes with 0.3.
"""

import sys
import warnings

from longtable.analyst import model

warnings.warn(
    "longtable.app.offline.model is longtable.analyst.model now", DeprecationWarning, stacklevel=2
)
__path__: list[str] = []  # a package to whoever imports the module within
sys.modules[f"{__name__}.model"] = model
