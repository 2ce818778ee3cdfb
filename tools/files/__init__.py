"""People's own files as a database: CSV, Parquet, JSON and Excel."""
