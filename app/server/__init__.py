"""Routes beside Agent Server's own."""
