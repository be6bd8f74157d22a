"""A bundle: one run in one file that somebody else can check."""
