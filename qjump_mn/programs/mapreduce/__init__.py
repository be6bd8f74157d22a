"""mapreduce, the simulator's job."""
