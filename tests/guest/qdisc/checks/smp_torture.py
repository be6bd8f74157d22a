"""Stress qjump, qjump2015 and wire on several processors: traffic, and rounds of operations.

Arguments: packets, operations, lines of `tc` for each device in a round, seed. Rounds continue
until this many packets have left a qdisc and this many operations have succeeded.
torture_network.py makes the traffic.

A round runs these in parallel: a `tc` in every namespace that changes, grafts, replaces and
deletes; an `ip` that takes links down and up; ports that move to another namespace and back;
sometimes a trunk that is deleted and created again; dumps; and attempts to remove the modules. Then
all links are set up, the senders pause and everything drains. Then, under traffic, all of our
qdiscs and then the modules are removed.

Reported: `rounds`; `sent` by the eight senders; `passed`, packets that left a root qdisc;
`operations` and `failed` by kind; `dumps`; `pauses` [sent, received], as far as dumps saw them; the
counters of `kcsan`. Assert: `stuck` is empty, which lists packets that wait after the senders have
paused, bytes on an ingress account then, and modules that stay.
"""
import ctypes
import functools
import itertools
import json
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kcsan
import rig
import torture_network as network

MODULES = ("sch_qjump", "sch_qjump2015", "sch_wire")
DRAINED_S = 120  # a level of 200 kB drains in 0.8 s at 2 Mb/s, but the host may be busy
DELETE_MODULE, NONBLOCK = 176, 0o4000
OTHERS = ("qjump2015", "qjump2015 epoch 1ms level 0 unlimited level 5 20000", "pfifo limit 50", "prio", "fq_codel", "netem delay 1ms", "tbf rate 50mbit burst 20kb latency 20ms")


class Chance(random.Random):
    """Draws random options."""

    def wire(self) -> str:
        words = [f"rate {self.choice((2, 20, 100, 1000))}mbit limit {self.choice((3, 20, 150))}kb", f"delay {self.choice((0, 10, 500))}us",
                 f"classify {self.choice(('pcp', 'priority', 'fifo'))}", self.choice(("orphan", "noorphan")), f"overhead {self.choice((0, 24))}",
                 self.choice(("jitter none", "jitter 0:1us,50:20us,100:400us seed 1", "jitter 0:0us,100:50us seed 2"))]
        paused = self.choice(("pause 0 0", "pause 6000 2000", "pause 6000 2000", "pause 20000 1000"))
        return " ".join([*words, paused, self.choice(("", "pfc none", "pfc 0,1,2,3,4,5,6,7", "pfc 0,7", "pfc 3"))])

    def qjump(self) -> str:
        words = [f"epoch {self.choice((100, 1000, 5000))}us slack {self.choice((0, 100))}us", f"overhead {self.choice((0, 24))}",
                 f"limit {self.choice((2, 50, 1000))}"]
        return " ".join([*words, *(f"level {level} {self.choice(('unlimited', 2000, 20000, 200000))}" for level in range(8))])


class Port:
    """Tracks a device's qdiscs while it generates lines for `tc -batch`; the first is a wire."""

    def __init__(self, device: str, chance: Chance) -> None:
        self.device, self.chance = device, chance
        self.kind, self.leaf = "wire", ""
        self.handle, self.leaf_handle = 5, 0
        self.handles = itertools.count(0x100 + chance.randrange(0x1000) * 2)

    def line(self) -> tuple[str, str]:
        """Return the kind of operation and its line."""
        ways = [self._change, self._change, self._replace, self._delete, self._graft, self._graft]
        if self.kind in ("", "qjump"):  # no qdisc, or one without a class
            ways = ways[:4] if self.kind else [self._replace]
        return self.chance.choice(ways)()

    def _change(self) -> tuple[str, str]:
        if self.leaf == "qjump" and self.chance.random() < 0.5:
            return "change", f"qdisc change dev {self.device} parent {self.handle:x}:1 handle {self.leaf_handle:x}: qjump {self.chance.qjump()}"
        options = self.chance.wire() if self.kind == "wire" else self.chance.qjump() if self.kind == "qjump" else ""
        return "change", f"qdisc change dev {self.device} root handle {self.handle:x}: {self.kind} {options}"

    def _graft(self) -> tuple[str, str]:
        parent = f"dev {self.device} parent {self.handle:x}:1"
        if self.leaf and self.chance.random() < 0.4:
            self.leaf = ""
            return "graft", f"qdisc del {parent}"
        self.leaf_handle = next(self.handles)
        leaf = f"qjump {self.chance.qjump()}" if self.chance.random() < 0.6 else self.chance.choice(OTHERS)
        self.leaf = leaf.partition(" ")[0]
        return "graft", f"qdisc replace {parent} handle {self.leaf_handle:x}: {leaf}"

    def _replace(self) -> tuple[str, str]:
        kind = self.chance.choice((f"wire {self.chance.wire()}", f"wire {self.chance.wire()}", f"qjump {self.chance.qjump()}", "prio"))
        self.kind, self.leaf, self.handle = kind.partition(" ")[0], "", next(self.handles)
        return "replace", f"qdisc replace dev {self.device} root handle {self.handle:x}: {kind}"

    def _delete(self) -> tuple[str, str]:
        if self.chance.random() < 0.7:  # delete rarely: the next line must add a qdisc again
            return self._change()
        self.kind = self.leaf = ""
        return "delete", f"qdisc del dev {self.device} root"


def fresh() -> dict[str, list[str]]:
    """Return lines of tc that put a wire with pauses at every device, by namespace."""
    wires: dict[str, list[str]] = {}
    for device, place in network.PLACES.items():
        wires.setdefault(place, []).append(f"qdisc replace dev {device} root handle 5: wire rate 100mbit limit 60kb pause 20000 5000")
    return wires


class Round:
    """Operations of several processes in parallel, `lines` of tc for each device."""

    def __init__(self, chance: Chance, lines: int, counts: Counter[str], failed: Counter[str]) -> None:
        self.lines = lines
        self.chance, self.counts, self.failed = chance, counts, failed
        self.running: list[tuple[list[str], subprocess.Popen[str]]] = []
        self.dumps = 0
        self.pauses: Counter[str] = Counter()
        self.last: dict[tuple[str, str], dict[str, int]] = {}

    def begin(self) -> None:
        """Start a tc in every namespace, and an ip in those of the switches and of two hosts."""
        for place in sorted(set(network.PLACES.values())):
            devices = [device for device, there in network.PLACES.items() if there == place]
            ports = [Port(device, self.chance) for device in devices]
            self._start("tc", place, [self.chance.choice(ports).line() for _ in range(self.lines * len(ports))])
        for place in ("s1", "s2"):
            devices = [device for device, there in network.PLACES.items() if there == place]
            self._start("ip", place, [("link", f"link set {self.chance.choice(devices)} {how}") for how in ("down", "up") * (self.lines // 4)])
        for n in self.chance.sample(network.HOSTS, 2):
            again = [("", line) for line in network.neighbours(n)]
            self._start("ip", f"h{n}", [("link", f"link set h{n} down"), ("link", f"link set h{n} up"), *again] * (self.lines // 8))

    def busy(self) -> bool:
        return any(process.poll() is None for _, process in self.running)

    def move(self) -> None:
        """Move a port to the other switch's namespace and back, which removes its qdiscs."""
        device = self.chance.choice(sorted(network.PORTS))
        place = network.PORTS[device]
        there = "s2" if place == "s1" else "s1"
        rig.run(f"ip -n {place} link set {device} netns {there}")
        if self.chance.random() < 0.5:
            rig.run(f"tc -n {there} qdisc add dev {device} root wire {self.chance.wire()}", check=False)
        rig.run(f"ip -n {there} link set {device} netns {place}")
        network.attach(device)
        network.batch("tc", place, [f"qdisc replace dev {device} root handle 5: wire {self.chance.wire()}"]).wait()
        self.counts["move"] += 2

    def relink(self) -> None:
        rig.run("ip -n s1 link del t1")
        network.trunk()
        for device, place in network.TRUNKS.items():
            network.batch("tc", place, [f"qdisc replace dev {device} root handle 5: wire rate 100mbit pause 6000 2000"]).wait()
        self.counts["relink"] += 1

    def unload(self) -> None:
        """Try to remove the modules, which works if they are unused; the next `tc` reloads them."""
        for name in MODULES:
            removed = ctypes.CDLL(None).syscall(DELETE_MODULE, name.encode(), NONBLOCK) == 0
            (self.counts if removed else self.failed)["unload"] += 1

    def dump(self) -> None:
        for place in ("s1", "s2", "h1", "h5"):
            for device, pause in pauses(place):
                last = self.last.get((place, device), {"sent": 0, "received": 0})
                for name, before in last.items():  # counters of a new qdisc start at 0
                    self.pauses[name] += pause[name] - before if pause[name] >= before else pause[name]
                self.last[place, device] = {name: pause[name] for name in last}
            rig.run(f"tc -n {place} -s class show dev {'t' + place[1:] if place[0] == 's' else place}", check=False)
            self.dumps += 2

    def end(self) -> None:
        """Wait for all processes, and count the operations that succeeded."""
        for kinds, process in self.running:
            assert process.stderr
            words = process.stderr.read()
            process.wait()
            bad = {int(line) for line in re.findall(r"Command failed -:(\d+)", words)}
            for line, kind in enumerate(kinds, 1):
                if kind:
                    (self.failed if line in bad else self.counts)[kind] += 1
        self.running.clear()

    def _start(self, program: str, place: str, lines: list[tuple[str, str]]) -> None:
        self.running.append(([kind for kind, _ in lines], network.batch(program, place, [line for _, line in lines])))


def shown(place: str) -> list[dict[str, Any]]:
    """Return the qdiscs of a namespace; empty if one disappears during the dump."""
    done = rig.run(f"tc -n {place} -s -j qdisc show", check=False)
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)
    except json.JSONDecodeError:
        return []
    return found


def pauses(place: str) -> list[tuple[str, dict[str, int]]]:
    return [(qdisc["dev"], qdisc["pause"]) for qdisc in shown(place) if "pause" in qdisc]


def waiting() -> list[str]:
    """List qdiscs with waiting packets or bytes on an account."""
    found = []
    for place in sorted(set(network.PLACES.values())):
        for qdisc in shown(place):
            figures = {"backlog": qdisc.get("backlog", 0), "qlen": qdisc.get("qlen", 0), "ingress": qdisc.get("pause", {}).get("ingress", 0)}
            if any(figures.values()):
                found.append(f"{qdisc.get('dev')} {qdisc['kind']} {qdisc['handle']}: {figures}")
    return found


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + DRAINED_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def everywhere(lines: dict[str, list[str]]) -> None:
    for process in [network.batch("tc", place, some) for place, some in lines.items()]:
        process.communicate()


def settle(shared: network.Shared) -> list[str]:
    """Set all links up and pause the senders; return what still waits at the deadline."""
    for place in sorted(set(network.PLACES.values())):
        lines = [f"link set {device} up" for device, there in network.PLACES.items() if there == place]
        hosts = network.neighbours(int(place[1:])) if place.startswith("h") else []
        network.batch("ip", place, lines + hosts).communicate()
    shared.sending = False
    drained = until(lambda: not waiting())
    shared.sending = True
    return [] if drained else waiting()


def remove(counts: Counter[str]) -> list[str]:
    """Under traffic, remove our qdiscs and then our modules; return the modules that stay."""
    everywhere({place: [line.partition(" handle")[0].replace("replace", "del") for line in lines] for place, lines in fresh().items()})
    left = [name for name in MODULES if not until(functools.partial(removed, name))]
    counts["unload"] += len(MODULES) - len(left)
    return left


def removed(name: str) -> bool:
    """Try to remove a module; True if it is not loaded afterwards."""
    return not Path("/sys/module", name).exists() or rig.run(f"rmmod {name}", check=False).returncode == 0


def main(packets: int, operations: int, lines: int, seed: int) -> None:
    chance, shared = Chance(seed), network.Shared()
    counts, failed, stuck = Counter[str](), Counter[str](), list[str]()
    watched = kcsan.on()
    network.build()
    everywhere(fresh())
    network.start(shared)
    shared.sending = True
    state, total, seen, rounds = Round(chance, lines, counts, failed), 0, dict(network.passed()), 0
    while not stuck and (total < packets or sum(counts.values()) < operations):
        state.begin()
        for turn in itertools.count():
            (state.move, state.dump, state.unload, state.dump)[turn % 4]()
            if not state.busy():
                break
        if rounds % 3 == 2:
            state.relink()
        state.end()
        stuck += settle(shared)
        state.dump()
        stuck += remove(counts)
        everywhere(fresh())
        time.sleep(0.5)  # of traffic without operations
        now = dict(network.passed())
        total += sum(count - seen.get(name, 0) if count >= seen.get(name, 0) else count for name, count in now.items())
        seen, rounds = now, rounds + 1
        with open("/dev/console", "w") as console:
            print(f"qjump-mn: round {rounds}: {total} packets, {sum(counts.values())} operations", file=console)
    stuck += remove(counts)  # leave a clean state for the next check
    rig.report(rounds=rounds, sent=[shared.sent(n) for n in network.HOSTS], passed=total, operations=counts, failed=failed, dumps=state.dumps,
               pauses=[state.pauses["sent"], state.pauses["received"]], stuck=stuck,
               kcsan=kcsan.counters() if watched else {})


main(*map(int, sys.argv[1:]))
