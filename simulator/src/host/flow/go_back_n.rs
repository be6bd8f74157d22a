// SPDX-License-Identifier: GPL-2.0-or-later
//! Go-back-N: the sender of a `RoCEv2` card (InfiniBand Architecture Specification, volume 1,
//! chapter 9; Guo et al., SIGCOMM 2016, section 4.1). Its receiver is in `receiver`.
//!
//! What leaves anew is retransmitted whether it had arrived or not. A NAK is sent once for a gap:
//! if it is lost, or what it asks for is lost again, the sender waits for its timeout. That
//! restarts from the first missing packet as well.

use super::{Ack, Flow};
use crate::core::time::Ps;
use crate::host::transport::Transport;

impl Flow {
    /// An ACK has come. A NAK is one that names a packet above what it acknowledges. An old one is
    /// ignored.
    // Not inlined, for other recoveries.
    #[inline(never)]
    pub(super) fn look_for_nak(&mut self, now: Ps, t: &Transport, ack: Ack) {
        if ack.cumulative != self.una || ack.echo.is_none_or(|echo| echo < ack.cumulative) {
            return;
        }
        self.next = self.una;
        self.pipe = 0;
        self.path.control.on_loss(now);
        self.reduced = t.congestion.sends_cwr();
        self.set_timer(t, now);
    }
}
