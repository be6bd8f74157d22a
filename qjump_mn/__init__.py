"""Reproduce, teach and extend datacenter-QoS research: QJump (NSDI'15) in Mininet."""

__version__ = "0.1.0"
