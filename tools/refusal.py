"""Say no, and why: what the checks of the AST wall raise among themselves."""

from collections.abc import Sequence


class RefusedError(Exception):
    """A check failed; never leaves the wall."""

    def __init__(
        self, rule: str, reason: str, hint: str = "", *, place: tuple[int, int] | None = None, nearest: Sequence[str] = ()
    ) -> None:
        super().__init__(reason)
        self.rule, self.reason, self.hint = rule, reason, hint
        self.place, self.nearest = place, tuple(nearest)
