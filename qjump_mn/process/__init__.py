"""Signals, child processes, privileges, environment variables and temporary folders."""
