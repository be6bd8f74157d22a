"""Cost of a packet, in ns above noqueue; on a clock of one ns an instruction: in instructions.

pktgen sends 20,000 frames of 60 B through the qdisc of a dummy device; twice, the second counts.
Levels by skb->priority. The goals are 2.0 (unlimited) and 2.4 (limited) times pfifo, which is let past its queue when empty.
Measured on 6.12: 2.03 and 2.48 to 2.68; on 6.1: 2.09 and 2.65 to 2.91 (of an earlier build).
Assert: qjump_unlimited <= 2.15, all limited ones <= 3.0 times pfifo, prio_tbf >= 2 * qjump_unlimited.
"""
import os

import rig

COUNT = 20_000
QDISCS = {
    "pfifo": (0, ["root pfifo limit 1000"]),
    "pfifo_fast": (0, ["root pfifo_fast"]),
    "tbf": (0, ["root tbf rate 30gbit burst 1mb limit 1mb"]),
    "prio_tbf": (0, ["root handle 1: prio bands 8 priomap 7 6 5 4 3 2 1 0 0 0 0 0 0 0 0 0",
                     "parent 1:8 tbf rate 30gbit burst 1mb limit 1mb"]),
    "qjump_unlimited": (7, ["root qjump epoch 10ms level 0 1mb"]),
    "qjump_delay_rolling": (0, ["root qjump epoch 1us level 0 1mb"]),
    "qjump_delay_rolling_10ms": (0, ["root qjump epoch 10ms level 0 1000mb"]),
    "qjump_delay_aligned": (0, ["root qjump epoch 10ms level 0 1000mb epochs aligned"]),
    "qjump_drop_rolling": (0, ["root qjump epoch 10ms level 0 1000mb mode drop"]),
}


def pktgen(file: str, *lines: str) -> None:
    for line in lines:
        with open(f"/proc/net/pktgen/{file}", "w") as f:
            f.write(line + "\n")


def measure(priority: int) -> float:
    pktgen("cost0", f"skb_priority {priority}")
    for _ in range(2):
        pktgen("pgctrl", "start")
    with open("/proc/net/pktgen/cost0") as f:
        result = next(line for line in f if "OK:" in line)
    return int(result.split("OK:")[1].split("(")[0]) * 1000 / COUNT


if not os.path.exists("/proc/net/pktgen"):
    rig.run("modprobe pktgen")
rig.run("ip link add cost0 numtxqueues 1 type dummy")
rig.run("ip link set cost0 addrgenmode none up")
pktgen("kpktgend_0", "rem_device_all", "add_device cost0")
pktgen("cost0", f"count {COUNT}", "pkt_size 60", "delay 0", "xmit_mode queue_xmit",
       "dst 10.9.0.2", "dst_mac 02:00:00:00:00:01")
rig.run("tc qdisc replace dev cost0 root noqueue")
base, costs = measure(0), {}
for name, (priority, commands) in QDISCS.items():
    for command in commands:
        rig.run(f"tc qdisc add dev cost0 {command}")
    costs[name] = measure(priority) - base
    rig.run("tc qdisc del dev cost0 root")
rig.run("ip link del cost0")
rig.report(noqueue_ns=base, above_noqueue_ns=costs,
           times_pfifo={k: round(v / costs["pfifo"], 2) for k, v in costs.items()})
