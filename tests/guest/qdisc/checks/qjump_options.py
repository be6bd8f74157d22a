"""tc shows what it sets and accepts what it shows, and a change affects only what it names.

Checked with every tc that is present: the guest's, and Debian 12's (6.1) if it is in /opt/bookworm.
`roundtrip`: per tc and case, the options of a qdisc, and those of one added with the words that `tc
qdisc show` printed. `changes`: the options after each change of one qdisc. `factors`: the budgets
computed from factors. `limits`: packets waiting in two levels with limits of their own.
"""
import json
import os
import subprocess

import rig

TC = {"guest": ["tc"]}
if os.path.exists("/opt/bookworm/tc"):
    TC["bookworm"] = ["/lib64/ld-linux-x86-64.so.2", "/opt/bookworm/tc"]
CASES = [
    "epoch 28800us bytes 1550 level 7 factor 1 level 4 factor 30 level 0 factor 300",
    "epoch 1234567891ns level 7 1550 limit 10 level 3 3100 limit 20 level 2 unlimited limit 99999",
    "epoch 10ms slack 25us level 6 9000 limit 7 priomap 7 6 5 4 3 2 1 0 0 1 2 3 4 5 6 7 overhead 28 mpu 84",
    "epoch 3600s slack 3600s level 7 2147483647",
    "limit 128",
]
CHANGES = ["level 3 3100", "epoch 20ms", "level 3 4000 limit 70", "limit 50", "level 7 unlimited limit 60", "mpu 84", "slack 1ms"]


def tc(name: str, arguments: str) -> str:
    environment = os.environ | {"TC_LIB_DIR": "/usr/lib/x86_64-linux-gnu/tc"}
    if name == "bookworm":
        environment["LD_LIBRARY_PATH"] = "/opt/bookworm/lib"
    done = subprocess.run([*TC[name], "-n", "a", *arguments.split()], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{name}: tc {arguments}: {done.stderr}")
    return done.stdout


def options(name: str) -> dict[str, object]:
    return next(q["options"] for q in json.loads(tc(name, "-j qdisc show dev a0")) if q["kind"] == "qjump")


def roundtrip(name: str, case: str) -> list[object]:
    tc(name, f"qdisc add dev a0 root handle 6: qjump {case}")
    before = options(name)
    shown = tc(name, "qdisc show dev a0 root")
    tc(name, "-s qdisc show dev a0")
    tc(name, "qdisc del dev a0 root")
    words = shown.partition("refcnt")[2].split(maxsplit=1)[1]  # qdisc qjump 6: root refcnt 9 WORDS
    tc(name, f"qdisc add dev a0 root handle 6: qjump {words}")
    after = options(name)
    tc(name, "qdisc del dev a0 root")
    return [before, after, words]


rig.build()
versions = {name: tc(name, "-V") for name in TC}
trips = {name: {case: roundtrip(name, case) for case in CASES} for name in TC}
rig.tc("qdisc add dev a0 root handle 6: qjump epoch 10ms level 7 1550")
changes = {}
for change in CHANGES:
    rig.tc(f"qdisc change dev a0 root handle 6: qjump {change}")
    changes[change] = options("guest")
rig.tc("qdisc del dev a0 root")
rig.tc("qdisc add dev a0 root handle 6: qjump epoch 1s level 4 1000 limit 5 level 3 1000 limit 3")
for p in (4, 3, 2):
    sender = rig.Sender(p)
    for number in range(20):
        sender.send(1000, number)
limits = {p: [rig.level("qjump", p)[key] for key in ("packets", "qlen", "drops")] for p in (4, 3)}
rig.tc("qdisc del dev a0 root")
rig.tc("qdisc add dev a0 root handle 6: qjump epoch 10ms bytes 1001 level 0 factor 2.5 level 1 unlimited level 2 factor 1 level 3 77")
factors = options("guest")["budgets"]
rig.report(versions=versions, roundtrip=trips, changes=changes, limits=limits, factors=factors)
