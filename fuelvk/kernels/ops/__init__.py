"""One file per op (or family of primitives); each defines ``IMPLS``, a tuple of Registration."""
