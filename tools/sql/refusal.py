"""Say no, and why: what the checks of the AST wall raise among themselves."""

from collections.abc import Sequence

from sqlglot import exp


class RefusedError(Exception):
    """A check failed; never leaves the wall. Where: a `place` in the text as asked, or the `node` at fault of the tree checked."""

    def __init__(
        self,
        rule: str,
        reason: str,
        hint: str = "",
        *,
        place: tuple[int, int] | None = None,
        node: exp.Expr | None = None,
        nearest: Sequence[str] = (),
    ) -> None:
        super().__init__(reason)
        self.rule, self.reason, self.hint = rule, reason, hint
        self.place, self.node, self.nearest = place, node, tuple(nearest)
