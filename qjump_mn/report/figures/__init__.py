"""Draw the figures, a module for each kind; styles and published values are data in plots/."""
