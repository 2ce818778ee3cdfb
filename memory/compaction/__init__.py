"""Compact a thread: what yields when, what a new memory must be, the record it leaves."""
