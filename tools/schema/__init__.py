"""The schema as the model sees it: search, sampled values and inferred keys, and the tools that
answer from these.
"""
