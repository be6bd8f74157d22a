"""command, any command line on any hosts."""
