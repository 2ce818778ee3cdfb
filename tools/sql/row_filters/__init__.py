"""Row filters: check the conditions of a policy, and put them where a query reads a table."""
