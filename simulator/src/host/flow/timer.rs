// SPDX-License-Identifier: GPL-2.0-or-later
//! The retransmission timer of data and SYNs (RFC 6298).

use super::{Flow, Phase};
use crate::core::time::Ps;
use crate::host::transport::{Recovery, Transport};

/// The most doublings of the timeout; in practice the largest timeout is the limit.
const DOUBLINGS: u32 = 16;

/// What a sender does when its timer expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expired {
    Connect,
    Resend,
    Probe,
}

impl Flow {
    /// Opens a connection first.
    pub fn connect(&mut self, t: &Transport, now: Ps) {
        self.phase = Phase::Connecting;
        self.set_syn_timer(t, now);
    }

    fn set_syn_timer(&mut self, t: &Transport, now: Ps) {
        let doublings = if t.fixed_rto { 0 } else { self.timeouts.min(DOUBLINGS) };
        let rto = t.handshake.unwrap_or(t.min_rto).saturating_mul(1 << doublings);
        self.deadline = now.max(self.held) + rto.min(t.max_rto);
    }

    /// The SYN is answered; false if it was before.
    pub fn connected(&mut self, t: &Transport, now: Ps, round_trip: Ps) -> bool {
        if self.phase != Phase::Connecting {
            return false;
        }
        self.phase = Phase::Open;
        if self.timeouts > 0 {
            self.path.control.limit(1);
        }
        self.path.round_trip(round_trip);
        self.path.control.on_connected(now, round_trip, t.data_bytes);
        self.timeouts = 0;
        self.deadline = Ps::MAX;
        true
    }

    /// When the retransmission timer expires; `Ps::MAX`: it is not set.
    pub fn deadline(&self) -> Ps {
        self.deadline
    }

    #[inline]
    pub(super) fn set_timer(&mut self, t: &Transport, now: Ps) {
        self.deadline = now.max(self.held) + self.rto(t);
        if t.low_rto.is_some() {
            self.set_low_timer(t, now);
        }
        if let Some(rack) = &mut self.rack {
            rack.set_timeout(self.deadline);
        }
    }

    /// A packet waits in the host's limiter until `release`.
    pub fn hold(&mut self, t: &Transport, now: Ps, release: Ps) {
        self.held = release;
        if self.phase == Phase::Connecting {
            self.set_syn_timer(t, now);
        } else {
            self.set_timer(t, now);
            self.rack_arm(t, now, 0);
        }
    }

    /// The current timeout.
    #[inline]
    pub(super) fn rto(&self, t: &Transport) -> Ps {
        self.back_off_from(t, self.path.rto(t))
    }

    /// A timeout after as many doublings as there were timeouts.
    #[inline]
    pub(super) fn back_off_from(&self, t: &Transport, timeout: Ps) -> Ps {
        let doublings = if t.fixed_rto { 0 } else { self.timeouts.min(DOUBLINGS) };
        timeout.saturating_mul(1 << doublings).min(t.max_rto)
    }

    /// Homa: a control packet has arrived. Without news the timeout stays backed off.
    pub fn hear(&mut self, t: &Transport, now: Ps, news: bool) {
        if news {
            self.timeouts = 0;
        }
        self.set_timer(t, now);
    }

    /// Whether packets wait in the host's limiter.
    pub fn is_held(&self, now: Ps) -> bool {
        self.held > now
    }

    /// Homa: backs off after silence.
    pub fn back_off(&mut self, t: &Transport, now: Ps) {
        self.timeouts += 1;
        self.set_timer(t, now);
    }

    /// Homa: the receiver has the whole message.
    pub fn complete(&mut self) {
        self.una = self.size;
        self.deadline = Ps::MAX;
    }

    /// Whether everything sent before a timeout is being retransmitted.
    pub(super) fn resends_all(&self) -> bool {
        self.phase != Phase::Recovery && self.una < self.recover
    }

    /// The timer expires: everything not known to have arrived is retransmitted, from a window of
    /// one packet. Selectively acknowledged packets are not, if the transport heeds that (allowed
    /// by RFC 6675, section 5.1).
    pub fn on_timer(&mut self, t: &Transport, now: Ps) -> Expired {
        self.timeouts += 1;
        if self.phase == Phase::Connecting {
            self.set_syn_timer(t, now);
            return Expired::Connect;
        }
        if !t.sack_after_rto {
            self.sacked.clear();
        }
        self.path.control.on_timeout(now);
        if t.congestion.sends_cwr() {
            self.reduced = true;
            self.cut = self.high;
        }
        let next = std::mem::replace(&mut self.next, self.una);
        self.phase = Phase::Open;
        self.partial = false;
        self.repeated = 0;
        self.recover = self.high;
        self.resend = self.una;
        self.lost = self.una;
        self.pipe = 0;
        if let Some(rack) = &mut self.rack {
            rack.clear();
        }
        if t.recovery == Recovery::Selective {
            self.recover_after_timeout(t, now, next);
        }
        self.set_timer(t, now);
        if t.probe_after.is_some_and(|after| self.timeouts >= after) {
            self.phase = Phase::Probing;
            return Expired::Probe;
        }
        Expired::Resend
    }
}
