"""Whole results of queries, kept outside the checkpoint."""
