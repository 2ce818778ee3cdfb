"""Pins: rules and definitions of the user, quoted word for word."""
