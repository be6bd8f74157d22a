"""Backends, which run a plan's trials: in a guest, on this host's kernel, or in the simulator."""
