"""The built-in analyst: a chat model that works by rules, without weights. With it, everything runs
without a provider's key.
"""
