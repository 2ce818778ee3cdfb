"""Check figures: compare the figures of an answer with results, and test the figures of a query by
further queries.
"""
