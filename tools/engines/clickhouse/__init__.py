"""ClickHouse: its engine, its connection, its catalogue, its values and its errors."""
