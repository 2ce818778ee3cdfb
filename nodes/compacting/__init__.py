"""Helpers of the step `compact`: archive files and events."""
