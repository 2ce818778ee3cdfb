"""The built-in analyst: a chat model without weights, so that everything runs without a key."""
