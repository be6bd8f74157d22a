"""Run `vagrant up`, one arm of Figure 3a, `doctor` and `vagrant destroy` with the project's
Vagrantfile, in a tree with Vagrant and libvirt, without KVM. Print the commands and their times as
Markdown.

    python bench/vagrant.py [--write] MACHINE_FILE [WHEELS_FOLDER]

`--write` replaces the table in docs/machine.md. Needs root, overlayfs and /dev/net/tun. The tree
and the box are kept in the project's cache.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench import marks
from qjump_mn.errors import MachineError
from tests.vagrant import trial


def main() -> None:
    """Try, print and, if asked, write what ended well."""
    is_to_write = sys.argv[1:2] == ["--write"]
    machine, *more = map(Path, sys.argv[1 + is_to_write :])
    wheels = more[0] if more else None
    load = os.getloadavg()[0]
    try:
        steps = trial.tried(machine, wheels, lambda line: print(line, file=sys.stderr, flush=True))
    except MachineError as error:
        sys.exit(str(error))
    text = trial.text(steps, load)
    print(text)
    if steps[-1].status:
        sys.exit(f"`{steps[-1].command}` failed")
    if is_to_write:
        marks.write(ROOT / "docs/machine.md", "vagrant", text)


if __name__ == "__main__":
    main()
