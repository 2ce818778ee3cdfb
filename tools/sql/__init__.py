"""The AST wall: parse a model's SQL, check it against lists of what is allowed, mask, and write it
anew.
"""
