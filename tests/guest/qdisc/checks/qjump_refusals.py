"""Every refusal has a sentence and leaves the state as it was; a small budget is a warning.

`refused` maps a command to tc's words. Assert: all have `code` 2 (kernel) or 1 (tc's own), `words`
is not empty and has no "Unknown error"; `unchanged` is true for all; `narrow` is code 0 and begins
with "Warning:"; `leftover` (a qdisc after refused adds) is false.
"""
import json

import rig

QJUMP = [
    "epoch 10ms level 7 63", "level 7 1550", "epoch 999ns level 7 1550", "epoch 3601s level 7 1550",
    "epoch 10 level 7 1550", "epoch -1ms", "epoch 10ms level 8 1550", "epoch 10ms level 7 5gb",
    "epoch 10ms level 7 1550 mode hold", "epoch 10ms epochs sliding", "epoch 10ms base 1s",
    "epoch 10ms level 7 100 mpu 128", "epoch 10ms overhead 2049", "epoch 10ms mpu 2049",
    "epoch 10ms limit 63", "epoch 10ms level 7 1550 limit 63", "epoch 10ms packets 0", "epoch 10ms packets x", "epoch 10ms colour red",
    "epoch 10ms priomap 0 1 2 3 4 5 6 8 0 0 0 0 0 0 0 0", "epoch 10ms priomap 0 1", "epoch",
    "epoch 10ms level 7 factor 1", "epoch 10ms bytes 1550", "epoch 10ms bytes 1550 level 7 factor -1",
    "epoch 10ms bytes 1550 level 7 factor 0.0001", "epoch 10ms bytes 1550 level 7 factor 0.04", "epoch 10ms bytes 4gb level 7 factor 2",
    "epoch 10ms level 7 1550 level 7 1550", "epoch 10ms level 7", "epoch 10ms level 7 limit 3000", "epoch 10ms level 7 1550 packets",
    "mode 2015 level 7 1550", "epoch 10ms mode 2015 level 7 unlimited", "epoch 10ms mode 2015 level 7 63", "epoch 10ms mode 2015 epochs rolling",
    "epoch 10ms mode 2015 epochs aligned", "epoch 10ms mode 2015 base 1s", "epoch 10ms mode 2015 overhead 24",
    "epoch 10ms mode 2015 mpu 64", "epoch 10ms mode 2015 priomap 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0",
    "epoch 10ms mode 2015 limit 64kb", "epoch 10ms mode 2015 packets 1000", "epoch 10ms mode 2015 level 7 1550 packets 10",
]
WIRE = [
    "", "limit 1mb", "rate 0", "rate 999", "rate 2tbit", "rate 10mb", "rate 10mbit limit 63",
    "rate 10mbit classify dscp", "rate 10mbit overhead 2049", "rate 10mbit delay 11s",
    "rate 10mbit delay 1", "rate 10mbit colour red", "rate",
]


def attempt(command: str) -> dict[str, object]:
    done = rig.tc(command, check=False)
    return {"code": done.returncode, "words": (done.stderr + done.stdout).strip()}


def shown() -> object:
    return json.loads(rig.tc("-j qdisc show dev a0").stdout)


rig.build()
refused, unchanged, before = {}, {}, shown()
for kind, cases in (("qjump", QJUMP), ("wire", WIRE)):
    for case in cases:
        command = f"qdisc add dev a0 root handle 6: {kind} {case}"
        refused[command] = attempt(command)
leftover = shown() != before
for kind, good, cases in (("qjump", "epoch 5ms level 6 3100", QJUMP),
                          ("wire", "rate 10mbit", WIRE)):
    rig.tc(f"qdisc add dev a0 root handle 6: {kind} {good}")
    before = shown()
    for case in cases:
        if case in ("", "limit 1mb", "level 7 1550", "mode 2015 level 7 1550"):
            continue  # a change may leave out what an add may not
        command = f"qdisc change dev a0 root handle 6: {kind} {case}"
        refused[command] = attempt(command)
        unchanged[command] = shown() == before
    rig.tc("qdisc del dev a0 root")
rig.tc("qdisc add dev a0 root handle 6: qjump epoch 5ms mode 2015 level 6 3100")
before = shown()
for case in ("level 3 unlimited", "level 6 0", "mpu 64", "limit 1mb", "epochs rolling"):
    command = f"qdisc change dev a0 root handle 6: qjump {case}"
    refused[f"{command} (2015)"] = attempt(command)
    unchanged[f"{command} (2015)"] = shown() == before
rig.tc("qdisc del dev a0 root")
rig.tc("qdisc add dev a0 root handle 1: mq")
for kind, good in (("qjump", "epoch 5ms level 6 3100"), ("wire", "rate 10mbit")):
    command = f"qdisc add dev a0 parent 1:1 {kind} {good}"
    refused[command] = attempt(command)
rig.tc("qdisc del dev a0 root")
rig.report(refused=refused, unchanged=unchanged, leftover=leftover,
           narrow=attempt("qdisc add dev a0 root handle 6: qjump epoch 1ms level 7 256"))
