"""The program q2pc (native/q2pc): two-phase commits."""
