// SPDX-License-Identifier: GPL-2.0-or-later
//! CUBIC (RFC 9438) in integers: C = 0.4, beta = 0.7, with fast convergence. Windows have 16
//! fractional bits. Names are the RFC's.

use super::traits::{CongestionLaw, LawState, Window};
use crate::core::time::{Ps, US};

/// A window of one packet.
const ONE: u64 = 1 << 16;

/// C as a fraction, in packets per cubic second.
const C: (i128, i128) = (4, 10);
/// Cubic microseconds in a cubic second.
const CUBIC_SECOND: i128 = 1_000_000_000_000_000_000;
/// Beyond this distance from the plateau, in us, nothing changes: the largest window is reached.
const FARTHEST: i128 = 1 << 31;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Cubic;

impl CongestionLaw for Cubic {
    type State = Box<CubicState>;
    const NAME: &str = "cubic";

    fn start(self, _window: &mut Window, _line: u64) -> Box<CubicState> {
        Box::default()
    }
}

/// CUBIC's state beside the window. The congestion avoidance stage begins with the first packet
/// acknowledged in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct CubicState {
    /// `W_max`: the window before the last reduction, or less if it was below the previous one
    /// (fast convergence); 0: unknown.
    w_max: u32,
    /// `cwnd_prior`: the window before the last reduction.
    cwnd_prior: u32,
    /// `epoch_start`: when the stage began.
    epoch_start: Option<Ps>,
    /// The window at the plateau of the stage's curve, and `K`: microseconds from the stage's
    /// beginning to the plateau.
    plateau: u32,
    k: u64,
    /// `W_est`: Reno's window, with 32 fractional bits.
    w_est: u64,
}

impl LawState for CubicState {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, now: Ps, acked: u32, round_trip: Ps) {
        if window.cwnd < window.ssthresh {
            window.open();
        } else {
            let next = self.grow(window.cwnd, acked, now, round_trip);
            window.cwnd = next.min(window.bounds.most * super::ONE);
        }
    }

    fn on_loss(&mut self, window: &mut Window, _now: Ps) {
        window.reduce_to(self.reduce(window.cwnd));
    }

    fn on_timeout(&mut self, window: &mut Window, _now: Ps) {
        window.ssthresh = self.time_out(window.cwnd);
        window.cwnd = super::ONE;
    }

    fn on_idle(&mut self, window: &mut Window, _now: Ps, idle: Ps, long: bool) {
        if long {
            self.restart();
            window.cwnd = window.bounds.initial * super::ONE;
        } else {
            self.idle(idle);
        }
    }
}

impl CubicState {
    /// The window after `acked` more packets, in congestion avoidance (RFC 9438, sections 4.2 to
    /// 4.5).
    // Not inlined, so that the path of other laws stays short.
    #[inline(never)]
    fn grow(&mut self, window: u32, acked: u32, now: Ps, round_trip: Ps) -> u32 {
        if self.epoch_start.is_none() {
            self.begin(window);
        }
        let passed = now - *self.epoch_start.get_or_insert(now);
        // `alpha_cubic` = 3 (1 − 0.7) / (1 + 0.7), and 1 once the prior window is reached.
        let (share, whole) =
            if self.w_est >> 16 < u64::from(self.cwnd_prior) { (9, 17) } else { (1, 1) };
        self.w_est += u64::from(acked) * ((share << 48) / (whole * u64::from(window)));
        let w_est = self.w_est >> 16;
        if self.w_cubic(passed) < w_est {
            return u32::try_from(w_est).unwrap_or(u32::MAX).max(window);
        }
        let window = u64::from(window);
        let target =
            self.w_cubic(passed.saturating_add(round_trip)).clamp(window, window + window / 2);
        let more = u64::from(acked) * (target - window) * ONE / window;
        u32::try_from(window + more).unwrap_or(u32::MAX)
    }

    fn begin(&mut self, window: u32) {
        self.w_est = u64::from(window) << 16;
        self.plateau = self.w_max.max(window);
        let below = i128::from(self.plateau - window);
        self.k = cube_root((below * CUBIC_SECOND * C.1 / (C.0 * i128::from(ONE))).unsigned_abs());
    }

    /// `W_cubic`, at `passed` after the stage's beginning.
    fn w_cubic(&self, passed: Ps) -> u64 {
        let from_plateau =
            (i128::from(passed / US) - i128::from(self.k)).clamp(-FARTHEST, FARTHEST);
        let rise = from_plateau.pow(3) * C.0 * i128::from(ONE) / (C.1 * CUBIC_SECOND);
        (i128::from(self.plateau) + rise).clamp(0, i128::from(u32::MAX)) as u64
    }

    /// The window after a loss (sections 4.6 and 4.7).
    fn reduce(&mut self, window: u32) -> u32 {
        self.w_max =
            if window < self.w_max { (u64::from(window) * 17 / 20) as u32 } else { window };
        self.leave(window)
    }

    /// The slow start threshold after a timeout; the next stage starts at its plateau (section
    /// 4.8).
    fn time_out(&mut self, window: u32) -> u32 {
        self.w_max = 0;
        self.leave(window)
    }

    fn leave(&mut self, window: u32) -> u32 {
        self.cwnd_prior = window;
        self.restart();
        (u64::from(window) * 7 / 10).max(2 * ONE) as u32
    }

    /// The next packet acknowledged in congestion avoidance begins a stage.
    fn restart(&mut self) {
        self.epoch_start = None;
    }

    /// Excludes idle time (section 5.8).
    fn idle(&mut self, idle: Ps) {
        self.epoch_start = self.epoch_start.map(|epoch| epoch + idle);
    }
}

/// Integer cube root of a number below 2^93.
fn cube_root(of: u128) -> u64 {
    let mut root = 0u128;
    for bit in (0..31).rev() {
        let larger = root | 1 << bit;
        if larger.pow(3) <= of {
            root = larger;
        }
    }
    root as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::{MS, S};

    /// RFC 9438 in floating point, word by word; times in seconds, windows in packets.
    #[derive(Default)]
    struct Model {
        w_max: f64,
        prior: f64,
        stage: Option<(f64, f64, f64)>,
        w_est: f64,
    }

    impl Model {
        fn grow(&mut self, cwnd: f64, acked: f64, now: f64, rtt: f64) -> f64 {
            let (epoch, k, w_max) = *self.stage.get_or_insert_with(|| {
                self.w_est = cwnd;
                let w_max = self.w_max.max(cwnd);
                (now, ((w_max - cwnd) / 0.4).cbrt(), w_max)
            });
            let w_cubic = |t: f64| 0.4 * (t - k).powi(3) + w_max;
            let alpha = if self.w_est < self.prior { 3.0 * 0.3 / 1.7 } else { 1.0 };
            self.w_est += alpha * acked / cwnd;
            if w_cubic(now - epoch) < self.w_est {
                return self.w_est.max(cwnd);
            }
            let target = w_cubic(now - epoch + rtt).clamp(cwnd, 1.5 * cwnd);
            cwnd + acked * (target - cwnd) / cwnd
        }

        fn reduce(&mut self, cwnd: f64) -> f64 {
            self.w_max = if cwnd < self.w_max { cwnd * 1.7 / 2.0 } else { cwnd };
            self.prior = cwnd;
            self.stage = None;
            (cwnd * 0.7).max(2.0)
        }
    }

    fn packets(window: u32) -> f64 {
        f64::from(window) / ONE as f64
    }

    fn window(packets: u64) -> u32 {
        (packets * ONE) as u32
    }

    /// Losses at these windows, over round trips from 100 us to 200 ms: never farther than 1 % from
    /// RFC 9438, nor than a packet; a tenth of a packet is always allowed. An ACK tells of two
    /// packets.
    #[test]
    fn the_window_is_that_of_rfc_9438() {
        for (round_trip, losses) in [
            (200 * MS, &[500, 600, 550, 400, 700][..]),
            (20 * MS, &[100, 90, 80, 200, 20_000, 15_000]),
            (MS, &[40, 60, 50, 40]),
            (100 * US, &[20, 30, 25, 400]),
        ] {
            let (mut cubic, mut model) = (CubicState::default(), Model::default());
            let mut now = 7 * S;
            let mut cwnd = window(10);
            let mut cwnd_of_model = 10.0;
            for &loss in losses {
                let mut acks = 0;
                while packets(cwnd) < f64::from(loss) {
                    now += 2 * round_trip * ONE / u64::from(cwnd);
                    cwnd = cubic.grow(cwnd, 2, now, round_trip);
                    cwnd_of_model =
                        model.grow(cwnd_of_model, 2.0, now as f64 / 1e12, round_trip as f64 / 1e12);
                    let error = packets(cwnd) - cwnd_of_model;
                    assert!(
                        error.abs() < (cwnd_of_model / 100.0).clamp(0.1, 1.0),
                        "{} {cwnd_of_model}, loss {loss}",
                        packets(cwnd)
                    );
                    acks += 1;
                }
                assert!(acks > 10, "{acks} ACKs to {loss}");
                (cwnd, cwnd_of_model) = (cubic.reduce(cwnd), model.reduce(cwnd_of_model));
                assert!((packets(cwnd) / cwnd_of_model - 1.0).abs() < 0.01);
            }
        }
    }

    /// From 1,000 packets to 700, and back after K = (300 / 0.4)^(1/3) = 9.086 s; flat there and
    /// beyond it steep.
    #[test]
    fn the_plateau_is_where_the_last_loss_was() {
        let mut cubic = CubicState::default();
        let start = cubic.reduce(window(1_000));
        assert_eq!(start, window(700));
        let round_trip = 200 * MS;
        let (mut cwnd, mut now) = (start, 0);
        let mut at = |time| {
            while now < time {
                now += round_trip * ONE / u64::from(cwnd);
                cwnd = cubic.grow(cwnd, 1, now, round_trip);
            }
            packets(cwnd)
        };
        for (time, expected) in
            [(2u32, 857.7), (5, 972.7), (9, 1_000.0), (13, 1_023.9), (15, 1_082.8)]
        {
            // The window is that of the curve a round trip later at the most.
            let curve = |t: f64| 0.4 * (t - 9.0856).powi(3) + 1_000.0;
            assert!((curve(f64::from(time)) - expected).abs() < 0.1, "{}", curve(f64::from(time)));
            let got = at(u64::from(time) * S);
            assert!(
                got > expected - 1.0 && got < curve(f64::from(time) + 0.2) + 1.0,
                "{got} after {time} s"
            );
        }
    }

    /// Where round trips are short, 9/17 of a packet each until the old window, then one: 30 /
    /// (9/17) = 56.7 rounds.
    #[test]
    fn short_round_trips_are_renos() {
        let mut cubic = CubicState::default();
        let mut cwnd = cubic.reduce(window(100));
        let mut now = 0;
        let mut rounds = |n: u32| {
            for _ in 0..n {
                for _ in 0..cwnd / ONE as u32 {
                    now += 100 * US * ONE / u64::from(cwnd);
                    cwnd = cubic.grow(cwnd, 1, now, 100 * US);
                }
            }
            packets(cwnd)
        };
        let before = rounds(56);
        assert!((98.5..100.0).contains(&before), "{before}");
        let after = rounds(2);
        assert!((100.0..101.5).contains(&after), "{after}");
        let later = rounds(20);
        assert!((later - after - 20.0).abs() < 0.5, "{later}");
    }

    #[test]
    fn a_flow_that_falls_short_makes_room() {
        let mut cubic = CubicState::default();
        assert_eq!(cubic.reduce(window(100)), window(70));
        assert_eq!(cubic.w_max, window(100));
        assert_eq!(cubic.reduce(window(80)), window(56));
        assert_eq!(cubic.w_max, window(68));
        // (12 / 0.4)^(1/3) = 3.107233 s.
        cubic.grow(window(56), 1, 5 * S, MS);
        assert_eq!(cubic.k, 3_107_232);
        assert_eq!(cubic.reduce(window(1)), window(2), "never below two packets");
    }

    /// After a timeout the stage's plateau is where it begins; idleness does not count.
    #[test]
    fn timeouts_and_idleness() {
        let mut cubic = CubicState::default();
        assert_eq!(cubic.time_out(window(1_000)), window(700));
        cubic.grow(window(700), 1, 5 * S, MS);
        assert_eq!((cubic.plateau, cubic.k), (window(700), 0));
        let mut idle = cubic.clone();
        idle.idle(3 * S);
        assert_eq!(cubic.grow(window(700), 1, 6 * S, MS), idle.grow(window(700), 1, 9 * S, MS));
        assert_ne!(cubic.grow(window(700), 1, 6 * S, MS), cubic.grow(window(700), 1, 9 * S, MS));
    }

    #[test]
    fn cube_roots_are_whole() {
        for root in [0u64, 1, 2, 3, 1_000_000, 43_000_000, (1 << 31) - 1] {
            let cube = u128::from(root).pow(3);
            assert_eq!(cube_root(cube), root);
            assert_eq!(cube_root(cube + 1), root + u64::from(root == 0));
            assert_eq!(
                cube_root(cube + 3 * u128::from(root).pow(2) + 3 * u128::from(root)),
                root,
                "{root}"
            );
        }
    }
}
