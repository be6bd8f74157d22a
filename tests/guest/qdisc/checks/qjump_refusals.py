"""Every refusal has a message and leaves the state unchanged; odd options cause a warning.

`refused` maps a command to tc's exit code and message; so do `odd` for commands with a warning,
and `even` for those without one.
"""
import json

import rig

QJUMP = [
    "epoch 10ms level 7 63", "level 7 1550", "epoch 999ns level 7 1550", "epoch 3601s level 7 1550",
    "epoch 10 level 7 1550", "epoch -1ms", "epoch 10ms level 8 1550", "epoch 10ms level 7 5gb", "epoch 10ms level 7 3gb",
    "epoch 10ms level 7 100 mpu 128", "epoch 10ms level 7 90 overhead 28", "epoch 10ms overhead 2049", "epoch 10ms mpu 2049",
    "epoch 10ms slack 3601s", "epoch 10ms limit 0", "epoch 10ms level 7 1550 limit 0", "epoch 10ms limit 1000001", "epoch 10ms limit x",
    "epoch 10ms colour red", "epoch 10ms mode delay",
    "epoch 10ms priomap 0 1 2 3 4 5 6 8 0 0 0 0 0 0 0 0", "epoch 10ms priomap 0 1", "epoch",
    "epoch 10ms level 7 factor 1", "epoch 10ms bytes 1550", "epoch 10ms bytes 1550 level 7 factor -1", "epoch 10ms bytes 1550 level 7 factor 0",
    "epoch 10ms bytes 1550 level 7 factor 0.0001", "epoch 10ms bytes 1550 level 7 factor 0.04", "epoch 10ms bytes 2gb level 7 factor 2",
    "epoch 10ms level 7 1550 level 7 1550", "epoch 10ms level 7", "epoch 10ms level 7 limit 3000", "epoch 10ms level 7 1550 limit",
    "epoch 10ms level 7 0", "epoch 10ms level 7 0.4", "epoch 10ms level 7 2147483648", "epoch 10ms epoch 20ms", "epoch 10ms limit 5 limit 6", "epoch 10ms level 7 1550 limit 5 limit 6",
    "epoch 10ms mpu 64 mpu 84", "epoch 10ms bytes 1550 bytes 1550 level 7 factor 1",
]
QJUMP2015 = [
    "epoch 999ns", "epoch 3601s", "epoch", "epoch 10ms level 8 1550", "epoch 10ms level 7", "epoch 10ms level 7 1550 level 7 1550",
    "epoch 10ms epoch 10ms", "level 7 1550", "epoch 10ms colour red", "epoch 10ms level 7 5gb",
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


ODD = {
    "epoch 1ms level 7 256": "largest",
    "epoch 1ms level 7 9000 priomap 0 1 2 3 4 5 6 0 0 0 0 0 0 0 0 0": "no priority is mapped",
    "epoch 1ms bytes 9000 level 7 factor 2 level 6 factor 1": "larger factor",
    "epoch 1ms bytes 9000 level 7 factor 2 level 3 factor 1": "larger factor than level 3",
    "limit 44": "too low for the device's GSO packets",
    "level 3 unlimited limit 2": "too low for the device's GSO packets",
}
EVEN = ["limit 47", "epoch 1ms level 7 1550 limit 60"]


def odd(words: str) -> dict[str, object]:
    answer = attempt(f"qdisc add dev a0 root handle 6: qjump {words}")
    rig.tc("qdisc del dev a0 root")
    return answer | {"told": ODD[words] in str(answer["words"])}


def even(words: str) -> dict[str, object]:
    answer = attempt(f"qdisc add dev a0 root handle 6: qjump {words}")
    rig.tc("qdisc del dev a0 root")
    return answer


rig.build()
refused, unchanged, before = {}, {}, shown()
for kind, cases in (("qjump", QJUMP), ("qjump2015", QJUMP2015), ("wire", WIRE)):
    for case in cases:
        command = f"qdisc add dev a0 root handle 6: {kind} {case}"
        refused[command] = attempt(command)
        if not refused[command]["code"]:
            rig.tc("qdisc del dev a0 root")
leftover = shown() != before
for kind, good, cases in (("qjump", "epoch 5ms level 6 3100", QJUMP), ("qjump2015", "epoch 5ms level 6 3100", QJUMP2015),
                          ("wire", "rate 10mbit", WIRE)):
    rig.tc(f"qdisc add dev a0 root handle 6: {kind} {good}")
    before = shown()
    for case in cases:
        if case in ("", "limit 1mb", "level 7 1550"):
            continue  # a change may omit what an add must have
        command = f"qdisc change dev a0 root handle 6: {kind} {case}"
        refused[command] = attempt(command)
        unchanged[command] = shown() == before
    rig.tc("qdisc del dev a0 root")
for root in ("mq", "multiq"):
    rig.tc(f"qdisc replace dev a0 root handle 1: {root}")
    for kind, good in (("qjump", "epoch 5ms level 6 3100"), ("qjump2015", "epoch 5ms level 6 3100"), ("wire", "rate 10mbit")):
        command = f"qdisc add dev a0 parent 1:1 {kind} {good}"
        refused[f"{command} ({root})"] = attempt(command)
    rig.tc("qdisc del dev a0 root")
odds, evens = {words: odd(words) for words in ODD}, {words: even(words) for words in EVEN}
rig.run("ip -n a link set a0 gso_max_segs 1")
evens["limit 2"] = even("limit 2")
rig.report(refused=refused, unchanged=unchanged, leftover=leftover, odd=odds, even=evens)
