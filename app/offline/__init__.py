"""The built-in analyst: a chat model that needs no weights."""
