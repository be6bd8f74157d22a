"""noise, bursts of full-size datagrams."""
