"""A program of your own; its name is that of this folder."""
