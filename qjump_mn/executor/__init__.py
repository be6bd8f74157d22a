"""Carry out steps, in the guest or on the host; knows nothing of experiments, plans or parsers.

This package is all of our Python code in the guest's image, where it is called ``executor``. So it
imports only the standard library, msgspec, Mininet and, by relative names, itself.
"""
