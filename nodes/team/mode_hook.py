"""The hook `Mode`, which decides who speaks next, and the `Scene`, on which it decides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool

from longtable.memory.messages.marks import mark_of, turn_number
from longtable.memory.messages.rounds import all_calls
from longtable.memory.policy import CompactionPolicy
from longtable.memory.voices import NARRATOR, VOICE
from longtable.nodes.team.personas import Persona, persona_named

MODE = "mode"
"""Mark of a team's answer: the mode's name, and the mode's state after this answer, as plain JSON.
"""


JUDGED = "judged"
"""Key of a mode's state. Its value is the persona whose answer the turn's last answer judges."""


@dataclass(frozen=True)
class Scene:
    """The input of a mode's decisions: the team, the transcript as it is now, and the turn."""

    names: Mapping[str, str]
    """Display names of the personas, by id, in the team's order."""
    messages: Sequence[BaseMessage]
    """The live transcript. All messages have marks."""
    turn: int
    """Number of the present turn."""
    mentioned: Sequence[str] = ()
    """Ids of the personas that the user's message mentions."""

    @cached_property
    def of_turn(self) -> list[BaseMessage]:
        """Return the messages of this turn."""
        return [message for message in self.messages if turn_number(message) == self.turn]

    @cached_property
    def question(self) -> str:
        """Return the user's message that opened this turn."""
        return next((str(message.text) for message in self.of_turn if message.type == "human"), "")

    @cached_property
    def answers(self) -> list[tuple[str, str]]:
        """Return the answers of this turn, in order, as pairs of the persona's id and the text. A
        notice in place of an answer counts as an answer.
        """
        return [(str(mark_of(m, VOICE)), str(m.text)) for m in self.of_turn if is_answer(m)]

    def calls(self, tool: str) -> list[tuple[str, dict[str, Any]]]:
        """Return the successful calls of a tool in this turn, in order, as pairs of the persona's
        id and the arguments.
        """
        done = {
            m.tool_call_id
            for m in self.of_turn
            if isinstance(m, ToolMessage) and m.status == "success"
        }
        found: list[tuple[str, dict[str, Any]]] = []
        for message in self.of_turn:
            if not isinstance(message, AIMessage):
                continue
            voice = str(mark_of(message, VOICE))
            for call in all_calls(message):
                if call["name"] == tool and call["id"] in done:
                    found.append((voice, call["args"]))
        return found

    @property
    def addressed(self) -> list[str]:
        """Return the personas that the user's message mentions, in the team's order; all personas
        if it mentions nobody.
        """
        return [id_ for id_ in self.names if id_ in (self.mentioned or self.names)]

    def persona(self, word: str) -> str:
        """Return the id of the persona with this id or display name, "" if there is none."""
        return persona_named(word, self.names)

    def before(self, mode: str) -> dict[str, Any]:
        """Return the newest state that the mode of this name had in earlier turns. It is empty if
        the mode had none.
        """
        states = (mark_of(m, MODE) for m in reversed(self.messages) if turn_number(m) < self.turn)
        return next(
            (state for state in states if isinstance(state, dict) and state.get("name") == mode), {}
        )


def is_answer(message: BaseMessage) -> bool:
    """Return whether a message is a voice's answer. False for messages with tool calls, and for a
    mode's own texts.
    """
    return (
        isinstance(message, AIMessage)
        and not all_calls(message)
        and mark_of(message, VOICE) not in (None, NARRATOR)
    )


def answer_text(answers: Sequence[BaseMessage]) -> str:
    """Return the text of a turn, given the answers of its voices: the last answer. If the last
    answer judges another answer, the judged answer is put above it.
    """
    last = answers[-1]
    state = mark_of(last, MODE)
    judged = state.get(JUDGED) if isinstance(state, dict) else None
    texts = [str(answer.text) for answer in answers if judged and mark_of(answer, VOICE) == judged]
    if not texts or mark_of(last, VOICE) == judged:
        return str(last.text)
    return f"{texts[-1]}\n\n{last.text}"


class Mode:
    """The rule of who speaks in which order. To write your own mode, override `speakers` or `next`.
    Their result must depend on the scene alone.
    """

    name: ClassVar[str] = "own"
    together: bool = False
    """True if voices do not hear what their colleagues say in the same turn. If one voice fails,
    the answers of the other voices are then kept.
    """
    private: bool = False
    """True if a persona's tool calls, and the text beside them, are private. Colleagues are not
    shown private messages, and no memory is made of them.
    """
    policy: CompactionPolicy | None = None
    """The compaction policy with this mode. None means the graph's policy."""

    def check(self, personas: Mapping[str, Persona]) -> None:
        """Raise `ConfigError` if the mode names somebody who is not in the team."""

    def next(self, scene: Scene) -> str | None:
        """Return the id of the persona that speaks next, None at the end of the turn. By default
        each persona in `speakers` speaks once.
        """
        done = {voice for voice, _ in scene.answers}
        return next((id_ for id_ in self.speakers(scene) if id_ not in done), None)

    def apart(self, persona: str) -> bool:  # noqa: ARG002  # for those that need it
        """Return whether a persona does not hear what its colleagues say in the same turn."""
        return self.together

    def speakers(self, scene: Scene) -> Sequence[str]:
        """Return the ids of the personas that may speak in this turn, in order. The possible cost
        of the turn is estimated from this list.
        """
        return list(scene.names)

    def whisper(self, scene: Scene, persona: str) -> str:  # noqa: ARG002  # for those that need it
        """Return a text that only this persona is told, with its next call; "" for no text. The
        text is never stored.
        """
        return ""

    def tools(self, persona: str) -> Sequence[BaseTool]:  # noqa: ARG002  # for those that need it
        """Return the tools that the mode gives a persona."""
        return ()

    def objection(
        self,
        scene: Scene,  # noqa: ARG002  # for those that need it
        persona: str,  # noqa: ARG002
        tool: str,  # noqa: ARG002
        args: Mapping[str, Any],  # noqa: ARG002
    ) -> str:
        """Return the reason why a persona's tool call is refused, as text for the model. Return ""
        if the call may run.
        """
        return ""

    def state(self, scene: Scene) -> dict[str, Any]:  # noqa: ARG002  # for those that need it
        """Return the mode's state after the newest answer, as plain JSON. It is stored with each
        answer.
        """
        return {}

    def close(self, scene: Scene) -> str:  # noqa: ARG002  # for those that need it
        """Return a text that everybody is told at the end of the turn, "" for no text."""
        return ""
