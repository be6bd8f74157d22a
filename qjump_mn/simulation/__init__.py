"""Run trials in the simulator ``qjump_sim``. Only import this package where ``qjump_sim`` is
installed.
"""
