"""Resolve a scheme on a network: check it, and fill the numbers of links into its tc lines."""

from __future__ import annotations

import re
from collections.abc import Mapping

from qjump_mn import theory
from qjump_mn.errors import UsageError
from qjump_mn.links import registry
from qjump_mn.model import expression
from qjump_mn.model.expression import Kind, Path, UndefinedError, UnknownNameError
from qjump_mn.model.scheme import Law, SchemePlan, SchemeSpec
from qjump_mn.model.topology import Link, Network
from qjump_mn.resolve import named_files

FILLED_LATER = ("dev", "parent")
"""Fields of a tc line that depend on the interface, and are filled in there."""

LAW = "law"
"""The setting of a simulated transport that names the file of a congestion law."""

LEVEL = "level"
"""A tc line with this name in an expression is repeated for each level."""

_FIELD = re.compile(r"\{([^{}]*)\}")


def resolve_scheme(where: str, name: str, spec: SchemeSpec, network: Network) -> SchemePlan:
    """Check ``spec`` for links of ``network`` and fill in its numbers; raise :class:`UsageError`
    that begins with ``where``.
    """
    _check(where, spec, network)

    def filled(key: str, lines: tuple[str, ...], link: Link) -> tuple[str, ...]:
        values = {**_of_link(link), **spec.parameters}
        return tuple(
            _filled(f"{where}: {key}", line, {**values, **level})
            for line in lines
            for level in _levels(line)
        )

    return SchemePlan(
        name=name,
        congestion_control=spec.congestion_control,
        ecn=spec.ecn,
        host=filled("host", spec.host, network.link),
        switch_port=filled("switch_port", spec.switch_port, network.link),
        trunk_port=filled("switch_port", spec.switch_port, network.trunk),
        vlan=filled("vlan", spec.vlan, network.link),
        module=named_files.module(where, spec.module) if spec.module else None,
        module_parameters=_module_parameters(where, spec, network.link),
        simulator=spec.simulator,
        law=_law(where, spec),
        only_simulated=spec.only_simulated,
    )


def _law(where: str, spec: SchemeSpec) -> Law | None:
    """Return the law in WebAssembly that the simulator's transport names, if it names one."""
    transport = spec.simulator.transport if spec.simulator else {}
    return named_files.law(where, transport[LAW]) if LAW in transport else None


def _module_parameters(where: str, spec: SchemeSpec, link: Link) -> tuple[str, ...]:
    """Return the words that insmod gets after the module's path."""
    place = f"{where}: module_parameters"
    line = _with_numbers(place, spec.module_parameters, {**_of_link(link), **spec.parameters})
    for word in line.split():
        if not re.fullmatch(r"[a-z0-9_]+=[^=]*", word):
            raise UsageError(f"{place}: {word!r} is not a module's parameter: write NAME=VALUE")
    return tuple(line.split())


def _check(where: str, spec: SchemeSpec, network: Network) -> None:
    if spec.limiter and not spec.levels:
        raise UsageError(
            f"{where}: a limiter without levels limits nothing but level 0: set levels = true"
        )
    spec.look.check(f"{where}: look")
    if spec.limiter and spec.host:
        raise UsageError(
            f"{where}: host: the limiter and these lines would put queues in the same place: leave "
            "one of them out"
        )
    if spec.switch_port and not registry.of(network.model).has_port_queues:
        raise UsageError(
            f"{where}: switch_port: links of model {network.model} have no place for queues at "
            "switch ports: use model wire"
        )
    if network.link.pfc and (spec.limiter or spec.host or spec.switch_port):
        raise UsageError(
            f"{where}: pfc pauses levels of the links' own queues: leave limiter, host and "
            "switch_port out"
        )
    if spec.only_simulated and spec.simulator is None:
        raise UsageError(f"{where}: only_simulated: the table [simulator] is missing: add it")
    if spec.module_parameters and not spec.module:
        raise UsageError(f"{where}: module_parameters: there is no module: name one")
    kept = ("host", "switch_port", "vlan", "module", "parameters")
    unused = [key for key in kept if getattr(spec, key)]
    if spec.only_simulated and unused:
        raise UsageError(
            f"{where}: only_simulated: the simulator does not use {', '.join(unused)}: leave it out"
        )
    for parameter in spec.parameters:
        if parameter in (*_of_link(network.link), LEVEL, *FILLED_LATER):
            raise UsageError(
                f"{where}: parameters.{parameter}: this name is taken by the link: choose another"
            )


def _levels(line: str) -> list[dict[str, float]]:
    """Return the further values for each copy of ``line``: one copy without any, or one for each
    level, the most urgent first.
    """
    if not any(re.search(rf"\b{LEVEL}\b", field) for field in _FIELD.findall(line)):
        return [{}]
    return [{LEVEL: level} for level in reversed(theory.LEVELS)]


def _of_link(link: Link) -> dict[str, float]:
    return {
        "rate": link.rate_bps,
        "buffer": link.buffer_bytes,
        "frame": theory.frame_bytes(link.mtu_bytes),
        "mtu": link.mtu_bytes,
    }


def _filled(where: str, line: str, values: Mapping[str, float]) -> str:
    """Return ``line`` with a number in place of each {expression}; {dev} and {parent} stay."""
    verb, _, rest = line.partition(" ")
    if verb not in ("qdisc", "class", "filter") or "{dev}" not in rest:
        raise UsageError(
            f"{where}: {line!r} is not a line for tc: write it without 'tc', such as 'qdisc add "
            "dev {dev} parent {parent} …'"
        )
    return _with_numbers(where, line, values)


def _with_numbers(where: str, line: str, values: Mapping[str, float]) -> str:
    """Return ``line`` with a number in place of each {expression}; {dev} and {parent} stay."""
    if "{" in (left := _FIELD.sub("", line)) or "}" in left:
        raise UsageError(f"{where}: {line!r} has a brace without a partner: close it")

    def filled(field: re.Match[str]) -> str:
        text = field[1].strip()
        if text in FILLED_LATER:
            return "{" + text + "}"
        return str(_number(f"{where}: {field[0]}", text, values))

    return _FIELD.sub(filled, line)


def _number(where: str, text: str, values: Mapping[str, float]) -> int:
    """Return the rounded value of an expression over ``values``."""

    def kind_of(path: Path) -> Kind:
        if path[0] in FILLED_LATER and len(path) == 1:
            raise UnknownNameError(f"cannot be part of an expression: write {{{path[0]}}}")
        if ".".join(path) not in values:
            raise UnknownNameError(f"is not known: known are {', '.join(values)}")
        return "number"

    parsed = expression.parse(text, where)
    parsed.check("number", kind_of)
    try:
        return round(parsed.value(lambda path: float(values[path[0]])))
    except UndefinedError:
        problem = "it divides by zero or is too large: change it, or the parameters"
        raise UsageError(f"{where}: {problem}") from None
