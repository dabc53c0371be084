"""Devices, storage, and the execution of plans."""
