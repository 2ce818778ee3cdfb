"""Settings of all tests."""

from hypothesis import settings

# No deadline for one example: the first may load a tokenizer, and the machine may be busy. The whole test has a timeout.
settings.register_profile("longtable", deadline=None)
settings.load_profile("longtable")
