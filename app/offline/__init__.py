"""The old place of the built-in analyst; deprecated in 0.2, it goes with 0.3."""
