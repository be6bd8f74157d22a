"""The network under test; `testbed` and `nodes` are the only modules that import mininet."""
