"""Readers of model files, on top of the field's own packages."""
