"""Measure pins on the blind sets, over the real graph: rules pinned, false pins, revocations in
view beside what they end.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from longtable.base.context import Context
from longtable.graph import Conversation, MemoryTools, build_graph
from longtable.memory.pins.pins import IN_PASSING, Pin
from tests.support.models import ScriptedModel

FOLDER = Path(__file__).parent / "blind"
Row = Mapping[str, Any]


def scripted(calls: Mapping[str, Mapping[str, Any]]) -> ScriptedModel:
    """Return a model that calls the tool named for a message (a pin "" is the one pinned last);
    else it says "Noted.".
    """

    def say(messages: Sequence[BaseMessage]) -> AIMessage:
        call = calls.get(messages[-1].text) if messages[-1].type == "human" else None
        pinned = [
            message.text.split()[-1] for message in messages if isinstance(message, ToolMessage)
        ]
        if call is None:
            return AIMessage("Noted.")
        args = {name: value or pinned[-1] for name, value in call["args"].items()}
        return AIMessage(
            "", tool_calls=[{"name": call["name"], "args": args, "id": f"c{len(pinned)}"}]
        )

    return ScriptedModel(say=say)


def talk(texts: Sequence[str], calls: dict[str, dict[str, Any]] | None = None) -> Conversation:
    """Return a conversation in which these were said; `calls`: with the tools, and what the model
    asks of them.
    """
    graph = build_graph(
        model=scripted(calls or {}), memory_tools=MemoryTools(pins=calls is not None)
    ).compile(InMemorySaver())
    conversation = Conversation(graph, context=Context(model_limit=32_000))
    for text in texts:
        conversation.ask(text)
    return conversation


def after_compaction(texts: Sequence[str]) -> str:
    """Return the view some turns and a compaction later, as one text."""
    conversation = talk([*texts, *(f"How many rows has table t{number}?" for number in range(8))])
    conversation.compact()
    return flat("\n".join(message.text for message in conversation.view()))


def flat(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


def holds(pins: Sequence[Pin], quote: str) -> bool:
    """Return whether a pin that holds has the quote, or is a sentence of it."""
    whole = flat(quote)
    return any(whole in flat(pin.text) or flat(pin.text) in whole for pin in pins if not pin.ended)


def call(name: str, **args: str) -> dict[str, Any]:
    """Return a call of a tool."""
    return {"name": name, "args": args}


def rows(name: str) -> list[Row]:
    """Return the lines of a set."""
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


def share(name: str, rows: Sequence[tuple[Row, bool]]) -> None:
    """Print how many were found, by language."""
    counts = ", ".join(
        f"{language} {sum(hit for row, hit in rows if row['lang'] == language)} of"
        f" {sum(row['lang'] == language for row, _ in rows)}"
        for language in ("en", "zh")
    )
    print(f"{name}: {sum(hit for _, hit in rows)} of {len(rows)} ({counts})")


def main() -> None:
    """Print the figures."""
    rules, others, changes = rows("rules.jsonl"), rows("not_rules.jsonl"), rows("changes.jsonl")
    print("without a model")
    share(
        "  rules pinned", [(row, holds(talk([row["text"]]).pins(), row["quote"])) for row in rules]
    )
    false = [(row, talk([row["text"]]).pins()) for row in others]
    share("  false pins", [(row, bool(pins)) for row, pins in false])
    print(
        "  all of them in passing:", all(pin.by == IN_PASSING for _, pins in false for pin in pins)
    )
    views = [(row, talk([row["rule"], *row["between"], row["change"]])) for row in changes]
    by_default = [
        (row, holds(each.pins(), row["rule"]), holds(each.pins(), row["quote"]))
        for row, each in views
    ]
    share(
        "  rule and revocation both in view",
        [(row, before and after) for row, before, after in by_default],
    )
    share(
        "  rule in view without its revocation",
        [(row, before and not after) for row, before, after in by_default],
    )
    compacted = [
        (row, after_compaction([row["rule"], *row["between"], row["change"]])) for row in changes
    ]
    both = [
        (row, flat(row["rule"]) in view and flat(row["quote"]) in view) for row, view in compacted
    ]
    share("  both in the whole view after a compaction by code", both)
    print("with a scripted model that uses the tools")
    with_tools = [
        (row, talk([row["text"]], {row["text"]: call("remember", quote=row["quote"])}))
        for row in rules
    ]
    share(
        "  rules pinned",
        [
            (row, holds([pin for pin in each.pins() if pin.by == "model"], row["quote"]))
            for row, each in with_tools
        ],
    )
    share("  rule ended by the user's quote", [(row, changed(row)) for row in changes])


def changed(row: Row) -> bool:
    """Return whether a change by tool leaves the old pin ended, with the quote, and the new one
    alone.
    """
    tool = (
        call("forget", pin="", quote=row["quote"])
        if row["kind"] == "ends"
        else call("remember", replaces="", quote=row["quote"])
    )
    calls = {row["rule"]: call("remember", quote=row["rule"]), row["change"]: tool}
    pins = [
        pin
        for pin in talk([row["rule"], *row["between"], row["change"]], calls).pins()
        if pin.by == "model"
    ]
    live = [pin for pin in pins if not pin.ended]
    ended = any(
        pin.ended and holds([pin], pin.text) is False and row["quote"] in pin.ended for pin in pins
    )
    return ended and (not live if row["kind"] == "ends" else holds(live, row["quote"]))


if __name__ == "__main__":
    main()
