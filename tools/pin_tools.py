"""remember and forget: a model pins what the user lays down, in the user's own words, and ends what they take back."""

from typing import Annotated, Protocol, runtime_checkable

from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool
from pydantic import BaseModel, ConfigDict, Field

KIND, NAMES = "pin", ("remember", "forget")
LEAST_LIMIT = 8_000
"""Limit in tokens below which the two tools are left out: with each call they take about 200."""


@runtime_checkable
class PinBoard(Protocol):
    """The pins of the thread, as the running turn may change them. Both methods raise `PinRefusedError`."""

    def remember(self, quote: str, replaces: str | None) -> str:
        """Pin a quote and return the pin's id."""
        ...

    def forget(self, pin: str, quote: str) -> str:
        """End a pin and return its id."""
        ...


class Remember(BaseModel):
    """Arguments of remember. `board` is the node's, never the model's."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    quote: str = Field(description="The user's own words, copied exactly from their message.")
    replaces: str | None = Field(default=None, description="Id of the pin that it takes the place of, such as p1a2b3c4.")
    board: Annotated[PinBoard, InjectedToolArg]


class Forget(BaseModel):
    """Arguments of forget. `board` is the node's, never the model's."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    pin: str = Field(description="Id of the pin, such as p1a2b3c4.")
    quote: str = Field(description="The user's own words that take it back, copied exactly from a later message.")
    board: Annotated[PinBoard, InjectedToolArg]


def pin_tools() -> list[BaseTool]:
    """Return remember and forget; a call's "args" must be given `board`, a `PinBoard`, before it is invoked."""

    def remember(board: PinBoard, quote: str, replaces: str | None = None) -> str:
        return f"pinned as {board.remember(quote, replaces)}"

    def forget(board: PinBoard, pin: str, quote: str) -> str:
        return f"{board.forget(pin, quote)} is ended"

    keeps = (
        "Keep a rule that the user lays down for later answers (unit, definition, filter, format, style), word for word."
        " Not for a question or a request of the moment, and never for what a tool returned."
    )
    return [
        StructuredTool.from_function(func=remember, name="remember", description=keeps, args_schema=Remember, metadata={"kind": KIND}),
        StructuredTool.from_function(
            func=forget,
            name="forget",
            description="End a pin that the user takes back.",
            args_schema=Forget,
            metadata={"kind": KIND},
        ),
    ]
