"""Two proofs by experiment in the guest: QJump's bound on latency, and that no set of options gets
past checks of sch_qjump, sch_qjump2015 and sch_wire.

The latency theorem. n senders, one receiver behind a store-and-forward switch, links of R bit/s,
all of them saturated with bulk of the lowest level. On a wire a bulk frame takes b, a packet of the
top level c, its last bit arriving s = c - 12 * 8 / R after its first (the gap between frames
follows it). Every sender leaves T + b, T = 2 n c, between its packets. A packet then waits at most

- b at its host, for the frame on the wire: nothing else is more urgent, and qjump does not hold it,
for the one before left more than T ago;
- b + (n - 1) c at the switch. What leaves a host is at least T apart (rolling epochs). So of a
queue that began to form at 0, behind a bulk
  frame, there have come n (k + 1) packets at most by any time t in [k T, (k + 1) T), and the last
  of them waits until b + (n (k + 1) - 1) c:
  that is b + (n (k + 1) - 1) c - t <= b + (n - 1) c - k n c <= b + (n - 1) c;

and is sent twice: D <= 2 b + (n - 1) c + 2 s + e. e is the processor, which all hosts share here:
for itself a lone packet's excess over 2 s, and at both hops at most as much for each of the n other
ports whose frame is due at the same instant: (1 + 2 n) times the excess. With T / 4 the receiver's
link is asked for more than it has, and some packets must take longer.

One boot each; -m slow has 100,000 packets and 10,000 sets.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.guest.checks import EXPECTED_LOG, KERNELS, Guest, measured

pytestmark = [pytest.mark.guest, pytest.mark.nightly]

HEADERS = Path(__file__).parents[2] / "kmod-patches/include"
SENDERS = [3, 6, 11]
QUICK = [
    f"{n}:{packets}:{divisor}" for n in SENDERS for packets, divisor in ((1000, 1), (100 * n, 4))
]
FULL = [f"{n}:{packets}:1" for n, packets in zip(SENDERS, (33_334, 33_333, 33_333), strict=True)]
QUICK_SETS = {"qjump": 1500, "qjump2015": 500, "wire": 500}
FULL_SETS = {kind: 4 * count for kind, count in QUICK_SETS.items()}

# What the kernel's lib/nlattr.c says itself, on 6.1 and 6.12.
GENERIC = {
    "Attribute failed policy "
    "validation", "NLA_F_NESTED is missing", "NLA_F_NESTED not expected", "Unknown attribute type",
    "Unsupported attribute", "bytes leftover after parsing attributes", "invalid attribute length",
    "integer out of range", "binary attribute size out of range",
}  # fmt: skip
# ... and in its log, of what it refuses.
GENERIC_LOG = re.compile(
    r"netlink: ('python3': attribute type \d+ has an invalid length|\d+ bytes leftover after parsing "
    r"attributes in process `python3')\."
    r"|(validate_nla|__nla_validate_parse): \d+ callbacks suppressed"
)


def bound_ns(case: dict[str, Any], values: dict[str, Any]) -> float:
    n, b, c = case["n"], values["bulk_ns"], case["packet_ns"]
    s = c - 12 * 8e9 / values["rate"]
    return float(2 * b + (n - 1) * c + 2 * s + (1 + 2 * n) * (case["lone_ns"] - 2 * s))


def check_bound(values: dict[str, Any], packets: dict[int, int]) -> None:
    """No packet of the cases with the whole epoch took longer than the bound, or was held or lost,
    and all links were busy."""
    whole = [case for case in values["cases"] if case["divisor"] == 1]
    assert {case["n"]: case["sent"] for case in whole} == packets
    for case in whole:
        assert (case["arrived"], case["throttled"], case["drops"]) == (case["sent"], 0, 0)
        assert case["epoch_ns"] == 2 * case["n"] * case["packet_ns"]
        assert min(case["busy"].values()) >= 0.995
        assert case["waits"][0] <= bound_ns(case, values), case["n"]


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    checks = [["qjump_theorem", *QUICK], fuzz("quick", QUICK_SETS)]
    return measured("6.12", checks, tmp_path_factory.mktemp("proof"))


def test_no_packet_takes_longer_than_the_bound(guest: Guest) -> None:
    check_bound(guest.values("qjump_theorem"), dict.fromkeys(SENDERS, 1000))


def test_with_a_quarter_of_the_epoch_some_do(guest: Guest) -> None:
    values = guest.values("qjump_theorem")
    quarter = [case for case in values["cases"] if case["divisor"] == 4]
    assert [case["n"] for case in quarter] == SENDERS
    for case in quarter:
        assert case["waits"][0] > bound_ns(case, values), case["n"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_of_100000_packets_none_takes_longer_than_the_bound(tmp_path: Path) -> None:
    guest = measured("6.12", [["qjump_theorem", *FULL]], tmp_path)
    assert set(guest.results["log"]) <= EXPECTED_LOG
    check_bound(guest.values("qjump_theorem"), {3: 33_334, 6: 33_333, 11: 33_333})


def numbers() -> dict[str, int]:
    """Every enumerator of the two headers; none has a value of its own."""
    found: dict[str, int] = {}
    for header in HEADERS.glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for body in re.findall(r"enum \w*\s*\{(.*?)\}", text, re.S):
            assert "=" not in body
            found |= {name: number for number, name in enumerate(re.findall(r"\w+", body))}
    return found


def fuzz(seed: str, sets: dict[str, int]) -> list[str]:
    """The check with its arguments."""
    counts = (f"{kind}:{count}" for kind, count in sets.items())
    return ["netlink_fuzz", seed, json.dumps(numbers()), *counts]


def check_sets(guest: Guest, counts: dict[str, int]) -> None:
    log = [line for line in guest.results["log"] if not GENERIC_LOG.fullmatch(line)]
    assert set(log) <= EXPECTED_LOG
    values = guest.values("netlink_fuzz")
    assert set(values) == set(counts)
    for kind, total in counts.items():
        outcome = values[kind]
        assert outcome["wrong"] == []
        assert sum(outcome["counts"].values()) == total
        operations = ("add", "change", "replace", "replace by another")
        for case in (f"{one}: {end}" for one in operations for end in ("accepted", "refused")):
            assert outcome["counts"][case] >= total / 50, (kind, case)
        assert len(outcome["flaws"]) == (18 if kind == "qjump" else 9)
        assert min(outcome["flaws"].values()) >= total / 200
        own = [words for words in outcome["words"] if words not in GENERIC]
        assert [one for one in own if not re.fullmatch(rf"sch_{kind}: [A-Z].{{12,}}", one)] == []


def test_2500_sets_of_options(guest: Guest) -> None:
    check_sets(guest, QUICK_SETS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kernel", KERNELS)
def test_10000_sets_of_options(kernel: str, tmp_path: Path) -> None:
    check_sets(measured(kernel, [fuzz("full", FULL_SETS)], tmp_path), FULL_SETS)
