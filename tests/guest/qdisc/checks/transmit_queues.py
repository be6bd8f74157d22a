"""Frames per second through one qdisc for all transmit queues, and through one for each of them.

A veth has a transmit queue for each processor, which XPS assigns to it. pktgen has a thread for
each processor and sends 20,000 frames of 60 B; the peer drops them. Every case is measured with one
thread and with all, in turn with the other cases, for a number of rounds (the argument).

Reported: `processors`; `pps` by case: for one thread and for all together, in the best of the
rounds, from the first thread's start to the last one's end. The clock is the host's, which may stop
a processor at any time: only the best round comes near to what the code can do.
"""
import os
import re
import sys

import rig

COUNT = 20_000
CASES = {
    "noqueue": "noqueue",
    "mq, pfifo_fast each": "mq",
    "pfifo": "pfifo limit 1000",
    "prio with 8 bands": "prio bands 8 priomap 7 6 5 4 3 2 1 0 0 0 0 0 0 0 0 0",
    "qjump without limits": "qjump",
    "qjump, limited level 0": "qjump epoch 10ms level 0 100mb",
}
PROCESSORS = os.cpu_count() or 1


def pktgen(file: str, *lines: str) -> None:
    for line in lines:
        with open(f"/proc/net/pktgen/{file}", "w") as f:
            f.write(line + "\n")


def rate(threads: int) -> float:
    """Send from that many processors at once; return the frames per second of all together."""
    devices = [f"sends@{thread}" for thread in range(threads)]
    for thread in range(PROCESSORS):
        pktgen(f"kpktgend_{thread}", "rem_device_all")
    for thread, device in enumerate(devices):
        pktgen(f"kpktgend_{thread}", f"add_device {device}")
        pktgen(device, f"count {COUNT}", "pkt_size 60", "delay 0", "xmit_mode queue_xmit",
               "dst 10.9.0.2", "dst_mac 02:00:00:00:00:09")
    pktgen("pgctrl", "start")
    began, ended = [], []
    for device in devices:
        with open(f"/proc/net/pktgen/{device}") as f:
            times = re.search(r"started: (\d+)us +stopped: (\d+)us", f.read())
        assert times, "pktgen says when it sent"
        began.append(int(times[1]))
        ended.append(int(times[2]))
    return threads * COUNT * 1e6 / (max(ended) - min(began))


queues = f"numtxqueues {PROCESSORS} numrxqueues {PROCESSORS}"
rig.run(f"ip link add sends {queues} type veth peer name takes {queues}")
for name in ("sends", "takes"):
    rig.run(f"ip link set {name} addrgenmode none up")
for queue in range(PROCESSORS):
    with open(f"/sys/class/net/sends/queues/tx-{queue}/xps_cpus", "w") as mask:
        mask.write(f"{1 << queue:x}")
found: dict[str, dict[int, list[float]]] = {case: {1: [], PROCESSORS: []} for case in CASES}
for _ in range(int(sys.argv[1])):
    for case, words in CASES.items():
        rig.run(f"tc qdisc replace dev sends root {words}")
        for threads, rates in found[case].items():
            rates.append(rate(threads))
pps = {case: [max(rates) for rates in by_threads.values()] for case, by_threads in found.items()}
rig.report(processors=PROCESSORS, pps=pps)
