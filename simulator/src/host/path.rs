// SPDX-License-Identifier: GPL-2.0-or-later
//! What a connection knows of its path: congestion window and round-trip time.

use crate::core::time::Ps;
use crate::host::congestion::Control;
use crate::host::transport::Transport;

/// A connection's state between flows.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    pub control: Control,
    /// 0: no round trip has been measured.
    srtt: Ps,
    rttvar: Ps,
    /// When the last flow ended.
    pub used: Ps,
}

impl Path {
    /// `line`: rate of the host's link, in bit/s.
    pub fn new(t: &Transport, line: u64) -> Self {
        Path { control: Control::new(t.congestion, t.windows(), line), srtt: 0, rttvar: 0, used: 0 }
    }

    /// A flow begins on an idle connection.
    pub fn restart(&mut self, t: &Transport, now: Ps) {
        let idle = now - self.used;
        let long = idle > self.rto(t);
        self.control.on_idle(now, idle, long);
    }

    /// The timeout without back-off: RFC 6298 with the transport's smallest timeout, or Linux's;
    /// without clock granularity.
    pub fn rto(&self, t: &Transport) -> Ps {
        if t.fixed_rto {
            t.min_rto
        } else if self.srtt == 0 {
            t.initial_rto.map_or(t.min_rto, |first| first.max(t.min_rto))
        } else {
            let least = if t.rto_above_rtt { t.min_rto } else { 0 };
            (self.srtt + (4 * self.rttvar).max(least)).clamp(t.min_rto, t.max_rto)
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

    /// The smoothed round trip; 0: none has been measured.
    pub fn smoothed(&self) -> Ps {
        self.srtt
    }

    /// An ACK of `acked` new packets lets the window grow.
    #[inline]
    pub fn grow(&mut self, now: Ps, acked: u32) {
        self.control.on_ack(now, acked, self.srtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::{MS, S, US};
    use crate::host::transport::Congestion;

    const LINE: u64 = 10_000_000_000;

    #[test]
    fn the_timeout_follows_the_round_trip() {
        let t = Transport::published(Congestion::Reno);
        let mut path = Path::new(&t, LINE);
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
        assert_eq!(Path::new(&t, LINE).rto(&t), S);
        t.min_rto = 3 * S;
        assert_eq!(Path::new(&t, LINE).rto(&t), 3 * S);
        (t.initial_rto, t.min_rto) = (Some(700 * MS), 200 * MS);
        let mut path = Path::new(&t, LINE);
        assert_eq!(path.rto(&t), 700 * MS);
        path.round_trip(100 * MS);
        assert_eq!(path.rto(&t), 300 * MS);
        // Linux's stays 200 ms above a round trip that does not vary; by RFC 6298 there would be no
        // margin.
        (0..200).for_each(|_| path.round_trip(250 * MS));
        let rto = path.rto(&t) / MS;
        t.rto_above_rtt = false;
        assert_eq!((rto, path.rto(&t) / MS), (449, 250));
        t.fixed_rto = true;
        assert_eq!(Path::new(&t, LINE).rto(&t), 200 * MS);
    }

    #[test]
    fn idleness_restarts_the_window() {
        let t = Transport::published(Congestion::Reno);
        let mut path = Path::new(&t, LINE);
        path.control.on_timeout(0);
        path.used = MS;
        path.restart(&t, MS + 200 * US);
        assert_eq!(path.control.window(), 1);
        path.restart(&t, MS + 200 * US + 1);
        assert_eq!(path.control.window(), 12);
    }
}
