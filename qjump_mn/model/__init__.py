"""What an experiment is: typed, strict, and without any I/O beyond loading files."""
