"""Tokens of a call, what a thread cost, and the figures in a text."""
