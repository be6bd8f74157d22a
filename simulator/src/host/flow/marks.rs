// SPDX-License-Identifier: GPL-2.0-or-later
//! What a sender does about marks.

use super::{Flow, Phase};
use crate::host::transport::Transport;

impl Flow {
    /// Takes the mark of an ACK that tells of `newly` packets, or none; returns whether there was one. The share of marks is told once
    /// a window (RFC 8257, section 3.3), and a window with marks is reduced once (RFC 3168, section 6.1.2).
    pub(super) fn heed(&mut self, t: &Transport, marked: bool, newly: u32) -> bool {
        // Where each packet has its ACK, ACKs are counted, as ns-2 does; else what they acknowledge (RFC 8257).
        let packets = if t.delayed_ack.is_some() { newly } else { 1 };
        self.acked += packets;
        self.marked += if marked { packets } else { 0 };
        // Repeated ACKs before the first news tell of no packet.
        if self.una >= self.observed && self.acked > 0 {
            self.path.control.on_window(self.marked, self.acked);
            (self.acked, self.marked) = (0, 0);
            self.observed = self.high.max(self.una + 1);
        }
        if marked && self.may_cut() {
            self.path.control.on_mark();
            self.reduced = t.congestion.tells_cuts();
        }
        marked
    }

    /// Whether a mark may cut the window; then no other does before what is under way now is acknowledged.
    fn may_cut(&mut self) -> bool {
        let may = self.una > self.cut && self.phase != Phase::Recovery;
        if may {
            self.cut = self.high;
        }
        may
    }
}
