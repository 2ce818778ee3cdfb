"""Run turns on a thread and read their streams."""
