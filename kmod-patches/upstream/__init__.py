"""The implementation of kmod-patches/series: turn the sources of the module and of the tc plugin
into patch series against a kernel tree and an iproute2 tree.

It uses only the standard library and git, so that the sender needs nothing else of this project.
"""
