"""Compact a thread: choose the messages to compact, check the new memory, and record it."""
