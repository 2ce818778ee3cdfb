"""Rows of a table that compares what was measured with what is wanted, misses too."""

HEAD = "| measured | figure | goal | |\n|---|---:|---:|---|"


def row(what: str, figure: float, goal: float | None) -> str:
    """Return the row of a figure, which should be at most its goal. A figure without a goal is only
    printed.
    """
    if goal is None:
        return f"| {what} | {figure:.2f} | | |"
    met = "met" if figure <= goal else "missed"
    return f"| {what} | {figure:.2f} | {goal:g} | {met} |"
