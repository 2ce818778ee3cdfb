"""The ways people run longtable."""
