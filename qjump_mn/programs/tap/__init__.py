"""A tap on a switch's port."""
