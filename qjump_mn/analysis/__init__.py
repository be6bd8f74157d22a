"""Measures, claims and fidelity of a run directory. ``python -m qjump_mn.analysis RUN_DIR`` does everything after the run."""
