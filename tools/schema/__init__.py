"""The schema as the model sees it: search, sampled values, inferred keys, and the tools that answer
from them.
"""
