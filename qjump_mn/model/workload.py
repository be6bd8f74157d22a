"""What runs on the hosts, as written in an experiment. Each program is one struct here and one module in ``qjump_mn.workloads``."""

from __future__ import annotations

import msgspec

from qjump_mn.model.units import Duration, Rate, Size


class WorkloadSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="program", kw_only=True):
    """A program with its role: ``flows`` are "source>destination", ``level`` the 802.1Q priority it has where an arm uses levels."""

    label: str
    flows: list[str]
    level: int


class Ping(WorkloadSpec, frozen=True, forbid_unknown_fields=True, tag="ping", kw_only=True):
    """iputils ping: one echo request every ``interval`` for the length of the trial; measured from start to end.

    Replies have the requests' level, unless ``reply_level`` is given.
    """

    interval: Duration
    payload: Size = Size(56)
    reply_level: int | None = None


class Iperf(WorkloadSpec, frozen=True, forbid_unknown_fields=True, tag="iperf", kw_only=True):
    """iperf3: each flow with ``streams`` parallel TCP connections, or UDP streams of ``udp_rate`` each, from the warm-up to the trial's end.

    A datagram fills the MTU; its rate counts the payload.
    """

    streams: int = 1
    congestion_control: str = "cubic"
    udp_rate: Rate | None = None


Workload = Ping | Iperf
