"""A simulated inference node, with faults on demand."""
