"""The rule on masked columns: where a query may use them, and which columns of its result are
masked.
"""
