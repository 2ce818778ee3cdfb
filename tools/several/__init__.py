"""Several databases that one conversation asks: the collection of them, their tools, and databases
that open late.
"""
