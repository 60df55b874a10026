"""Decisions: values and pure functions; no await, clock, socket or logger."""
