"""What an op means: names, shapes, dtypes, decompositions, derivatives. Knows no kernel and no device."""
