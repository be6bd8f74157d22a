// SPDX-License-Identifier: GPL-2.0-or-later
//! BBR, the first version (Cardwell et al., CACM 60(2), 2017; draft-cardwell-iccrg-bbr-congestion-control-00): the greatest rate of
//! delivery and the least round trip say what a path holds; packets are paced at that rate, with about twice as much under way at most.
//!
//! Losses say nothing here, and there is no policer's long-term rate. Rates are in bit/s; gains have eight fractional bits, as in Linux.

use super::{Seen, Windows, ONE};
use crate::core::rng::mix;
use crate::core::time::{Ps, MS, S};

/// 2 / ln 2, and its inverse: the rate doubles each round trip, and what that has queued leaves in one.
const HIGH: u64 = 739;
const DRAIN: u64 = 88;
const UNIT: u64 = 256;
/// Gains of the phases of a cycle, each of a round trip.
const CYCLE: [u64; 8] = [320, 192, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Round trips that a rate is remembered.
const ROUNDS: usize = 10;
/// Without a growth of a quarter in so many round trips the pipe is full.
const FULL: u32 = 3;
/// A least round trip is remembered for so long, and then looked for with few packets.
const MEMORY: Ps = 10 * S;
const LOOK: Ps = 200 * MS;
const FEW: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    Cycle,
    /// With few packets: at least until then, which is known once there are as few, and for a round trip.
    Look {
        until: Option<Ps>,
        round: bool,
    },
}

/// What is noted of a packet when it leaves.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    at: Ps,
    first_at: Ps,
    delivered: u64,
    delivered_at: Ps,
    limited: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Bbr {
    mode: Mode,
    /// By number, as many as a window holds.
    sent: Box<[Sent]>,
    /// Packets delivered, when the last was, and when the first of the last sample had left.
    delivered: u64,
    delivered_at: Ps,
    first_at: Ps,
    /// Nothing was left to send when so many had been; 0: there was.
    limited: u64,
    /// The greatest rate of each of the last rounds, and the number of this one.
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
    /// A timeout left a window of one packet, which the next ACK gives back.
    saved: bool,
    /// The window before looking for the least round trip, which is given back after it; 0: there is none.
    before: u32,
    /// Nothing was sent for a while: what has come since says nothing of the least round trip's age.
    idle: bool,
}

impl Bbr {
    /// `most`: packets of the largest window.
    pub fn new(most: u32) -> Self {
        Bbr {
            mode: Mode::Startup,
            sent: vec![Sent::default(); (most as usize + 1).next_power_of_two()].into(),
            delivered: 0,
            delivered_at: 0,
            first_at: 0,
            limited: 0,
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

    fn slot(&mut self, number: u32) -> &mut Sent {
        let mask = self.sent.len() - 1;
        &mut self.sent[number as usize & mask]
    }

    /// A packet leaves; `under_way` with it.
    pub fn on_send(&mut self, now: Ps, number: u32, under_way: u32, last: bool) {
        if under_way <= 1 {
            (self.first_at, self.delivered_at) = (now, now);
        }
        let Bbr { first_at, delivered, delivered_at, limited, .. } = *self;
        *self.slot(number) = Sent { at: now, first_at, delivered, delivered_at, limited: limited > 0 };
        if last {
            self.limited = delivered + u64::from(under_way);
        }
    }

    pub fn on_timeout(&mut self) {
        self.saved = true;
    }

    /// The connection is set up; returns the pace of its first window.
    pub fn on_connected(&mut self, now: Ps, round_trip: Ps, windows: Windows, bytes: u16) -> u64 {
        (self.least_trip, self.least_at) = (round_trip.max(1), now);
        self.pace(windows, bytes)
    }

    /// A flow begins after a time without one. Returns the window that there was before few packets were sent, if that ends now.
    pub fn on_idle(&mut self, now: Ps) -> u32 {
        self.idle = true;
        match self.mode {
            Mode::Look { until: Some(until), .. } if now >= until => {
                self.end_look(now);
                std::mem::take(&mut self.before)
            }
            _ => 0,
        }
    }

    /// The window and the pace after an ACK.
    pub fn on_ack(&mut self, window: u32, windows: Windows, seen: &Seen) -> (u32, u64) {
        // What is shorter than the unit of time stamps may seem to take none.
        let seen = &Seen { round_trip: seen.round_trip.max(1), ..*seen };
        self.delivered += u64::from(seen.packets);
        self.delivered_at = seen.now;
        if self.delivered > self.limited {
            self.limited = 0;
        }
        let begins = seen.number.is_some_and(|number| seen.packets > 0 && self.sample(number, seen));
        self.check_full(begins);
        self.check_least(window, seen);
        self.step(begins, seen);
        (self.window(window, windows, seen), self.pace(windows, seen.bytes))
    }

    /// The rate of delivery since a packet left (draft-cheng-iccrg-delivery-rate-estimation-00); returns whether a round begins.
    fn sample(&mut self, number: u32, seen: &Seen) -> bool {
        let sent = *self.slot(number);
        let begins = sent.delivered >= self.round_end;
        if begins {
            self.round_end = self.delivered;
            self.round += 1;
        }
        self.first_at = self.first_at.max(sent.at);
        let took = (seen.now - sent.delivered_at).max(sent.at - sent.first_at).max(1);
        let bits = u128::from(self.delivered - sent.delivered) * 8 * u128::from(seen.bytes);
        let rate = (bits * u128::from(S) / u128::from(took)) as u64;
        // Shorter than the least round trip is none: of a packet sent twice.
        if seen.now - sent.at >= self.least_trip.min(seen.round_trip) / 2 && (!sent.limited || rate >= self.rate()) {
            // Rounds without a rate make no older one forgotten: nobody sent, or not as fast as could be.
            for round in self.noted + 1..=self.round.min(self.noted + ROUNDS as u64) {
                self.rates[round as usize % ROUNDS] = 0;
            }
            self.noted = self.round;
            let best = &mut self.rates[self.round as usize % ROUNDS];
            *best = rate.max(*best);
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
        if self.mode != Mode::Startup || !begins || self.limited > 0 {
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

    fn check_least(&mut self, window: u32, seen: &Seen) {
        let stale = seen.now - self.least_at > MEMORY && self.least_trip != Ps::MAX;
        if seen.round_trip <= self.least_trip || stale {
            (self.least_trip, self.least_at) = (seen.round_trip, seen.now);
        }
        if stale && !self.idle && !matches!(self.mode, Mode::Look { .. }) {
            self.mode = Mode::Look { until: None, round: false };
            self.before = window / ONE;
        }
        self.idle &= seen.packets == 0;
        if matches!(self.mode, Mode::Look { .. }) {
            // Few packets in a round trip say nothing of the rate.
            self.limited = self.delivered + u64::from(seen.under_way);
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

    /// Any phase but the one that drains, by the time, which differs from flow to flow.
    fn cycle(&mut self, now: Ps) {
        self.mode = Mode::Cycle;
        self.phase = (mix(now) % 7 + 2) as usize % CYCLE.len();
        self.phase_at = now;
    }

    /// From one mode or phase to the next.
    fn step(&mut self, begins: bool, seen: &Seen) {
        match self.mode {
            Mode::Drain if seen.under_way <= self.holds(UNIT, seen.bytes) => self.cycle(seen.now),
            Mode::Cycle => {
                let passed = seen.now - self.phase_at > self.least_trip;
                let next = match CYCLE[self.phase] {
                    UNIT => passed,
                    gain if gain > UNIT => passed && seen.under_way >= self.holds(gain, seen.bytes),
                    _ => passed || seen.under_way <= self.holds(UNIT, seen.bytes),
                };
                if next {
                    (self.phase, self.phase_at) = ((self.phase + 1) % CYCLE.len(), seen.now);
                }
            }
            Mode::Look { until: None, .. } if seen.under_way <= FEW => {
                self.mode = Mode::Look { until: Some(seen.now + LOOK), round: false };
                self.round_end = self.delivered;
            }
            Mode::Look { until: Some(until), round } if round || begins => {
                self.mode = Mode::Look { until: Some(until), round: true };
                if seen.now >= until {
                    self.end_look(seen.now);
                }
            }
            Mode::Startup | Mode::Drain | Mode::Look { .. } => {}
        }
    }

    fn window(&mut self, window: u32, windows: Windows, seen: &Seen) -> u32 {
        let gain = if matches!(self.mode, Mode::Startup | Mode::Drain) { HIGH } else { 2 * UNIT };
        let target = self.holds(gain, seen.bytes).saturating_add(3);
        let looks = matches!(self.mode, Mode::Look { .. });
        let before = if looks { 0 } else { std::mem::take(&mut self.before) };
        let had = if std::mem::take(&mut self.saved) { target.min(windows.most) } else { (window / ONE).max(before) };
        let more = had.saturating_add(seen.packets);
        let next = if self.full_rounds >= FULL {
            more.min(target)
        } else if had < target || self.delivered < u64::from(windows.initial) {
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
        // Before a full pipe not slower than the first window in a round trip.
        let first = u128::from(windows.initial) * 8 * u128::from(bytes) * u128::from(S) / u128::from(self.least_trip);
        let first = if self.full_rounds < FULL { first } else { 1 };
        let pace = u128::from(self.rate()).max(first) * u128::from(gain) / u128::from(UNIT);
        u64::try_from(pace).unwrap_or(u64::MAX)
    }
}
