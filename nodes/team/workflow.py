"""The mode `Workflow`: personas do the steps of a task in order. The progress is computed from the
transcript, by code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool

from longtable.base.errors import ConfigError
from longtable.memory.messages.rounds import all_calls
from longtable.memory.policy import CompactionPolicy
from longtable.nodes.team.mode_hook import JUDGED, Mode, Scene, is_answer
from longtable.nodes.team.personas import Persona

STEPS = ("analyst", "checker", "reviewer")
SEND_BACK = "send_back"
TASK_CHARS = 2_000
ARTEFACT_CHARS = 4_000
"""The mark of an answer keeps at most `TASK_CHARS` characters of the task, and `ARTEFACT_CHARS` of
each step's artefact. The transcript has the whole texts.
"""


@dataclass(frozen=True)
class _Progress:
    """The progress of a turn. `place`: index of the next step. `sent_back`: how often the work was
    sent back. `reason`: why it was sent back last. `artefacts`: the newest answer of each step.
    """

    place: int = 0
    sent_back: int = 0
    reason: str = ""
    artefacts: Mapping[str, str] = field(default_factory=dict)


class Workflow(Mode):
    """Steps that are done in order. Each step is done by the persona with the same id, or by the
    persona that `roles` names for it. Mentions are ignored.

    The first user message is the task; later user messages are numbered follow-ups. The persona of
    the last step has the tool `send_back`. With it, the work begins again at an earlier step, at
    most `send_back` times per turn. If the last step may send work back, its answer is a verdict:
    the turn's text is then the first step's answer with the verdict below it.

    The mode's state has the keys `task`, `follow_ups`, `current_node` (the next step, "" at the
    end), `sent_back` and `artefacts` (the newest answer of each step).
    """

    name: ClassVar[str] = "workflow"

    def __init__(
        self,
        *steps: str,
        roles: Mapping[str, str] | None = None,
        send_back: int = 2,
        policy: CompactionPolicy | None = None,
    ) -> None:
        self.steps = steps or STEPS
        self.roles = dict(roles or {})
        self.policy = policy
        if len(set(self.steps)) != len(self.steps) or not set(self.roles) <= set(self.steps):
            raise ConfigError(
                "a workflow has different steps, and roles for these alone; found steps"
                f" {self.steps}, roles {self.roles}"
            )
        if (
            isinstance(send_back, bool)
            or not isinstance(send_back, int)
            or not 0 <= send_back <= 10
        ):
            raise ConfigError(f"send_back is a whole number from 0 to 10, found {send_back!r}")
        self.most = send_back if len(self.steps) > 1 else 0

    def check(self, personas: Mapping[str, Persona]) -> None:
        """Raise `ConfigError` if there is no persona for a step."""
        if missing := [step for step in self.steps if self._persona(step) not in personas]:
            there = ", ".join(personas)
            raise ConfigError(
                f"nobody does the workflow's {', '.join(missing)}: the team has {there}; add a"
                " persona or name one in roles"
            )

    def next(self, scene: Scene) -> str | None:
        """Return the persona of the next step, None after the last step."""
        place = self._progress(scene).place
        return self._persona(self.steps[place]) if place < len(self.steps) else None

    def whisper(self, scene: Scene, persona: str) -> str:  # noqa: ARG002
        """Return a text about the present step: its place among the steps, the task if this is a
        follow-up, and why the work was sent back.
        """
        now = self._progress(scene)
        state = self.state(scene)
        if now.place >= len(self.steps):
            return ""
        lines = [
            f"Your step is {self.steps[now.place]}, {now.place + 1} of {len(self.steps)}:"
            f" {', '.join(self.steps)}."
        ]
        if state["follow_ups"]:
            lines.append(
                f"The person's newest message is follow-up {state['follow_ups']} of the task:"
                f" {state['task']}"
            )
        if now.reason:
            lines.append(f"The work was sent back: {now.reason} Correct what is yours of it.")
        if now.place == len(self.steps) - 1 and self.most:
            left = f"You may call {SEND_BACK}; times left: {self.most - now.sent_back}."
            lines.append(
                left if now.sent_back < self.most else "The work can no longer be sent back."
            )
        return "\n".join(lines)

    def tools(self, persona: str) -> Sequence[BaseTool]:
        """Return the tool `send_back` if the persona does the last step, otherwise no tool."""
        if not self.most or persona != self._persona(self.steps[-1]):
            return ()

        def send_back(reason: str, to: str = "") -> str:
            """Send the work back to an earlier step, with what is to be corrected. Then answer with
            a sentence; the step begins again.
            """
            if to and to not in self.steps[:-1]:
                raise ValueError(
                    f"there is no earlier step {to!r}; the steps are {', '.join(self.steps[:-1])}"
                )
            return f"The work goes back to {to or self.steps[0]}: {reason}"

        return [StructuredTool.from_function(send_back, name=SEND_BACK)]

    def objection(
        self,
        scene: Scene,
        persona: str,  # noqa: ARG002
        tool: str,
        args: Mapping[str, Any],  # noqa: ARG002
    ) -> str:
        """Return why the work cannot be sent back again. Return "" if it can be, or if `tool` is
        not the tool that sends work back.
        """
        if tool != SEND_BACK or self._progress(scene).sent_back < self.most:
            return ""
        return (
            f"not sent back: it was {self.most} times in this turn, which is the most. Answer with"
            " what there is, and say what is lacking"
        )

    def state(self, scene: Scene) -> dict[str, Any]:
        """Return the mode's state; see the class for its keys."""
        before = scene.before(self.name)
        now = self._progress(scene)
        return {
            "task": before.get("task") or scene.question[:TASK_CHARS],
            "follow_ups": before["follow_ups"] + 1 if before else 0,
            "current_node": self.steps[now.place] if now.place < len(self.steps) else "",
            "sent_back": now.sent_back,
            "artefacts": {**before.get("artefacts", {}), **now.artefacts},
            **({JUDGED: self._persona(self.steps[0])} if self.most else {}),
        }

    def _persona(self, step: str) -> str:
        return self.roles.get(step, step)

    def _progress(self, scene: Scene) -> _Progress:
        place = sent_back = 0
        reason = ""
        artefacts = dict[str, str]()
        args = dict[str | None, dict[str, Any]]()
        back: dict[str, Any] | None = None
        for message in scene.of_turn:
            if isinstance(message, AIMessage):
                args |= {call["id"]: call["args"] for call in all_calls(message)}
            if (
                isinstance(message, ToolMessage)
                and message.name == SEND_BACK
                and message.status == "success"
            ):
                back = args.get(message.tool_call_id)
            elif is_answer(message) and place < len(self.steps):
                artefacts[self.steps[place]] = str(message.text)[:ARTEFACT_CHARS]
                place += 1
                if back and place == len(self.steps) and sent_back < self.most:
                    place = self.steps.index(back.get("to") or self.steps[0])
                    reason = str(back["reason"])
                    sent_back = sent_back + 1
                back = None
        return _Progress(place, sent_back, reason, artefacts)
