"""Print the path of the file for ``mn --custom``."""

from pathlib import Path

print(Path(__file__).with_name("custom.py"))
