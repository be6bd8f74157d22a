"""The program command: any command line on any hosts."""
