"""Tests of the built-in analyst over real databases."""
