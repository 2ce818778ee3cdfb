"""Tests of the room knowledge."""
