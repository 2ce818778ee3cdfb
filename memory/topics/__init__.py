"""The strategy `topics`: documents by subject whose sections cite messages."""
