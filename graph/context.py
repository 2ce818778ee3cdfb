"""Settings of one run. Studio draws its form from the fields' metadata."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from longtable.graph.errors import ConfigError


def _setting(default: Any, description: str, **extra: Any) -> Any:
    metadata: dict[str, Any] = {"description": description}
    if extra:
        metadata["json_schema_extra"] = extra
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Context:
    """Per-run settings, checked when built; a wrong value raises `ConfigError` naming field, value and what is allowed."""

    model_limit: int | None = _setting(
        None, "The model's input limit in tokens. Empty: from the model's profile or the table of known models."
    )
    system_prompt: str | None = _setting(
        None,
        "Replaces the built-in system prompt. Memory is added below it.",
        langgraph_nodes=["respond"],
        langgraph_type="prompt",
    )
    memory_prompt: str | None = _setting(
        None,
        "Replaces the instructions of the summariser.",
        langgraph_nodes=["compact"],
        langgraph_type="prompt",
    )
    language: str | None = _setting(None, "Language of notices: 'en' or 'zh'. Empty: the language of the newest message.")
    max_model_calls: int = _setting(12, "Model calls allowed in one turn; then the turn ends with a notice.")
    max_overflow_retries: int = _setting(3, "How often a turn folds harder after the provider says the context is too long.")
    max_message_chars: int = _setting(8_000, "Characters allowed in one message of the user.")

    def __post_init__(self) -> None:
        bounds = {"max_model_calls": 1, "max_overflow_retries": 0, "max_message_chars": 1}
        if self.model_limit is not None:
            bounds["model_limit"] = 1
        for name, least in bounds.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ConfigError(f"Context.{name} must be a whole number of at least {least}, found {value!r}")
        if self.language not in (None, "en", "zh"):
            raise ConfigError(f"Context.language must be 'en', 'zh' or None, found {self.language!r}")
        for name in ("system_prompt", "memory_prompt"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value.strip()):
                raise ConfigError(f"Context.{name} must be text that is not blank, or None, found {value!r}")

    def replace(self, **changes: Any) -> "Context":
        """Return a copy with these fields changed, checked anew."""
        return dataclasses.replace(self, **changes)
