"""Make the call config, the call plan and the view of a thread's next call, from its state."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from langchain_core.messages import BaseMessage

from longtable.base.concurrency import BoundedCache
from longtable.base.context import Context
from longtable.memory.call_config import CallConfig
from longtable.memory.counting.calibration import Calibration
from longtable.memory.messages.marks import MATERIAL, mark_of
from longtable.memory.messages.reasoning import reasoning_sent
from longtable.memory.policy import CompactionPolicy
from longtable.memory.view import CallPlan, build_view
from longtable.memory.voices import Voice
from longtable.nodes.state import (
    UNDER_WAY,
    Learned,
    Schema,
    State,
    StoredConfig,
    StoredVoice,
    Turn,
    thread_of,
    turn_of,
)

CACHED_READINGS = 128
"""Most policies, and most calibrations, that a graph keeps in memory. A thread with a running turn
needs a few of each.
"""


@dataclass(frozen=True)
class Readings:
    """Read stored policies and calibrations. The objects are cached by the stored content, so that
    equal content is read only once.
    """

    policies: BoundedCache[str, CompactionPolicy] = field(
        default_factory=lambda: BoundedCache(CACHED_READINGS)
    )
    calibrations: BoundedCache[str, Calibration] = field(
        default_factory=lambda: BoundedCache(CACHED_READINGS)
    )

    def policy(self, config: StoredConfig) -> CompactionPolicy:
        """Return the compaction policy of a thread."""
        stored = config.get("policy") or {}
        key = json.dumps(stored)
        known = self.policies.get(key)
        return known or self.policies.put(key, CompactionPolicy.from_json(stored))

    def calibration(self, learned: Learned | None) -> Calibration:
        """Return the calibration in a thread's state: what was learned from the reports and errors
        of its provider.
        """
        stored = learned or {}
        key = json.dumps(stored)
        known = self.calibrations.get(key)
        return known or self.calibrations.put(key, Calibration.from_json(stored))


def call_plan_of(values: State, context: Context, *, shared: bool = False) -> CallPlan:
    """Return the next call of a thread before anything is shortened or left out. For `shared` see
    `CallSource.call_config`.
    """
    return CallPlan(thread_of(values), call_config_of(values, context, shared=shared))


def call_config_of(values: State, context: Context, *, shared: bool = False) -> CallConfig:
    """Return the call config of a thread's next call; see `CallSource.call_config`."""
    return CallSource.of(values, context).call_config(shared=shared)


@dataclass(frozen=True)
class CallSource:
    """The parts from which the call config of a thread's next call is made."""

    config: StoredConfig
    policy: CompactionPolicy
    calibration: Calibration
    context: Context
    turn: Turn = field(default_factory=Turn)
    messages: Sequence[BaseMessage] = ()

    @classmethod
    def of(cls, values: State, context: Context) -> "CallSource":
        """Return the parts for a thread's state and a run's settings."""
        readings = Readings()
        config = values.get("brief") or {}
        return cls(
            config=config,
            policy=readings.policy(config),
            calibration=readings.calibration(values.get("learned")),
            context=context,
            turn=turn_of(values),
            messages=values.get("messages") or [],
        )

    def call_config(self, *, shared: bool = False) -> CallConfig:
        """Return the call config: the thread's stored config, overridden by this run's settings.

        With a team it is the config of the speaking voice. Between turns, or if `shared` is true,
        it is the config of the voice with the least room, as if that voice heard everyone.
        Compactions use `shared`, because they serve all voices.
        """
        voices = self.config.get("voices")
        if not voices:
            return _call_config(self)
        id_ = self.turn.get("voice", "")
        if id_ in voices and self.turn.get("status") in UNDER_WAY and not shared:
            voice = _speaking_voice(id_, voices, self.turn)
            return replace(_call_config(self, voices[id_]), voice=voice)
        configs = [_call_config(self, each) for each in voices.values()]
        return min(configs, key=lambda config: config.threshold_tokens - config.around_tokens)


def _speaking_voice(id_: str, voices: Mapping[str, StoredVoice], turn: Turn) -> Voice:
    own = voices[id_]
    words: dict[str, str] = {}
    for other, each in voices.items():
        words |= dict.fromkeys(each["words"], other)
    names = {other: each["name"] for other, each in voices.items()}
    apart = turn.get("number", 0) if own["apart"] else 0
    return Voice(id=id_, names=names, words=words, rounds=own["rounds"], apart=apart)


def _call_config(source: CallSource, voice: StoredVoice | None = None) -> CallConfig:
    brief = source.config
    context = source.context
    turn = source.turn
    about = cast("StoredConfig", {**brief, **(voice or {})})
    learned = source.calibration
    if voice is not None and voice["own_model"]:
        learned = Calibration()  # what one provider taught says nothing of another
    own_model = voice is not None and voice["own_model"]
    limit = (None if own_model else context.model_limit) or about.get("limit") or 0
    config = CallConfig(
        system=_system_text(source, voice),
        tool_tokens=about.get("tool_tokens", 0),
        limit=min(limit, learned.limit or limit),
        encoding=about.get("encoding") or "o200k_base",
        policy=source.policy,
    )
    return replace(
        config,
        # A ceiling holds for the turn that met it.
        ceiling=turn.get("ceiling") if turn.get("status") in UNDER_WAY else None,
        factor=learned.factor,
        window=brief.get("window"),
        pin_tools=about.get("pin_tools", False),
        reasoning=reasoning_sent(str(about.get("model") or "")),
        material_tokens=_material_tokens(source.messages),
    )


def _system_text(source: CallSource, voice: StoredVoice | None) -> str:
    """Return the system text of a voice: the voice's own prompt and, if it may ask the database,
    the graph's system prompt and the schema. Without a team (`voice` is None) it is only the latter
    two.
    """
    parts = ["" if voice is None else voice["system"]]
    if voice is None or voice["has_data"]:
        parts.append(source.context.system_prompt or source.config.get("system") or "")
        parts.append(schema_text(source.config.get("schema")))
    return "\n\n".join(filter(None, parts))


def _material_tokens(messages: Sequence[BaseMessage]) -> int:
    """Return how many tokens the material of context providers needed in the newest call."""
    for message in reversed(messages):
        if message.type == "ai":
            tokens = mark_of(message, MATERIAL)
            return tokens if isinstance(tokens, int) and tokens > 0 else 0
    return 0


def schema_text(schema: Schema | None) -> str:
    """Return the text about the schema that follows the system prompt: a note if the schema
    changed, and the card (a short description of the tables), of each database under its name. ""
    without a schema.
    """
    if not schema:
        return ""
    if "databases" not in schema:
        return "\n".join(filter(None, [schema.get("note"), schema.get("card")]))
    parts = {name: schema_text(each) for name, each in schema["databases"].items()}
    return "\n\n".join(f"Database {name}. {text}" for name, text in parts.items() if text)


def next_view(values: Mapping[str, Any], context: Context | None = None) -> list[BaseMessage]:
    """Return exactly the messages that the next model call of a thread would be sent.

    `values`: the thread's state, as `graph.get_state(config).values` gives it. The function is
    pure: the same input gives the same view. The view of a thread that never ran is empty.
    """
    state = cast("State", values)
    if not state.get("brief"):
        return []
    return build_view(call_plan_of(state, context or Context())).messages
