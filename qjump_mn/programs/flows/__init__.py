"""flows, the simulator's transfers of a distribution of sizes."""
