"""Whole results of queries, which are kept outside the checkpoint."""
