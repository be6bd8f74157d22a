"""Reno, DCTCP and Swift as laws of one's own, with the outcomes of the simulator's to the bit.

`reno.wat` and `dctcp.wat` are the same in WebAssembly.
"""

from __future__ import annotations

import math

from qjump_sim import Ack, Law

STEPS = 65536
"""Steps of a window in a packet: the simulator rounds windows down to them, and so do its laws."""


class Reno(Law):
    """RFC 5681."""

    def __init__(self) -> None:
        self.threshold = math.inf

    def on_ack(self, ack: Ack) -> None:
        if ack.grows and not ack.marked:
            self.window += 1 if self.window < self.threshold else 1 / self.window

    def half(self) -> float:
        return max(math.floor(self.window * STEPS / 2) / STEPS, 2)

    def on_loss(self, now: int) -> None:
        self.window = self.threshold = self.half()

    def on_timeout(self, now: int) -> None:
        self.threshold, self.window = self.half(), 1


class Dctcp(Reno):
    """RFC 8257 with g = 1/16. Alpha is in steps of 2**-20, as in the simulator."""

    def __init__(self) -> None:
        super().__init__()
        self.alpha = self.acks = self.marked = 0

    def on_ack(self, ack: Ack) -> None:
        self.acks += 1
        self.marked += ack.marked
        if ack.round:
            share = self.marked * 2**20 // self.acks
            self.alpha += (share >> 4) - (self.alpha >> 4)
            self.acks = self.marked = 0
        super().on_ack(ack)

    def on_mark(self, now: int) -> None:
        steps = int(self.window * STEPS)
        self.window = max((steps - (steps * self.alpha >> 21)) / STEPS, min(self.window, 1))
        self.threshold = max(self.window, 2)


class Swift(Law):
    """Kumar et al., SIGCOMM 2020, Algorithm 1, with one target for all windows, in ps. Windows
    below a packet are paced. The simulator's is `Swift(base=target, scaling=0)`."""

    LEAST = STEPS // 1000

    def __init__(self, target: int) -> None:
        # A quotient of `Time` is a time.
        self.target = int(target)
        self.round_trip = self.timeouts = 0
        self.reduced = -math.inf

    def on_ack(self, ack: Ack) -> None:
        self.timeouts, self.round_trip = 0, ack.round_trip
        if ack.round_trip < self.target:
            steps = max(int(self.window * STEPS), STEPS)
            self.window += ack.packets * STEPS**2 // steps / STEPS
        else:
            self.reduce(ack.now, min((ack.round_trip - self.target) * 800 // ack.round_trip, 500))
        bits = int(self.window * STEPS) * 8 * ack.bytes * 10**12 // STEPS
        self.pace = bits // ack.round_trip if self.window < 1 else 0

    def reduce(self, now: int, thousandths: int) -> None:
        """Reduce the window at most once a round trip."""
        if now - self.reduced >= self.round_trip:
            before = int(self.window * STEPS)
            after = before * (1000 - thousandths) // 1000
            self.reduced = now if after < before else self.reduced
            self.window = max(after, self.LEAST) / STEPS

    def on_loss(self, now: int) -> None:
        self.timeouts = 0
        self.reduce(now, 500)

    def on_timeout(self, now: int) -> None:
        self.timeouts += 1
        if self.timeouts < 5:
            self.reduce(now, 500)
        else:
            self.window = self.LEAST / STEPS
