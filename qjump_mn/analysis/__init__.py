"""Analyse a run directory: measures, fidelity, claims (``python3 -m qjump_mn.analysis
RUN_DIR``)."""
