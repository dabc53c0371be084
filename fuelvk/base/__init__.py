"""Ground floor: dtypes, shapes, errors, environment, hashing. Imports nothing else of fuelvk."""
