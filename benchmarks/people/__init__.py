"""Simulated people in the web chat, by the hundred: errors, times, processor, memory, lost messages."""
