"""The terminal: prompt, streams, and drawings of events."""
