"""The program mapreduce: a job in the simulator only."""
