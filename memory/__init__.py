"""The memory of a thread: which messages a call shows and what is kept. Pure functions and small
types.
"""
