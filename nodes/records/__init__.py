"""What is kept of threads in the store, and found there again."""
