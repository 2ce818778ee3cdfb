"""Helpers of the node `compact`: archive files and events."""
