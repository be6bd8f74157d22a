"""Experiment, scheme and topology files, and the plans that they resolve to; no I/O but in
`loading`.
"""
