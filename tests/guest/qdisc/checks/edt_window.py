"""The most bytes that two limited levels send in any window, by qjump and by qjump-edt.

T = 20 ms. Level 7 has a budget of one full-size frame, level 4 of six, in bytes on the wire.
Traffic: 60 bursts of both levels, one after the other, with frames of 60 to 1514 B and pauses of up
to 2 T; each level has two sockets. Measured as root, and below a wire of 10 Mb/s that unlimited
level 0 keeps busy.

- `exact`: the most in any T, in budgets, by when frames start.
- `less`: the same for T - W. W is the longest time that a frame of the level waits at its host: for
  a frame of level 0, for more urgent frames, and for earlier frames of its level that are late.
- `disordered`: frames of a socket that arrived before one sent earlier.
- `wait_ns` (below the wire): the longest wait before the start of a frame of level 7 sent alone
  every 3 T.
- "slack": departure times with a slack of level 7's W.
"""
import itertools
import json
import random
import subprocess
import time

import rig

EPOCH_NS, FULL, FRAMING, RATE = 20_000_000, 1514, 24, 10_000_000
BUDGETS = {7: FULL + FRAMING, 4: 6 * (FULL + FRAMING)}
FRAME_NS = (FULL + FRAMING) * 8 * 10**9 // RATE
W_NS = {7: 2 * FRAME_NS, 4: 9 * FRAME_NS}
"""Level 4's: 8 frames / (1 - 1/16), level 7's share, are 8.54; plus late frames of level 7."""
FQ = "fq limit 2000 flow_limit 2000 nopacing horizon 4000s timer_slack 0"
LEVELS = " ".join(f"level {level} {budget}" for level, budget in BUDGETS.items())
LIMITERS = {
    "qjump": [f"qdisc add dev a0 {{above}} handle 6: qjump epoch {EPOCH_NS}ns {LEVELS} overhead {FRAMING} mpu 84"],
    "qjump-edt": [
        "qdisc add dev a0 {above} handle 6: prio bands 8 priomap 7 6 5 4 3 2 1 0 7 7 7 7 7 7 7 7",
        *(f"qdisc add dev a0 parent 6:{8 - level} {FQ}" for level in BUDGETS),
    ],
}
EDT = f"ip netns exec a qjump-edt add a0 epoch {EPOCH_NS} {LEVELS} overhead {FRAMING} mpu 84 slack"
PLACES = {"root": ("root", []), "wire": ("parent 5:1", [f"qdisc add dev a0 root handle 5: wire rate {RATE} limit 1mb"])}


def cost(size: int) -> int:
    return max(size + FRAMING, 84)


class Bulk:
    """Keeps 100 ms of frames of level 0 waiting for the wire."""

    def __init__(self, busy: bool) -> None:
        self.sender, self.until, self.busy = rig.Sender(0), 0, busy

    def feed(self) -> None:
        now = rig.now()
        self.until = max(self.until, now)
        while self.busy and self.until < now + 100_000_000:
            self.sender.send(FULL, 0)
            self.until += FRAME_NS


def bursts(bulk: Bulk, draw: random.Random) -> dict[int, tuple[int, int]]:
    """Send the bursts; return level and size of each frame by its number."""
    senders = {level: (rig.Sender(level), rig.Sender(level)) for level in BUDGETS}
    sent: dict[int, tuple[int, int]] = {}
    for _ in range(60):
        for level, most in ((7, 5), (4, 30)):
            for _ in range(draw.randint(1, most)):
                number, size = len(sent) + 1, draw.choice((60, 64, 300, 777, FULL, draw.randint(60, FULL)))
                sent[number] = level, size
                senders[level][number % 2].send(size, number)
        bulk.feed()
        time.sleep(draw.random() * 2 * EPOCH_NS / 1e9)
    return sent


def alone(bulk: Bulk, receiver: rig.Receiver) -> int:
    sender, size = rig.Sender(7), 60
    sent: dict[int, int] = {}
    for number in range(1, 41):
        bulk.feed()
        sent[number] = rig.now()
        sender.send(size, number)
        time.sleep(3 * EPOCH_NS / 1e9 + number * 31e-6)
    arrived = {number: stamp for stamp, number in receiver.take_all() if number}
    return max(stamp - sent[number] - (84 - 12) * 8 * 10**9 // RATE for number, stamp in arrived.items())


def case(limiter: str, place: str, receiver: rig.Receiver, slack_ns: int = 0) -> dict[str, object]:
    above, commands = PLACES[place]
    for command in [*commands, *LIMITERS[limiter]]:
        rig.tc(command.format(above=above))
    if limiter == "qjump-edt":
        rig.run(f"{EDT} {slack_ns}")
    bulk = Bulk(place == "wire")
    sent = bursts(bulk, random.Random(place))
    came = [(stamp, number) for stamp, number in receiver.take_all(longest=120) if number]
    found: dict[str, object] = {"sent": len(sent), "received": len({number for _, number in came})}
    for level, budget in BUDGETS.items():
        numbers = [number for _, number in came if sent[number][0] == level]
        sizes = {number: sent[number][1] for number in numbers}
        starts = [
            (stamp - ((sizes[number] + 12) * 8 * 10**9 // RATE if place == "wire" else 0), cost(sizes[number]))
            for stamp, number in came if number in sizes
        ]
        flows = ([number for number in numbers if number % 2 == odd] for odd in (0, 1))
        found[str(level)] = {
            "exact": rig.most_in_window(starts, EPOCH_NS) / budget, "less": rig.most_in_window(starts, EPOCH_NS - W_NS[level]) / budget,
            "disordered": sum(b < a for flow in flows for a, b in itertools.pairwise(flow)),
        }
    if place == "wire":
        found["wait_ns"] = alone(bulk, receiver)
    if limiter == "qjump-edt":
        found["told"] = json.loads(rig.run("ip netns exec a qjump-edt show a0").stdout)
        rig.run("ip netns exec a qjump-edt del a0")
    rig.tc("qdisc del dev a0 root")
    receiver.take_all()
    return found


def full(receiver: rig.Receiver) -> dict[str, int]:
    """Send 30 frames of one budget each, of which 10 may wait, and one that exceeds the budget."""
    for command in LIMITERS["qjump-edt"]:
        rig.tc(command.format(above="root"))
    rig.run(f"{EDT} 0 limit 10")
    sender = rig.Sender(7)
    taken = [sender.send(size, 1) for size in [FULL] * 30]
    rig.run("ip -n a link set a0 mtu 1600")
    sender.send(FULL + 1, 1)
    arrived = len(receiver.take_all())
    told = json.loads(rig.run("ip netns exec a qjump-edt show a0").stdout)["levels"][7]
    rig.run("ip netns exec a qjump-edt del a0")
    rig.tc("qdisc del dev a0 root")
    return {"taken": sum(taken), "arrived": arrived, **told}


def refused() -> dict[str, str]:
    """Return qjump-edt's messages for invalid command lines."""
    asked = {"none": "show a0", "epoch": "add a0 level 7 1550", "small": "add a0 epoch 1000000 level 7 70 overhead 24", "device": "show nobody"}
    return {name: subprocess.run(f"ip netns exec a qjump-edt {words}".split(), capture_output=True, text=True).stderr for name, words in asked.items()}


rig.build()
receiver = rig.Receiver()
cases = {f"{limiter} {place}": case(limiter, place, receiver) for limiter in LIMITERS for place in PLACES}
cases["slack"] = case("qjump-edt", "wire", receiver, W_NS[7])
rig.report(frame_ns=FRAME_NS, refused=refused(), full=full(receiver), cases=cases)
