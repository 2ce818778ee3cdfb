"""The terminal: the prompt, the streams, and the drawing of events."""
