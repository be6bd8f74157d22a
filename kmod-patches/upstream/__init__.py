"""What kmod-patches/series is made of: the sources of the module and of tc's plugin as series of patches
against a tree of the kernel and one of iproute2.

Standard library and git only: whoever sends the patches needs nothing else of the project.
"""
