// SPDX-License-Identifier: GPL-2.0-or-later
//! The seam between flows and congestion control: a window, and what ACKs, marks, losses and timeouts do to it.
//!
//! Windows are fixed-point numbers of packets with 16 fractional bits; alpha has 20: no floating point decides anything.

use crate::core::time::Ps;
use crate::host::cubic::Cubic;
use crate::host::transport::{Congestion, Transport};

/// One packet of window.
const ONE: u32 = 1 << 16;
/// alpha = 1.
const ALPHA: u32 = 1 << 20;

/// What a law of congestion control remembers beside the window.
#[derive(Debug, Clone)]
enum Law {
    Reno,
    Ecn,
    Cubic(Box<Cubic>),
    Dctcp { shift: u32, alpha: u32 },
}

#[derive(Debug, Clone)]
pub(crate) struct Control {
    cwnd: u32,
    ssthresh: u32,
    law: Law,
}

impl Control {
    pub fn new(t: &Transport) -> Self {
        let law = match t.congestion {
            Congestion::Reno => Law::Reno,
            Congestion::Ecn => Law::Ecn,
            Congestion::Cubic => Law::Cubic(Box::default()),
            Congestion::Dctcp { shift } => Law::Dctcp { shift, alpha: 0 },
        };
        Control { cwnd: t.initial_window * ONE, ssthresh: t.max_window * ONE, law }
    }

    /// Whole packets that may be under way.
    pub fn window(&self) -> u32 {
        self.cwnd / ONE
    }

    /// An ACK tells of `acked` packets, for which the window may grow. `round_trip`: the smoothed one.
    #[inline]
    pub fn on_ack(&mut self, t: &Transport, now: Ps, acked: u32, round_trip: Ps) {
        if matches!(self.law, Law::Cubic(_)) && self.cwnd >= self.ssthresh {
            self.open_cubic(t, now, acked, round_trip);
        } else {
            self.open(t);
        }
    }

    // Not inlined, so that the way of other laws stays short.
    #[inline(never)]
    fn open_cubic(&mut self, t: &Transport, now: Ps, acked: u32, round_trip: Ps) {
        if let Law::Cubic(cubic) = &mut self.law {
            self.cwnd = cubic.grow(self.cwnd, acked, now, round_trip).min(t.max_window * ONE);
        }
    }

    /// One more packet for each ACK in slow start, one for each window after it (RFC 5681, section 3.1).
    #[inline]
    fn open(&mut self, t: &Transport) {
        let more =
            if self.cwnd < self.ssthresh { ONE } else { ((u64::from(ONE) * u64::from(ONE)) / u64::from(self.cwnd)) as u32 };
        self.cwnd = (self.cwnd + more).min(t.max_window * ONE);
    }

    /// All of a window has been acknowledged, `marked` of `acked` packets with a mark: DCTCP's alpha follows that share with weight
    /// 2^-`shift` (RFC 8257, section 3.3).
    pub fn on_window(&mut self, marked: u32, acked: u32) {
        if let Law::Dctcp { shift, alpha } = &mut self.law {
            let share = (u64::from(marked) * u64::from(ALPHA) / u64::from(acked)) as u32;
            *alpha = *alpha - (*alpha >> *shift) + (share >> *shift);
        }
    }

    /// The first mark since the window was last reduced for one: half of it (RFC 3168, section 6.1.2), or less by half of alpha, but
    /// not to less than the transport's least window.
    pub fn on_mark(&mut self, t: &Transport) {
        match self.law {
            Law::Reno | Law::Cubic(_) => {}
            Law::Ecn => {
                self.ssthresh = self.half();
                self.cwnd = self.cwnd.min(self.ssthresh);
            }
            Law::Dctcp { alpha, .. } => {
                let less = u64::from(self.cwnd) * u64::from(alpha) / u64::from(2 * ALPHA);
                self.cwnd = (self.cwnd - less as u32).max(self.cwnd.min(t.least_window * ONE));
                self.ssthresh = self.cwnd.max(2 * ONE);
            }
        }
    }

    /// A loss was found by later packets: half the window, or CUBIC's cut.
    pub fn on_loss(&mut self) {
        self.ssthresh = match &mut self.law {
            Law::Cubic(cubic) => cubic.reduce(self.cwnd),
            _ => self.half(),
        };
        self.cwnd = self.ssthresh;
    }

    /// A timer expired: a window of one packet.
    pub fn on_timeout(&mut self) {
        self.ssthresh = match &mut self.law {
            Law::Cubic(cubic) => cubic.time_out(self.cwnd),
            _ => self.half(),
        };
        self.cwnd = ONE;
    }

    /// There was nothing to send for so long, `long` if longer than a timeout: then the window is the initial one again, as ns-2's
    /// slow-start restart sets it, from a larger window and from a smaller.
    pub fn on_idle(&mut self, t: &Transport, idle: Ps, long: bool) {
        if long {
            self.cwnd = t.initial_window * ONE;
        }
        match &mut self.law {
            Law::Cubic(cubic) if long => cubic.restart(),
            Law::Cubic(cubic) => cubic.idle(idle),
            _ => {}
        }
    }

    /// A window of `most` packets at most, and of one after a SYN was lost (RFC 5681, section 3.1).
    pub fn limit(&mut self, most: u32) {
        self.cwnd = self.cwnd.min(most * ONE);
    }

    fn half(&self) -> u32 {
        (self.cwnd / 2).max(2 * ONE)
    }

    #[cfg(test)]
    pub fn alpha(&self) -> u32 {
        match self.law {
            Law::Dctcp { alpha, .. } => alpha,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::{MS, US};

    #[test]
    fn the_window_opens_by_one_for_each_ack_then_for_each_window() {
        let t = Transport::published(Congestion::Reno);
        let mut control = Control::new(&t);
        control.on_timeout();
        // ssthresh is 6: five ACKs of slow start; then the window's square grows by 2 with each: 6.5 ACKs to 7, 14 to 8, 22.5 to 9.
        let mut acks = 0;
        let mut needed = |control: &mut Control, window| {
            while control.window() < window {
                control.on_ack(&t, 0, 1, 0);
                acks += 1;
            }
            std::mem::take(&mut acks)
        };
        let counts: Vec<u32> = (2..=9).map(|window| needed(&mut control, window)).collect();
        assert_eq!(counts, [1, 1, 1, 1, 1, 7, 7, 9]);
        (0..100_000).for_each(|_| control.on_ack(&t, 0, 1, 0));
        assert_eq!(control.window(), t.max_window);
    }

    #[test]
    fn alpha_follows_the_marks_and_cuts_by_half_of_it() {
        let t = Transport::published(Congestion::Dctcp { shift: 4 });
        let least = |least_window| Transport { least_window, ..t };
        let mut control = Control::new(&t);
        control.on_mark(&t);
        assert_eq!((control.window(), control.ssthresh / ONE), (12, 12), "alpha begins at 0: only slow start ends");
        control.on_window(5, 10);
        assert_eq!(control.alpha(), ALPHA / 32);
        (0..500).for_each(|_| control.on_window(10, 10));
        assert!(control.alpha() > ALPHA - 16 && control.alpha() <= ALPHA);
        control.on_mark(&t);
        assert_eq!(control.window(), 6);
        control.on_mark(&least(4));
        assert_eq!(control.window(), 4);
        control.on_mark(&t);
        assert_eq!(control.window(), 2);
        control.on_mark(&least(4));
        assert_eq!(control.window(), 2, "a mark opens no window");
    }

    /// RFC 3168: half the window, at least two packets where slow start ends, and no more than there was.
    #[test]
    fn a_mark_halves_the_window_of_ecn_and_no_other() {
        for (congestion, left) in [(Congestion::Ecn, 6), (Congestion::Reno, 12), (Congestion::Cubic, 12)] {
            let t = Transport::published(congestion);
            let mut control = Control::new(&t);
            control.on_mark(&t);
            control.on_window(10, 10);
            assert_eq!(control.window(), left, "{congestion:?}");
        }
    }

    #[test]
    fn long_idleness_restarts_the_window() {
        let t = Transport::published(Congestion::Reno);
        let mut control = Control::new(&t);
        control.on_timeout();
        control.on_idle(&t, 200 * US, false);
        assert_eq!(control.window(), 1);
        control.on_idle(&t, MS, true);
        assert_eq!(control.window(), 12);
    }
}
