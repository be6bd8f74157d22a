"""The program iperf: bulk flows by iperf3."""
