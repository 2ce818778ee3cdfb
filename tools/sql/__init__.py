"""The AST wall: parse a model's SQL, check it against lists of what is allowed, find masked
columns, and write the SQL anew.
"""
