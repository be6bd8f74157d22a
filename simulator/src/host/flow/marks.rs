// SPDX-License-Identifier: GPL-2.0-or-later
//! A sender's reaction to congestion marks; and laws that see every ACK.

use super::{Ack, Flow, Phase};
use crate::core::time::Ps;
use crate::host::congestion::AckInfo;
use crate::host::transport::Transport;

/// With an ACK for each packet, count ACKs, as ns-2 does; otherwise the packets that they
/// acknowledge (RFC 8257).
#[inline]
fn counted(t: &Transport, newly: u32) -> u32 {
    if t.delayed_ack.is_some() {
        newly
    } else {
        1
    }
}

impl Flow {
    /// Processes the mark, if any, of an ACK of `newly` packets; returns whether it has one. The
    /// share of marks is passed on once a window (RFC 8257, section 3.3), and a window with marks
    /// is reduced once (RFC 3168, section 6.1.2).
    pub(super) fn on_mark(&mut self, t: &Transport, now: Ps, marked: bool, newly: u32) -> bool {
        let packets = counted(t, newly);
        self.marked += if marked { packets } else { 0 };
        if let Some(acked) = self.round_ends(packets) {
            self.path.control.on_window(std::mem::take(&mut self.marked), acked);
        }
        if marked && self.may_cut() {
            self.path.control.on_mark(now);
            self.reduced = t.congestion.sends_cwr();
        }
        marked
    }

    /// Counts acknowledged packets; if a whole window has been acknowledged, returns their number
    /// and begins another one.
    #[inline]
    fn round_ends(&mut self, packets: u32) -> Option<u32> {
        self.acked += packets;
        // Duplicate ACKs before the first news cover no packet.
        if self.una < self.observed || self.acked == 0 {
            return None;
        }
        self.observed = self.high.max(self.una + 1);
        Some(std::mem::take(&mut self.acked))
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

    /// Passes an ACK to a law that sees every ACK; nothing else changes its window. The timer stops
    /// while pacing holds all packets.
    #[inline(never)]
    pub(super) fn see(
        &mut self,
        t: &Transport,
        now: Ps,
        ack: Ack,
        (advanced, packets): (bool, u32),
    ) -> bool {
        let Ack { echo: number, marked, round_trip, .. } = ack;
        let own = t.congestion.is_own();
        let recovers = || self.phase == Phase::Recovery && !(t.sack && self.una >= self.recover);
        let grows = own && advanced && !recovers();
        let seen = AckInfo {
            now,
            packets,
            number,
            round_trip,
            marked,
            under_way: self.pipe.saturating_sub(packets),
            bytes: t.data_bytes,
            grows,
            round: own && self.round_ends(counted(t, packets)).is_some(),
        };
        self.path.control.on_every_ack(&seen);
        if own && marked && self.may_cut() {
            self.path.control.on_mark(now);
        }
        if self.una == self.next {
            self.deadline = Ps::MAX;
        }
        true
    }
}
