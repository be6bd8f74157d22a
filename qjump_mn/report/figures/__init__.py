"""How each figure is drawn: one module a figure, found by name in ``registry``; styles and published values are data in plots/."""
