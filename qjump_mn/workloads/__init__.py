"""A program that runs: see ``program``."""
