"""Write statements that only read, and are no SELECT, as a SELECT."""
