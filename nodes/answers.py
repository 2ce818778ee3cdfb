"""Read what a tool answered, as the model was told it."""

import json
from typing import Any

from langchain_core.messages import ToolMessage


def told_in(answer: ToolMessage) -> dict[str, Any]:
    """Return the JSON object of a tool's answer, empty where it is something else."""
    try:
        told = json.loads(answer.text)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
