"""One step a module: a frozen dataclass over a pure core."""
