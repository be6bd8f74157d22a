"""Open vSwitch's daemons, started without an init system: what a guest has instead of a service."""

from __future__ import annotations

from qjump_mn.executor.steps import Run, Sleep, Steps
from qjump_mn.steps.network import modprobe

FOLDER = "/var/run/openvswitch"
FOLDERS = f"mkdir -p {FOLDER} /etc/openvswitch /var/log/openvswitch; >>/etc/resolv.conf"
"""ovs-vswitchd complains without the last."""
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
DAEMON = ("--pidfile", "--detach", "--no-chdir", "-vconsole:off", "-vsyslog:off", "-vfile:off")

MINIMUM_UPTIME_S = 11
"""count_cpu_cores() of Open vSwitch 3.1 and 3.5 answers 0 on a machine younger than ten seconds, and a
vswitchd with no handler thread loses every packet; on the virtual clock waiting is free."""


def start() -> Steps:
    """ovsdb-server with an empty database, and ovs-vswitchd on the kernel's datapath."""
    database, socket = f"{FOLDER}/conf.db", f"{FOLDER}/db.sock"
    # One handler and one revalidator: more threads on one processor are only more wake-ups.
    threads = ("other_config:n-handler-threads=1", "other_config:n-revalidator-threads=1")
    return (
        modprobe("openvswitch"),
        Run(argv=("sh", "-e", "-c", FOLDERS)),
        Run(argv=("ovsdb-tool", "create", database, SCHEMA)),
        Run(argv=("ovsdb-server", database, f"--remote=punix:{socket}", *DAEMON)),
        Run(argv=("ovs-vsctl", "--no-wait", "init", "--", "set", "Open_vSwitch", ".", *threads)),
        Sleep(after_s=MINIMUM_UPTIME_S),
        Run(argv=("ovs-vswitchd", f"unix:{socket}", *DAEMON)),
    )
