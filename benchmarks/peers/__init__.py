"""One script a peer. Each runs in that peer's own virtual environment and imports nothing of fuelvk."""
