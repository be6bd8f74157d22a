"""A scheme as the simulator has it: one of its own, with what a scheme file and the arm's limiter change."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

import qjump_sim
from qjump_mn.errors import UsageError
from qjump_mn.model import units
from qjump_mn.model.experiment import LEVELS
from qjump_mn.model.plan import ArmPlan, QJumpPlan

_QUEUES: dict[str, type[Any]] = {
    "drop-tail": qjump_sim.DropTail,
    "marking": qjump_sim.Marking,
    "priority": qjump_sim.Priority,
    "pfabric": qjump_sim.PFabric,
}
_KIND = "kind"


def scheme(arm: ArmPlan, topology: qjump_sim.LeafSpine | qjump_sim.Tree) -> qjump_sim.Scheme:
    """What hosts and queues do in an arm; raise :class:`UsageError` with the place of what the simulator has not."""
    where = f"scheme {arm.scheme.name!r}: simulator"
    asked = arm.scheme.simulator
    if asked is None:
        raise UsageError(f"{where}: it has no such table, so that the simulator does not know it")
    try:
        made = qjump_sim.Scheme.named(asked.like, topology)
    except ValueError as error:
        raise UsageError(f"{where}.like: {error}") from None
    queue, settings = made.queue, dict(asked.queue)
    if _KIND in settings:
        kind = str(settings.pop(_KIND))
        if kind not in _QUEUES:
            raise UsageError(f"{where}.queue.kind: there is no queue {kind!r}: known are {', '.join(_QUEUES)}")
        queue = _made(f"{where}.queue", _QUEUES[kind], settings)
    elif settings:
        queue = _changed(f"{where}.queue", queue, settings)
    made = dataclasses.replace(made, queue=queue, transport=_changed(f"{where}.transport", made.transport, asked.transport))
    if asked.routing is not None:
        made = dataclasses.replace(made, routing=asked.routing)
    return made if arm.qjump is None else dataclasses.replace(made, limiter=_limiter(where, arm.qjump))


def _limiter(where: str, limiter: QJumpPlan) -> qjump_sim.PerHost:
    """The arm's; level 0 of the simulator is the most urgent, 7 of 802.1Q is."""
    if limiter.mode != "delay":
        raise UsageError(f"{where}: it has no limiter of mode {limiter.mode!r}, only 'delay'")
    if limiter.epochs != "first-packet":
        pass  # an epoch of the simulator begins when the last has passed and there is something to send
    budgets = [limiter.budget_bytes[level] or None for level in reversed(LEVELS)]
    return qjump_sim.PerHost(epoch=limiter.epoch_ns * qjump_sim.NS, budgets=budgets)


def _changed(where: str, base: Any, settings: dict[str, int | str | bool]) -> Any:
    return dataclasses.replace(base, **_values(where, type(base), settings))


def _made(where: str, kind: type[Any], settings: dict[str, int | str | bool]) -> Any:
    values = _values(where, kind, settings)
    missing = [field.name for field in dataclasses.fields(kind) if field.name not in values and field.default is dataclasses.MISSING]
    if missing:
        raise UsageError(f"{where}: {', '.join(missing)} must be given")
    return kind(**values)


def _values(where: str, kind: type[Any], settings: dict[str, int | str | bool]) -> dict[str, Any]:
    """Settings by the names of ``kind``'s fields; a text where a number stands is a time, in ps then."""
    known, values = typing.get_type_hints(kind), {}
    for name, value in settings.items():
        if name not in known:
            raise UsageError(f"{where}.{name}: there is no such setting: known are {', '.join(known)}")
        takes_text = str in (known[name], *typing.get_args(known[name])) or typing.get_origin(known[name]) is typing.Literal
        if isinstance(value, str) and not takes_text:
            try:
                value = int(units.Duration.parse(value)) * qjump_sim.NS
            except UsageError as error:
                raise UsageError(f"{where}.{name}: {error}") from None
        values[name] = value
    return values
