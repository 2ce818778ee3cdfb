"""Make the call config, the call plan and the view of a thread's next call, from its state."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import BaseMessage

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
    Schema,
    State,
    StoredConfig,
    StoredVoice,
    thread_of,
    turn_of,
)


def call_plan_of(values: State, context: Context, *, shared: bool = False) -> CallPlan:
    """Return the next call of a thread before anything gives way; `shared`: as a compaction sees
    it, see `call_config_of`.
    """
    return CallPlan(thread_of(values), call_config_of(values, context, shared=shared))


def calibration_of(values: State) -> Calibration:
    """Return what the thread's provider taught about its counting."""
    return Calibration.from_json(values.get("learned") or {})


def call_config_of(values: State, context: Context, *, shared: bool = False) -> CallConfig:
    """Return the call config of a thread's next call: the stored one, with this run's settings on
    top.

    With a team, that of the voice which is asked; between turns, or where `shared` (a compaction
    serves all voices), that of the voice with least room, which then hears all.
    """
    brief = values.get("brief") or {}
    turn = turn_of(values)
    if not (voices := brief.get("voices")):
        return _call_config(values, context, brief)
    id_ = turn.get("voice", "")
    if id_ in voices and turn.get("status") in UNDER_WAY and not shared:
        apart = turn.get("number", 0) if voices[id_]["apart"] else 0
        words = {word: other for other, each in voices.items() for word in each["words"]}
        names = {other: each["name"] for other, each in voices.items()}
        voice = Voice(id=id_, names=names, words=words, rounds=voices[id_]["rounds"], apart=apart)
        return replace(_call_config(values, context, brief, voices[id_]), voice=voice)
    configs = [_call_config(values, context, brief, each) for each in voices.values()]
    return min(configs, key=lambda config: config.threshold_tokens - config.around_tokens)


def _call_config(
    values: State,
    context: Context,
    brief: StoredConfig,
    voice: StoredVoice | None = None,
) -> CallConfig:
    about = cast("StoredConfig", {**brief, **(voice or {})})
    turn = turn_of(values)
    learned = calibration_of(values)
    if voice is not None and voice["own_model"]:
        learned = Calibration()  # what one provider taught says nothing of another
    limit = (
        (None if voice is not None and voice["own_model"] else context.model_limit)
        or about.get("limit")
        or 0
    )
    own = "" if voice is None else voice["system"]
    with_data = voice is None or voice["has_data"]
    system = (context.system_prompt or brief.get("system")) if with_data else ""
    return CallConfig(
        system="\n\n".join(
            filter(None, [own, system, schema_text(brief.get("schema")) if with_data else ""])
        ),
        tool_tokens=about.get("tool_tokens", 0),
        limit=min(limit, learned.limit or limit),
        encoding=about.get("encoding") or "o200k_base",
        policy=CompactionPolicy.from_json(brief.get("policy") or {}),
        # A ceiling holds for the turn that met it.
        ceiling=turn.get("ceiling") if turn.get("status") in UNDER_WAY else None,
        factor=learned.factor,
        window=brief.get("window"),
        pin_tools=about.get("pin_tools", False),
        reasoning=reasoning_sent(str(about.get("model") or "")),
        material_tokens=_material_tokens(values.get("messages") or []),
    )


def _material_tokens(messages: Sequence[BaseMessage]) -> int:
    """Return the tokens that material of context providers wanted of the newest call."""
    for message in reversed(messages):
        if message.type == "ai":
            tokens = mark_of(message, MATERIAL)
            return tokens if isinstance(tokens, int) and tokens > 0 else 0
    return 0


def schema_text(schema: Schema | None) -> str:
    """Return what of a database's schema stands below the system prompt: that it has changed, and
    its card.
    """
    return "\n".join(filter(None, [schema.get("note"), schema.get("card")])) if schema else ""


def next_view(values: Mapping[str, Any], context: Context | None = None) -> list[BaseMessage]:
    """Return exactly the messages the next model call of this thread would be sent.

    `values`: a thread's state, as `graph.get_state(config).values` gives it. Pure: same input, same
    view. A thread that never ran has no brief yet: its view is empty.
    """
    state = cast("State", values)
    if not state.get("brief"):
        return []
    return build_view(call_plan_of(state, context or Context())).messages
