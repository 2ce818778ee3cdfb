"""Run the built-in analyst over a database: call the model, run its tools, append the messages."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from longtable.app.offline.model import BuiltInAnalyst

MAX_CALLS = 12
RunTool = Callable[[str, dict[str, Any]], tuple[str, str]]
"""(name, args) -> (content, status)."""


@dataclass
class Talk:
    """One conversation with the analyst; `run` runs a tool."""

    run: RunTool
    model: BuiltInAnalyst = field(default_factory=BuiltInAnalyst)
    messages: list[BaseMessage] = field(default_factory=lambda: [SystemMessage("You answer questions about a database.")])

    def ask(self, question: str) -> "Answered":
        """Run one turn and return what came of it."""
        self.messages.append(HumanMessage(question))
        start = len(self.messages)
        for _ in range(MAX_CALLS):
            answer = self.model.invoke(self.messages)
            self.messages.append(answer)
            if not answer.tool_calls:
                return Answered(str(answer.text), self.messages[start:])
            for call in answer.tool_calls:
                content, status = self.run(call["name"], call["args"])
                self.messages.append(
                    ToolMessage(content, tool_call_id=call["id"], name=call["name"], status="error" if status == "error" else "success")
                )
        return Answered("(no answer within the budget of model calls)", self.messages[start:])


@dataclass(frozen=True)
class Answered:
    """One turn's outcome."""

    text: str
    messages: Sequence[BaseMessage]

    @property
    def calls(self) -> int:
        """Return how many model calls the turn took."""
        return sum(isinstance(message, AIMessage) for message in self.messages)

    @property
    def sql(self) -> str:
        """Return the last SQL that ran without an error, "" if none did: a decline."""
        ok = {message.tool_call_id for message in self.messages if isinstance(message, ToolMessage) and message.status == "success"}
        found = [
            str(call["args"]["sql"])
            for message in self.messages
            if isinstance(message, AIMessage)
            for call in message.tool_calls
            if call["name"] == "run_sql" and call["id"] in ok
        ]
        return found[-1] if found else ""


def error_content(code: str, message: str) -> str:
    """Return the content of a failed tool call."""
    return json.dumps({"error": {"class": code, "message": message}}, ensure_ascii=False)
