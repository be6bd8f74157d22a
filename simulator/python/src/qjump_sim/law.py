"""Laws of congestion control of one's own, in Python or in WebAssembly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class Ack:
    """An ACK, as `Law.on_ack` gets it.

    >>> ack = Ack(now=us(20), packets=1, round_trip=us(15), marked=False, under_way=9, bytes=1500, grows=True, round=False)
    """

    now: int
    """The time, in ps."""
    packets: int
    """Packets that it acknowledges, also selectively."""
    round_trip: int
    """Time since the packet left that it answers, in ps. An ACK that is delayed answers later."""
    marked: bool
    """It echoes a mark (ECN)."""
    under_way: int
    """Packets that are under way afterwards."""
    bytes: int
    """Bytes of a full packet."""
    grows: bool
    """TCP's window may grow for it: it acknowledges the next packet in order, outside of a
    recovery."""
    round: bool
    """Everything that had been sent at the last such ACK is acknowledged: once a round trip."""


class Law:
    """The law of one flow. A subclass has `on_ack`; what else it leaves out is Reno's.

    A law keeps what it knows in attributes of its own. The simulator sets `window` before a call if
    it has changed, such as after idle time, and rounds down what the law sets to 1/65,536 of a
    packet, and to `Transport.max_window`. Times are in ps.

    >>> class Additive(Law):
    ...     def on_ack(self, ack: Ack) -> None:
    ...         if ack.grows:
    ...             self.window += 1 / self.window
    >>> scheme = replace(Scheme.named("tcp", FIG9), transport=Transport.linux(Custom(Additive)))
    """

    window: float = 1.0
    """Packets that may be under way; below one, one may."""
    pace: float = 0.0
    """In bit/s; 0: the window alone decides when packets leave."""

    def on_start(self, now: int) -> None:
        """The flow begins, with the transport's initial window; not on a connection that is open."""

    def on_ack(self, ack: Ack) -> None:
        """An ACK has arrived: each of them, also a repeated one."""
        raise NotImplementedError(f"{type(self).__name__} needs a method on_ack")

    def on_mark(self, now: int) -> None:
        """The ACK had the first mark of a window, outside of a recovery."""

    def on_loss(self, now: int) -> None:
        """A packet is lost, as later ones show: once in a recovery."""
        self.window = max(self.window / 2, 2.0)

    def on_timeout(self, now: int) -> None:
        """The retransmission timer has expired."""
        self.window = 1.0


@dataclass(frozen=True)
class Custom:
    """A law of one's own. It is called for every ACK.

    >>> nothing = b'(module (memory (export "memory") 1) (func (export "on_ack") (param i32 i64 i32 i64 i32 i32 i32 i32 i32)))'
    >>> scheme = replace(Scheme.named("dctcp", FIG9), transport=Transport.linux(Custom(nothing, ecn=True)))
    """

    law: Callable[[], Law] | bytes
    """A class or function that makes the `Law` of a flow; or a module of WebAssembly, binary or
    text (docs/simulator.md)."""
    ecn: bool = False
    """Its data is ECN-capable, and receivers echo each mark, as with DCTCP."""

    @classmethod
    def read(cls, path: str | Path, *, ecn: bool = False) -> Custom:
        """Read a law in WebAssembly from a file. Raises OSError as `open` does."""
        return cls(Path(path).read_bytes(), ecn)
