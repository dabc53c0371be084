"""Timings of fuelvk and of its peers, taken in turn in one run: ``python -m benchmarks``."""
