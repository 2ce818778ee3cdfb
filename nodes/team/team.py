"""A team: its personas, and what a mode decides by. A persona is who the next call is made as; a
mode says who speaks next.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import StreamWriter

from longtable.base.errors import ConfigError
from longtable.base.events import UnknownMentions
from longtable.memory.messages.marks import mark_of, marked, turn_number
from longtable.memory.messages.rounds import all_calls
from longtable.memory.policy import CompactionPolicy
from longtable.memory.thread import Edit
from longtable.memory.voices import EVERYBODY, NARRATOR, VOICE, fold, mentions_in
from longtable.nodes.state import (
    NOBODY,
    UNDER_WAY,
    Now,
    Turn,
    Update,
    with_fresh_id,
    without_key,
)

MODE = "mode"
"""Mark of a team's answer: the mode's name and its state after it, as plain JSON."""
JUDGED = "judged"
"""Key of a mode's state: the persona whose answer the last one judges."""
MOST_PERSONAS = 16
NOT_JSON = (TypeError, ValueError, RecursionError)
"""What `json.dumps` raises for values that are no JSON, that hold themselves, or that are too
deep.
"""
_ID = re.compile(r"[a-z][a-z0-9_-]{0,31}")


@dataclass(frozen=True)
class Persona:
    """One voice of a team.

    `id`: lower-case letters, digits, `_` and `-`. `prompt`: who it is and what it does. `name` is
    shown to people and to colleagues; `nicknames` and `aliases` mention it as well as id and name
    do. `model`: its own, else the conversation's. `tools`: names of those it may call, None for
    all. `rounds`: how many of the newest rounds it is shown, None for all. `color`: for terminals,
    a CSS name.
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


@dataclass(frozen=True)
class Scene:
    """What a mode decides by: the transcript as it is now."""

    names: Mapping[str, str]
    """Display names by persona, in the team's order."""
    messages: Sequence[BaseMessage]
    """The live transcript, all marked."""
    turn: int
    mentioned: Sequence[str] = ()
    """Personas that the user's message mentions."""

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
        """Return who has answered in this turn, in order, and what; a notice that stands for an
        answer is one.
        """
        return [(str(mark_of(m, VOICE)), str(m.text)) for m in self.of_turn if is_answer(m)]

    def calls(self, tool: str) -> list[tuple[str, dict[str, Any]]]:
        """Return who called a tool in this turn with success, in order, and its arguments."""
        done = {
            m.tool_call_id
            for m in self.of_turn
            if isinstance(m, ToolMessage) and m.status == "success"
        }
        pairs = [
            (str(mark_of(m, VOICE)), call)
            for m in self.of_turn
            if isinstance(m, AIMessage)
            for call in all_calls(m)
        ]
        return [
            (voice, call["args"])
            for voice, call in pairs
            if call["name"] == tool and call["id"] in done
        ]

    @property
    def addressed(self) -> list[str]:
        """Return the personas that the user's message mentions; all if it mentions nobody."""
        return [id_ for id_ in self.names if id_ in (self.mentioned or self.names)]

    def persona(self, word: str) -> str:
        """Return the persona with this id or display name, "" if there is none."""
        return persona_named(word, self.names)

    def before(self, mode: str) -> dict[str, Any]:
        """Return the state that a mode had at the end of the turn before, empty where it had
        none.
        """
        states = (mark_of(m, MODE) for m in reversed(self.messages) if turn_number(m) < self.turn)
        return next(
            (state for state in states if isinstance(state, dict) and state.get("name") == mode), {}
        )


def persona_named(word: str, names: Mapping[str, str]) -> str:
    """Return the id of the persona with this id or display name, "" if there is none."""
    folded = fold(word)
    for id_, name in names.items():
        if folded in (fold(id_), fold(name)):
            return id_
    return ""


def is_answer(message: BaseMessage) -> bool:
    """Return whether a message is a voice's answer, not a call."""
    return (
        isinstance(message, AIMessage)
        and not all_calls(message)
        and mark_of(message, VOICE) not in (None, NARRATOR)
    )


def answer_text(answers: Sequence[BaseMessage]) -> str:
    """Return the text of a turn that voices answered: the last one's, below the answer that it
    judges.
    """
    last = answers[-1]
    state = mark_of(last, MODE)
    judged = state.get(JUDGED) if isinstance(state, dict) else None
    texts = [str(answer.text) for answer in answers if judged and mark_of(answer, VOICE) == judged]
    if not texts or mark_of(last, VOICE) == judged:
        return str(last.text)
    return f"{texts[-1]}\n\n{last.text}"


class Mode:
    """Who speaks, in which order. Write your own by giving `speakers` or `next`; what you return
    must follow from the scene alone.
    """

    name: ClassVar[str] = "own"
    together: bool = False
    """Whether voices do not hear what colleagues said since the turn began; then one that fails
    leaves the others' answers.
    """
    private: bool = False
    """Whether what a persona does with tools, and writes beside a call, is its own: colleagues are
    not shown it, and no memory is made of it.
    """
    policy: CompactionPolicy | None = None
    """The policy while this mode holds, in place of the graph's."""

    def check(self, personas: Mapping[str, Persona]) -> None:
        """Raise `ConfigError` where the mode names somebody who is not in the team."""

    def next(self, scene: Scene) -> str | None:
        """Return the id of the persona that speaks next, None at the end of the turn: unless given,
        each of `speakers` once.
        """
        done = {voice for voice, _ in scene.answers}
        return next((id_ for id_ in self.speakers(scene) if id_ not in done), None)

    def apart(self, persona: str) -> bool:  # noqa: ARG002  # for those that need it
        """Return whether a persona does not hear what colleagues said since the turn began."""
        return self.together

    def speakers(self, scene: Scene) -> Sequence[str]:
        """Return who may speak in this turn, in order, and for what it may cost."""
        return list(scene.names)

    def whisper(self, scene: Scene, persona: str) -> str:  # noqa: ARG002  # for those that need it
        """Return what one persona alone is told with its next call, "" for nothing. It is never
        stored.
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
        """Return why a call of a tool is refused, for the model; "" if it may run."""
        return ""

    def state(self, scene: Scene) -> dict[str, Any]:  # noqa: ARG002  # for those that need it
        """Return the mode's state after the newest answer, plain JSON; each answer keeps it."""
        return {}

    def close(self, scene: Scene) -> str:  # noqa: ARG002  # for those that need it
        """Return what everybody is told at the end of the turn, "" for nothing."""
        return ""


@dataclass(frozen=True, kw_only=True)
class FreeChat(Mode):
    """Those whom the user mentions answer, else all, in the team's order."""

    name: ClassVar[str] = "free_chat"
    together: bool = True
    policy: CompactionPolicy | None = None

    def speakers(self, scene: Scene) -> Sequence[str]:
        """Return those whom the user mentions, else all."""
        return [id_ for id_ in scene.names if id_ in (scene.mentioned or scene.names)]


class Team:
    """Personas that share one thread. `mode`: who speaks when, `FreeChat()` unless given;
    `max_calls`: model calls of a whole turn.

    Raises `ConfigError` for an empty team, two personas with one word, or a mode that names
    somebody who is not there.
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
        """Ids by the folded words that mention them."""
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
        """Return what a persona is told of itself and its colleagues."""
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
    """Return the tools of a persona: those that it names, or all, and those that the mode gives it.
    Raises `ConfigError`.
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


def scene_of(team: Team, messages: Sequence[BaseMessage], turn: Turn) -> Scene:
    """Return what the mode decides by."""
    return Scene(team.names, messages, turn.get("number", 0), turn.get("mentioned", ()))


def first_voice(
    team: Team, messages: Sequence[BaseMessage], turn: Turn, emit: StreamWriter
) -> Turn:
    """Return the record of a turn that begins, with who is asked first; tell of mentions that name
    nobody.
    """
    questions = [
        message
        for message in messages
        if message.type == "human" and turn_number(message) == turn.get("number")
    ]
    mentions = [mentions_in(str(message.text), team.words, team.names) for message in questions]
    if unknown := list(dict.fromkeys(word for each in mentions for word in each.unknown)):
        emit(UnknownMentions(type="unknown_mentions", words=unknown, known=list(team.names)))
    turn = {
        **turn,
        "mentioned": list(dict.fromkeys(id_ for each in mentions for id_ in each.ids)),
        "calls_left": team.max_calls,
    }
    scene = scene_of(team, messages, turn)
    state = team.mode.state(scene)
    if _plain(state) is None:
        raise ConfigError(
            f"the state of the mode {team.mode.name} must be plain JSON, found {state!r}"
        )
    voice = next_voice(team, scene)
    return {**turn, "voice": voice} if voice else {**turn, "status": NOBODY}


def next_voice(team: Team, scene: Scene) -> str | None:
    """Return who speaks next, None at the end of the turn. Raises `ConfigError` where the mode
    names somebody who is not there.
    """
    voice = team.mode.next(scene)
    if voice is not None and voice not in team.personas:
        raise ConfigError(
            f"the mode {team.mode.name} names {voice!r} as the next to speak; the personas are"
            f" {', '.join(team.personas)}"
        )
    return voice


OF_VOICE = (
    *(
        "status",
        "calls",
        "overflows",
        "ceiling",
        "skipped",
        "without",
        "searched",
        "reason",
        "approval",
        "one_by_one",
        "alone",
    ),
)
"""Keys of a turn's record that are one voice's own."""


def asked_next(turn: Turn, voice: str) -> Turn:
    """Return the record of a turn whose next voice is asked."""
    fresh: Turn = {"voice": voice, "status": "running", "calls": 0, "overflows": 0}
    return {**without_key(turn, *OF_VOICE), **fresh}


def at_once(team: Team, scene: Scene) -> list[str]:
    """Return who speaks next without hearing each other, in order: whom the mode names as if each
    had answered.
    """
    voices: list[str] = []
    while (
        (voice := team.mode.next(scene)) in team.personas
        and voice not in voices
        and team.mode.apart(str(voice))
    ):
        voices.append(str(voice))
        scene = replace(
            scene,
            messages=[*scene.messages, marked(AIMessage(""), turn=scene.turn, **{VOICE: voice})],
        )
    return voices


def with_mode(
    team: Team, answer: BaseMessage, messages: Sequence[BaseMessage], turn: Turn
) -> BaseMessage:
    """Return a voice's answer with the mode's state after it."""
    if not is_answer(answer):
        return answer
    return marked(answer, **mode_mark(team, scene_of(team, [*messages, answer], turn)))


def answers_ahead(now: Now, team: Team | None) -> Update:
    """Return what voices of the newest turn have answered whose turn to speak did not come: the
    messages and edits that it would have brought.
    """
    turn = now.turn
    ahead = now.state.get("ahead") or {}
    before = list(now.thread.messages)
    messages: list[BaseMessage] = []
    edits: list[Edit] = []
    names = list(now.config.get("voices", {}))
    # They are noted in the order in which they ended.
    for voice in sorted(ahead, key=[*names, *ahead].index):
        result = ahead[voice]
        of_voice = result.get("messages") or ()
        in_turn = result["turn"].get("number") == turn.get("number")
        if not in_turn or not of_voice or not is_answer(of_voice[-1]):
            continue
        edits += result.get("edits", ())
        messages += taken_over(of_voice, team, [*before, *messages], turn)
    update = Update(messages=messages) if messages else Update()
    return {**update, "edits": edits} if edits else update


def taken_over(
    made: Sequence[BaseMessage], team: Team | None, messages: Sequence[BaseMessage], turn: Turn
) -> list[BaseMessage]:
    """Return what a voice made beside others as it stands after these messages."""
    transcript: list[BaseMessage] = []
    for message in made:
        fresh = with_fresh_id(message, messages) if message.type == "ai" else message
        if team is not None:
            fresh = with_mode(team, fresh, [*messages, *transcript], turn)
        transcript.append(fresh)
    return transcript


def mode_mark(team: Team, scene: Scene) -> dict[str, Any]:
    """Return the mark with the mode's state as the scene has it."""
    state = team.mode.state(scene)
    plain = _plain(state)
    if plain is None:
        # An answer is paid for: values that are no JSON are kept as text.
        plain = _as_plain(state)
    return {MODE: {"name": team.mode.name, **plain}}


def _plain(state: dict[str, Any]) -> dict[str, Any] | None:
    """Return a mode's state if it is plain JSON, else None."""
    try:
        json.dumps(state)
    except NOT_JSON:
        return None
    return state


def _as_plain(state: dict[str, Any]) -> dict[str, Any]:
    """Return a mode's state with text in place of values that are no JSON, or that hold
    themselves.
    """
    plain: dict[str, Any] = {}
    for name, value in state.items():
        try:
            plain[str(name)] = json.loads(json.dumps(value, default=str, skipkeys=True))
        except NOT_JSON:
            plain[str(name)] = str(value)
    return plain


def speaking(now: Now) -> Now:
    """Return the same with events that name the voice that is asked, if there is a team."""
    turn = now.turn
    voice = turn.get("voice") if turn.get("status") in UNDER_WAY else None
    if voice is None:
        return now
    write = now.runtime.stream_writer
    runtime = now.runtime.override(stream_writer=lambda event: write({"voice": voice, **event}))
    return replace(now, runtime=runtime)
