"""Open vSwitch's daemons, started without an init system: what a guest has instead of a service."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from qjump_mn.errors import MachineError

RUN = Path("/var/run/openvswitch")
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")

# count_cpu_cores() of OVS 3.1 and 3.5 answers 0 in a guest younger than ten seconds, and a vswitchd with no handler thread loses every
# packet; on the virtual clock waiting is free.
MINIMUM_UPTIME_S = 11

QUIET = ["-vconsole:off", "-vsyslog:off", "-vfile:off"]


def load_and_start() -> None:
    """Load the kernel datapath, start ovsdb-server and ovs-vswitchd with an empty database.

    Raises :class:`MachineError` with what they say if they do not start.
    """
    _run("modprobe", "openvswitch")
    for folder in (RUN, Path("/etc/openvswitch"), Path("/var/log/openvswitch")):
        folder.mkdir(parents=True, exist_ok=True)
    Path("/etc/resolv.conf").touch()
    database = RUN / "conf.db"
    _run("ovsdb-tool", "create", str(database), str(SCHEMA))
    _run("ovsdb-server", str(database), f"--remote=punix:{RUN}/db.sock", "--pidfile", "--detach", "--no-chdir", *QUIET)
    _run("ovs-vsctl", "--no-wait", "init")
    # One handler and one revalidator: more threads on one processor are only more wake-ups.
    _run("ovs-vsctl", "--no-wait", "set", "Open_vSwitch", ".", "other_config:n-handler-threads=1", "other_config:n-revalidator-threads=1")
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    time.sleep(max(0.0, MINIMUM_UPTIME_S - uptime))
    _run("ovs-vswitchd", f"unix:{RUN}/db.sock", "--pidfile", "--detach", "--no-chdir", *QUIET)


def check() -> None:
    """Raise :class:`MachineError` unless ovs-vsctl is answered."""
    _run("ovs-vsctl", "--timeout=5", "show")


def _run(*argv: str) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        raise MachineError(f"{argv[0]} is not installed: install openvswitch-switch") from None
    if done.returncode:
        raise MachineError(f"Open vSwitch does not work here: {' '.join(argv[:2])}: {(done.stderr or done.stdout).strip()}")
