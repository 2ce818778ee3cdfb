"""Make OpenTelemetry spans and log lines for each node, model call and query. They hold names,
sizes and times, but never the text of a conversation.
"""

import json
import logging
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from longtable.base.redaction import redacted
from longtable.memory.counting.provider_reports import reported

Fields = dict[str, Any]
# Or Python writes warnings to a program's standard error.
logging.getLogger("longtable").addHandler(logging.NullHandler())
log = logging.getLogger("longtable.run")
"""The logger of runs. It logs nodes at DEBUG, model calls and queries at INFO, and failures at
WARNING. The attribute `longtable` of a log record holds its fields.
"""

NO_FAILURE = {"GraphInterrupt", "CancelledError", "GeneratorExit", "KeyboardInterrupt"}
"""Names of exceptions with which a run stops on purpose. They do not count as failures."""


@contextmanager
def span(kind: str, name: str, fields: Mapping[str, Any]) -> Iterator[Fields]:
    """Run a block as a span, and log the end of the block. `kind`: "node", "model", "query" or
    "tool".

    The block is given the span's fields as a dict, and may add fields. If the block fails, only the
    class of the error is recorded, because the error's text may hold anything.
    """
    attributes: Fields = {key: value for key, value in fields.items() if value is not None}
    started = time.perf_counter()
    with _otel(f"longtable.{kind} {name}") as record:
        try:
            yield attributes
        except BaseException as error:
            attributes["error"] = type(error).__name__
            raise
        finally:
            attributes["ms"] = round((time.perf_counter() - started) * 1000, 1)
            _set_attributes(record, attributes)
            _log_end(kind, name, attributes)


def run_fields(turn: Mapping[str, Any], thread_id: str | None) -> Fields:
    """Return the fields that identify the spans of a run."""
    return {"thread_id": thread_id, "turn": turn.get("number"), "run": turn.get("run")}


def usage_fields(answer: BaseMessage) -> Fields:
    """Return the tokens that an answer reports, as fields with the names of OpenTelemetry's
    conventions for models. The fields are empty if it reports none.
    """
    tokens = reported(answer) if isinstance(answer, AIMessage) else None
    return (
        {
            "gen_ai.usage.input_tokens": tokens["input"],
            "gen_ai.usage.output_tokens": tokens["output"],
        }
        if tokens
        else {}
    )


def log_cause(code: str, error: BaseException) -> None:
    """Log the cause of a provider's error, of which a person only reads one sentence. Keys are
    removed from the text.
    """
    words = redacted(" ".join(str(error).split()))[:1_000]
    log.warning(
        "provider %s",
        code,
        extra={
            "longtable": {
                "kind": "provider",
                "code": code,
                "cause": f"{type(error).__name__}: {words}",
            }
        },
    )


def log_failure(code: str, error: Exception) -> None:
    """Log the text, causes and stack of an error, of which a client only reads one sentence. Keys
    are removed from the text.
    """
    log.error("run failed: %s\n%s", code, redacted("".join(traceback.format_exception(error))))


class JsonFormatter(logging.Formatter):
    """Format each log record as one line with a JSON object. It has the time, level, logger and
    message, and the fields of longtable's own records.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line for a log record."""
        time_ = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: Fields = {
            "time": time_,
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = getattr(record, "longtable", None)
        if isinstance(fields, Mapping):
            line |= fields
        if record.exc_info:
            line["exception"] = redacted(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)


def _otel(name: str) -> AbstractContextManager[Any]:
    # Not imported: a program that wants spans has set OpenTelemetry up, and a tracer without a
    # provider does nothing.
    module = sys.modules.get("opentelemetry.trace")
    if module is None:
        return nullcontext()
    # What was raised is not attributes: its words and its stack may hold SQL, keys, what was said.
    tracer = module.get_tracer("longtable")
    started: AbstractContextManager[Any] = tracer.start_as_current_span(
        name, record_exception=False, set_status_on_exception=False
    )
    return started


def _set_attributes(record: Any, attributes: Fields) -> None:
    if record is None:
        return
    for name, value in attributes.items():
        record.set_attribute(name if name.startswith("gen_ai.") else f"longtable.{name}", value)
    if "error" in attributes and attributes["error"] not in NO_FAILURE:
        codes = sys.modules["opentelemetry.trace"]
        record.set_status(codes.Status(codes.StatusCode.ERROR, attributes["error"]))


def _log_end(kind: str, name: str, attributes: Fields) -> None:
    failed = "error" in attributes and attributes["error"] not in NO_FAILURE
    level = logging.WARNING if failed else logging.DEBUG if kind == "node" else logging.INFO
    if log.isEnabledFor(level):
        log.log(
            level,
            "%s %s",
            kind,
            name,
            extra={"longtable": {"kind": kind, "name": name, **attributes}},
        )
