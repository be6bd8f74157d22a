"""The machine that commands run in: the reference machine, and what scripts expect beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from qjump_mn import guest
from qjump_mn.guest import images
from qjump_mn.model.command import Command
from qjump_mn.toolbox import build
from qjump_mn.toolbox.cpio import Node

_PYTHON = "usr/lib/python3/dist-packages"
_MININET = "/opt/mininet"

# A .pth file, unlike sitecustomize.py, works beside another one.
_HOOK = b"import qjump_mn_guest.hook\n"

# Everything runs as root, so sudo has nothing to do: it skips its own options.
_SUDO = b"""\
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    -u|-g|-p|-C|-D|-h) shift 2 ;;
    --) shift; break ;;
    -*) shift ;;
    *=*) export "$1"; shift ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || exec "$SHELL"
exec "$@"
"""


def prepare(command: Command, own: Path, progress: Callable[[str], None]) -> guest.Image:
    """Return the image for a command; ``own`` is its run's folder own/."""
    nodes: dict[str, bytes | Path] = {
        name: node.content for name, node in _nodes().items() if node.content is not None
    }
    return images.prepare(progress, extra=nodes)


def environment(command: Command) -> dict[str, str]:
    """Return the environment variables that a command has in addition to the machine's."""
    variables = {"QJUMP_MN_LINK": command.link} if command.link else {}
    if command.mininet_sha256:
        variables |= {"PYTHONPATH": _MININET, "PATH": f"{_MININET}/bin:/usr/sbin:/usr/bin"}
    # Nothing is shown on a screen: a figure goes to a file.
    return {"MPLBACKEND": "Agg", **variables}


def _nodes() -> dict[str, Node]:
    """Return our own files in the machine, by names relative to /."""
    packages = {
        "qjump_mn_guest": Path(__file__).parent / "inside",
        "mininet_qos": build.folder("mininet-qos") / "src/mininet_qos",
    }
    sources = {
        f"{_PYTHON}/{name}/{path.name}": Node.file(path)
        for name, folder in packages.items()
        for path in sorted(folder.glob("*.py"))
    }
    return {
        **sources,
        f"{_PYTHON}/qjump_mn_guest.pth": Node.file(_HOOK),
        "usr/bin/sudo": Node.file(_SUDO, 0o755),
    }
