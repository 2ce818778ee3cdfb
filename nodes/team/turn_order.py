"""Decide whose turn it is to speak, and mark answers with the mode's state."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.types import StreamWriter

from longtable.base.errors import ConfigError
from longtable.base.events import UnknownMentions
from longtable.memory.messages.marks import marked, turn_number
from longtable.memory.thread import Edit
from longtable.memory.voices import VOICE, mentions_in
from longtable.nodes.state import NOBODY, UNDER_WAY, Now, Turn, Update, with_fresh_id, without_key
from longtable.nodes.team.mode_hook import MODE, Scene, is_answer
from longtable.nodes.team.team import Team

NOT_JSON = (TypeError, ValueError, RecursionError)
"""Exceptions that `json.dumps` raises for values that are not JSON, that contain themselves, or
that are nested too deeply.
"""


def scene_of(team: Team, messages: Sequence[BaseMessage], turn: Turn) -> Scene:
    """Return the scene on which the mode decides."""
    return Scene(team.names, messages, turn.get("number", 0), turn.get("mentioned", ()))


def first_voice(
    team: Team, messages: Sequence[BaseMessage], turn: Turn, emit: StreamWriter
) -> Turn:
    """Return the record of a turn that begins, with the voice that is asked first. Send an event if
    mentions name nobody in the team. Raises `ConfigError` if the mode's state is not plain JSON.
    """
    questions = [
        message
        for message in messages
        if message.type == "human" and turn_number(message) == turn.get("number")
    ]
    unknown: dict[str, None] = {}
    mentioned: dict[str, None] = {}
    for message in questions:
        mentions = mentions_in(str(message.text), team.words, team.names)
        unknown |= dict.fromkeys(mentions.unknown)
        mentioned |= dict.fromkeys(mentions.ids)
    if unknown:
        words = list(unknown)
        emit(UnknownMentions(type="unknown_mentions", words=words, known=list(team.names)))
    turn = {**turn, "mentioned": list(mentioned), "calls_left": team.max_calls}
    scene = scene_of(team, messages, turn)
    state = team.mode.state(scene)
    if _plain(state) is None:
        raise ConfigError(
            f"the state of the mode {team.mode.name} must be plain JSON, found {state!r}"
        )
    voice = next_voice(team, scene)
    return {**turn, "voice": voice} if voice else {**turn, "status": NOBODY}


def next_voice(team: Team, scene: Scene) -> str | None:
    """Return the id of the persona that speaks next, None at the end of the turn. Raises
    `ConfigError` if the mode names somebody who is not in the team.
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
"""Keys of a turn's record that belong to the voice that is asked, not to the whole turn."""


def asked_next(turn: Turn, voice: str) -> Turn:
    """Return the record of a turn in which `voice` is asked next."""
    fresh: Turn = {"voice": voice, "status": "running", "calls": 0, "overflows": 0}
    return {**without_key(turn, *OF_VOICE), **fresh}


def at_once(team: Team, scene: Scene) -> list[str]:
    """Return the next voices that do not hear each other, in order. The mode is asked for each
    voice as if the previous voice had answered.
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
    """Return a voice's answer, marked with the mode's state after this answer. Other messages are
    returned unchanged.
    """
    if not is_answer(answer):
        return answer
    return marked(answer, **mode_mark(team, scene_of(team, [*messages, answer], turn)))


def answers_ahead(now: Now, team: Team | None) -> Update:
    """Return the update with the answers that are still in `ahead` when a new message arrives.
    These are answers of the newest turn by voices that were asked at the same time as others, but
    whose turn to speak did not come.
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
    """Return the messages (`made`) of a voice that was asked at the same time as others, adapted to
    follow `messages`: with unique ids and the mode's state.
    """
    transcript: list[BaseMessage] = []
    for message in made:
        fresh = with_fresh_id(message, messages) if message.type == "ai" else message
        if team is not None:
            fresh = with_mode(team, fresh, [*messages, *transcript], turn)
        transcript.append(fresh)
    return transcript


def mode_mark(team: Team, scene: Scene) -> dict[str, Any]:
    """Return the mark that holds the mode's name and its state in this scene."""
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
    """Return a mode's state as plain JSON. Values that are not JSON, or that contain themselves,
    become text.
    """
    plain: dict[str, Any] = {}
    for name, value in state.items():
        try:
            plain[str(name)] = json.loads(json.dumps(value, default=str, skipkeys=True))
        except NOT_JSON:
            plain[str(name)] = str(value)
    return plain


def speaking(now: Now) -> Now:
    """Return a copy whose events name the speaking voice. Return `now` itself if no voice is
    speaking.
    """
    turn = now.turn
    voice = turn.get("voice") if turn.get("status") in UNDER_WAY else None
    if voice is None:
        return now
    write = now.runtime.stream_writer
    runtime = now.runtime.override(stream_writer=lambda event: write({"voice": voice, **event}))
    return replace(now, runtime=runtime)
