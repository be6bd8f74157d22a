"""All that travels into the guest beside the programs: carries steps out, knows nothing of experiments, plans
or parsers.

It imports the standard library, msgspec and Mininet only, and itself by relative names: in the guest it is
the package ``executor``.
"""
