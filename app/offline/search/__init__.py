"""Read a question by search: every span may mean several things, the cheapest whole reading wins."""
