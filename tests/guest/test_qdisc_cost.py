"""What a packet costs in every queueing discipline, in instructions, against the figures of
bench/qdisc.json."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.guest.checks import COST, OTHERS_NIGHTLY, Guest, measured

pytestmark = pytest.mark.guest

FIGURES = json.loads((Path(__file__).parents[2] / "bench/qdisc.json").read_text())


@pytest.fixture(scope="module", params=OTHERS_NIGHTLY)
def costs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    """A boot for this check alone: what a packet costs depends on what the kernel has been told to
    do since it booted. The same as in bench/qdisc.py."""
    return measured(request.param, [COST], tmp_path_factory.mktemp("cost"))


def test_a_packet_costs_little_more_than_in_pfifo_and_half_of_prio_with_tbf(costs: Guest) -> None:
    qdiscs = costs.values("qdisc_cost")["qdiscs"]
    assert qdiscs["qjump_unlimited"] <= 1.75 * qdiscs["pfifo"]
    limited = [name for name in qdiscs if re.fullmatch(r"qjump_1\w+_level\d", name)]
    assert len(limited) == 4
    most = max(qdiscs[name] for name in limited)
    assert most <= 1.03 * 2.4 * qdiscs["pfifo"], "3 % for no hints to the compiler"
    lowest = max(qdiscs[name] for name in limited if name.endswith("level0"))
    assert lowest <= qdiscs["prio8_tbf_level0"] / 2


def test_a_qjump_that_limits_nothing_costs_about_half_of_prio_and_ets(costs: Guest) -> None:
    qdiscs = costs.values("qdisc_cost")["qdiscs"]
    for other in ("prio8_level0", "ets8_level0"):
        assert qdiscs["qjump_priorities"] <= 0.55 * qdiscs[other], other


def test_a_limited_packet_costs_a_third_of_what_it_does_by_bpf(costs: Guest) -> None:
    """At most, and with BPF compiled to the processor's instructions."""
    values = costs.values("qdisc_cost")
    qdiscs = values["qdiscs"]
    names = [name for name in qdiscs if name.startswith("bpf") and name.endswith("level0")]
    by_bpf = {name: qdiscs[name] for name in names}
    assert (values["jit"], len(by_bpf)) == (1, 3 if costs.kernel == "7" else 2)
    assert 3 * qdiscs["qjump_10ms_level0"] <= min(by_bpf.values()), by_bpf


def test_a_wire_costs_what_it_did_when_no_other_pauses_any_more(costs: Guest) -> None:
    values = costs.values("qdisc_cost")
    wire, pauses = values["qdiscs"]["wire"], values["wire_pauses"]
    assert pauses["on"] > 1.5 * wire, "every wire looks for pauses while one may send them"
    assert abs(pauses["off"] - wire) <= 0.01 * wire


def test_no_cost_has_grown(costs: Guest) -> None:
    """By more than one percent; `python bench/qdisc.py --write` renews the figures.

    Those measured by sendto() are differences that may be near or below zero: one percent of all
    that such a packet costs. Packets that stay take fresh memory, and those that are too dear free
    it, and with another image that costs up to 33 instructions more or less (tbf_held and
    qjump_held on 7.3): two percent.
    """
    stored = FIGURES.get(costs.kernel, {"release": "no such kernel"})
    values, release = costs.values("qdisc_cost"), costs.results["release"]
    if release != stored["release"]:
        of = f"bench/qdisc.json is of {stored['release']}, this is {release}"
        pytest.skip(f"{of}: python bench/qdisc.py --write")
    for group in ("qdiscs", "paths", "udp"):
        assert set(values[group]) == set(stored[group])
        for name, before in stored[group].items():
            if name.startswith(("qjump", "wire")):
                whole = before if group == "qdiscs" else stored["noqueue"] + abs(before)
                percent = 2 if name.endswith(("_held", "_oversize")) else 1
                assert values[group][name] <= before + percent * whole / 100, (group, name)
