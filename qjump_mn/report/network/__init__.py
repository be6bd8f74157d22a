"""Draw the network of a run: what each host does, and how busy each link was."""
