"""Models written with the public Tensor API only."""
