// SPDX-License-Identifier: GPL-2.0-or-later
//! What a sender does about marks.

use super::{Flow, Phase};

impl Flow {
    /// RFC 3168, section 6.1.2: a window with marks is halved, once.
    pub(super) fn heed(&mut self, marked: bool) {
        if marked && self.may_cut() {
            self.path.halve();
            self.reduced = true;
        }
    }

    /// DCTCP (RFC 8257, section 3.3): alpha follows the share of marked packets once a window, and a window with marks is cut by
    /// half of it.
    pub(super) fn observe(&mut self, shift: u32, least: u32, marked: bool, packets: u32) {
        self.acked += packets;
        self.marked += if marked { packets } else { 0 };
        // Repeated ACKs before the first news tell of no packet.
        if self.una >= self.observed && self.acked > 0 {
            self.path.observe(shift, self.marked, self.acked);
            (self.acked, self.marked) = (0, 0);
            self.observed = self.high.max(self.una + 1);
        }
        if marked && self.may_cut() {
            self.path.cut(least);
        }
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
