"""Personas: the members of a team. Each model call is made as one persona."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

from langchain_core.language_models import BaseChatModel

from longtable.base.errors import ConfigError
from longtable.memory.voices import NARRATOR, fold

_ID = re.compile(r"[a-z][a-z0-9_-]{0,31}")


@dataclass(frozen=True)
class Persona:
    """One voice of a team.

    `id`: lower-case letters, digits, `_` and `-`. `prompt`: who the persona is and what it does.
    `name`: the name shown to people and colleagues. `nicknames`, `aliases`: further words after an
    at sign that mention the persona, besides `id` and `name`. `model`: the persona's own model,
    None for the conversation's model. `tools`: names of the tools that the persona may call, None
    for all tools. `rounds`: how many of the newest rounds the persona is shown, None for all.
    `color`: a CSS color name, for terminals.
    """

    id: str
    prompt: str = ""
    _: KW_ONLY
    name: str = ""
    nicknames: Sequence[str] = ()
    aliases: Sequence[str] = ()
    model: BaseChatModel | None = None
    tools: Sequence[str] | None = None
    rounds: int | None = None
    color: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not _ID.fullmatch(self.id) or self.id == NARRATOR:
            raise ConfigError(
                f"a persona's id is lower case: a letter, then a-z, 0-9, _ or -; {NARRATOR!r} is"
                f" reserved; found {self.id!r}"
            )
        for about in ("nicknames", "aliases", "tools"):
            value = getattr(self, about)
            if isinstance(value, str) or not all(
                isinstance(each, str) and each.strip() for each in value or ()
            ):
                raise ConfigError(f"persona {self.id}: {about} is a list of words, found {value!r}")
        if self.model is not None and not isinstance(self.model, BaseChatModel):
            raise ConfigError(
                f"persona {self.id}: model is a chat model of LangChain or None for the"
                f" conversation's, found {self.model!r}"
            )
        if self.rounds is not None and (
            isinstance(self.rounds, bool) or not isinstance(self.rounds, int) or self.rounds < 1
        ):
            raise ConfigError(
                f"persona {self.id}: rounds is a whole number from 1, or None for all, found"
                f" {self.rounds!r}"
            )

    @property
    def display(self) -> str:
        """Return the name that people see."""
        return self.name.strip() or self.id.replace("_", " ").capitalize()


def persona_named(word: str, names: Mapping[str, str]) -> str:
    """Return the id of the persona with this id or display name, "" if there is none."""
    folded = fold(word)
    for id_, name in names.items():
        if folded in (fold(id_), fold(name)):
            return id_
    return ""
