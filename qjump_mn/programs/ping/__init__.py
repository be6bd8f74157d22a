"""The program ping: round trips by iputils' ping or by nsping."""
