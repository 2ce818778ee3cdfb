"""A team of personas and its mode. Each model call is made as one persona; the mode decides who
speaks next.
"""

from collections.abc import Sequence

from langchain_core.tools import BaseTool

from longtable.base.errors import ConfigError
from longtable.memory.policy import CompactionPolicy
from longtable.memory.voices import EVERYBODY, fold
from longtable.nodes.team.free_chat import FreeChat
from longtable.nodes.team.mode_hook import Mode
from longtable.nodes.team.personas import Persona

MOST_PERSONAS = 16


class Team:
    """Personas that share one thread. `mode`: decides who speaks when; the default is `FreeChat()`.
    `max_calls`: the most model calls of a whole turn.

    Raises `ConfigError` if the team is empty or too large, if the same word mentions two personas,
    or if the mode names somebody who is not in the team.
    """

    def __init__(self, *personas: Persona, mode: Mode | None = None, max_calls: int = 24) -> None:
        mode = mode or FreeChat()
        if not 1 <= len(personas) <= MOST_PERSONAS or not all(
            isinstance(each, Persona) for each in personas
        ):
            raise ConfigError(
                f"a team has 1 to {MOST_PERSONAS} personas, found {len(personas)}:"
                " Team(Persona('analyst'), ...)"
            )
        if (
            isinstance(max_calls, bool)
            or not isinstance(max_calls, int)
            or not 1 <= max_calls <= 1_000
        ):
            raise ConfigError(f"max_calls is a whole number from 1 to 1,000, found {max_calls!r}")
        if not isinstance(mode, Mode):
            raise ConfigError(
                "mode must be FreeChat(), Workflow(...), Quiz(...), Werewolf(...) or a Mode of"
                f" your own, found {mode!r}"
            )
        if not isinstance(mode.policy, CompactionPolicy | None):
            raise ConfigError(
                "the mode's policy is a CompactionPolicy or None for the graph's, found"
                f" {mode.policy!r}"
            )
        self.mode = mode
        self.max_calls = max_calls
        self.personas: dict[str, Persona] = {}
        self.words: dict[str, str] = {}
        """The words that mention a persona (in the form that `fold` gives), each with the id."""
        for persona in personas:
            if persona.id in self.personas:
                raise ConfigError(f"two personas have the id {persona.id!r}")
            self.personas[persona.id] = persona
            for word in {
                fold(each)
                for each in (persona.id, persona.display, *persona.nicknames, *persona.aliases)
            }:
                if word in EVERYBODY or self.words.get(word, persona.id) != persona.id:
                    other = "everybody" if word in EVERYBODY else self.words[word]
                    raise ConfigError(
                        f"@{word} would mention both {persona.id} and {other}: give one of them"
                        " another name or alias"
                    )
                self.words[word] = persona.id
        mode.check(self.personas)

    @property
    def names(self) -> dict[str, str]:
        """Return the display names by id."""
        return {persona.id: persona.display for persona in self.personas.values()}

    def prompt_of(self, persona: Persona) -> str:
        """Return the prompt that tells a persona about itself and its colleagues."""
        others = [
            f"{each.display} ({', '.join(each.nicknames)})" if each.nicknames else each.display
            for each in self.personas.values()
            if each.id != persona.id
        ]
        with_whom = (
            f" You share this conversation with the person and your colleagues {', '.join(others)}."
            if others
            else ""
        )
        note = (
            " What a colleague said stands as a message that begins with their name. Answer as"
            " yourself, without your name before it."
        )
        return f"You are {persona.display}.{with_whom}{note if others else ''}\n{persona.prompt}".strip()


def persona_tools(persona: Persona, team: Team, tools: Sequence[BaseTool]) -> list[BaseTool]:
    """Return the tools of a persona: those of `tools` that the persona names (or all), and the
    tools that the mode gives it. Raises `ConfigError` if a named tool does not exist, or if the
    mode has a tool with the name of another tool.
    """
    known = {tool.name: tool for tool in tools}
    if missing := [name for name in persona.tools or () if name not in known]:
        offered = ", ".join(sorted(known)) or "none"
        raise ConfigError(
            f"persona {persona.id}: there is no tool {', '.join(missing)}; the tools are {offered}"
        )
    own = [tool for name, tool in known.items() if persona.tools is None or name in persona.tools]
    mode_tools = list(team.mode.tools(persona.id))
    if twice := {tool.name for tool in mode_tools} & known.keys():
        raise ConfigError(f"the mode and the graph both have a tool {', '.join(sorted(twice))}")
    return [*own, *mode_tools]
