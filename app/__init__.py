"""The ways in which people run longtable. `open_with_settings` is for notebooks."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longtable.app.session import open_with_settings as open_with_settings

__all__ = ["open_with_settings"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'longtable.app' has no attribute {name!r}")
    from longtable.app.session import open_with_settings

    return open_with_settings
