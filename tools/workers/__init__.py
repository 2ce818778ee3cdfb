"""Processes in which a model's texts are parsed, planned and run."""
