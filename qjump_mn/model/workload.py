"""What runs on the hosts, as written in an experiment. Each program is one struct here and one module in ``qjump_mn.workloads``."""

from __future__ import annotations

import msgspec

from qjump_mn.model.units import Duration, Size


class WorkloadSpec(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    tag_field="program",
    kw_only=True,
):
    """A program with its role: ``flows`` are "source>destination", ``level`` the 802.1Q priority it has where an arm uses levels."""

    label: str
    flows: list[str]
    level: int


class Ping(
    WorkloadSpec, frozen=True, forbid_unknown_fields=True, tag="ping", kw_only=True
):
    """iputils ping: one echo request every ``interval`` for the length of the trial; measured from start to end."""

    interval: Duration
    payload: Size = Size(56)


class Iperf(
    WorkloadSpec, frozen=True, forbid_unknown_fields=True, tag="iperf", kw_only=True
):
    """iperf3 over TCP: each flow with ``streams`` parallel connections, from the warm-up to the end of the trial."""

    streams: int = 1
    congestion_control: str = "cubic"


Workload = Ping | Iperf
