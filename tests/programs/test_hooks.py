"""What an author of a program must know, and the protocols of everything else."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qjump_mn import resolve
from qjump_mn.errors import UsageError
from qjump_mn.model import hooks
from qjump_mn.model.workload import WorkloadPlan, WorkloadSpec
from qjump_mn.programs import hooks as trial_hooks
from qjump_mn.programs import registry
from qjump_mn.programs.base import Program

DOCUMENT = Path(__file__).parents[2] / "docs/programs.md"

PROTOCOLS = {
    name: protocol
    for module in (hooks, trial_hooks)
    for name, protocol in vars(module).items()
    if isinstance(protocol, type) and hooks.Hook in protocol.__mro__[1:]
}
COMMON: dict[str, Any] = {
    "name": "bare",
    "label": "a bare workload",
    "flows": (("h1", "h2"),),
    "level": 6,
    "window_bytes": None,
    "port": 5201,
}


class BarePlan(WorkloadPlan, frozen=True, kw_only=True, tag="bare"):
    """A plan that has nothing beyond its base class."""


class BareSpec(WorkloadSpec, frozen=True, kw_only=True, tag="bare"):
    """A spec that has nothing beyond its base class."""


class BrokenPlan(WorkloadPlan, frozen=True, kw_only=True, tag="broken"):
    """A plan with a hook that raises."""

    @property
    def packet_bytes(self) -> int:
        raise AttributeError("a mistake in the program")


BARE, SPEC = BarePlan(**COMMON), BareSpec(label="bare")


def members(protocol: type) -> dict[str, Any]:
    """What a protocol asks for, by name."""
    return {name: value for name, value in vars(protocol).items() if not name.startswith("_")}


def own(struct: type[msgspec.Struct]) -> set[str]:
    """The names of a base class that are not its fields."""
    names = {name for name in vars(struct) if not name.startswith("_")}
    return names - {field.name for field in msgspec.structs.fields(struct)}


def parameters(function: Any) -> list[tuple[str, Any]]:
    return [(one.name, one.kind) for one in inspect.signature(function).parameters.values()]


def test_an_author_must_know_ten_names() -> None:
    plan, spec = own(WorkloadPlan) - {"NOT_RUN"}, own(WorkloadSpec) - {"check"}
    program = {field.name for field in dataclasses.fields(Program)} - {"simulated"}
    assert plan == {"MEASURES", "describe"} and spec == {"pairs", "planned"}
    assert len(plan | spec | program) == 10


def test_each_protocol_asks_for_one_thing() -> None:
    names = [name for protocol in PROTOCOLS.values() for name in members(protocol)]
    assert len(names) == len(set(names)) == len(PROTOCOLS) > 20
    assert all(protocol.__doc__ for protocol in PROTOCOLS.values())


@pytest.mark.parametrize("name", registry.OURS)
def test_hooks_of_a_program_have_the_parameters_of_their_protocol(name: str) -> None:
    program = registry.program(name)
    for protocol in PROTOCOLS.values():
        for member, asked in members(protocol).items():
            for struct in (program.plan, program.spec):
                given = inspect.getattr_static(struct, member, None)
                if inspect.isfunction(asked) and given is not None:
                    assert parameters(given) == parameters(asked), member


def test_each_protocol_is_used_by_a_program_of_ours() -> None:
    types = [kind for name in registry.OURS for kind in vars(registry.program(name)).values()]
    for protocol in PROTOCOLS.values():
        (member,) = members(protocol)
        assert any(isinstance(kind, type) and hasattr(kind, member) for kind in types), member


def test_a_bare_workload_has_no_hook_and_the_defaults() -> None:
    assert not any(isinstance(one, kind) for kind in PROTOCOLS.values() for one in (BARE, SPEC))
    assert hooks.is_lasting(SPEC)
    assert hooks.sends(BARE)
    unset = (
        hooks.is_background,
        hooks.is_one_way,
        hooks.is_multicast,
        hooks.is_copied,
        hooks.has_levels_by_size,
        hooks.is_only_simulated,
        hooks.watches_ports,
        hooks.packet_bytes,
        hooks.answer_bytes,
        hooks.longest_ns,
        hooks.phase_ns,
        hooks.echo_replies,
    )
    assert not any(ask(BARE) for ask in unset)
    assert hooks.conversations(BARE) == BARE.flows and hooks.levels(BARE) == {6}
    assert hooks.measures(BARE) == {}
    hooks.check_emulated(BARE, "here")
    hooks.check_real_time(BARE, "here")


def test_hooks_are_asked_where_they_are_there() -> None:
    (ping,) = (one for one in resolve.plan("fig3a", "smoke", []).arms[0].workloads)
    assert isinstance(ping, hooks.HasConstants) and not isinstance(ping, hooks.HasBackground)
    assert hooks.phase_ns(ping) > 0 and hooks.packet_bytes(ping)


def test_a_workload_of_the_simulator_is_refused_elsewhere() -> None:
    class Simulated(BarePlan, frozen=True, kw_only=True, tag="simulated"):
        ONLY_SIMULATED = True

    with pytest.raises(UsageError, match="here runs only in the simulator"):
        hooks.check_emulated(Simulated(**COMMON), "here")


def test_an_error_inside_a_hook_is_not_taken_for_its_absence() -> None:
    with pytest.raises(AttributeError, match="a mistake in the program"):
        hooks.packet_bytes(BrokenPlan(**COMMON))


def test_the_page_lists_every_hook() -> None:
    section = (
        DOCUMENT.read_text().partition("\n### What a program may add\n")[2].partition("\n### ")[0]
    )
    listed = re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\|([^|]*)\|", section)))
    assert sorted(listed) == sorted(name for one in PROTOCOLS.values() for name in members(one))
