"""The AST wall: parse a model's SQL, check it against what is allowed, mask, and write it anew."""
