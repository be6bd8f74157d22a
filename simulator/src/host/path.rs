// SPDX-License-Identifier: GPL-2.0-or-later
//! What a connection knows of its path: window, round-trip time, DCTCP's alpha.
//!
//! Windows are fixed-point numbers of packets with 16 fractional bits; alpha has 20: no floating point decides anything.

use crate::core::time::Ps;
use crate::host::cubic::Cubic;
use crate::sim::scheme::{Congestion, Transport};

/// One packet of window.
const ONE: u32 = 1 << 16;
/// alpha = 1.
const ALPHA: u32 = 1 << 20;

/// A connection keeps this between flows.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    cwnd: u32,
    ssthresh: u32,
    alpha: u32,
    cubic: Option<Box<Cubic>>,
    /// 0: no round trip was measured.
    srtt: Ps,
    rttvar: Ps,
    /// When the last flow ended.
    pub used: Ps,
}

impl Path {
    pub fn new(t: &Transport) -> Self {
        Path {
            cwnd: t.initial_window * ONE,
            ssthresh: t.max_window * ONE,
            alpha: 0,
            cubic: (t.congestion == Congestion::Cubic).then(Box::default),
            srtt: 0,
            rttvar: 0,
            used: 0,
        }
    }

    /// Whole packets that may be under way.
    pub fn window(&self) -> u32 {
        self.cwnd / ONE
    }

    /// After idleness of more than a timeout the window is the initial one again, as ns-2's slow-start restart sets it: from a
    /// larger window and from a smaller.
    pub fn restart(&mut self, t: &Transport, now: Ps) {
        let idle = now - self.used;
        let long = idle > self.rto(t);
        if long {
            self.cwnd = t.initial_window * ONE;
        }
        match &mut self.cubic {
            Some(cubic) if long => cubic.restart(),
            Some(cubic) => cubic.idle(idle),
            None => {}
        }
    }

    /// Timeout without back-off (RFC 6298, with the smallest one of the transport, without clock granularity).
    pub fn rto(&self, t: &Transport) -> Ps {
        if t.fixed_rto {
            t.min_rto
        } else if self.srtt == 0 {
            t.initial_rto.map_or(t.min_rto, |first| first.max(t.min_rto))
        } else {
            (self.srtt + 4 * self.rttvar).clamp(t.min_rto, t.max_rto)
        }
    }

    /// RFC 6298, section 2: alpha = 1/8, beta = 1/4.
    pub fn round_trip(&mut self, took: Ps) {
        let took = took.max(1);
        if self.srtt == 0 {
            self.srtt = took;
            self.rttvar = took / 2;
        } else {
            self.rttvar = (3 * self.rttvar + self.srtt.abs_diff(took)) / 4;
            self.srtt = (7 * self.srtt + took) / 8;
        }
    }

    /// An ACK that tells of `acked` packets lets the window grow.
    #[inline]
    pub fn grow(&mut self, t: &Transport, now: Ps, acked: u32) {
        if self.cubic.is_some() && self.cwnd >= self.ssthresh {
            self.grow_cubic(t, now, acked);
        } else {
            self.open(t);
        }
    }

    #[inline(never)]
    fn grow_cubic(&mut self, t: &Transport, now: Ps, acked: u32) {
        if let Some(cubic) = &mut self.cubic {
            self.cwnd = cubic.grow(self.cwnd, acked, now, self.srtt).min(t.max_window * ONE);
        }
    }

    /// One more packet for each ACK in slow start, one for each window after it (RFC 5681, section 3.1).
    #[inline]
    fn open(&mut self, t: &Transport) {
        let more =
            if self.cwnd < self.ssthresh { ONE } else { ((u64::from(ONE) * u64::from(ONE)) / u64::from(self.cwnd)) as u32 };
        self.cwnd = (self.cwnd + more).min(t.max_window * ONE);
    }

    /// Half the window, or CUBIC's cut, after a loss that was found by later packets.
    pub fn reduce(&mut self) {
        self.ssthresh = match &mut self.cubic {
            Some(cubic) => cubic.reduce(self.cwnd),
            None => self.half(),
        };
        self.cwnd = self.ssthresh;
    }

    fn half(&self) -> u32 {
        (self.cwnd / 2).max(2 * ONE)
    }

    /// Half the window, after a mark (RFC 3168, section 6.1.2).
    pub fn halve(&mut self) {
        self.ssthresh = self.half();
        self.cwnd = self.cwnd.min(self.ssthresh);
    }

    /// A window of one packet, after a timeout.
    pub fn collapse(&mut self) {
        self.ssthresh = match &mut self.cubic {
            Some(cubic) => cubic.time_out(self.cwnd),
            None => self.half(),
        };
        self.cwnd = ONE;
    }

    /// A window of `most` packets at most, and of one after a SYN was lost (RFC 5681, section 3.1).
    pub fn limit(&mut self, most: u32) {
        self.cwnd = self.cwnd.min(most * ONE);
    }

    #[cfg(test)]
    pub fn alpha(&self) -> u32 {
        self.alpha
    }

    /// DCTCP's alpha follows the share of marked packets in a window with weight 2^-`shift` (RFC 8257, section 3.3).
    pub fn observe(&mut self, shift: u32, marked: u32, acked: u32) {
        let share = (u64::from(marked) * u64::from(ALPHA) / u64::from(acked)) as u32;
        self.alpha = self.alpha - (self.alpha >> shift) + (share >> shift);
    }

    /// Less by half of alpha, after a window with marks, but `least` packets.
    pub fn cut(&mut self, least: u32) {
        let less = u64::from(self.cwnd) * u64::from(self.alpha) / u64::from(2 * ALPHA);
        self.cwnd = (self.cwnd - less as u32).max(self.cwnd.min(least * ONE));
        self.ssthresh = self.cwnd.max(2 * ONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::{MS, S, US};
    use crate::sim::scheme::Scheme;

    #[test]
    fn the_window_opens_by_one_for_each_ack_then_for_each_window() {
        let t = Scheme::tcp().transport;
        let mut path = Path::new(&t);
        path.collapse();
        // ssthresh is 6: five ACKs of slow start; then the window's square grows by 2 with each: 6.5 ACKs to 7, 14 to 8, 22.5 to 9.
        let mut acks = 0;
        let mut needed = |path: &mut Path, window| {
            while path.window() < window {
                path.open(&t);
                acks += 1;
            }
            std::mem::take(&mut acks)
        };
        let counts: Vec<u32> = (2..=9).map(|window| needed(&mut path, window)).collect();
        assert_eq!(counts, [1, 1, 1, 1, 1, 7, 7, 9]);
        (0..100_000).for_each(|_| path.open(&t));
        assert_eq!(path.window(), t.max_window);
    }

    #[test]
    fn the_timeout_follows_the_round_trip() {
        let t = Scheme::tcp().transport;
        let mut path = Path::new(&t);
        assert_eq!(path.rto(&t), 200 * US);
        path.round_trip(MS);
        assert_eq!(path.rto(&t), 3 * MS);
        // rttvar = 3/4 · 0.5 + 1/4 · 1, srtt = 7/8 · 1 + 1/8 · 2.
        path.round_trip(2 * MS);
        assert_eq!(path.rto(&t), 1_125 * US + 4 * 625 * US);
        path.round_trip(10 * S);
        assert_eq!(path.rto(&t), 2 * S);
        (0..200).for_each(|_| path.round_trip(15 * US));
        assert_eq!(path.rto(&t), 200 * US);
    }

    /// RFC 6298, sections 2.1 and 2.4.
    #[test]
    fn the_first_timeout_is_the_initial_one() {
        let mut t = Transport::linux(Congestion::Reno);
        assert_eq!(Path::new(&t).rto(&t), S);
        t.min_rto = 3 * S;
        assert_eq!(Path::new(&t).rto(&t), 3 * S);
        (t.initial_rto, t.min_rto) = (Some(700 * MS), 200 * MS);
        let mut path = Path::new(&t);
        assert_eq!(path.rto(&t), 700 * MS);
        path.round_trip(100 * MS);
        assert_eq!(path.rto(&t), 300 * MS);
        t.fixed_rto = true;
        assert_eq!(Path::new(&t).rto(&t), 200 * MS);
    }

    #[test]
    fn idleness_restarts_the_window() {
        let t = Scheme::tcp().transport;
        let mut path = Path::new(&t);
        path.collapse();
        path.used = MS;
        path.restart(&t, MS + 200 * US);
        assert_eq!(path.window(), 1);
        path.restart(&t, MS + 200 * US + 1);
        assert_eq!(path.window(), 12);
    }

    #[test]
    fn alpha_follows_the_marks_and_cuts_by_half_of_it() {
        let t = Scheme::dctcp().transport;
        let mut path = Path::new(&t);
        path.cut(1);
        assert_eq!((path.window(), path.ssthresh / ONE), (12, 12), "alpha begins at 0: only slow start ends");
        path.observe(4, 5, 10);
        assert_eq!(path.alpha, ALPHA / 32);
        (0..500).for_each(|_| path.observe(4, 10, 10));
        assert!(path.alpha > ALPHA - 16 && path.alpha <= ALPHA);
        path.cut(1);
        assert_eq!(path.window(), 6);
        path.cut(4);
        assert_eq!(path.window(), 4);
        path.cut(1);
        assert_eq!(path.window(), 2);
        path.cut(4);
        assert_eq!(path.window(), 2, "a mark opens no window");
    }
}
