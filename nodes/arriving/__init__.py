"""Incoming messages: those of a caller, the inbox, and the limits on both."""
