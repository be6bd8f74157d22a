// SPDX-License-Identifier: GPL-2.0-or-later
//! Swift (Kumar et al., SIGCOMM 2020): additive increase below a target delay, multiplicative
//! decrease above it.
//!
//! The target falls as the window grows (flow scaling, section 3.5), so that flows become alike and
//! many can share a short queue. The paper's part for each hop is in `base`. Hosts take no time
//! here, so that there is only the fabric's window. Windows have 16 fractional bits; a window below
//! one packet becomes a pace.

use serde::{Deserialize, Serialize};

use super::traits::{AckInfo, CongestionLaw, LawState, Window, ONE};
use crate::core::time::{Ps, S};
use crate::core::units::{Duration, In};

/// Settings, after the paper's Algorithm 1 and Equation 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Swift {
    /// Target delay of a large window: the base target plus the part for hops.
    #[serde(with = "In::<Duration>")]
    pub base: Ps,
    /// `fs_range`: the most that flow scaling adds to the target.
    #[serde(with = "In::<Duration>")]
    pub scaling: Ps,
    /// `fs_min_cwnd`, in thousandths of a packet: smaller windows add no more.
    pub scaling_least: u32,
    /// `fs_max_cwnd`, in packets: larger windows add nothing.
    pub scaling_most: u32,
    /// `ai`, in thousandths of a packet a round trip.
    pub increase: u32,
    /// Beta, in thousandths.
    pub decrease: u32,
    /// `max_mdf`, in thousandths.
    pub most_decrease: u32,
}

impl Default for Swift {
    /// For a fabric with an empty round trip of about 15 us: twice that, and twice that again for
    /// the smallest windows.
    fn default() -> Self {
        Swift {
            base: 30_000_000,
            scaling: 30_000_000,
            scaling_least: 100,
            scaling_most: 100,
            increase: 1_000,
            decrease: 800,
            most_decrease: 500,
        }
    }
}

impl CongestionLaw for Swift {
    type State = Box<SwiftState>;
    const NAME: &str = "swift";
    const SEES_DELAY: bool = true;
    const SEES_EVERY_ACK: bool = true;

    fn problem(&self) -> Option<String> {
        let shares = self.decrease == 0
            || self.decrease > 1_000
            || self.most_decrease == 0
            || self.most_decrease >= 1_000;
        if self.base == 0 || self.base > S || self.scaling > S {
            Some("Swift's target must be between 0 and 1 s".to_owned())
        } else if self.scaling_least == 0
            || u64::from(self.scaling_least) >= 1_000 * u64::from(self.scaling_most)
        {
            Some("Swift's flow scaling must end at a larger window than it begins".to_owned())
        } else if self.scaling_most > LARGEST {
            Some(format!(
                "Swift's flow scaling ends at {} packets, above {LARGEST}, the largest window",
                self.scaling_most
            ))
        } else if self.ends().0 == self.ends().1 {
            Some(
                "Swift's flow scaling begins and ends at windows that are nearly the same"
                    .to_owned(),
            )
        } else if self.increase == 0 || self.increase > 1_000_000 || shares {
            Some(
                "Swift's increase must be between 0 and 1,000 packets, and its decreases shares"
                    .to_owned(),
            )
        } else {
            None
        }
    }

    fn start(self, _window: &mut Window, _line: u64) -> Box<SwiftState> {
        Box::new(SwiftState::new(self))
    }
}

impl Swift {
    /// 1 / sqrt of the windows between which flow scaling applies, the smaller window first.
    fn ends(&self) -> (u64, u64) {
        (
            inverse_root((u64::from(self.scaling_least) << 16) / 1_000),
            inverse_root(u64::from(self.scaling_most) << 16),
        )
    }

    /// The target for a window (Equation 1): linear in 1 / sqrt(window) between both ends.
    fn target(&self, window: u32) -> Ps {
        let (least, most) = self.ends();
        let here = inverse_root(window.into()).clamp(most, least);
        self.base
            + (u128::from(self.scaling) * u128::from(here - most) / u128::from(least - most)) as Ps
    }
}

/// 1 / sqrt of a number with 16 fractional bits; the result has 32.
fn inverse_root(of: u64) -> u64 {
    (1 << 56) / (of.max(1) << 32).isqrt()
}

/// Largest window of any transport, in packets: up to it the roots' 48 fractional bits fit.
const LARGEST: u32 = (1 << 15) - 1;
/// `RETX_RESET_THRESHOLD`: timeouts in a row that set the window to the least.
const RESET: u32 = 5;
/// The least window: 1/1000 of a packet.
const LEAST: u32 = ONE / 1_000;

/// Swift's state beside the window.
#[derive(Debug, Clone)]
pub(crate) struct SwiftState {
    of: Swift,
    /// When the window was last reduced, and the last round trip: at most one reduction a round
    /// trip.
    reduced: Option<Ps>,
    round_trip: Ps,
    timeouts: u32,
}

impl LawState for SwiftState {
    fn on_every_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        (window.cwnd, window.pace) = self.after_ack(window.cwnd, window.bounds.most, ack);
    }

    fn on_loss(&mut self, window: &mut Window, now: Ps) {
        self.timeouts = 0;
        window.reduce_to(self.reduce(window.cwnd, now));
    }

    fn on_timeout(&mut self, window: &mut Window, now: Ps) {
        window.cwnd = self.after_timeout(window.cwnd, now);
    }

    fn on_idle(&mut self, _window: &mut Window, _now: Ps, _idle: Ps, _long: bool) {}
}

impl SwiftState {
    fn new(of: Swift) -> Self {
        SwiftState { of, reduced: None, round_trip: 0, timeouts: 0 }
    }

    /// The window after an ACK, at most `most` packets, and its pace in bit/s; 0 for windows of a
    /// packet or more.
    fn after_ack(&mut self, window: u32, most: u32, ack: &AckInfo) -> (u32, u64) {
        self.timeouts = 0;
        self.round_trip = ack.round_trip.max(1);
        let target = self.of.target(window);
        let next = if ack.round_trip < target {
            let more =
                u64::from(self.of.increase) * u64::from(ONE) * u64::from(ack.packets) / 1_000;
            let more = if window >= ONE { more * u64::from(ONE) / u64::from(window) } else { more };
            u64::from(window) + more
        } else if self.may_reduce(ack.now) {
            let excess = u128::from(ack.round_trip - target) * u128::from(self.of.decrease)
                / u128::from(ack.round_trip);
            self.cut(window, ack.now, (excess as u32).min(self.of.most_decrease)).into()
        } else {
            window.into()
        };
        let window = next.clamp(LEAST.into(), u64::from(most) * u64::from(ONE)) as u32;
        (window, self.pace(window, ack.bytes))
    }

    /// The pace of a window below one packet.
    fn pace(&self, window: u32, bytes: u16) -> u64 {
        if window >= ONE {
            return 0;
        }
        let bits = u128::from(window) * 8 * u128::from(bytes) * u128::from(S);
        ((bits >> 16) / u128::from(self.round_trip)).max(1) as u64
    }

    fn may_reduce(&self, now: Ps) -> bool {
        self.reduced.is_none_or(|last| now - last >= self.round_trip)
    }

    fn cut(&mut self, window: u32, now: Ps, thousandths: u32) -> u32 {
        let next = (u64::from(window) * u64::from(1_000 - thousandths) / 1_000) as u32;
        if next < window {
            self.reduced = Some(now);
        }
        next.max(LEAST)
    }

    /// The window after a loss.
    fn reduce(&mut self, window: u32, now: Ps) -> u32 {
        if self.may_reduce(now) {
            self.cut(window, now, self.of.most_decrease)
        } else {
            window
        }
    }

    fn after_timeout(&mut self, window: u32, now: Ps) -> u32 {
        self.timeouts += 1;
        if self.timeouts >= RESET {
            LEAST
        } else {
            self.reduce(window, now)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::US;

    const OF: Swift = Swift {
        base: 25 * US,
        scaling: 100 * US,
        scaling_least: 100,
        scaling_most: 100,
        increase: 1_000,
        decrease: 800,
        most_decrease: 500,
    };

    fn ack(now: Ps, round_trip: Ps) -> AckInfo {
        AckInfo {
            now,
            packets: 1,
            number: Some(0),
            round_trip,
            marked: false,
            under_way: 0,
            bytes: 1_500,
            grows: true,
            round: false,
        }
    }

    /// Equation 1 in floating point, within 0.01 %.
    #[test]
    fn the_target_is_the_published_one() {
        for packets in [0.01f64, 0.1, 0.3, 1.0, 2.0, 10.0, 50.0, 100.0, 3_000.0] {
            let root = |w: f64| 1.0 / w.sqrt();
            let alpha = 100e6 / (root(0.1) - root(100.0));
            let expected = 25e6 + (alpha * (root(packets) - root(100.0))).clamp(0.0, 100e6);
            let got = OF.target((packets * 65_536.0) as u32) as f64;
            assert!((got / expected - 1.0).abs() < 1e-4, "{packets}: {got} {expected}");
        }
    }

    /// Ends that are too large, or so near to each other that nothing lies between, and the widest
    /// that there may be.
    #[test]
    fn ends_of_flow_scaling_differ() {
        let problem =
            |scaling_least, scaling_most| Swift { scaling_least, scaling_most, ..OF }.problem();
        for most in [32_768, 65_535, 65_536, 65_537, u32::MAX] {
            assert!(problem(100, most)
                .unwrap()
                .ends_with(&format!("at {most} packets, above 32767, the largest window")));
        }
        assert!(problem(32_766_999, 32_767).unwrap().ends_with("windows that are nearly the same"));
        assert_eq!(
            [(1, 32_767), (1, 1), (32_000_000, 32_767)].map(|(least, most)| problem(least, most)),
            [None, None, None]
        );
        assert_eq!(
            Swift { scaling_least: 1, scaling_most: 32_767, ..OF }.target(32_767 * ONE),
            OF.base
        );
    }

    /// Algorithm 1: below the target `ai` for each window's ACKs; above it once a round trip, by
    /// beta of the excess, by half at most.
    #[test]
    fn the_window_follows_algorithm_1() {
        let mut swift = SwiftState::new(OF);
        let mut window = 200 * ONE;
        for _ in 0..200 {
            (window, _) = swift.after_ack(window, 1_000, &ack(0, 20 * US));
        }
        assert!(window.abs_diff(201 * ONE) < ONE / 100, "{window}");
        // 50 us for a target of 25: 0.8 · 25/50 = 0.4 less.
        let (cut, _) = swift.after_ack(200 * ONE, 1_000, &ack(100 * US, 50 * US));
        assert_eq!(cut, 120 * ONE);
        let (kept, _) = swift.after_ack(cut, 1_000, &ack(149 * US, 50 * US));
        assert_eq!(kept, cut, "once a round trip");
        let (half, _) = swift.after_ack(cut, 1_000, &ack(200 * US, 100 * US));
        assert_eq!(half, 60 * ONE, "0.6 is more than the most");
        // Below a packet: a quarter of one in 400 us is 7.5 Mb/s.
        let (window, pace) = swift.after_ack(ONE / 2, 1_000, &ack(1_000 * US, 400 * US));
        assert_eq!((window, pace), (ONE / 4, 7_500_000));
        let resets: Vec<u32> =
            (1..=5).map(|n| swift.after_timeout(ONE, (2_000 + 1_000 * n) * US)).collect();
        assert_eq!(resets, [ONE / 2, ONE / 2, ONE / 2, ONE / 2, LEAST]);
    }
}
