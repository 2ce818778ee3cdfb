"""Incoming messages: the input of a caller, the inbox, and the limits on both."""
