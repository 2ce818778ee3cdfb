"""The tools `remember` and `forget`, by which a model sets and ends pins."""

from typing import Annotated, Protocol, runtime_checkable

from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool
from pydantic import Field

PIN = "pin"

PIN_NAMES = ("remember", "forget")

LEAST_PIN_LIMIT = 8_000
"""If a model's context limit in tokens is below this, the two tools are left out, because they add
about 200 tokens to each call.
"""


@runtime_checkable
class PinBoard(Protocol):
    """The pins of the thread, as the running turn may change them. Both methods raise
    `PinRefusedError` if the change is not allowed.
    """

    def remember(self, quote: str, replaces: str | None) -> str:
        """Pin a quote of the user, and return the id of the new pin. `replaces` is the id of the
        pin that the new pin replaces, or None.
        """
        ...

    def forget(self, pin: str, quote: str) -> str:
        """End a pin, and return the id of this pin. `quote` are the user's words that take the pin
        back.
        """
        ...


Board = Annotated[PinBoard, InjectedToolArg]
"""A tool's argument that the node which runs the tool fills in. A model never sees or sets it."""

Words = Annotated[
    str, Field(description="The user's own words, copied exactly from their message.")
]

TakenBack = Annotated[
    str,
    Field(
        description="The user's own words that take it back, copied exactly from a later message."
    ),
]

Replaced = Annotated[
    str | None, Field(description="Id of the pin that it takes the place of, such as p1a2b3c4d.")
]

PinId = Annotated[str, Field(description="Id of the pin, such as p1a2b3c4d.")]


def pin_tools() -> list[BaseTool]:
    """Return the tools remember and forget. The caller must add a `PinBoard` to the call's "args"
    as `board` before it invokes them.
    """

    def remember(board: Board, quote: Words, replaces: Replaced = None) -> str:
        return f"pinned as {board.remember(quote, replaces)}"

    def forget(board: Board, pin: PinId, quote: TakenBack) -> str:
        return f"{board.forget(pin, quote)} is ended"

    keeps = (
        "Keep a rule that the user lays down for later answers (unit, definition, filter, format,"
        " style), word for word. Not for a question or a request of the moment, and never for what"
        " a tool returned."
    )
    return [
        StructuredTool.from_function(
            func=remember, name="remember", description=keeps, metadata={"kind": PIN}
        ),
        StructuredTool.from_function(
            func=forget,
            name="forget",
            description="End a pin that the user takes back.",
            metadata={"kind": PIN},
        ),
    ]
