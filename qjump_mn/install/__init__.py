"""Install what a checkout needs: its Python environment, and the command `qjump-mn`."""
