"""The engines, each with a wall of its own."""
