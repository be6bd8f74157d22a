"""qjump below other qdiscs: those that peek (drr, qfq, ets, hfsc with a real-time curve, tbf) and
those that do not (hfsc without one, htb, prio).

Class 5:1 has the qjump, class 5:2 (not in tbf) a pfifo for another sender, with an equal share of
the wire.

- `plain`: as root, so that nothing is held back. Level 4 has 8 frames of 1042 B in 10 ms; traffic
  straddles epochs, as in qjump_window. `most`: the most bytes in any epoch less 25 us at the peer,
  in budgets; `ordered`: frames arrived in the order of sending; `child`: counters of the level;
  `parent`: packets that the parent has sent; `left`: drops and waiting packets of both.
- `late`: the same above a wire of 20 Mb/s that class 5:2 fills in spells (tbf and htb have 12 Mb/s
  instead, and bulk of level 7).
- `alone`, `beside`: above such a wire, level 0 always has full-size frames and one frame of level 7
  comes every 7 ms; in `beside` class 5:2 is backlogged too. `passed`: the most frames of level 0
  that started between the arrival and the start of one of level 7; `wait`: its longest wait, in
  full-size frames.
- `blocked`: as root, level 4 has one frame per 10 ms, and 20 wait; every 9.3 ms a frame of class
  5:2 comes: its longest wait, in epochs.

Assert: in `plain` everything arrives in order, nothing waits or is dropped, counters agree, and
most = 1; deviations in the other cases are caused by the parent.
"""
import json
import re
import sys
import time

import rig
import traffic

EPOCH_NS, SIZE, FRAMES, BULK = 10_000_000, 1042, 8, 1514
BULK_NS = (BULK + 24) * 400
OTHER, MARK = 0x50002, 1 << 20  # class 5:2 as a priority, and what its frames are numbered from
ALL = "filter add dev a0 parent 5: protocol all matchall classid 5:1"


def classes(kind: str, parameters: str) -> list[str]:
    return [*(f"class add dev a0 parent 5: classid 5:{n} {kind} {parameters}" for n in (1, 2)), ALL]


PARENTS = {
    "drr": ["drr", *classes("drr", "quantum 1600")],
    "qfq": ["qfq", *classes("qfq", "weight 1 maxpkt 1600")],
    "ets": ["ets bands 2 quanta 1600 1600", ALL],
    "hfsc rt": ["hfsc default 1", *classes("hfsc", "sc rate 5mbit")],
    "tbf": ["tbf rate {rate} burst 2000 limit 4mb"],
    "hfsc": ["hfsc default 1", *classes("hfsc", "ls rate 5mbit")],
    "htb": ["htb default 1", *classes("htb", "rate {rate} burst 2000 cburst 2000 quantum 1600")],
    "prio": ["prio", ALL],
}
SHAPERS = ("tbf", "htb")  # they hold frames back themselves, except at the rate used as root


def build(name: str, below_wire: bool, qjump: str) -> None:
    if below_wire:
        rig.tc("qdisc add dev a0 root handle 1: wire rate 20mbit limit 1mb")
    above = "parent 1:1" if below_wire else "root"
    qdisc, *others = PARENTS[name]
    for command in (f"qdisc add dev a0 {above} handle 5: {qdisc}", *others):
        rig.tc(command.format(rate="12mbit" if below_wire else "1gbit"))
    rig.tc(f"qdisc add dev a0 parent 5:1 handle 6: qjump limit 4000 {qjump}")
    if name != "tbf":
        rig.tc("qdisc add dev a0 parent 5:2 handle 7: pfifo limit 4000")


def counts(handle: str) -> list[int]:
    """Return packets sent and dropped, bytes and packets waiting (hfsc's JSON is invalid)."""
    text = rig.tc("-s qdisc show dev a0").stdout
    found = re.search(rf" {handle}: .*\n Sent \d+ bytes (\d+) pkt \(dropped (\d+),.*\n backlog (\d+)b (\d+)p", text)
    return [int(value) for value in found.groups()] if found else []


def most(stamps: list[int]) -> float:
    return rig.most_in_window([(stamp, SIZE) for stamp in stamps], EPOCH_NS - 25_000) / (SIZE * FRAMES)


def plain(name: str) -> dict[str, object]:
    build(name, False, f"epoch 10ms level 4 {SIZE * FRAMES}")
    sent = traffic.straddle(rig.Sender(4), None, SIZE)
    frames = [(stamp, number) for stamp, number in receiver.take_all() if number]
    (parent, *parents_left), (_, *childs_left) = counts("5"), counts("6")
    levels = json.loads(rig.tc("-j -s qdisc show dev a0 handle 6:").stdout)[0]["levels"]
    rig.tc("qdisc del dev a0 root")
    level = next(level for level in levels if level["level"] == 4)
    numbers = [number for _, number in frames]
    return {"sent": sent, "received": len(frames), "ordered": numbers == sorted(set(numbers)), "most": most([stamp for stamp, _ in frames]),
            "child": {key: level[key] for key in ("packets", "bytes", "drops")}, "parent": parent, "left": [parents_left, childs_left]}


def late(name: str) -> dict[str, object]:
    build(name, True, f"epoch 10ms level 4 {SIZE * FRAMES}")
    sent = traffic.straddle(rig.Sender(4), rig.Sender(7 if name in SHAPERS else OTHER), SIZE)
    stamps = [stamp for stamp, number in receiver.take_all() if number]
    rig.tc("qdisc del dev a0 root")
    return {"sent": sent, "received": len(stamps), "most": most(stamps)}


def urgent(name: str, beside: bool) -> dict[str, object]:
    build(name, True, "")
    bulk, top, other = (rig.Sender(priority) for priority in (0, 7, OTHER))
    sent: dict[int, int] = {}
    for number in range(1, 101):
        for _ in range(40 if number == 1 else 12):  # the wire sends 11.4 in 7 ms
            bulk.send(BULK, 0)
            if beside:
                other.send(BULK, MARK)
        sent[number] = rig.now()
        top.send(60, number)
        time.sleep(0.007)
    frames = receiver.take_all()
    rig.tc("qdisc del dev a0 root")
    started = [stamp - (BULK + 12) * 400 for stamp, number in frames if not number]
    begins = {number: stamp - (64 + 8) * 400 for stamp, number in frames if 0 < number < MARK}
    return {
        "arrived": len(begins),
        "passed": max(sum(sent[n] + 25_000 < start < begins[n] for start in started) for n in begins),
        "wait": max(begins[n] - sent[n] for n in begins) / BULK_NS,
    }


def blocked(name: str) -> float:
    build(name, False, f"epoch 10ms level 4 {SIZE}")
    metered, other = rig.Sender(4), rig.Sender(OTHER)
    for _ in range(20):
        metered.send(SIZE, 0)
    sent = {}
    for number in range(1, 16):
        sent[number] = rig.now()
        other.send(SIZE, number)
        time.sleep(0.0093)
    waits = [stamp - sent[number] for stamp, number in receiver.take_all() if number]
    rig.tc("qdisc del dev a0 root")
    return max(waits) / EPOCH_NS if len(waits) == len(sent) else -1


def case(name: str) -> dict[str, object]:
    found: dict[str, object] = {"plain": plain(name), "late": late(name), "alone": urgent(name, False)}
    return found if name == "tbf" else found | {"beside": urgent(name, True), "blocked": blocked(name)}


rig.build()
rig.offloads_off()
receiver = rig.Receiver()
rig.report(cases={name: case(name) for name in sys.argv[1:] or PARENTS})
