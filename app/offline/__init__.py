"""The name under which the built-in analyst was imported until 0.1; it goes with 0.2."""
