"""Threads as files: JSON lines, Markdown, HTML."""
