"""What every op means, executable: float64 oracles (`numpy`) and the deterministic C kernels (`c`)."""
