"""Steps of a network and of its trials: compiled from a plan, printed as a shell script, compared with what
was built."""
