"""Ask a person before costly queries run: find the queries, make the question, and read the answer.

There are three steps, so that nothing is asked or run twice. First `run_tools` notes the calls that
need approval, and runs no call. Then this node interrupts the run and stores the person's
decisions. Last `run_tools` runs the calls that the decisions allow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict, cast

from langchain_core.messages import ToolCall
from langgraph.types import interrupt
from pydantic import PlainValidator, WithJsonSchema

from longtable.base.errors import (
    DatabaseError,
    DatabaseUnavailableError,
    QueryCancelledError,
    UnknownDatabaseError,
    WrongDecisionError,
)
from longtable.base.events import ActionRequest, ReviewConfig
from longtable.nodes.route import unanswered
from longtable.nodes.state import Decision, Now, PendingCall, Update
from longtable.tools.database import Cancel
from longtable.tools.several.databases import ARGUMENT, Databases
from longtable.tools.several.several_tools import errors_named
from longtable.tools.sql.verdict import CostThresholds, reasons

ALLOWED: tuple[Literal["approve"], Literal["edit"], Literal["reject"]] = (
    "approve",
    "edit",
    "reject",
)
MOST_REASON = 2_000
MOST_NAME = 200
WRONG = ("syntax", "unknown_name", "ambiguous", "type", "refused")
"""Problems with which a query fails whenever it runs. Nobody is asked about such a query."""

APPROVAL: dict[str, dict[str, str]] = {
    "en": {
        "costly": "This query may take long: it {reasons}.",
        "always": "Every query waits for approval.",
        "unplanned": "This query may take long: the database made no plan for it.",
        "database": "Database {name}: ",
        "and": ", and it ",
        "pairs": "compares about {size} pairs of rows, each with each",
        "rows": "makes about {size} rows in one step",
        "cost": "has a cost of {size} by the database's estimate",
        "scan": "reads about {size} rows from end to end",
    },
    "zh": {
        "costly": "这个查询可能很慢：{reasons}。",
        "always": "每个查询都需要批准。",
        "unplanned": "这个查询可能很慢：数据库未能作出执行计划。",
        "database": "数据库 {name}：",
        "and": "，并且",
        "pairs": "要两两比较约 {size} 对行",
        "rows": "有一步会产生约 {size} 行",
        "cost": "数据库估计的代价为 {size}",
        "scan": "要完整读取约 {size} 行",
    },
}
"""The texts that a person reads about a query that waits for approval."""


class Request(TypedDict):
    """The value of the interrupt: the request to a person, in the format of LangChain's
    HumanInTheLoopMiddleware.
    """

    action_requests: list[ActionRequest]
    review_configs: list[ReviewConfig]


@dataclass(frozen=True)
class Gate:
    """Find the queries that a person must approve."""

    databases: Databases
    thresholds: Mapping[str, CostThresholds]
    """The thresholds of each database, by its name."""

    def pending(
        self, queries: Sequence[ToolCall], *, mode: str, language: str, cancel: Cancel | None = None
    ) -> list[PendingCall]:
        """Return the calls that need approval, in order. This blocks, because the engine plans each
        query.
        """
        whys = (
            [(call, self._why(call, mode, language, cancel)) for call in queries]
            if mode != "never"
            else []
        )
        return [PendingCall(id=call["id"] or "", description=why) for call, why in whys if why]

    def _why(self, call: ToolCall, mode: str, language: str, cancel: Cancel | None) -> str:
        sql = call["args"].get("sql")
        if not isinstance(sql, str):
            return ""
        try:
            # A call that names no database, or an unknown one, fails when it is run.
            name = self.databases.name_of(self.databases.call_args(call["args"]).get(ARGUMENT))
        except UnknownDatabaseError:
            return ""
        why = self._why_on(name, sql, mode, language, cancel)
        if not why or not self.databases.are_several:
            return why
        return APPROVAL[language]["database"].format(name=name) + why

    def _why_on(self, name: str, sql: str, mode: str, language: str, cancel: Cancel | None) -> str:
        """Return why a query on a database needs approval, "" if it needs none."""
        database = self.databases[name]
        try:
            with errors_named(name):
                plan = database.check_sql(sql, cancel=cancel)
        except (DatabaseUnavailableError, QueryCancelledError):
            # Nothing can run now; a locked file may be open by then.
            return APPROVAL[language]["always"] if mode == "always" else ""
        except DatabaseError as error:
            # A wrong query fails again when it is run, and the model reads why. What cannot be
            # planned may cost anything.
            return "" if error.problem in WRONG else APPROVAL[language]["unplanned"]
        words = APPROVAL[language]
        costs = reasons(plan, self.thresholds[name], database.dialect)
        if not costs:
            return words["always"] if mode == "always" else ""
        sizes = words["and"].join(
            words[cost.kind].format(size=f"{cost.size:,.0f}") for cost in costs
        )
        return words["costly"].format(reasons=sizes)


@dataclass(frozen=True)
class Approve:
    """The node: one interrupt for all calls of an answer that need approval. Raises
    `WrongDecisionError` if the person's decisions do not fit; the question then stays open.
    """

    def __call__(self, now: Now) -> Update:
        turn = now.turn
        calls = turn["approval"]["asked"]
        request = request_of(calls, unanswered(now.thread.messages))
        actions = request["action_requests"]
        answer = interrupt(request, response_schema=_fitting(actions))
        decided = decisions_of(answer, actions)
        for decision in decided:
            decision["by"] = _authenticated(now) or decision.get("by") or now.context.owner or ""
        return {"turn": {**turn, "approval": {"asked": calls, "decided": decided}}}


def _authenticated(now: Now) -> str:
    """Return the owner of the run if a server has authenticated the person, otherwise ""."""
    server = now.runtime.server_info
    known = server is not None and server.user is not None and server.user.is_authenticated
    return (now.context.owner or "") if known else ""


def _fitting(actions: Sequence[ActionRequest]) -> type[Any]:
    """Return a type that accepts only decisions that fit these actions. LangGraph checks the
    person's answer against it before storing the answer, which could not be replaced later.
    """

    def check(answer: object) -> object:
        decisions_of(answer, actions)
        return answer

    return cast(
        "type[Any]",
        Annotated[
            Any,
            PlainValidator(check),
            WithJsonSchema({"type": "object", "required": ["decisions"]}),
        ],
    )


def request_of(pending: Sequence[PendingCall], calls: Sequence[ToolCall]) -> Request:
    """Return the request to a person, with an action for each call that needs approval."""
    by_id = {call["id"]: call for call in calls}
    actions = [
        ActionRequest(
            name=by_id[one["id"]]["name"],
            args=by_id[one["id"]]["args"],
            description=one["description"],
        )
        for one in pending
    ]
    return Request(
        action_requests=actions,
        review_configs=[
            ReviewConfig(action_name=action["name"], allowed_decisions=list(ALLOWED))
            for action in actions
        ],
    )


def decisions_of(answer: object, actions: Sequence[ActionRequest]) -> list[Decision]:
    """Read the answer to an interrupt: `{"decisions": [...]}`, with one decision for each action,
    in order. A decision may name who decided (`by`). Raises `WrongDecisionError` if it has another
    form.
    """
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    if not isinstance(decisions, Sequence) or isinstance(decisions, str):
        raise WrongDecisionError(
            f"wanted {{'decisions': [...]}} with {len(actions)} of them, found {_shown(answer)}"
        )
    if len(decisions) != len(actions):
        raise WrongDecisionError(
            f"{len(actions)} actions wait, each for one decision in order, found {len(decisions)}"
        )
    decided: list[Decision] = []
    for place, (one, action) in enumerate(zip(decisions, actions, strict=True), 1):
        decision = _decision(one, action, place)
        if by := one.get("by"):
            decision["by"] = _name(by, place)
        decided.append(decision)
    return decided


def _name(by: object, place: int) -> str:
    if not isinstance(by, str) or len(by) > MOST_NAME:
        raise WrongDecisionError(
            f"`by` of decision {place} must be a name of at most {MOST_NAME} characters, found"
            f" {_shown(by)}"
        )
    return by


def _decision(decision: object, action: ActionRequest, place: int) -> Decision:
    kind = decision.get("type") if isinstance(decision, Mapping) else None
    if not isinstance(decision, Mapping) or kind not in ALLOWED:
        raise WrongDecisionError(
            f"decision {place} must have a type, one of {', '.join(ALLOWED)}, found"
            f" {_shown(decision)}"
        )
    if kind == "approve":
        return Decision(type="approve")
    if kind == "reject":
        reason = decision.get("message") or ""
        if not isinstance(reason, str):
            raise WrongDecisionError(
                f"the message of decision {place} must be text, found {_shown(reason)}"
            )
        return Decision(type="reject", reason=reason.strip()[:MOST_REASON])
    edited = decision.get("edited_action")
    args = edited.get("args") if isinstance(edited, Mapping) else None
    sql = args.get("sql") if isinstance(args, Mapping) else None
    if (
        not isinstance(edited, Mapping)
        or edited.get("name") != action["name"]
        or not isinstance(sql, str)
        or not sql.strip()
    ):
        shape = f"{{'name': {action['name']!r}, 'args': {{'sql': ...}}}}"
        raise WrongDecisionError(
            f"the edited_action of decision {place} must be {shape}, found {_shown(edited)}"
        )
    database = action["args"].get(ARGUMENT)
    if args is not None and args.get(ARGUMENT, database) != database:
        raise WrongDecisionError(
            f"decision {place} edits a query of the database {_shown(database)}: an edit cannot"
            f" send it to another one, found {_shown(args.get(ARGUMENT))}"
        )
    return Decision(type="edit", sql=sql)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:199]}…"
