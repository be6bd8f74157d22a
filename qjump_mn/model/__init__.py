"""The types of experiments, schemes, topologies, workloads and plans: plain data, no I/O."""
