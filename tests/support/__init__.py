"""Helpers of the test suite; tested themselves in tests/meta."""
