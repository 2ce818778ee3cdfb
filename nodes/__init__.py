"""The steps of a turn. Each module here has one step (a node of the graph), as a frozen dataclass
over pure functions.
"""
