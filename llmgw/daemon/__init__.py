"""The process: sockets, signals, start, reload, upgrade and stop, and the composition root."""
