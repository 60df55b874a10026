"""Live state and loops."""
