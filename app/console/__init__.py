"""The terminal: prompt, streams, and what is drawn on it."""
