// SPDX-License-Identifier: GPL-2.0-or-later
//! Loss recovery without a timeout: with selective acknowledgements (RFC 6675) or without (NewReno,
//! RFC 6582).

use super::{Ack, Flow, Phase};
use crate::core::time::Ps;
use crate::host::transport::Transport;

/// The content of an ACK without selective acknowledgements.
#[derive(Debug, Clone, Copy)]
pub(super) struct News {
    /// It acknowledges new packets, and how many.
    pub advanced: bool,
    pub packets: u32,
    /// The window may grow for them.
    pub grows: bool,
    /// A duplicate of the last ACK.
    pub repeats: bool,
}

impl Flow {
    /// Records what has arrived; returns the number of newly acknowledged packets.
    pub(super) fn account(&mut self, ack: Ack, t: &Transport) -> u32 {
        let mut newly = 0;
        if ack.cumulative > self.una {
            newly = ack.cumulative - self.una;
            if !self.sacked.is_empty() {
                for number in self.una..ack.cumulative {
                    newly -= u32::from(self.sacked.remove(number));
                }
            }
            self.una = ack.cumulative;
            self.next = self.next.max(self.una);
        }
        let heeded =
            |echo: &u32| t.sack && *echo >= self.una && (t.sack_after_rto || !self.resends_all());
        if let Some(echo) = ack.echo.filter(heeded) {
            newly += u32::from(self.sacked.insert(echo));
            self.high_sacked = self.high_sacked.max(echo + 1);
        }
        newly
    }

    /// `NextSeg` rules 1 to 3 (RFC 6675, section 4): lost packets first, then new ones, then holes
    /// below a packet that has arrived; as many as have left the network. The first hole of a
    /// recovery, and of each partial ACK, is sent at once (RFC 6675, section 5, step 4.3; RFC 6582,
    /// section 3.2).
    pub(super) fn next_in_recovery(&mut self, t: &Transport) -> Option<u32> {
        if self.rack.is_some() {
            return self.next_by_rack(t);
        }
        if !std::mem::take(&mut self.urgent) && self.pipe >= self.window() {
            return None;
        }
        self.resend = self.resend.max(self.una);
        if let Some(hole) = self.next_hole(self.lost) {
            return Some(hole);
        }
        if self.next >= self.size || self.next - self.una >= t.max_window.min(u32::from(self.cap)) {
            return self.next_hole(self.high_sacked);
        }
        self.next += 1;
        Some(self.next - 1)
    }

    /// The next hole below `end` that has not been retransmitted.
    fn next_hole(&mut self, end: u32) -> Option<u32> {
        while self.resend < end && self.sacked.contains(self.resend) {
            self.resend += 1;
        }
        let hole = self.resend < end;
        self.resend += u32::from(hole);
        hole.then(|| self.resend - 1)
    }

    /// `IsLost` (RFC 6675, section 4): with selective acknowledgements, a packet is lost once
    /// `dupacks` packets above it have arrived.
    pub(super) fn look_for_loss(&mut self, now: Ps, t: &Transport, dupacks: u32) {
        if self.sacked.len() < dupacks {
            return;
        }
        if self.phase != Phase::Recovery && !self.begin_recovery(now, t) {
            return;
        }
        // Retransmissions of the last recovery beyond its end are not repeated.
        self.lost = self.lost.max(self.una);
        let mut above = 0;
        let mut top = self.high_sacked;
        while above < dupacks && top > self.lost {
            top -= 1;
            above += u32::from(self.sacked.contains(top));
        }
        for number in self.lost..top {
            if !self.sacked.contains(number) {
                self.lose(t, now, number);
            }
        }
        self.lost = top.max(self.lost);
    }

    /// NewReno: `dupacks` duplicate ACKs mean that the first packet is lost; a partial ACK means
    /// that the next one is. Each duplicate tells that one packet has left the network, for which
    /// RFC 6582 inflates the window.
    #[inline(never)]
    pub(super) fn count_repeats(&mut self, t: &Transport, now: Ps, news: News) {
        let under_way = self.next - self.una;
        if news.advanced {
            self.repeated = 0;
            self.partial = self.phase == Phase::Recovery && self.una < self.recover;
            if self.partial {
                // Duplicate ACKs have accounted for all but one of the packets.
                self.lose_first(t, now, self.pipe.saturating_sub(1));
            } else if self.phase == Phase::Recovery {
                self.phase = Phase::Open;
                // Section 3.2, step 3, option 1: no burst if little is under way.
                self.path.control.limit(under_way.max(1) + 1);
            } else if news.grows {
                self.path.grow(now, news.packets);
            }
        } else if news.repeats && under_way > 0 {
            self.repeated += 1;
            if self.phase == Phase::Recovery {
                self.pipe = self.pipe.saturating_sub(1);
            } else if Some(self.repeated) == t.dupacks && self.begin_recovery(now, t) {
                self.lose_first(t, now, under_way.saturating_sub(self.repeated));
            }
        }
    }

    /// A packet that was under way is lost.
    pub(super) fn lose(&mut self, t: &Transport, now: Ps, number: u32) {
        self.pipe = self.pipe.saturating_sub(1);
        if t.congestion.sees_every_ack() {
            self.path.control.on_lost(now, number);
        }
    }

    /// The first packet is lost and retransmitted at once; `pipe` packets were under way with it.
    fn lose_first(&mut self, t: &Transport, now: Ps, pipe: u32) {
        self.pipe = pipe;
        self.lose(t, now, self.una);
        self.resend = self.una;
        self.lost = self.una + 1;
        self.urgent = true;
    }

    /// Starts a recovery. False after a timeout, when everything up to `recover` is retransmitted
    /// anyway.
    pub(super) fn begin_recovery(&mut self, now: Ps, t: &Transport) -> bool {
        if self.resends_all() {
            return false;
        }
        self.phase = Phase::Recovery;
        self.urgent = true;
        self.recover = self.high;
        self.path.control.on_loss(now);
        self.reduced = t.congestion.sends_cwr();
        true
    }
}
