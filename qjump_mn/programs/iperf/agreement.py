"""Whether iperf3's intervals agree with its totals, and these with what links carried."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from qjump_mn import theory
from qjump_mn.programs.base import Flow
from qjump_mn.programs.iperf.program import BLOCK_BYTES, IperfPlan, output_name, parse, report_s
from qjump_mn.programs.measures_api import HEADERS_BYTES, Moved, Said

CONTROL_BYTES = 16_384
"""Of iperf3's own connection, each way: what is asked, and both results, in JSON (seen: 3 kB)."""

SUMS = {"client": "sum_sent", "server": "sum_received"}

BLOCKS = 16
"""Of 8 KiB (``program.BLOCK``), for what an interval's bounds cut."""


def agrees(said: Said) -> Iterator[str]:
    """Each end's intervals add up to its total but for those that it did not report; of datagrams, bytes are
    those that were counted and not lost."""
    plan: IperfPlan = said.plan
    for flow in plan.flows:
        for end in ("client", "server"):
            yield from (f"{'>'.join(flow)}, {end}: {problem}" for problem in _adds_up(said, flow, end))


def _adds_up(said: Said, flow: Flow, end: str) -> Iterator[str]:
    plan: IperfPlan = said.plan
    text = said.read(output_name(plan, flow, end))
    document = json.loads(text)
    ends, reported = _ends(document), sum(interval.bytes for interval in parse(text))
    total = _total(ends, end)
    if total is None:
        return
    # A receiver whose sender was ended leaves out the interval that had begun, and a sender that was ended
    # what it wrote since the last report.
    shape = said.trial.network.link.rate_bps / 8
    was_ended = end == "server" or "error" in document
    unreported = shape * report_s(said.trial) + BLOCKS * BLOCK_BYTES * plan.streams if was_ended else 0
    if not reported <= total <= reported + unreported:
        yield (
            f"its intervals have {reported} B, and its total {total} B, where it may leave out "
            f"{unreported:.0f} B at the end"
        )
    counted = ends.get("sum", {}) if plan.udp_rate_bps is not None else {}
    if end == "server" and counted and not ends["streams"][0].get("udp", {}).get("out_of_order"):
        payload = said.trial.network.mtu_bytes - theory.UDP_HEADERS_BYTES
        arrived = (counted["packets"] - counted["lost_packets"]) * payload
        if arrived != total:
            yield f"it counted {arrived} B in datagrams that were not lost, and {total} B in all"


def _ends(document: dict[str, Any]) -> dict[str, Any]:
    ends = document.get("end", {})
    return ends if isinstance(ends, dict) else {}


def _total(ends: dict[str, Any], end: str) -> int | None:
    """What one end says it moved; None where it ended before it could say."""
    found = ends.get(SUMS[end], {}).get("bytes")
    return None if found is None else int(found)


def moved(said: Said) -> Iterator[Moved]:
    """What the receiver got has crossed every link; what the sender wrote, and sent again, is all that has
    left it. What reached the receiver's link and was not read by it had waited on its way when the receiver
    was ended, or was there twice."""
    plan: IperfPlan = said.plan
    network = said.trial.network
    mss = network.mtu_bytes - theory.TCP_HEADERS_BYTES
    for flow in plan.flows:
        read = {end: said.read(output_name(plan, flow, end)) for end in SUMS}
        totals = {end: _total(_ends(json.loads(text)), end) for end, text in read.items()}
        got = totals["server"] or sum(interval.bytes for interval in parse(read["server"]))
        if plan.udp_rate_bps is not None:
            payload = network.mtu_bytes - theory.UDP_HEADERS_BYTES
            beside = theory.wire_bytes(network.mtu_bytes) - HEADERS_BYTES
            sent, last = (
                None if total is None else total // payload * beside + CONTROL_BYTES
                for total in (totals["client"], got)
            )
            one = Moved.datagrams(flow, plan.level, network.mtu_bytes, got // payload, None)
        else:
            again = sum(interval.retransmits or 0 for interval in parse(read["client"])) * mss + CONTROL_BYTES
            sent = None if totals["client"] is None else totals["client"] + again
            last = got + again
            one = Moved.stream(flow, plan.level, got, network.mtu_bytes)
        yield one._replace(sent_payload=sent, last_payload=last)
        yield Moved(flow[::-1], plan.level, sent_payload=CONTROL_BYTES)
