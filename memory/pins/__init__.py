"""Pins: what the user laid down, quoted word for word."""
