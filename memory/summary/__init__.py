"""The text of a summary: written by code, or read from a model's answer and checked."""
