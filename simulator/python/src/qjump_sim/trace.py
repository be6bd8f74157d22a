"""Packet traces: one row each time that a packet reaches the end of a link or is dropped, as a
table of columns or a pcap file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qjump_sim.arrays import ReadOnly

DATA, ACK, PROBE, DATAGRAM, SYN, SYN_ACK = range(6)
_IP, _TCP = 20, 20
_KEPT = _IP + _TCP
"""Bytes of each packet that a file contains."""
_SYN_BIT, _PSH_BIT, _ACK_BIT = 0x02, 0x08, 0x10
_ECE_BIT, _CWR_BIT = 0x40, 0x80
_FIRST_PORT, _PORTS, _SERVICE = 10_000, 50_000, 5_001
_NANOSECONDS, _RAW_IP = 0xA1B23C4D, 101
"""Magic number of pcap files with times in ns, and the link type of packets that begin with their
IP header."""

_RECORD = np.dtype(
    [
        ("s", "<u4"), ("ns", "<u4"), ("kept", "<u4"), ("whole", "<u4"),
        ("version", "u1"), ("service", "u1"), ("length", ">u2"), ("id", ">u2"), ("fragment", ">u2"), ("ttl", "u1"), ("protocol", "u1"),
        ("sum", ">u2"), ("src", ">u4"), ("dst", ">u4"),
        ("from", ">u2"), ("to", ">u2"), ("seq", ">u4"), ("ack", ">u4"), ("offset", "u1"), ("flags", "u1"), ("window", ">u2"), ("check", ">u2"),
        ("urgent", ">u2"),
    ]
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Trace(ReadOnly):
    """Columns of int64, shape (rows,), read-only, in the order of happening.

    >>> set(outcome.trace.link.tolist()) <= {3, 144 + 3}
    True
    """

    _ROWS = "packets"

    at: NDArray[np.int64]
    """When the last bit reached the link's end, or the packet was dropped, in ps; for a packet on a
    failed cable, when it would have arrived."""
    link: NDArray[np.int64]
    """The link, by its port's place in `Outcome.ports`: hosts' own by their numbers, then those to hosts, then between switches."""
    flow: NDArray[np.int64]
    """As `Series.flow`; for datagrams the place of their source in the outcome, and from the number
    of sources on an application's channel."""
    seq: NDArray[np.int64]
    """Data: its number in the flow. ACK: the cumulative acknowledgement, in packets."""
    src: NDArray[np.int64]
    """Number of the sending host."""
    dst: NDArray[np.int64]
    """Number of the destination host."""
    bytes: NDArray[np.int64]
    """Bytes on the wire."""
    kind: NDArray[np.int64]
    """Its index in `KINDS`."""
    level: NDArray[np.int64]
    """0 to 7, 0 is served first; ACKs have their flow's level."""
    marked: NDArray[np.int64]
    """1: data: congestion experienced; ACK: its echo; SYN or SYN-ACK: the flow is ECN-capable."""
    ect: NDArray[np.int64]
    """1: it is ECN-capable."""
    again: NDArray[np.int64]
    """1: a retransmission."""
    reduced: NDArray[np.int64]
    """1: data with CWR, the window was reduced."""
    dropped: NDArray[np.int64]
    """1: dropped at the link's beginning, lost on it, or without a route at its end; 0: it reached
    the end."""

    def __len__(self) -> int:
        """Rows."""
        return len(self.at)

    def table(self) -> dict[str, NDArray[np.int64]]:
        """All columns by name, as for `pandas.DataFrame` or `pyarrow.table`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def write_pcap(self, path: str | PathLike[str], payload: int = 1_460) -> int:
        """Write the packets that reached the ends of links as a pcap file, without dropped ones,
        and return their number.

        A packet is an IPv4 packet of its bytes on the wire, of which the file has the 40 of its headers: TCP, with `payload` bytes of data to a packet
        of a flow, and UDP for datagrams. Host n has the address 10.0.0.0 plus n + 1, a flow the port 10,000 plus its number modulo 50,000 at
        its sender and 5,001 at its receiver. The level is a class selector, 7 for level 0. Times are cut to ns. A packet is there once for each link that
        it crossed: for a capture as at one host's network card, trace that host. Raises OSError.
        """
        came = np.flatnonzero(self.dropped == 0)
        rows = {name: column[came] for name, column in self.table().items()}
        records = np.zeros(len(came), _RECORD)
        records["s"], records["ns"] = np.divmod(rows["at"] // 1_000, 10**9)
        records["kept"] = _KEPT
        records["whole"] = np.maximum(rows["bytes"], _KEPT)
        _network_layer(records, rows)
        _transport_layer(records, rows, payload)
        head = np.array([(_NANOSECONDS, 2, 4, 0, 0, 65_535, _RAW_IP)], "<u4,<u2,<u2,<i4,<u4,<u4,<u4")
        Path(path).write_bytes(head.tobytes() + records.tobytes())
        return len(came)


def _network_layer(records: NDArray[np.void], rows: dict[str, NDArray[np.int64]]) -> None:
    datagram = rows["kind"] == DATAGRAM
    experienced = (rows["kind"] == DATA) & (rows["marked"] == 1)
    records["version"] = 0x45
    records["service"] = (7 - rows["level"]) << 5 | np.where(experienced, 3, 2 * rows["ect"])
    records["length"] = np.maximum(rows["bytes"], _IP + 8)
    records["id"] = rows["seq"] & 0xFFFF
    records["ttl"] = 64
    records["protocol"] = np.where(datagram, 17, 6)
    records["src"], records["dst"] = 0x0A000001 + rows["src"], 0x0A000001 + rows["dst"]
    words = np.zeros(len(records), np.int64)
    for high, low in (("version", "service"), ("ttl", "protocol")):
        words += records[high].astype(np.int64) << 8 | records[low]
    for whole in ("length", "id", "fragment"):
        words += records[whole]
    for address in ("src", "dst"):
        words += (records[address] >> 16).astype(np.int64) + (records[address] & 0xFFFF)
    words = (words & 0xFFFF) + (words >> 16)
    records["sum"] = ~((words & 0xFFFF) + (words >> 16)) & 0xFFFF


def _transport_layer(records: NDArray[np.void], rows: dict[str, NDArray[np.int64]], payload: int) -> None:
    kind, marked = rows["kind"], rows["marked"]
    datagram, data, back = kind == DATAGRAM, kind == DATA, (kind == ACK) | (kind == SYN_ACK)
    opening = (kind == SYN) | (kind == SYN_ACK)
    sender = _FIRST_PORT + rows["flow"] % _PORTS
    records["from"] = np.where(back, _SERVICE, sender)
    records["to"] = np.where(back, sender, _SERVICE)
    # A sender's first byte is number 1, after its SYN; a receiver sends none.
    byte = (1 + rows["seq"] * payload) & 0xFFFFFFFF
    seq = np.where(data, byte, np.where(opening, 0, 1))
    # Of UDP: length and no checksum.
    records["seq"] = np.where(datagram, (np.maximum(rows["bytes"], _IP + 8) - _IP) << 16, seq)
    records["ack"] = np.where(datagram | (kind == SYN), 0, np.where(kind == ACK, byte, 1))
    flags = np.where(kind == SYN, 0, _ACK_BIT) | np.where(opening, _SYN_BIT, 0) | np.where(data, _PSH_BIT, 0)
    # RFC 3168, section 6.1.1: a SYN has both bits, its answer one.
    flags |= np.where((marked == 1) & ~data, _ECE_BIT, 0) | np.where((marked == 1) & (kind == SYN), _CWR_BIT, 0)
    flags |= np.where(rows["reduced"] == 1, _CWR_BIT, 0)
    records["offset"] = np.where(datagram, 0, 0x50)
    records["flags"] = np.where(datagram, 0, flags)
    records["window"] = np.where(datagram, 0, 0xFFFF)


def trace(columns: list[bytes]) -> Trace:
    """From the simulator's columns."""
    return Trace(*(np.frombuffer(column, np.int64) for column in columns))
