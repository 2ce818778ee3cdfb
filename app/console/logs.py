"""Set up the log of the command line."""

import logging
import os

from longtable.base.errors import ConfigError

VARIABLE = "LONGTABLE_LOG"


LEVEL = "LONGTABLE_LOG_LEVEL"


LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


def start_log() -> None:
    """Start the log in the form that LONGTABLE_LOG names: "json" (one object for each line) or
    "text". If the variable is not set, nothing is logged. Raises `ConfigError` for other values.
    """
    form = os.environ.get(VARIABLE)
    level = os.environ.get(LEVEL, "INFO").upper()
    if not form:
        return
    if form not in ("json", "text") or level not in LEVELS:
        raise ConfigError(
            f"{VARIABLE} must be json or text and {LEVEL} one of {', '.join(LEVELS)}, found"
            f" {form[:20]!r} and {level[:20]!r}"
        )
    handler = logging.StreamHandler()
    if form == "json":
        from longtable.nodes.telemetry import JsonFormatter

        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logger = logging.getLogger("longtable")
    logger.addHandler(handler)
    logger.setLevel(level)
