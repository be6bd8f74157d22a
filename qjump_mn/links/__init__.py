"""Models of a link: what makes an interface the end of one, how it is read back, and what its counters say.
One module a model."""
