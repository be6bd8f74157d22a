// SPDX-License-Identifier: GPL-2.0-or-later
//! DCQCN (Zhu et al., SIGCOMM 2015, sections 3.1 and 3.2, figure 7): a rate that is cut for marks,
//! and raised by a timer and a byte counter.
//!
//! The receiver's congestion notifications are its ACKs: the sender heeds one marked ACK in
//! `report`, which is as often as the receiver would send one. Timers are caught up with when a
//! packet is sent or an ACK arrives, which is when the rate is used.

use serde::{Deserialize, Serialize};

use super::traits::{AckInfo, CongestionLaw, Echo, LawState, SentInfo, Window, ONE as PACKET};
use crate::core::time::{Ps, S, US};
use crate::core::units::{Duration, In, Octets};

/// Settings; the defaults are the paper's (figure 14), g = 1/256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dcqcn {
    /// N: least time between two congestion notifications of a flow.
    #[serde(with = "In::<Duration>")]
    pub report: Ps,
    /// K: alpha decays after this long without a notification.
    #[serde(with = "In::<Duration>")]
    pub alpha_timer: Ps,
    /// T: interval of rate increases by the timer.
    #[serde(with = "In::<Duration>")]
    pub timer: Ps,
    /// B: bytes between rate increases by the counter.
    #[serde(with = "In::<Octets>")]
    pub counter: u64,
    /// g = 2^-`shift`.
    pub shift: u32,
    /// `R_AI`, in bit/s.
    pub increase: u64,
    /// `R_HAI`, in bit/s.
    pub hyper_increase: u64,
    /// Least rate, in bit/s.
    pub least: u64,
}

impl Default for Dcqcn {
    fn default() -> Self {
        Dcqcn {
            report: 50 * US,
            alpha_timer: 55 * US,
            timer: 55 * US,
            counter: 10_000_000,
            shift: 8,
            increase: 40_000_000,
            hyper_increase: 400_000_000,
            least: 10_000_000,
        }
    }
}

impl CongestionLaw for Dcqcn {
    type State = Box<DcqcnState>;
    const NAME: &str = "dcqcn";
    const ECHO: Echo = Echo::AtOnce;
    const SEES_EVERY_ACK: bool = true;

    #[inline]
    fn ecn_capable(&self) -> bool {
        true
    }

    fn problem(&self) -> Option<String> {
        if self.alpha_timer == 0 || self.timer == 0 || self.counter == 0 {
            Some("a timer or the counter of DCQCN is 0".to_owned())
        } else if self.shift > 20 {
            Some("DCQCN's g is below 2^-20, with which alpha does not fall".to_owned())
        } else if self.least == 0 || self.least > S || self.increase > S || self.hyper_increase > S
        {
            Some("DCQCN's rates must be between 0 and 1 Tb/s".to_owned())
        } else {
            None
        }
    }

    /// A rate, no window and no slow start (section 3.1).
    fn start(self, window: &mut Window, line: u64) -> Box<DcqcnState> {
        (window.cwnd, window.pace) = (window.bounds.most * PACKET, line);
        Box::new(DcqcnState::new(self, line))
    }
}

/// alpha = 1.
const ONE: u64 = 1 << 20;
/// F: number of fast recovery steps.
const RECOVERY: u32 = 5;

/// The reaction point of a flow.
#[derive(Debug, Clone)]
pub(crate) struct DcqcnState {
    of: Dcqcn,
    line: u64,
    /// `R_C` and `R_T`, in bit/s.
    current: u64,
    target: u64,
    alpha: u64,
    /// When the last notification was heeded; none: the rate is the line rate.
    reported: Option<Ps>,
    next_alpha: Ps,
    next_timer: Ps,
    sent: u64,
    /// Increase steps by the timer and by the counter since then.
    times: u32,
    counts: u32,
}

impl LawState for DcqcnState {
    fn on_send(&mut self, window: &mut Window, sent: &SentInfo) {
        window.pace = self.rate_to_send(sent.now, sent.bytes);
    }

    fn on_every_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        (window.cwnd, window.pace) = (window.bounds.most * PACKET, self.rate_after(ack));
    }

    fn on_loss(&mut self, window: &mut Window, _now: Ps) {
        window.reduce_to(window.cwnd);
    }

    fn on_timeout(&mut self, _window: &mut Window, _now: Ps) {}

    fn on_idle(&mut self, _window: &mut Window, _now: Ps, _idle: Ps, _long: bool) {}
}

impl DcqcnState {
    fn new(of: Dcqcn, line: u64) -> Self {
        let (current, target) = (line, line);
        let (next_alpha, next_timer) = (Ps::MAX, Ps::MAX);
        DcqcnState {
            of,
            line,
            current,
            target,
            alpha: ONE,
            reported: None,
            next_alpha,
            next_timer,
            sent: 0,
            times: 0,
            counts: 0,
        }
    }

    /// The rate at which the next packet leaves.
    fn rate_to_send(&mut self, now: Ps, bytes: u16) -> u64 {
        self.catch_up(now);
        self.sent += u64::from(bytes);
        if self.sent >= self.of.counter {
            self.sent -= self.of.counter;
            self.raise();
            self.counts += 1;
        }
        self.current
    }

    /// The rate after an ACK.
    fn rate_after(&mut self, ack: &AckInfo) -> u64 {
        self.catch_up(ack.now);
        if ack.marked && self.reported.is_none_or(|last| ack.now - last >= self.of.report) {
            self.cut(ack.now);
        }
        self.current
    }

    /// A notification (equation 1).
    fn cut(&mut self, now: Ps) {
        self.target = self.current;
        self.current = (self.current
            - (u128::from(self.current) * u128::from(self.alpha) / u128::from(2 * ONE)) as u64)
            .max(self.of.least);
        self.alpha = self.alpha - (self.alpha >> self.of.shift) + (ONE >> self.of.shift);
        self.reported = Some(now);
        (self.next_alpha, self.next_timer) = (now + self.of.alpha_timer, now + self.of.timer);
        (self.sent, self.times, self.counts) = (0, 0, 0);
    }

    /// Runs the timers due by now (equations 2 to 4).
    fn catch_up(&mut self, now: Ps) {
        while self.next_alpha <= now {
            // alpha has decayed to nothing.
            let before = self.alpha;
            self.alpha -= self.alpha >> self.of.shift;
            self.next_alpha =
                if self.alpha == before { Ps::MAX } else { self.next_alpha + self.of.alpha_timer };
        }
        while self.next_timer <= now {
            self.raise();
            self.times += 1;
            self.next_timer =
                if self.current == self.line { Ps::MAX } else { self.next_timer + self.of.timer };
        }
    }

    /// A step towards the target, which rises after F earlier steps.
    fn raise(&mut self) {
        let more = if self.times.max(self.counts) < RECOVERY {
            0
        } else if self.times.min(self.counts) > RECOVERY {
            self.of.hyper_increase
        } else {
            self.of.increase
        };
        self.target = (self.target + more).min(self.line);
        // Rounded up, so that it reaches the target.
        self.current = (self.target + self.current).div_ceil(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: u64 = 40_000_000_000;

    fn ack(now: Ps, marked: bool) -> AckInfo {
        AckInfo {
            now,
            packets: 1,
            number: Some(0),
            round_trip: 10 * US,
            marked,
            under_way: 1,
            bytes: 1_500,
            grows: true,
            round: false,
        }
    }

    /// Equations 1 to 4 by hand: alpha is 1 at first, so that a report halves the rate; five steps
    /// of the timer go half way back to the old rate, later ones to a target that rises by 40 Mb/s.
    #[test]
    fn rates_are_the_published_ones() {
        let mut rates = DcqcnState::new(Dcqcn::default(), LINE);
        assert_eq!(rates.rate_after(&ack(0, false)), LINE);
        assert_eq!(rates.rate_after(&ack(0, true)), LINE / 2);
        assert_eq!(rates.rate_after(&ack(49 * US, true)), LINE / 2, "one report in 50 us");
        assert_eq!(rates.rate_after(&ack(50 * US, true)), LINE / 4);
        let after =
            |rates: &mut DcqcnState, n: u64| rates.rate_after(&ack((50 + 55 * n) * US, false));
        // Towards 20 Gb/s from 10.
        let recovery: Vec<u64> = (1..=5).map(|n| after(&mut rates, n)).collect();
        assert_eq!(
            recovery,
            [15_000_000_000, 17_500_000_000, 18_750_000_000, 19_375_000_000, 19_687_500_000]
        );
        // (19.6875 + 20.04) / 2 and (19.86375 + 20.08) / 2.
        assert_eq!([6, 7].map(|n| after(&mut rates, n)), [19_863_750_000, 19_971_875_000]);
        // alpha has fallen seven times by 1/256.
        let expected = 255f64.powi(7) / 256f64.powi(7);
        assert!((rates.alpha as f64 / ONE as f64 - expected).abs() < 1e-5);
        // The next report takes half of alpha.
        let cut = rates.rate_after(&ack((50 + 55 * 7) * US, true)) as f64;
        assert!((cut / (19_971_875_000.0 * (1.0 - expected / 2.0)) - 1.0).abs() < 1e-5);
    }

    /// With both the timer and the counter beyond F, the target rises faster.
    #[test]
    fn bytes_count_as_well() {
        let of = Dcqcn { counter: 1_500, timer: S, ..Dcqcn::default() };
        let mut rates = DcqcnState::new(of, LINE);
        rates.rate_after(&ack(0, true));
        let sent: Vec<u64> = (0..5).map(|_| rates.rate_to_send(US, 1_500)).collect();
        let half = |from: u64, to: u64| (from + to).div_ceil(2);
        let mut expected = vec![half(LINE / 2, LINE)];
        (0..4).for_each(|n| expected.push(half(expected[n], LINE)));
        assert_eq!(sent, expected, "the target stays the line's rate");
        rates.target = LINE / 2;
        rates.times = 6;
        rates.counts = 6;
        rates.rate_to_send(US, 1_500);
        assert_eq!(rates.target, LINE / 2 + of.hyper_increase);
    }
}
