"""A scheme's lines for tc with its link's numbers in them, and schemes that cannot be."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from qjump_mn.errors import UsageError
from qjump_mn.model.scheme import SchemePlan, SchemeSpec
from qjump_mn.resolve import loading
from qjump_mn.resolve.schemes import resolve_scheme
from qjump_mn.resolve.toml_types import convert
from tests.resolve.test_wiring import network

PLAIN = loading.experiment("fig3a", "course", [])[0].schemes["none"]


SIMULATED = convert(loading.read("schemes", "pfabric"), SchemeSpec, "pfabric")


def resolved(link: dict[str, Any] | None = None, **changes: Any) -> SchemePlan:
    spec = msgspec.structs.replace(PLAIN, **changes)
    return resolve_scheme("here", "mine", spec, network({"trunk_rate": "1Gbit", **(link or {})}))


def line(text: str) -> tuple[str, ...]:
    return (f"qdisc add dev {{dev}} {text}",)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("limit {buffer}", ["limit 100000"]),
        ("rate {rate / 8 * share} mtu {frame}", ["rate 625000 mtu 1522"]),
        ("parent {parent}", ["parent {parent}"]),
        ("band { level } of {mtu}", [f"band {number} of 1500" for number in range(7, -1, -1)]),
        ("at {share * 3}", ["at 2"]),
    ],
)
def test_lines_have_the_numbers_of_link_parameters_and_level(text: str, filled: list[str]) -> None:
    found = resolved(host=line(text), parameters={"share": 0.5}).host
    assert found == tuple(line(each)[0] for each in filled)


def test_ports_between_switches_have_the_numbers_of_their_own_link() -> None:
    found = resolved(switch_port=line("rate {rate}"), vlan=line("rate {rate}"))
    assert found.switch_port == found.vlan == line("rate 10000000")
    assert found.trunk_port == line("rate 1000000000")
    assert (found.name, found.host, found.only_simulated) == ("mine", (), False)


PAUSED = {"pfc": True, "xoff": "20kB", "xon": "10kB", "buffer": "300kB"}


@pytest.mark.parametrize(
    ("link", "changes", "sentence"),
    [
        ({}, {"limiter": "delay", "levels": False}, "a limiter without levels"),
        (
            {},
            {"limiter": "delay", "levels": True, "host": line("x")},
            "host: the limiter and these",
        ),
        ({"model": "htb"}, {"switch_port": line("x")}, "links of model htb have no place"),
        (PAUSED, {"limiter": "delay", "levels": True}, "pfc pauses levels"),
        (PAUSED, {"host": line("x")}, "pfc pauses levels"),
        (PAUSED, {"switch_port": line("x")}, "pfc pauses levels"),
        ({}, {"only_simulated": True, "simulator": None}, "the table [simulator] is missing"),
        ({}, {"parameters": {"rate": 1}}, "parameters.rate: this name is taken by the link"),
        ({}, {"parameters": {"level": 1}}, "parameters.level: this name is taken"),
        ({}, {"parameters": {"dev": 1}}, "parameters.dev: this name is taken"),
        ({}, {"host": ("tc qdisc add dev {dev}",)}, "is not a line for tc"),
        ({}, {"host": ("qdisc add dev eth0",)}, "is not a line for tc"),
        ({}, {"host": line("limit {buffer")}, "has a brace without a partner"),
        ({}, {"host": line("limit buffer}")}, "has a brace without a partner"),
        ({}, {"host": line("limit {nosuch}")}, "'nosuch' is not known: known are rate, buffer"),
        ({}, {"host": line("limit {level + nosuch}")}, "'nosuch' is not known"),
        ({}, {"host": line("limit {dev + 1}")}, "cannot be part of an expression: write {dev}"),
        ({}, {"host": line("limit {1 / (mtu - 1500)}")}, "it divides by zero or is too large"),
        ({}, {"host": line("limit {1 < 2}")}, "is a condition, but must be a number"),
    ],
)
def test_scheme_that_cannot_be_is_refused(
    link: dict[str, Any], changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError, match=f"here: .*{re.escape(sentence)}"):
        resolved(link, **changes)


@pytest.mark.parametrize(
    ("changes", "unused"),
    [
        ({}, ""),
        ({"host": line("x")}, "host"),
        ({"vlan": line("x"), "parameters": {"share": 1}}, "vlan, parameters"),
    ],
)
def test_simulated_scheme_has_nothing_else(changes: dict[str, Any], unused: str) -> None:
    changes = {"only_simulated": True, "simulator": SIMULATED.simulator, **changes}
    if not unused:
        assert resolved(**changes).only_simulated
        return
    with pytest.raises(UsageError, match=f"does not use {unused}: leave it out"):
        resolved(**changes)
