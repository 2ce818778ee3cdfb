"""Threads in a PostgreSQL server. `postgres_threads.py` opens them."""
