"""Packets by their first bytes, and their ways from port to port."""

from __future__ import annotations

from pathlib import Path

import pytest

from qjump_mn import resolve
from qjump_mn.model.topology import Network
from qjump_mn.results import frames, packets
from qjump_mn.results.frames import Frames
from tests.support.recorded import Event, crossing, ping, recorded, tcp

WAY = ("h8", "s2", "s0", "s3", "h10")
FAST = (0, 0, 0, 0)


@pytest.fixture(scope="module")
def network() -> Network:
    return resolve.plan("fig3a", "smoke", []).shown.network


def followed(
    tmp_path: Path, network: Network, events: list[Event]
) -> tuple[Frames, dict[int, list[int]]]:
    """The frames, and the rows of each packet."""
    (tmp_path / "asbuilt").mkdir()
    text = recorded(tmp_path / "trace", events, from_ns=0, to_ns=10**9)
    (tmp_path / "asbuilt/frames.json").write_bytes(text)
    found = frames.read(tmp_path)
    assert found is not None
    ends = network.ways()
    rows: dict[int, list[int]] = {}
    for row, packet in enumerate(packets.follow(found, ends).tolist()):
        rows.setdefault(packet, []).append(row)
    return found, rows


def test_header_reads_addresses_protocol_and_numbers() -> None:
    echo = packets.header(ping("10.0.0.8", "10.0.0.10", 513))
    assert echo == ("10.0.0.8", "10.0.0.10", "ICMP", (0, 0), 513)
    segment = packets.header(tcp("10.0.0.7", "10.0.0.10", (40000, 5301), 2**32 - 1))
    assert segment == ("10.0.0.7", "10.0.0.10", "TCP", (40000, 5301), 2**32 - 1)
    assert packets.header(b"\0" * 12 + b"\x88\xf7").protocol == "PTP"
    assert packets.header(b"").protocol == "Ethernet type 0x0000"


def test_identity_is_the_same_at_every_port_and_differs_between_packets() -> None:
    one = ping("10.0.0.8", "10.0.0.10", 1)
    changed = bytearray(one)
    changed[15] ^= 3  # ECN
    changed[22] -= 1  # time to live
    changed[24:26] = changed[36:38] = b"\x12\x34"  # checksums
    assert packets.identity(bytes(changed)) == packets.identity(one)
    others = [ping("10.0.0.8", "10.0.0.10", 2), ping("10.0.0.8", "10.0.0.11", 1)]
    others += [tcp("10.0.0.8", "10.0.0.10", (1, 2), sequence) for sequence in (1, 2)]
    assert len({packets.identity(each) for each in (one, *others)}) == 5


def test_a_packet_is_followed_from_port_to_port(tmp_path: Path, network: Network) -> None:
    first = crossing(
        network, WAY, ping("10.0.0.8", "10.0.0.10", 1), at=1000, length=106, waits=FAST
    )
    second = crossing(
        network, WAY, ping("10.0.0.8", "10.0.0.10", 2), at=2000, length=106, waits=(5, 0, 9, 0)
    )
    mixed = [event for pair in zip(first, second, strict=True) for event in pair]
    found, rows = followed(tmp_path, network, mixed)
    assert rows == {0: [0, 2, 4, 6], 1: [1, 3, 5, 7]}
    for hops in rows.values():
        assert list(found.handover[hops[:-1]]) == list(found.arrival[hops[1:]])


def test_a_packet_that_is_sent_again_is_another_one(tmp_path: Path, network: Network) -> None:
    head = ping("10.0.0.8", "10.0.0.10", 1)
    events = crossing(network, WAY, head, at=1000, length=106, waits=FAST)
    again = crossing(network, WAY, head, at=900_000_000, length=106, waits=FAST)
    _, rows = followed(tmp_path, network, [*events, *again])
    assert rows == {0: [0, 1, 2, 3], 1: [4, 5, 6, 7]}


def test_a_packet_ends_where_it_is_dropped(tmp_path: Path, network: Network) -> None:
    events = crossing(
        network, WAY, tcp("10.0.0.8", "10.0.0.10", (1, 2), 3), at=1000, length=1522, waits=FAST
    )
    dropped = [*events[:2], events[2]._replace(start=0, handover=0)]
    found, rows = followed(tmp_path, network, dropped)
    assert rows == {0: [0, 1, 2]} and found.dropped[2]


def test_a_device_of_no_link_has_no_packets(tmp_path: Path, network: Network) -> None:
    event = Event("eth9", 0, 106, 1000, 1000, 2000, -1, ping("10.0.0.8", "10.0.0.10", 1))
    assert followed(tmp_path, network, [event])[1] == {-1: [0]}
