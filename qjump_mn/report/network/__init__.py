"""A drawing of the network of a run: what each host does, how busy each link was, rows, and the picture."""
