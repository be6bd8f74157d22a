// SPDX-License-Identifier: GPL-2.0-or-later
//! BBR, version 1 (Cardwell et al., CACM 60(2), 2017;
//! draft-cardwell-iccrg-bbr-congestion-control-00).
//!
//! The greatest delivery rate and the least round trip estimate what the path holds. Packets are
//! paced at that rate, with at most about twice as much under way. Losses are ignored, and there is
//! no long-term rate for policers. Rates are in bit/s; gains have eight fractional bits, as in
//! Linux.

use super::delivery_rate::{DeliveryRate, Sample};
use super::traits::{AckInfo, CongestionLaw, LawState, SentInfo, Window, Windows, ONE};
use crate::core::rng::mix;
use crate::core::time::{Ps, MS, S};

/// 2 / ln 2 and its inverse: the rate doubles each round trip, and the queue from it drains in one.
const HIGH: u64 = 739;
const DRAIN: u64 = 88;
const UNIT: u64 = 256;
/// Gains of a cycle's phases, each a round trip long.
const CYCLE: [u64; 8] = [320, 192, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Round trips for which a rate is remembered.
const ROUNDS: usize = 10;
/// The pipe is full after this many round trips without a growth of a quarter.
const FULL: u32 = 3;
/// A least round trip is remembered for this long; then it is probed with few packets.
const MEMORY: Ps = 10 * S;
const LOOK: Ps = 200 * MS;
const FEW: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    Cycle,
    /// PROBE_RTT, with few packets: at least until `until`, which is set once few are under way,
    /// and for a round trip.
    Look {
        until: Option<Ps>,
        round: bool,
    },
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Bbr;

impl CongestionLaw for Bbr {
    type State = Box<BbrState>;
    const NAME: &str = "bbr";
    const SEES_EVERY_ACK: bool = true;

    fn start(self, _window: &mut Window, _line: u64) -> Box<BbrState> {
        Box::new(BbrState::new())
    }
}

#[derive(Debug, Clone)]
pub(crate) struct BbrState {
    mode: Mode,
    delivery: DeliveryRate,
    /// The greatest rate of each of the last rounds; the number of this round.
    rates: [u64; ROUNDS],
    round: u64,
    /// The last round with a rate.
    noted: u64,
    round_end: u64,
    least_trip: Ps,
    least_at: Ps,
    full_rate: u64,
    full_rounds: u32,
    phase: usize,
    phase_at: Ps,
    /// A timeout left a window of one packet; the next ACK restores it.
    saved: bool,
    /// The window before PROBE_RTT, restored after it; 0: none.
    before: u32,
    /// Nothing was sent for a while, so that the age of the least round trip means nothing.
    idle: bool,
}

impl LawState for BbrState {
    fn on_send(&mut self, _window: &mut Window, sent: &SentInfo) {
        self.delivery.on_send(sent);
    }

    fn on_every_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        // A round trip below the unit of time stamps may appear as 0.
        let ack = &AckInfo { round_trip: ack.round_trip.max(1), ..*ack };
        let begins = self.delivery.on_ack(ack).is_some_and(|sample| self.sample(&sample, ack));
        self.check_full(begins);
        self.check_least(window.cwnd, ack);
        self.step(begins, ack);
        window.cwnd = self.window(window.cwnd, window.bounds, ack);
        window.pace = self.pace(window.bounds, ack.bytes);
    }

    fn on_loss(&mut self, window: &mut Window, _now: Ps) {
        window.reduce_to(window.cwnd);
    }

    fn on_timeout(&mut self, window: &mut Window, _now: Ps) {
        self.saved = true;
        window.ssthresh = window.half();
        window.cwnd = ONE;
    }

    /// Sets the pace of the first window.
    fn on_connected(&mut self, window: &mut Window, now: Ps, round_trip: Ps, bytes: u16) {
        (self.least_trip, self.least_at) = (round_trip.max(1), now);
        window.pace = self.pace(window.bounds, bytes);
    }

    /// Restores the window from before PROBE_RTT if that ends now.
    fn on_idle(&mut self, window: &mut Window, now: Ps, _idle: Ps, _long: bool) {
        self.idle = true;
        self.delivery.restart();
        if matches!(self.mode, Mode::Look { until: Some(until), .. } if now >= until) {
            self.end_look(now);
            window.cwnd = window.cwnd.max(std::mem::take(&mut self.before) * ONE);
        }
    }
}

impl BbrState {
    fn new() -> Self {
        BbrState {
            mode: Mode::Startup,
            delivery: DeliveryRate::default(),
            rates: [0; ROUNDS],
            round: 0,
            noted: 0,
            round_end: 0,
            least_trip: Ps::MAX,
            least_at: 0,
            full_rate: 0,
            full_rounds: 0,
            phase: 0,
            phase_at: 0,
            saved: false,
            before: 0,
            idle: false,
        }
    }

    /// Remembers the rate; returns whether a round begins.
    fn sample(&mut self, sample: &Sample, ack: &AckInfo) -> bool {
        let begins = sample.before >= self.round_end;
        if begins {
            self.round_end = self.delivery.delivered;
            self.round += 1;
        }
        // Much shorter than the least round trip: an ACK of the first copy of a retransmitted
        // packet.
        if sample.age >= self.least_trip.min(ack.round_trip) / 2
            && (!sample.limited || sample.rate >= self.rate())
        {
            // Rounds without a rate do not age out older rates: nothing was sent, or less than
            // possible.
            for round in self.noted + 1..=self.round.min(self.noted + ROUNDS as u64) {
                self.rates[round as usize % ROUNDS] = 0;
            }
            self.noted = self.round;
            let best = &mut self.rates[self.round as usize % ROUNDS];
            *best = sample.rate.max(*best);
        }
        begins
    }

    /// `BtlBw`.
    fn rate(&self) -> u64 {
        self.rates.iter().copied().max().unwrap_or(0)
    }

    /// Packets that the path holds without a queue, times `gain`.
    fn holds(&self, gain: u64, bytes: u16) -> u32 {
        if self.least_trip == Ps::MAX {
            return u32::MAX;
        }
        let bits = u128::from(self.rate()) * u128::from(self.least_trip) * u128::from(gain);
        bits.div_ceil(u128::from(UNIT) * u128::from(S) * 8 * u128::from(bytes)).min(1 << 20) as u32
    }

    fn check_full(&mut self, begins: bool) {
        if self.mode != Mode::Startup || !begins || self.delivery.is_limited() {
            return;
        }
        let rate = self.rate();
        if rate >= self.full_rate + self.full_rate / 4 {
            (self.full_rate, self.full_rounds) = (rate, 0);
            return;
        }
        self.full_rounds += 1;
        if self.full_rounds >= FULL {
            self.mode = Mode::Drain;
        }
    }

    fn check_least(&mut self, window: u32, ack: &AckInfo) {
        let stale = ack.now - self.least_at > MEMORY && self.least_trip != Ps::MAX;
        if ack.round_trip <= self.least_trip || stale {
            (self.least_trip, self.least_at) = (ack.round_trip, ack.now);
        }
        if stale && !self.idle && !matches!(self.mode, Mode::Look { .. }) {
            self.mode = Mode::Look { until: None, round: false };
            self.before = window / ONE;
        }
        self.idle &= ack.packets == 0;
        if matches!(self.mode, Mode::Look { .. }) {
            // Few packets a round trip say nothing about the rate.
            self.delivery.limit(ack.under_way);
        }
    }

    fn end_look(&mut self, now: Ps) {
        self.least_at = now;
        if self.full_rounds < FULL {
            self.mode = Mode::Startup;
        } else {
            self.cycle(now);
        }
    }

    /// Starts in any phase except the draining one, chosen by the time, so that flows differ.
    fn cycle(&mut self, now: Ps) {
        self.mode = Mode::Cycle;
        self.phase = (mix(now) % 7 + 2) as usize % CYCLE.len();
        self.phase_at = now;
    }

    /// Moves on to the next mode or phase.
    fn step(&mut self, begins: bool, ack: &AckInfo) {
        match self.mode {
            Mode::Drain if ack.under_way <= self.holds(UNIT, ack.bytes) => self.cycle(ack.now),
            Mode::Cycle => {
                let passed = ack.now - self.phase_at > self.least_trip;
                let next = match CYCLE[self.phase] {
                    UNIT => passed,
                    gain if gain > UNIT => passed && ack.under_way >= self.holds(gain, ack.bytes),
                    _ => passed || ack.under_way <= self.holds(UNIT, ack.bytes),
                };
                if next {
                    (self.phase, self.phase_at) = ((self.phase + 1) % CYCLE.len(), ack.now);
                }
            }
            Mode::Look { until: None, .. } if ack.under_way <= FEW => {
                self.mode = Mode::Look { until: Some(ack.now + LOOK), round: false };
                self.round_end = self.delivery.delivered;
            }
            Mode::Look { until: Some(until), round } if round || begins => {
                self.mode = Mode::Look { until: Some(until), round: true };
                if ack.now >= until {
                    self.end_look(ack.now);
                }
            }
            Mode::Startup | Mode::Drain | Mode::Look { .. } => {}
        }
    }

    fn window(&mut self, window: u32, windows: Windows, ack: &AckInfo) -> u32 {
        let gain = if matches!(self.mode, Mode::Startup | Mode::Drain) { HIGH } else { 2 * UNIT };
        let target = self.holds(gain, ack.bytes).saturating_add(3);
        let looks = matches!(self.mode, Mode::Look { .. });
        let before = if looks { 0 } else { std::mem::take(&mut self.before) };
        let had = if std::mem::take(&mut self.saved) {
            target.min(windows.most)
        } else {
            (window / ONE).max(before)
        };
        let more = had.saturating_add(ack.packets);
        let next = if self.full_rounds >= FULL {
            more.min(target)
        } else if had < target || self.delivery.delivered < u64::from(windows.initial) {
            more
        } else {
            had
        };
        let next = if looks { next.min(FEW) } else { next };
        next.max(FEW).min(windows.most) * ONE
    }

    fn pace(&self, windows: Windows, bytes: u16) -> u64 {
        let gain = match self.mode {
            Mode::Startup => HIGH,
            Mode::Drain => DRAIN,
            Mode::Cycle => CYCLE[self.phase],
            Mode::Look { .. } => UNIT,
        };
        // Until the pipe is full, not slower than the initial window a round trip.
        let first = u128::from(windows.initial) * 8 * u128::from(bytes) * u128::from(S)
            / u128::from(self.least_trip);
        let first = if self.full_rounds < FULL { first } else { 1 };
        let pace = u128::from(self.rate()).max(first) * u128::from(gain) / u128::from(UNIT);
        u64::try_from(pace).unwrap_or(u64::MAX)
    }
}
