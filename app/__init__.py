"""The ways people run longtable. `open_conversation` is the one for notebooks."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longtable.app.session import open_conversation as open_conversation

__all__ = ["open_conversation"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'longtable.app' has no attribute {name!r}")
    from longtable.app.session import open_conversation

    return open_conversation
