"""What a reader gets: figures, ``report.html`` and ``report.md``, written from the run directory and nothing
else."""
