"""Helpers of the node `run_tools`: jobs, the audit, recall, privacy."""
