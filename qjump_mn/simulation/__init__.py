"""Trials in the simulator: as scenarios of ``qjump_sim``, run, and what is kept of them. Imported only where
``qjump_sim`` can be."""
