// SPDX-License-Identifier: GPL-2.0-or-later
//! A sender's reaction to congestion marks.

use super::{Flow, Phase};
use crate::host::transport::Transport;

impl Flow {
    /// Processes the mark, if any, of an ACK of `newly` packets; returns whether it has one. The
    /// share of marks is passed on once a window (RFC 8257, section 3.3), and a window with marks
    /// is reduced once (RFC 3168, section 6.1.2).
    pub(super) fn on_mark(&mut self, t: &Transport, marked: bool, newly: u32) -> bool {
        // With an ACK for each packet, count ACKs, as ns-2 does; otherwise the packets that they
        // acknowledge (RFC 8257).
        let packets = if t.delayed_ack.is_some() { newly } else { 1 };
        self.acked += packets;
        self.marked += if marked { packets } else { 0 };
        // Duplicate ACKs before the first news cover no packet.
        if self.una >= self.observed && self.acked > 0 {
            self.path.control.on_window(self.marked, self.acked);
            (self.acked, self.marked) = (0, 0);
            self.observed = self.high.max(self.una + 1);
        }
        if marked && self.may_cut() {
            self.path.control.on_mark();
            self.reduced = t.congestion.sends_cwr();
        }
        marked
    }

    /// Whether a mark may reduce the window; if so, no other may until everything under way is
    /// acknowledged.
    fn may_cut(&mut self) -> bool {
        let may = self.una > self.cut && self.phase != Phase::Recovery;
        if may {
            self.cut = self.high;
        }
        may
    }
}
