"""A workload as plain data: in an experiment (spec) and in a plan."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from qjump_mn.errors import UsageError
from qjump_mn.model.topology import Network

Flow = tuple[str, str]
"""Source and destination, as host names."""


class WorkloadPlan(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="program"
):
    """A workload of one arm in plain numbers. ``level`` is 0 if the arm uses no levels.

    A program's own plan says what it measures (``MEASURES``) and describes itself. What else it may
    say are the protocols of :mod:`qjump_mn.model.hooks` and :mod:`qjump_mn.programs.hooks`.
    """

    MEASURES: ClassVar[dict[str, str]] = {}
    """The program's measures, which claims may use, and their headings in tables. Ask the registry
    to include those of extensions."""
    NOT_RUN: ClassVar = ("label",)
    """Fields that reach neither the network nor a process, and so are not part of the plan's hash.
    """

    name: str
    label: str
    flows: tuple[Flow, ...]
    level: int
    window_bytes: int | None
    port: int
    """First of the hundred ports on which its servers may listen."""

    def describe(self) -> str:
        """One line for the report that says what the workload does."""
        raise _missing(self, "describe")


class WorkloadSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="program"
):
    """A workload as an experiment file describes it. ``level`` is its 802.1Q priority in arms that
    use levels."""

    label: str
    level: int = 0

    def pairs(self, where: str) -> list[tuple[str, Flow]]:
        """The flows, each with the setting that it comes from; raise :class:`UsageError` if they
        make no sense."""
        raise _missing(self, "pairs")

    def check(self, where: str, network: Network) -> None:
        """Raise :class:`UsageError`, with the setting's name, if a value is out of range."""

    def planned(
        self, common: dict[str, Any], *, uses_levels: bool, duration_ns: int
    ) -> WorkloadPlan:
        """The workload's plan. ``common`` has the fields that every :class:`WorkloadPlan` has."""
        raise _missing(self, "planned")


def _missing(part: object, method: str) -> UsageError:
    return UsageError(
        f"{type(part).__module__}: class {type(part).__name__} needs a method {method!r}"
    )


if TYPE_CHECKING:
    AnySpec = WorkloadSpec
    AnyPlan = WorkloadPlan
else:

    class AnySpec(abc.ABC):  # noqa: B024 - for isinstance alone
        """A workload of any program, as an experiment file has it. The registry of programs
        decodes it."""

    class AnyPlan(abc.ABC):  # noqa: B024 - for isinstance alone
        """A workload of any program, as a plan has it. The registry of programs decodes it."""

    AnySpec.register(WorkloadSpec)
    AnyPlan.register(WorkloadPlan)
