"""Which process it is: a pid alone may be somebody else's by now."""

from __future__ import annotations

from pathlib import Path


def stat(pid: int) -> list[str]:
    """The fields of a process or thread in /proc/PID/stat from its state on, see proc(5); none when there is
    none."""
    try:
        # Its name, in brackets, may have brackets and spaces.
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def tag(pid: int) -> str:
    """The pid and when the process started, in clock ticks, as "1234.5678"; empty when there is none."""
    fields = stat(pid)
    return f"{pid}.{fields[19]}" if fields else ""


def is_alive(tagged: str) -> bool:
    """Whether the process with this tag still runs. One without a tag, of a place that has no /proc, may."""
    return not tagged or tag(int(tagged.split(".")[0])) == tagged
