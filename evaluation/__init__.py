"""Evaluate models on questions of one's own: `longtable eval`."""
