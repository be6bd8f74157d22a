"""The cost of a qdisc per packet, in ns above noqueue, or in instructions if one takes a ns.

pktgen sends bursts of 800 frames of 60 B through the qdisc of a dummy device, each frame after the
one before it has left. A burst takes 2 ms and the kernel's tick comes every 4 ms, so the smallest
of eight bursts contains no tick; a first burst is not counted. pktgen reports frames per second,
which gives the time per frame to 5 ppm.

pktgen counts sent frames only, and never ends if all are dropped. So a loop of sendto() measures
`udp`, some of the qdiscs again, and `paths`, packets that do not leave. (In the noqueue base they
leave, which makes some figures negative.) `held` waits in a level that has used up its budget,
`limit` finds it full, `policed` exceeds the budget of qjump2015, `oversize` costs more than the
budget; tbf is for comparison.

`wire_pauses`: a wire while another one pauses its link partner, and after that one is gone.

BPF is measured last, so that it does not affect other figures. `jit` is 1 if it was compiled to
machine code, which is the default.
"""

import os
import socket
import time

import bpf
import rig

BURST, BURSTS = 800, 8
PRIO = "root handle 1: prio bands 8 priomap 7 6 5 4 3 2 1 0 0 0 0 0 0 0 0 0"
ETS = "root handle 1: ets bands 8 strict 8 priomap 7 6 5 4 3 2 1 0 0 0 0 0 0 0 0 0"
TBF = "tbf rate 30gbit burst 1mb limit 1mb"
HTB = ["root handle 1: htb default 1", "parent 1: classid 1:1 htb rate 30gbit", "parent 1:1 pfifo limit 1000"]
# name: (skb->priority, qdiscs). With an epoch of 10 ms a packet finds an open slot; with 1 us each
# packet opens its own.
QDISCS: dict[str, tuple[int, list[str]]] = {
    "pfifo_fast": (0, ["root pfifo_fast"]),
    "pfifo": (0, ["root pfifo limit 1000"]),
    "tbf": (0, [f"root {TBF}"]),
    "htb_pfifo": (0, HTB),
    "prio8_tbf_level7": (7, [PRIO, *(f"parent 1:{band} {TBF}" for band in range(1, 9))]),
    "prio8_tbf_level0": (0, [PRIO, *(f"parent 1:{band} {TBF}" for band in range(1, 9))]),
    **{f"prio8_level{p}": (p, [PRIO]) for p in (7, 0)},
    **{f"ets8_level{p}": (p, [ETS]) for p in (7, 0)},
    "cake": (0, ["root cake unlimited"]),
    "qjump_unlimited": (7, ["root qjump epoch 10ms level 0 1mb"]),
    "qjump_priorities": (7, ["root qjump"]),
    **{f"qjump_{epoch}_level{p}": (p, [f"root qjump epoch {epoch} level {p} 100mb"]) for epoch in ("10ms", "1us") for p in (0, 7)},
    # One frame fills the budget, so each frame forgets the previous one.
    "qjump_1us_one_frame": (0, ["root qjump epoch 1us level 0 64"]),
    "qjump2015_level0": (0, ["root qjump2015 epoch 10ms level 0 100mb"]),
    "wire": (0, ["root wire rate 1tbit"]),
    # A limit below the MTU: every packet is queued, where pfifo lets it past when it is empty.
    "bfifo_queues": (0, ["root bfifo limit 1000"]),
}
PATHS = {
    "tbf_held": (0, ["root tbf rate 8bit burst 64 limit 10mb"]),
    "tbf_limit": (0, ["root tbf rate 8bit burst 64 limit 6000"]),
    "qjump_held": (0, ["root qjump epoch 1000s level 0 64 limit 100000"]),
    "qjump_limit": (0, ["root qjump epoch 1000s level 0 64 limit 50"]),
    "qjump_policed": (0, ["root qjump2015 epoch 1000s level 0 64"]),
    "qjump_oversize": (0, ["root qjump epoch 1000s level 0 1000 overhead 900"]),
}
# name: (skb->priority, program of bpf.py, its budgets, tc commands). Epochs are 10 ms; BPF qdiscs
# need Linux 6.16.
CLSACT = ["qdisc add dev cost0 clsact", "filter add dev cost0 egress protocol all prio 1 {bpf}"]
PRIO_FQ = [*CLSACT, f"qdisc add dev cost0 {PRIO}", *(f"qdisc add dev cost0 parent 1:{band} fq" for band in range(1, 9))]
EPOCH_NS, BUDGET = 10_000_000, 100_000_000
BPF = {
    "bpf_times_fq_level0": (0, "edt", {0: BUDGET}, [*CLSACT, "qdisc add dev cost0 root fq"]),
    "bpf_times_prio8_fq_level0": (0, "edt", {0: BUDGET}, PRIO_FQ),
    "bpf_times_prio8_fq_level7": (7, "edt", {7: BUDGET}, PRIO_FQ),
    "bpf_qdisc_unlimited": (7, "qdisc", {0: BUDGET}, ["qdisc add dev cost0 root {bpf}"]),
    "bpf_qdisc_level0": (0, "qdisc", {0: BUDGET}, ["qdisc add dev cost0 root {bpf}"]),
    "bpf_qdisc_level7": (7, "qdisc", {7: BUDGET}, ["qdisc add dev cost0 root {bpf}"]),
}
UDP = ["pfifo", "qjump_unlimited", "qjump_10ms_level0"]


def pktgen(file: str, *lines: str) -> None:
    for line in lines:
        with open(f"/proc/net/pktgen/{file}", "w") as f:
            f.write(line + "\n")


def burst(priority: int) -> float:
    pktgen("cost0", f"skb_priority {priority}")
    pktgen("pgctrl", "start")
    with open("/proc/net/pktgen/cost0") as f:
        rate = next(line for line in f if "pps" in line)
    return 1e9 / int(rate.split("pps")[0])


def udp(priority: int) -> float:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
        s.setsockopt(socket.SOL_SOCKET, rig.SO_SNDBUFFORCE, 1 << 26)
        send, data, to = s.sendto, bytes(18), ("10.9.0.2", 9)
        began = time.monotonic_ns()
        for _ in range(100):
            send(data, to)
        return (time.monotonic_ns() - began) / 100


def measure(commands: list[str], priority: int, by_udp: bool = False) -> float:
    for command in commands:
        rig.run(f"tc {'class' if 'classid' in command else 'qdisc'} replace dev cost0 {command}")
    one = udp if by_udp else burst
    values = [one(priority) for _ in range(1 + BURSTS)]
    rig.run("tc qdisc del dev cost0 root")
    return min(values[1:])


def measure_bpf(name: str, by_udp: bool = False) -> float:
    priority, program, budgets, commands = BPF[name]
    with {"edt": bpf.edt, "qdisc": bpf.qdisc}[program](EPOCH_NS, budgets) as words:
        for command in commands:
            rig.run(f"tc {command.format(bpf=words)}")
        cost = measure([], priority, by_udp)
        rig.run("tc qdisc del dev cost0 clsact", check=False)
    return cost


if not os.path.exists("/proc/net/pktgen"):
    rig.run("modprobe pktgen")
rig.run("ip link add cost0 numtxqueues 1 type dummy")
rig.run("ip link set cost0 addrgenmode none up")
rig.run("ip addr add 10.9.0.1/24 dev cost0")
rig.run("ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:01 dev cost0 nud permanent")
pktgen("kpktgend_0", "rem_device_all", "add_device cost0")
pktgen(
    "cost0", f"count {BURST}", "pkt_size 60", "delay 0", "xmit_mode queue_xmit", "dst 10.9.0.2", "dst_mac 02:00:00:00:00:01"
)
NOQUEUE = ["root noqueue"]
base, udp_base = measure(NOQUEUE, 0), measure(NOQUEUE, 0, by_udp=True)
result = {
    "qdiscs": {name: measure(commands, p) - base for name, (p, commands) in QDISCS.items()},
    "paths": {name: measure(commands, p, by_udp=True) - udp_base for name, (p, commands) in PATHS.items()},
    "udp": {name: measure(QDISCS[name][1], QDISCS[name][0], by_udp=True) - udp_base for name in UDP},
}
rig.run("ip link add cost1 type veth peer name cost2")
rig.run("tc qdisc add dev cost1 root wire rate 1tbit pause 3000 1500")
wire_pauses = {"on": measure(QDISCS["wire"][1], 0) - base}
rig.run("ip link del cost1")
wire_pauses["off"] = measure(QDISCS["wire"][1], 0) - base
with open("/proc/sys/net/core/bpf_jit_enable") as f:
    jit = int(f.read())
kernel = tuple(int(part) for part in os.uname().release.split(".")[:2])
result["qdiscs"]["fq"] = measure(["root fq"], 0) - base
for name in [name for name in BPF if BPF[name][1] == "edt" or kernel >= (6, 16)]:
    result["qdiscs"][name] = measure_bpf(name) - base
result["udp"]["bpf_times_fq_level0"] = measure_bpf("bpf_times_fq_level0", by_udp=True) - udp_base
rig.run("ip link del cost0")
rounded = {group: {name: round(value, 1) for name, value in figures.items()} for group, figures in result.items()}
rig.report(noqueue=round(base, 1), jit=jit, wire_pauses=wire_pauses, **rounded)
