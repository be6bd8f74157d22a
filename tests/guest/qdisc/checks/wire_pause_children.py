"""Flow control of wires with a child, on the network of pause_network.py.

- `children`: children of every kind, two of which hold frames back themselves, below the wire of a
  sender (`obeys`) and below that of the port that pauses it (`sends`).
  `obeys`: two frames pass, then 20 are sent at once, and one of priority 7 while the sender is
  paused. The pauses are computed from the arrivals at both ports: `reckoned` pauses of
  `reckoned_ns` in total; `inside` lists frames that started during a pause, as ns after its
  beginning and before its end.
  `sends`: 60 frames go the other way meanwhile. `left`: what still waits in wire and child at the
  end.
- `uncounted`: 20 frames go to a congested port that has a child.
"""

import json
import socket
import time
from typing import Any

import rig
from pause_network import ALONE, CONTROL_NS, FRAME, FRAME_NS, LINE, Port, fresh, pause, ports, tc

CHILDREN = {
    "pfifo": ["pfifo limit 1000"],
    "prio": ["prio"],
    "htb": ["htb default 1", "class add dev {0} parent 6: classid 6:1 htb rate 8mbit burst 2000 cburst 2000"],
    "netem": ["netem delay 5ms"],
    "fq_codel": ["fq_codel"],
    "qjump": [f"qjump epoch 5ms level 0 {2 * FRAME}"],
}


def child(device: str, kind: str) -> None:
    qdisc, *others = CHILDREN[kind]
    for command in (f"qdisc add dev {{0}} parent 5:1 handle 6: {qdisc}", *others):
        tc(device, command.format(device))


def childs(device: str) -> dict[str, Any]:
    """Return the drops of the wire's child, and what waits in wire and child."""
    both = [
        q for q in json.loads(tc(device, f"-j -s qdisc show dev {device}")) if q["handle"] in ("5:", "6:")
    ]
    return {"drops": both[1]["drops"], "left": [[q["qlen"], q["backlog"]] for q in both]}


def reckoned(ins: list[int], outs: list[int]) -> list[tuple[int, int]]:
    """Compute the pauses from arrivals and starts: from three frames waiting until one waits."""
    waiting, begin, spans = 0, 0, []
    for stamp, step in sorted([(stamp, 1) for stamp in ins] + [(stamp, -1) for stamp in outs]):
        waiting += step
        if waiting == 3 and not begin:
            begin = stamp + CONTROL_NS
        if waiting == 1 and begin:
            spans.append((begin, stamp + CONTROL_NS))
            begin = 0
    return spans


def obeys(kind: str, levels: str) -> dict[str, Any]:
    fresh(f"pause {3 * 1518} 1518 {levels}", slow=LINE // 10)
    child("h1", kind)
    tap, sender = Port("s1", protocol=3), ports["h1"]  # of all protocols: before the switch takes the frame
    for number in range(2):
        sender.send(4, number)
    time.sleep(0.1)
    before = [number for _, number in ports["h4"].take()]
    tap.take()
    passed = pause("h1").get("received", 0)
    for number in range(20):
        sender.send(4, number)
    time.sleep(0.03)
    sender.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 7)
    sender.send(4, 100)
    sender.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0)
    time.sleep(0.4)
    ins, (outs, numbers) = [stamp for stamp, _ in tap.take()], zip(*ports["h4"].take(), strict=True)
    spans = reckoned(ins, [stamp - (FRAME_NS - 12 * 800) * 10 for stamp in outs])
    starts = [stamp - (FRAME_NS - 12 * 800) for stamp in ins]
    return {
        "before": before,
        "passed": passed,
        "numbers": numbers,
        "reckoned": len(spans),
        "reckoned_ns": sum(end - begin for begin, end in spans),
        "inside": [
            (start - begin, end - start)
            for start in starts
            for begin, end in spans
            if begin + 30_000 < start < end - 30_000
        ],
        "obeyed": pause("h1"),
        "sent": pause("s1"),
        **childs("h1"),
    }


def sends(kind: str, levels: str) -> dict[str, Any]:
    fresh(f"pause {3 * 1518} 1518 {levels}", slow=LINE // 10)
    child("s1", kind)
    for number in range(60):
        ports["h5"].send(1, number)
        if number < 20:
            ports["h1"].send(4, number)
    time.sleep(0.4)
    return {
        "numbers": [number for _, number in ports["h4"].take()],
        "back": [number for _, number in ports["h1"].take()],
        "obeyed": pause("h1"),
        "sent": pause("s1"),
        **childs("s1"),
    }


def uncounted() -> dict[str, Any]:
    fresh(f"pause {3 * 1518} 1518", slow=LINE // 10)
    child("s4", "pfifo")
    for number in range(20):
        ports["h1"].send(4, number)
    time.sleep(0.4)
    return {"arrived": len(ports["h4"].take()), "sent": pause("s1")}


children = {
    levels or "link": {
        kind: {"obeys": obeys(kind, levels), "sends": sends(kind, levels)} for kind in CHILDREN
    }
    for levels in ("", ALONE)
}
rig.report(children=children, uncounted=uncounted())
