"""Helpers for the end of a turn: failures, notices, flagged figures, tokens used."""
