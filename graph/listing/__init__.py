"""Lists over the threads of a store: which there are, and where they say something."""
