"""Read a person's decisions on waiting queries, line by line: y, n with a reason, e with other SQL."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from longtable.base.events import ActionRequest

_YES = re.compile(r"(?:y|yes|是|好|批准)[.!。！]?", re.IGNORECASE)
_NO = re.compile(r"(?:no?|否|不|拒绝)(?:[\s,:;.!，：；。！]+(?P<reason>.*))?", re.IGNORECASE | re.DOTALL)
_EDIT = re.compile(r"(?:e|edit|改|修改)(?:[\s:：]+(?P<sql>.*))?", re.IGNORECASE | re.DOTALL)


@dataclass
class Approval:
    """The actions that wait, and what has been decided of them so far, in order."""

    actions: Sequence[ActionRequest]
    decisions: list[dict[str, Any]] = field(default_factory=list)
    editing: bool = False
    """The next line is the SQL that is to run."""

    @property
    def number(self) -> int:
        """Return which action is asked about, from 1."""
        return len(self.decisions) + 1

    @property
    def complete(self) -> bool:
        """Tell whether every action has its decision."""
        return len(self.decisions) == len(self.actions)

    def take(self, line: str) -> bool:
        """Take a line as a decision, and tell whether it is one: anything else is another message."""
        if self.editing:
            self._edit(line)
        elif _YES.fullmatch(line):
            self.decisions.append({"type": "approve"})
        elif no := _NO.fullmatch(line):
            self.decisions.append({"type": "reject", "message": no["reason"] or ""})
        elif edit := _EDIT.fullmatch(line):
            if edit["sql"]:
                self._edit(edit["sql"])
            else:
                self.editing = True
        else:
            return False
        return True

    def _edit(self, sql: str) -> None:
        action = self.actions[len(self.decisions)]
        self.decisions.append({"type": "edit", "edited_action": {"name": action["name"], "args": {**action["args"], "sql": sql}}})
        self.editing = False
