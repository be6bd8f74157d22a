"""What is told twice is told the same: the dataclasses of Python and the settings of Rust, from which schemes come back as they were."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import qjump_sim
from qjump_sim import (
    FIG9,
    QUEUES,
    UNITS,
    US,
    Custom,
    DropTail,
    Packets,
    Priority,
    Scheme,
    Time,
    TimeAware,
)
from qjump_sim import queues as queues_module
from qjump_sim import scheme as scheme_module

TCP = Scheme.named("tcp", FIG9)
HINTS = get_type_hints(Scheme, vars(queues_module) | vars(scheme_module))


def kinds(field: str) -> list[type]:
    """The classes that a field of a scheme may have."""
    return [kind for kind in get_args(HINTS[field]) if kind is not NoneType]


def sample(kind: Any, numbers: Iterator[int], name: str = "") -> Any:
    """A value of a type that no other field has, nor by default."""
    options = get_args(kind)
    if kind is DropTail:
        return DropTail(Time(next(numbers)))
    if kind is Custom:
        return Custom(b'(module (memory (export "memory") 1) (func (export "on_ack") (param i32 i64 i32 i64 i32 i32 i32 i32 i32)))', True)
    if kind is TimeAware:
        return TimeAware(next(numbers), ((next(numbers), (0, 3)), (next(numbers), (1, 2, 4, 5, 6, 7))), next(numbers))
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return kind(**{field.name: sample(hints[field.name], numbers, field.name) for field in fields(kind)})
    if get_origin(kind) is Literal:
        return options[-1]
    if get_origin(kind) is Sequence:
        length = 1 if is_dataclass(options[0]) else 7 if name == "levels" else 8
        return tuple(sample(options[0], numbers) for _ in range(length))
    if options:  # a size comes back as bytes, a limit with its unit
        return sample(Time if Time in options else int if int in options else options[0], numbers)
    return {bool: True, int: next(numbers), float: next(numbers) / 1000, Time: Time(next(numbers))}[kind]


def schemes() -> Iterator[Scheme]:
    def new(kind: Any) -> Any:
        return sample(kind, itertools.count(17))

    for kind in kinds("queue"):
        yield replace(TCP, queue=new(kind), host_queue=new(kind), trunk_queue=new(kind))
    for kind in kinds("limiter"):
        yield replace(TCP, limiter=new(kind))
    for kind in kinds("pause"):
        yield replace(TCP, pause=new(kind))
    for kind in get_args(scheme_module.Congestion):
        yield replace(TCP, transport=replace(new(scheme_module.Transport), congestion=new(kind)))
    yield new(Scheme)


@pytest.mark.parametrize("scheme", list(schemes()), ids=lambda scheme: type(scheme.queue).__name__)
def test_every_field_of_a_scheme_comes_back(scheme: Scheme) -> None:
    assert Scheme.from_json(scheme.to_json()) == scheme


def test_json_has_bytes_and_the_names_of_classes() -> None:
    scheme = replace(TCP, queue=Priority(Packets(40)), host_queue=DropTail(packets=6))
    told = json.loads(scheme.to_json())
    assert told["queue"] == {"Priority": {"limit": 60_000}}
    assert told["host_queue"] == {"DropTail": {"Packets": 6}}


def test_what_is_no_scheme_is_told() -> None:
    text = TCP.to_json()
    with pytest.raises(ValueError, match=r"^scheme: unknown variant `Fifo`, expected one of `DropTail`"):
        Scheme.from_json(text.replace("DropTail", "Fifo"))
    with pytest.raises(ValueError, match=r"^scheme: unknown field `min_rtt`"):
        Scheme.from_json(text.replace("min_rto", "min_rtt"))
    with pytest.raises(ValueError, match="a whole number from 0 to 1000000000000000"):
        Scheme.from_json(replace(TCP, transport=replace(TCP.transport, min_rto=US)).to_json().replace(f'"min_rto":{US}', f'"min_rto":{2**60}'))


def test_queues_are_the_kinds_of_a_schemes_queue() -> None:
    assert sorted(QUEUES.values(), key=repr) == sorted(kinds("queue"), key=repr)
    assert QUEUES["dualpi2"] is qjump_sim.DualPi2 and QUEUES["drop-tail"] is DropTail


def test_laws_are_the_kinds_of_a_transports_congestion() -> None:
    assert sorted(qjump_sim.LAWS.values(), key=repr) == sorted(get_args(qjump_sim.Congestion), key=repr)
    assert qjump_sim.LAWS["dcqcn"] is qjump_sim.Dcqcn and qjump_sim.LAWS["reno"] is qjump_sim.Reno


def test_every_law_can_be_named_without_settings() -> None:
    laws: list[Any] = [law for law in qjump_sim.LAWS.values() if law is not qjump_sim.Custom]
    for law in laws:
        replace(TCP, routing="per-flow", transport=replace(TCP.transport, congestion=law())).to_json()


def test_units_are_of_settings_that_python_has() -> None:
    for name, units in UNITS.items():
        assert units.keys() <= {field.name for field in fields(getattr(qjump_sim, name))}, name
    assert UNITS["DualPi2"] | {"limit": "Size"} == UNITS["DualPi2"]
    times = {name for name, unit in UNITS["DualPi2"].items() if unit == "Duration"}
    assert times == {"target", "update", "least", "range"}
    assert UNITS["Transport"]["delayed_ack"] == "Duration" and "fixed_rto" not in UNITS["Transport"]
