"""Holds results against claims: comparison, oracles, inputs, protocols."""
