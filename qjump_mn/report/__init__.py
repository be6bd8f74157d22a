"""Draw figures and write ``report.html`` and ``report.md``, from the run directory alone."""
