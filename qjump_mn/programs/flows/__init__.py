"""The program flows: transfers with a distribution of sizes, in the simulator only."""
