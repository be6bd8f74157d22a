"""Run a command, such as somebody's Mininet script, in the machine: ``qjump-mn mn``."""
