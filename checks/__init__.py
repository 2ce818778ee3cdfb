"""Checks of figures: of an answer against results, and of a query by further queries."""
