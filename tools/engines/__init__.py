"""The database engines, each with its own wall."""
