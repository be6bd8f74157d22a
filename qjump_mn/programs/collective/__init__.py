"""The program collective: all-reduce and all-to-all, in the simulator only."""
