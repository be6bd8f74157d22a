"""Read and write run directories: manifest, raw output, tables, verdicts.

``manifest`` and ``directory`` are also used under sudo and in the guest, so they import only the
standard library and msgspec.
"""
