"""The call of a model: its settings, its errors, what goes with it."""
