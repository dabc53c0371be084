"""The closed set of primitives, one file per family; each defines ``OPS``, a tuple of PrimitiveEntry."""
