"""iputils ping."""
