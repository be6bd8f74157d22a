"""What runs on the hosts: one folder a program, and the registry by which everything else reaches them."""
