"""Check figures: those of an answer against results, and those of a query by further queries."""
