"""Your own program, named after this folder."""
