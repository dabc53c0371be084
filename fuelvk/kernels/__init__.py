"""How an op runs, what it costs and what it promises."""
