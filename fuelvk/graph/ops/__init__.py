"""One file per fused op; each defines ``OP``, a FusedOpEntry."""
