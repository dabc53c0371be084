"""From a graph of values to a plan: fuse, decompose, place, route."""
