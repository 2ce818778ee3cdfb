"""The documentation: Markdown pages, and the script that writes the two that follow the code."""
