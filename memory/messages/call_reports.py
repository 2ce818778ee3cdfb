"""What a message's mark `report` says of the call that made it. A past turn's events are rebuilt
from it; no model is sent it.

Every key is optional, because older messages have no such mark.
"""

from typing import Any, Literal, cast

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from longtable.base.errors import Reason
from longtable.base.events import PassedMaterial, UsageFigures, Verified
from longtable.memory.messages.marks import mark_of

REPORT = "report"
"""Mark of an answer (`AnswerReport`) and of a tool message (`ToolReport`)."""


class ToolReport(TypedDict, total=False):
    """How the tool call ran that a tool message answers."""

    ms: int
    query: bool
    """True if the tool runs queries, so that the call is told as a query."""
    sql: str
    """The SQL with which a person replaced the model's."""
    database: str
    """The database that was asked by a call that names none, because the graph had only one."""
    decision: Literal["approve", "edit", "reject"]
    decided_by: str
    verified: Verified
    not_kept: str
    """Why the result store could not keep the result."""


class ReportedMaterial(TypedDict):
    """The material of context providers in the call of an answer."""

    call: int
    passed: list[PassedMaterial]
    left_out: list[Reason]


class ReportedRecall(TypedDict):
    """Original messages that were brought back by a marker."""

    query: str
    found: int
    turns: list[int]


class ReportedFallback(TypedDict):
    """A model that did not answer, and the next in line."""

    model: str
    fallback: str
    code: str


class AnswerReport(TypedDict, total=False):
    """How the model call went that gave an answer."""

    usage: UsageFigures
    """Of a message without tool calls only: the size of the call, counted before it."""
    material: ReportedMaterial
    recalls: list[ReportedRecall]
    fallbacks: list[ReportedFallback]
    color: str
    """Of a team: the color of the voice that answered."""


def tool_report(message: BaseMessage) -> ToolReport:
    """Return the report of a tool message, empty if it has none."""
    return cast("ToolReport", _report(message))


def answer_report(message: BaseMessage) -> AnswerReport:
    """Return the report of an answer, empty if it has none."""
    return cast("AnswerReport", _report(message))


def _report(message: BaseMessage) -> dict[str, Any]:
    report = mark_of(message, REPORT)
    return dict(report) if isinstance(report, dict) else {}
