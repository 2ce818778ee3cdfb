"""Write longtable's log to standard error where the environment asks for it."""

import logging
import os

from longtable.base.errors import ConfigError

VARIABLE, LEVEL = "LONGTABLE_LOG", "LONGTABLE_LOG_LEVEL"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


def start_log() -> None:
    """Log as LONGTABLE_LOG says: "json" (one object a line), "text", or nothing where it is not set. Raises `ConfigError`."""
    form, level = os.environ.get(VARIABLE), os.environ.get(LEVEL, "INFO").upper()
    if not form:
        return
    if form not in ("json", "text") or level not in LEVELS:
        raise ConfigError(f"{VARIABLE} must be json or text and {LEVEL} one of {', '.join(LEVELS)}, found {form[:20]!r} and {level[:20]!r}")
    handler = logging.StreamHandler()
    if form == "json":
        from longtable.nodes.turns.tracing import JsonFormatter

        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logger = logging.getLogger("longtable")
    logger.addHandler(handler)
    logger.setLevel(level)
