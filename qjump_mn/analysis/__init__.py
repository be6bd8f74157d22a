"""Measures, claims and fidelity of a run directory. ``python3 -m qjump_mn.analysis RUN_DIR`` does
everything after the run."""
