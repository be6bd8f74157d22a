"""The program noise: bursts of full-size datagrams."""
