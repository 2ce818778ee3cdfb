"""Tests of the ClickHouse engine."""
