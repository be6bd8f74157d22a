"""Start Open vSwitch's daemons in a guest, which has no init system."""

from __future__ import annotations

from qjump_mn.executor.steps import Run, Sleep, Steps
from qjump_mn.steps.network import modprobe

FOLDER = "/var/run/openvswitch"
FOLDERS = f"mkdir -p {FOLDER} /etc/openvswitch /var/log/openvswitch; >>/etc/resolv.conf"
"""Create the daemons' folders, and /etc/resolv.conf, without which ovs-vswitchd complains."""
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
DAEMON = ("--pidfile", "--detach", "--no-chdir", "-vconsole:off", "-vsyslog:off", "-vfile:off")

MINIMUM_UPTIME_S = 11
"""Seconds since boot before ovs-vswitchd may start; on the virtual clock waiting is free.

count_cpu_cores() of Open vSwitch 3.1 and 3.5 returns 0 on a machine up for less than ten seconds,
and a vswitchd without a handler thread loses every packet.
"""


def start() -> Steps:
    """Start ovsdb-server with an empty database, and ovs-vswitchd on the kernel's datapath."""
    database, socket = f"{FOLDER}/conf.db", f"{FOLDER}/db.sock"
    # More threads on one processor would only mean more wake-ups.
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
