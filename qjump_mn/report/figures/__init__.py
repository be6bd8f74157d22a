"""How each figure is drawn, one module a figure; styles and published values are data in plots/."""
