"""Where a plan is run: on this host's kernel, or in a guest with a clock of its own."""
