"""Simulated people in the web chat: errors, times, processor, memory, and lost messages."""
