"""Count the tokens of a call and the cost of a thread, and read the figures in a text."""
