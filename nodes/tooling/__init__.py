"""Helpers for running tools: jobs, the audit, recall."""
