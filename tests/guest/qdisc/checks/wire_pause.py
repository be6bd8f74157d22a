"""Flow control, on the network of pause_network.py.

Assert:

- `lossless`: three hosts send 200 frames each to a fourth at once. Without pauses some are dropped;
  with pauses none, and each host has a third of the first half. `accounts` of the ingress ports are
  0 at the end; `max_account` is XOFF plus what arrived until the pause was obeyed.
- `gap`: one host sends six frames to a port of 1 Mb/s, with XOFF and XON at three and one waiting
  frames. When the fourth frame arrives, the first is on the wire and three wait: pause. The fifth,
  already being sent, does not obey it. When the fourth starts: resume, after which the sixth
  starts. `gap_ns`, from the start of the fifth to that of the sixth, is three frames of the slow
  port, minus the time from the first's arrival to the fifth's start, plus the control frame.
  `paused_ns` is from arrival to arrival: three frames of the slow port minus three of the sender's.
- `control`: the same while the sender's own port is busy with other frames, whose arrivals show
  when the control frames were sent: two gaps are 84 B longer than the others; no frame is cut
  short.
- `blocking`: a host that sends alternately to the congested port and to a free one gets no more
  through the free one (`free`) than through the other.
- `gone`: the port that has paused a sender is replaced, deleted, told to send no pauses, or taken
  down, or the wire of the sender or of the congested port is replaced; then the sender, which had
  30 frames, sends 10 more. All arrive except those that such a change purges; the account is 0.
- `last`: two ports, the only ones with thresholds, pause a sender each (`paused`), and are deleted
  or told to send no pauses by one command: all frames arrive, no sender is held longer
  (`stays_ns`), and one that pauses again works (`anew`).
- `held`: a qjump below the wire that pauses holds back a frame of level 0, while a control frame
  occupies that wire. `urgent`: meanwhile a frame of level 7 arrives. `epoch`: meanwhile the budget
  of level 0 is renewed. That frame starts when the control frame has left; `late_ns` is how much
  later it started.
- `alone`: `lossless`, `gap` and `gone` with only level 0 paused, that of these frames (802.1Qbb).
- `urgent`: three hosts fill a fourth's port; meanwhile the first sends frames of level 7 to a
  fifth.
  `wait_ns` is the longest wait of these at their host, `paused_ns` how long levels 0 and 7 were
  paused.
- `shortened`: the delay of the port that pauses falls from 100 ms to 0 between pause and resume:
  the resume arrives with the pause, not before it, and `paused_ns` is 0.
- `both`: on a link between two switches both ends pause each other; all frames arrive.
"""

import atexit
import itertools
import socket
import subprocess
import time
from typing import Any

import rig
from pause_network import (
    ALONE,
    CONTROL_NS,
    FRAME_NS,
    HOSTS,
    LINE,
    PAUSE,
    SLOW,
    Port,
    fresh,
    link,
    path,
    pause,
    ports,
    stats,
    wire,
)


def lossless(options: str) -> dict[str, Any]:
    fresh(options)
    for host in HOSTS:
        wire(f"s{host}", "limit 152200", options)
    for host in (1, 2, 3) * 200:
        ports[f"h{host}"].send(4, host)
    time.sleep(1)
    came = [number for _, number in ports["h4"].take()]
    return {
        "arrived": len(came),
        "drops": stats("s4")["drops"],
        "half": [came[:300].count(host) for host in (1, 2, 3)],
        "accounts": [pause(f"s{host}").get("ingress") for host in HOSTS],
        "pauses": [pause(f"s{host}") for host in (1, 2, 3)],
        "obeyed": [pause(f"h{host}") for host in (1, 2, 3)],
    }


def gap(busy: int = 0, levels: str = "") -> dict[str, Any]:
    fresh(f"pause {3 * 1518} 1518 {levels}", slow=LINE // 10)
    tap = Port("s1", protocol=3)  # of all protocols: before the switch takes the frame
    for number in range(busy):
        ports["h5"].send(1, number)
    time.sleep(0.02 if busy else 0)
    for number in range(6):
        ports["h1"].send(4, number)
    time.sleep(0.3)
    starts = [stamp for stamp, _ in tap.take()]
    others = [b - a for a, b in itertools.pairwise(stamp for stamp, _ in ports["h1"].take())]
    return {
        "arrived": len(ports["h4"].take()),
        "gaps": [b - a for a, b in itertools.pairwise(starts)],
        "sent": pause("s1"),
        "obeyed": pause("h1"),
        "others": others,
    }


def shortened() -> dict[str, Any]:
    fresh(f"delay 100ms pause {3 * 1518} 1518", slow=LINE // 10)
    for number in range(6):
        ports["h1"].send(4, number)
    time.sleep(0.02)
    rig.run("tc qdisc change dev s1 root wire delay 0ns")
    time.sleep(0.3)
    return {"arrived": len(ports["h4"].take()), "sent": pause("s1")["sent"], "obeyed": pause("h1")}


def blocking(options: str) -> dict[str, int]:
    fresh(options)
    for number in range(400):
        ports["h1"].send(4 + number % 2, number)
        for host in (2, 3):
            ports[f"h{host}"].send(4, 1000)
    time.sleep(0.4)
    return {
        "congested": sum(number < 1000 for _, number in ports["h4"].take()),
        "free": len(ports["h5"].take()),
    }


def gone(*commands: str, levels: str = "") -> dict[str, Any]:
    fresh(f"pause {3 * 1518} 1518 {levels}", slow=LINE // 10)
    for number in range(30):
        ports["h1"].send(4, number)
    time.sleep(0.01)
    before = pause("h1")
    for command in commands:
        rig.run(command)
    time.sleep(0.01)
    for number in range(30, 40):
        ports["h1"].send(4, number)
    time.sleep(1)
    return {
        "before": before,
        "after": pause("h1"),
        "arrived": len(ports["h4"].take()),
        "account": pause("s1").get("ingress", 0),
    }


def last(*commands: str) -> dict[str, Any]:
    fresh("", slow=LINE // 10)
    senders = ("h1", "h2")
    for device in ("s1", "s2"):
        wire(device, f"pause {3 * 1518} 1518")
    for number in range(30):
        for sender in senders:
            ports[sender].send(4, number)
    time.sleep(0.015)
    before = [pause(sender)["paused_ns"] for sender in senders]
    time.sleep(0.001)
    paused = [pause(sender)["paused_ns"] - ns for sender, ns in zip(senders, before, strict=True)]
    subprocess.run(["tc", "-batch", "-"], input="\n".join(commands), text=True, check=True)
    ended = [pause(sender)["paused_ns"] for sender in senders]
    time.sleep(1)
    stays = [pause(sender)["paused_ns"] - ns for sender, ns in zip(senders, ended, strict=True)]
    arrived = len(ports["h4"].take())
    wire("s1", f"pause {3 * 1518} 1518")
    for number in range(30):
        ports["h1"].send(4, number)
    time.sleep(1)
    again = [pause("s1"), pause("h1"), len(ports["h4"].take())]
    return {"paused": paused, "stays_ns": stays, "arrived": arrived, "anew": again}


def urgent(options: str) -> dict[str, Any]:
    fresh(options)
    sender = Port("h1", protocol=3)  # of all protocols: a frame's own is that of its tag
    for host in (1, 2, 3) * 200:
        ports[f"h{host}"].send(4, host)
    for number in range(20):
        time.sleep(0.01)
        sender.send(5, number, pcp=7)
    time.sleep(1)
    levels = {level["level"]: level for level in stats("h1")["levels"]}
    return {
        "arrived": len(ports["h4"].take()),
        "urgent": [number for _, number in ports["h5"].take()],
        "drops": stats("s4")["drops"],
        "packets": levels[7]["packets"],
        "wait_ns": levels[7]["max_wait_ns"],
        "paused_ns": [levels[p].get("paused_ns", 0) for p in (0, 7)],
        "accounts": [
            next(level.get("max_ingress", 0) for level in stats("s1")["levels"] if level["level"] == p)
            for p in (0, 7)
        ],
    }


def held(urgent: bool) -> dict[str, Any]:
    fresh("")
    wire("s4", rate=SLOW // 10)
    wire("s1", "pause 3000 1000", rate=SLOW)
    rig.run("tc qdisc add dev s1 parent 5:1 handle 6: qjump epoch 5s level 0 1550")
    port = Port("s1", protocol=3)  # of all protocols: before the switch takes the frame
    port.send(1, 0)
    port.send(1, 1)
    time.sleep(2 if urgent else 4.96)
    for number in range(3):
        ports["h1"].send(4, number)
    time.sleep(0.01)
    if urgent:
        port.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 7)
        port.send(1, 2)
    time.sleep(5)
    congested_ns = port.take()[2][0]
    expected_ns = congested_ns + (8 + 64 + 12 + 8 + 1518) * 8 * 10**9 // SLOW
    arrivals = {number: stamp for stamp, number in ports["h1"].take()}
    arrival_ns = arrivals.get(2 if urgent else 1)
    return {"sent": pause("s1")["sent"], "late_ns": arrival_ns and arrival_ns - expected_ns}


def both() -> dict[str, Any]:
    fresh(PAUSE)
    link("s6", "s7")
    rig.run("ip link set s7 addrgenmode none up")
    rig.run("ovs-dpctl del-flows sw")
    rig.run("ovs-dpctl del-if sw s2")
    rig.run("ovs-dpctl del-if sw s3")
    rig.run("ovs-dpctl add-if sw s6,port_no=6")
    rig.run("ovs-dpctl add-dp other")
    atexit.register(rig.run, "ovs-dpctl del-dp other")
    for host in (2, 3):
        rig.run(f"ovs-dpctl add-if other s{host},port_no={host}")
    rig.run("ovs-dpctl add-if other s7,port_no=7")
    path("sw", 1, 6, 3)
    path("other", 7, 3, 3)
    path("other", 2, 7, 4)
    path("sw", 6, 4, 4)
    for device in ("s6", "s7"):
        wire(device, f"pause {3 * 1518} 1518")
    for device in ("s3", "s4"):
        wire(device, rate=LINE // 10)
    for number in range(40):
        ports["h1"].send(3, number)
        ports["h2"].send(4, number)
    time.sleep(1)
    return {
        "arrived": [len(ports[host].take()) for host in ("h3", "h4")],
        "pauses": [pause("s6"), pause("s7")],
    }


results = {
    "lossless": {options or "none": lossless(options) for options in ("", PAUSE)},
    "gap": gap(),
    "control": gap(busy=100),
    "blocking": {options or "none": blocking(options) for options in ("", PAUSE)},
    "gone": {
        "replaced": gone(f"tc qdisc replace dev s1 root handle 7: wire rate {LINE} {PAUSE}"),
        "deleted": gone("tc qdisc del dev s1 root"),
        "off": gone("tc qdisc change dev s1 root wire pause 0 0"),
        "down": gone("ip link set s1 down", "ip link set s1 up"),
        "sender": gone(f"tc -n h1 qdisc replace dev h1 root handle 7: wire rate {LINE}"),
        "congested": gone(f"tc qdisc replace dev s4 root handle 7: wire rate {LINE // 10}"),
    },
    "last": {
        "deleted": last("qdisc del dev s1 root", "qdisc del dev s2 root"),
        "off": last("qdisc change dev s1 root wire pause 0 0", "qdisc change dev s2 root wire pause 0 0"),
    },
    "alone": {
        "lossless": lossless(f"{PAUSE} {ALONE}"),
        "gap": gap(levels=ALONE),
        "gone": {
            "replaced": gone(
                f"tc qdisc replace dev s1 root handle 7: wire rate {LINE} {PAUSE} {ALONE}", levels=ALONE
            ),
            "off": gone("tc qdisc change dev s1 root wire pause 0 0", levels=ALONE),
            "others": gone("tc qdisc change dev s1 root wire pfc 1", levels=ALONE),
        },
    },
    "urgent": {options: urgent(options) for options in (PAUSE, f"{PAUSE} {ALONE}")},
    "held": {"urgent": held(urgent=True), "epoch": held(urgent=False)},
    "shortened": shortened(),
    "both": both(),
}
rig.report(frame_ns=FRAME_NS, control_ns=CONTROL_NS, **results)
