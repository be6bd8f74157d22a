"""The run directory: what a run asked for, what it left, and what was made of it.

``manifest`` and ``directory`` import the standard library and msgspec only, for they are used under sudo and
in the guest.
"""
