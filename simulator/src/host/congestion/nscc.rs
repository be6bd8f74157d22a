// SPDX-License-Identifier: GPL-2.0-or-later
//! NSCC, the sender's congestion control of Ultra Ethernet 1.0 (section 3.6.13): marks say whether,
//! and the queueing delay by how much, the window changes.
//!
//! | | delay below the target | above |
//! |---|---|---|
//! | no mark | grows by what is left to the target; fast without a queue | grows alike for all |
//! | mark | stays: packets take other paths | shrinks by the excess |
//!
//! The standard's text was not at hand. The four cases, the rules of each and `QuickAdapt` are
//! after the consortium's simulator htsim (`uec.cpp`); names, the table of constants (3-82) and the
//! average over a base round trip after an implementation in ns-3 that cites the standard, and
//! agrees with it. They are also SMaRTT's (Bonato et al., arXiv 2404.01630). Left out: the choice
//! of paths, which switches spray; trimming, so that a lost packet counts as a trimmed one; and
//! what receivers say of their hosts. Windows are packets with 16 fractional bits.

use serde::{Deserialize, Serialize};

use super::hpcc::packets_in;
use super::traits::{AckInfo, CongestionLaw, Echo, LawState, Window, ONE};
use crate::core::time::{Ps, S, US};
use crate::core::units::{Duration, In};

/// Settings. The transport's initial window should be 1.5 times what a base round trip holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nscc {
    /// `config_base_rtt`: the longest round trip without queues.
    #[serde(with = "In::<Duration>")]
    pub base: Ps,
    /// `target_qdelay`: the queueing delay that it aims at.
    #[serde(with = "In::<Duration>")]
    pub target: Ps,
}

impl Default for Nscc {
    /// The network for which the standard's constants are: 100 Gb/s and 12 us. Without trimming the
    /// target is a round trip.
    fn default() -> Self {
        Nscc { base: REFERENCE, target: REFERENCE }
    }
}

/// The base round trip of the reference network, and what it holds at 100 Gb/s, in bytes.
const REFERENCE: Ps = 12 * US;
const REFERENCE_BYTES: u64 = 150_000;
/// `fi`, `alpha` without its scale, and `eta` in hundredths of a packet a base round trip.
const FAIR: u64 = 5;
const ALPHA: u64 = 4;
const ETA: u64 = 15;
/// `fi_scale`: fast growth is a quarter of what is acknowledged, times the scale.
const FAST: u64 = 4;
/// Delays below it are none: htsim's tolerance.
const CLEAR: Ps = US;
/// Gamma, in thousandths; and a decrease leaves at least a half.
const GAMMA: u128 = 800;
/// Packets after which growth is added up, at the latest.
const ADJUST: u64 = 8 * ONE as u64;
/// `qa_gate`: quick adaptation needs less than an eighth of the largest window; `qa_threshold`: or
/// this many targets of delay begin it.
const GATE: u32 = 3;
const LATE: Ps = 4;

impl CongestionLaw for Nscc {
    type State = Box<NsccState>;
    const NAME: &str = "nscc";
    const ECHO: Echo = Echo::Exactly;
    const SEES_DELAY: bool = true;
    const SEES_EVERY_ACK: bool = true;

    #[inline]
    fn ecn_capable(&self) -> bool {
        true
    }

    fn problem(&self) -> Option<String> {
        let (base, target) = (self.base, self.target);
        (base == 0 || base > S || target == 0 || target > S)
            .then(|| "NSCC's base round trip and target must be above 0 and at most 1 s".to_owned())
    }

    fn start(self, _window: &mut Window, line: u64) -> Box<NsccState> {
        Box::new(NsccState::new(self, line))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct NsccState {
    of: Nscc,
    line: u64,
    /// `scaling_a`: what a base round trip holds, of the reference network's; 16 fractional bits.
    scale: u64,
    /// The shortest round trip yet.
    base: Ps,
    /// The average delay over about a base round trip, and when it was updated.
    average: Ps,
    averaged: Ps,
    /// `inc_bytes`: growth to divide by the window, in squares of packets with 32 fractional bits.
    growth: u128,
    /// Packets acknowledged since growth was added up; since then, and since the last quick
    /// adaptation was due.
    received: u64,
    achieved: u64,
    /// Packets acknowledged without a delay in a row; the window grows fast.
    clear: u64,
    fast: bool,
    adjusted: Ps,
    decreased: Ps,
    /// Quick adaptation: when it is due next (0: not known yet), whether a loss asks for it, and
    /// the packets whose marks it has anticipated, with those that have come since.
    due: Ps,
    asked: bool,
    to_ignore: u64,
    ignored: u64,
    /// Packets under way, and bytes of a packet, at the last ACK.
    under_way: u64,
    bytes: u16,
}

impl LawState for NsccState {
    fn on_every_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        if ack.number.is_none() {
            return;
        }
        let packets = u64::from(ack.packets) * u64::from(ONE);
        self.ignored += packets;
        self.received += packets;
        self.achieved += packets;
        self.under_way = u64::from(ack.under_way) * u64::from(ONE);
        self.bytes = ack.bytes;
        self.base = self.base.min(ack.round_trip.max(1));
        let delay = ack.round_trip.saturating_sub(self.base);
        self.see(ack.now, delay);
        let mut cwnd = u64::from(window.cwnd);
        if !self.adapt(&mut cwnd, ack.now, ack.marked, delay) {
            match (ack.marked, delay >= self.of.target) {
                (false, true) => self.growth += u128::from(FAIR * self.scale) * u128::from(packets),
                (false, false) => self.grow(&mut cwnd, packets, delay),
                (true, true) => self.decrease(&mut cwnd, ack.now),
                (true, false) => {}
            }
            self.add_up(&mut cwnd, ack.now);
        }
        self.set(window, cwnd);
    }

    fn on_lost(&mut self, window: &mut Window, now: Ps, _number: u32) {
        self.lose(window, now);
    }

    fn on_loss(&mut self, _window: &mut Window, _now: Ps) {}

    fn on_timeout(&mut self, window: &mut Window, now: Ps) {
        self.lose(window, now);
    }
}

impl NsccState {
    fn new(of: Nscc, line: u64) -> Self {
        let held = u128::from(line) * u128::from(of.base) / (8 * u128::from(S));
        let scale = held * u128::from(ONE) / u128::from(REFERENCE_BYTES);
        NsccState {
            of,
            line,
            scale: scale.clamp(1, u128::from(ONE) << 15) as u64,
            base: of.base,
            average: 0,
            averaged: 0,
            growth: 0,
            received: 0,
            achieved: 0,
            clear: 0,
            fast: false,
            adjusted: 0,
            decreased: 0,
            due: 0,
            asked: false,
            to_ignore: 0,
            ignored: 0,
            under_way: 0,
            bytes: u16::MAX,
        }
    }

    /// The largest window, 1.5 times what the shortest round trip holds.
    fn most(&self) -> u64 {
        packets_in(self.base + self.base / 2, self.line, self.bytes)
    }

    fn set(&self, window: &mut Window, cwnd: u64) {
        let most = self.most().min(u64::from(window.bounds.most) * u64::from(ONE));
        window.cwnd = cwnd.min(most).max(ONE.into()) as u32;
    }

    /// Moves the average towards a delay, by the time since the last one in base round trips.
    fn see(&mut self, now: Ps, delay: Ps) {
        let weight = i128::from((now - self.averaged).min(self.base));
        let move_by = (i128::from(delay) - i128::from(self.average)) * weight;
        self.average = (i128::from(self.average) + move_by / i128::from(self.base)) as Ps;
        self.averaged = now;
    }

    /// `proportional_increase`, or `fast_increase` once a window without a queue has passed.
    fn grow(&mut self, cwnd: &mut u64, packets: u64, delay: Ps) {
        self.clear = if delay < CLEAR { self.clear + packets } else { 0 };
        self.fast = delay < CLEAR && (self.fast || self.clear > *cwnd);
        if self.fast {
            *cwnd += packets * self.scale / FAST / u64::from(ONE);
        } else {
            let left = u128::from(self.of.target - delay) * u128::from(ALPHA * self.scale);
            self.growth += left * u128::from(packets) / u128::from(REFERENCE);
        }
    }

    /// `multiplicative_decrease`: at most once a base round trip, which the average needs.
    fn decrease(&mut self, cwnd: &mut u64, now: Ps) {
        (self.fast, self.clear) = (false, 0);
        let excess = self.average.saturating_sub(self.of.target);
        if excess > 0 && now - self.decreased > self.base {
            let cut =
                u128::from(*cwnd) * GAMMA * u128::from(excess) / (1_000 * u128::from(self.average));
            *cwnd -= (cut as u64).min(*cwnd / 2);
            self.decreased = now;
        }
    }

    /// `fulfill_adjustment`: adds up the growth, and eta once a base round trip.
    fn add_up(&mut self, cwnd: &mut u64, now: Ps) {
        let due = now - self.adjusted >= self.of.base;
        if !due && self.received <= ADJUST {
            return;
        }
        *cwnd += (self.growth / u128::from((*cwnd).max(1))).min(u128::from(ONE) << 15) as u64;
        if due {
            self.adjusted = now;
            *cwnd += ETA * self.scale / 100;
        }
        (self.growth, self.received) = (0, 0);
    }

    /// `QuickAdapt`, once in a round trip of base and target: if little has come, after a loss or
    /// with a long delay, the window is what has come. Marks of what was under way then say nothing
    /// new. Returns whether the ACK has had its effect.
    fn adapt(&mut self, cwnd: &mut u64, now: Ps, marked: bool, delay: Ps) -> bool {
        let mut done = self.ignored < self.to_ignore && marked;
        if !done && now >= self.due {
            let urgent = self.asked || delay > LATE * self.of.target;
            if self.due > 0 && urgent && self.achieved < self.most() >> GATE {
                *cwnd = self.achieved;
                (self.to_ignore, self.ignored, self.asked) = (self.under_way, 0, false);
                done = true;
            }
            self.achieved = 0;
            self.due = now + self.base + self.of.target;
        }
        if done {
            (self.growth, self.received) = (0, 0);
        }
        done
    }

    /// A packet is lost.
    fn lose(&mut self, window: &mut Window, now: Ps) {
        self.see(now, self.of.base);
        self.ignored += u64::from(ONE);
        self.asked = true;
        let mut cwnd = u64::from(window.cwnd);
        if !self.adapt(&mut cwnd, now, true, 0) {
            cwnd = cwnd.saturating_sub(ONE.into());
        }
        self.set(window, cwnd);
    }
}

#[cfg(test)]
mod tests {
    use super::super::traits::Windows;
    use super::*;

    const LINE: u64 = 100_000_000_000;
    const OF: Nscc = Nscc { base: 12 * US, target: 9 * US };

    /// On the reference network, of packets of 1,500 bytes: 100 are a round trip.
    fn begun() -> (NsccState, Window) {
        let windows = Windows { initial: 50, most: 1_000, least: 1 };
        (NsccState::new(OF, LINE), Window::new(windows))
    }

    fn ack(now: Ps, delay: Ps, marked: bool) -> AckInfo {
        AckInfo {
            now,
            packets: 1,
            number: Some(0),
            round_trip: 12 * US + delay,
            marked,
            under_way: 49,
            bytes: 1_500,
            grows: true,
            round: false,
        }
    }

    fn packets(window: &Window) -> f64 {
        f64::from(window.cwnd) / f64::from(ONE)
    }

    /// Fifty ACKs of a window, evenly over a round trip that eta has just preceded.
    fn after_a_window(delay: Ps, marked: bool) -> f64 {
        let (mut state, mut window) = begun();
        state.adjusted = S;
        state.decreased = S;
        for number in 0..50 {
            state.on_every_ack(&mut window, &ack(S + number * 10_000, delay, marked));
        }
        packets(&window)
    }

    /// The standard's formulas for a window of 50 packets, of which 45 in five groups of nine have
    /// been added up: 5 packets a round trip times the share that was added up; 4 times what is
    /// left of 9 us, of 12 us. A mark without a delay leaves the window alone.
    #[test]
    fn the_window_grows_by_the_quadrant() {
        let near = |got: f64, more: f64| {
            assert!((got - 50.0 - more).abs() < 0.06 * more.max(0.01), "{got}, {more}");
        };
        near(after_a_window(10 * US, false), 5.0 * 45.0 / 50.0);
        near(after_a_window(6 * US, false), 4.0 * 3.0 / 12.0 * 45.0 / 50.0);
        near(after_a_window(3 * US, false), 4.0 * 6.0 / 12.0 * 45.0 / 50.0);
        near(after_a_window(3 * US, true), 0.0);
    }

    /// After a window without a queue, a quarter of each packet; at most 1.5 round trips.
    #[test]
    fn the_window_grows_fast_without_a_queue() {
        let (mut state, mut window) = begun();
        (state.fast, state.adjusted) = (true, S);
        for number in 0..8 {
            state.on_every_ack(&mut window, &ack(S + number, 0, false));
        }
        assert!((packets(&window) - 52.0).abs() < 1e-3, "{}", packets(&window));
        for number in 8..1_000 {
            state.on_every_ack(&mut window, &ack(S + number, 0, false));
        }
        assert!((packets(&window) - 150.0).abs() < 1e-3, "{}", packets(&window));
    }

    /// An average of 18 us for a target of 9: 0.8 of a half less, once a base round trip; and by
    /// half at most.
    #[test]
    fn the_window_shrinks_by_the_excess() {
        let (mut state, mut window) = begun();
        (state.average, state.averaged, state.adjusted) = (18 * US, S, S);
        state.on_every_ack(&mut window, &ack(S, 18 * US, true));
        assert!((packets(&window) - 30.0).abs() < 1e-3);
        state.on_every_ack(&mut window, &ack(S + 11 * US, 18 * US, true));
        assert!((packets(&window) - 30.0).abs() < 1e-3, "once a base round trip");
        state.average = 900 * US;
        state.on_every_ack(&mut window, &ack(S + 13 * US, 900 * US, true));
        let eta = 0.15;
        assert!((packets(&window) - 15.0 - eta).abs() < 0.01, "{}", packets(&window));
    }

    /// A loss in a round trip in which 5 packets have come leaves a window of 5; its marks then
    /// change nothing. One in which an eighth of 150 have come takes a packet.
    #[test]
    fn losses_adapt_the_window() {
        let (mut state, mut window) = begun();
        state.on_every_ack(&mut window, &ack(S, 10 * US, true));
        let end = S + 22 * US;
        for number in 0..5 {
            state.on_every_ack(&mut window, &ack(S + number, 10 * US, true));
        }
        state.on_lost(&mut window, end, 7);
        assert_eq!(window.cwnd, 5 * ONE);
        state.on_every_ack(&mut window, &ack(end + US, 100 * US, true));
        assert_eq!(window.cwnd, 5 * ONE);
        let (mut state, mut window) = begun();
        state.on_every_ack(&mut window, &ack(S, 0, true));
        for number in 0..20 {
            state.on_every_ack(&mut window, &ack(S + number, 0, true));
        }
        let before = window.cwnd;
        state.on_lost(&mut window, end, 7);
        assert_eq!(window.cwnd, before - ONE);
    }
}
