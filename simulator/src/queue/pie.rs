// SPDX-License-Identifier: GPL-2.0-or-later
//! PIE (RFC 8033): drops or marks arriving packets with a probability that keeps the queueing delay
//! at a target. Names are the RFC's.
//!
//! A FIFO link knows its delay at any time, so updates need no events: an arriving packet first
//! runs the updates that were due since the last one, each with the delay of its own time.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::{Ps, MS};
use crate::core::units::{Duration, Fraction, In};
use crate::packet::Packet;
use crate::queue::aqm::{Protection, MILLION};
use crate::queue::fifo::{waits_in_a_fifo, Fifo};
use crate::queue::limit::Limit;
use crate::queue::pi_controller::PiController;
use crate::queue::traits::{Action, AdmissionRule, Found, QueueKind};

/// Settings (RFC 8033, section 4). Of the optional parts (section 5) it has ECN marks,
/// derandomisation and the cap on changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pie {
    /// Limit of the queue behind it.
    pub limit: Limit,
    /// `QDELAY_REF`, `T_UPDATE` and the gains.
    pub control: PiController,
    /// `MAX_BURST`: after a time of short delays nothing is dropped for this long.
    #[serde(with = "In::<Duration>")]
    pub burst: Ps,
    /// `mark_ecnth` in millionths: ECN-capable packets are marked up to this probability, and
    /// dropped above it.
    #[serde(with = "In::<Fraction>")]
    pub mark_p: u32,
    /// Who is not dropped early.
    pub protection: Protection,
}

impl Pie {
    /// The RFC's constants, for the Internet: delay 15 ms, updates every 15 ms, bursts of 150 ms,
    /// marks up to 0.1.
    pub fn rfc8033(limit: Limit) -> Self {
        let control = PiController { target: 15 * MS, update: 15 * MS, alpha: 125, beta: 1_250 };
        Pie {
            limit,
            control,
            burst: 150 * MS,
            mark_p: MILLION / 10,
            protection: Protection::Default,
        }
    }
}

impl QueueKind for Pie {
    waits_in_a_fifo!();
    type Rule = Box<PieState>;
    const NAME: &str = "pie";
    const SEES_FULL: bool = true;
    const DEPARTS_IN_ORDER: bool = true;
    const LIMITED_AT_ADMISSION: bool = true;
    const PAUSE_CONFLICT: Option<&'static str> =
        Some("PIE knows the delay only of a link that is never paused");

    fn limit(&self) -> Limit {
        self.limit
    }

    fn check(&self) -> Result<()> {
        if self.mark_p > MILLION {
            return Err(Error::new(format!("mark_p: {} millionths exceed 1", self.mark_p)));
        }
        self.control.check()
    }

    fn rule(&self, ps_per_byte: u32, rng: Rng) -> Box<PieState> {
        Box::new(PieState::new(self, ps_per_byte, rng))
    }
}

/// `MEAN_PKTSIZE`, in bytes; two such packets may always wait.
const MEAN_PKTSIZE: u64 = 1_024;
/// Derandomisation: below the first sum of probabilities since the last drop nothing is dropped,
/// from the second on the next packet is.
const ACCUMULATED: (f64, f64) = (0.85, 8.5);
/// If the probability is below the first number, its changes are divided by the second (section
/// 4.2).
const STEPS: [(f64, f64); 6] =
    [(1e-6, 2_048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
/// From the first probability on, no update adds more than the second.
const CAP: (f64, f64) = (0.1, 0.02);
/// Factor of the probability after an update without delay.
const DECAY: f64 = 0.98;

#[derive(Debug)]
pub(crate) struct PieState {
    pie: Pie,
    drop_prob: f64,
    accu_prob: f64,
    qdelay_old: Ps,
    burst_allowance: Ps,
    next_update: Ps,
    ps_per_byte: u64,
    pub(super) rng: Rng,
}

impl PieState {
    fn new(pie: &Pie, ps_per_byte: u32, rng: Rng) -> Self {
        let next_update = pie.control.update;
        let ps_per_byte = ps_per_byte.into();
        PieState {
            pie: *pie,
            drop_prob: 0.0,
            accu_prob: 0.0,
            qdelay_old: 0,
            burst_allowance: 0,
            next_update,
            ps_per_byte,
            rng,
        }
    }

    /// Decides on an arriving packet. `free`: when all admitted packets will have been sent;
    /// `bytes` of them are still to go.
    fn decide(&mut self, now: Ps, free: Ps, bytes: u64, packet: &Packet) -> Action {
        self.update_until(now, free);
        let half = self.pie.control.target / 2;
        if self.drop_prob <= 0.0 && free.saturating_sub(now) < half && self.qdelay_old < half {
            self.burst_allowance = self.pie.burst;
        }
        if self.burst_allowance > 0 || !self.drop_early(bytes, half) {
            Action::Pass
        } else if packet.ect && self.drop_prob * 1e6 <= f64::from(self.pie.mark_p) {
            Action::Mark
        } else if self.pie.protection.spares(packet) {
            Action::Pass
        } else {
            Action::Drop
        }
    }

    fn drop_early(&mut self, bytes: u64, half: Ps) -> bool {
        if self.qdelay_old < half && self.drop_prob < 0.2 || bytes <= 2 * MEAN_PKTSIZE {
            return false;
        }
        if self.drop_prob <= 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        let random = self.rng.unit();
        let acts = self.accu_prob >= ACCUMULATED.1
            || self.accu_prob >= ACCUMULATED.0 && random < self.drop_prob;
        if acts {
            self.accu_prob = 0.0;
        }
        acts
    }

    /// Runs all updates due by `now`.
    fn update_until(&mut self, now: Ps, free: Ps) {
        let update = self.pie.control.update;
        while self.next_update <= now {
            let delay = free.saturating_sub(self.next_update);
            if self.drop_prob <= 0.0
                && self.qdelay_old == 0
                && delay == 0
                && self.burst_allowance == 0
            {
                // Nothing changes any more.
                self.next_update += (now - self.next_update) / update * update + update;
                return;
            }
            self.calculate_drop_prob(delay);
            self.next_update += update;
        }
    }

    /// `calculate_drop_prob` (section 4.2), with the decay and the burst allowance (section 4.4).
    fn calculate_drop_prob(&mut self, delay: Ps) {
        let divisor = STEPS.iter().find(|step| self.drop_prob < step.0).map_or(1.0, |step| step.1);
        let mut change = self.pie.control.change(delay, self.qdelay_old) / divisor;
        if self.drop_prob >= CAP.0 {
            change = change.min(CAP.1);
        }
        self.drop_prob += change;
        if delay == 0 && self.qdelay_old == 0 {
            self.drop_prob *= DECAY;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = delay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.pie.control.update);
    }
}

/// As in Linux, early detection comes first, and a packet that passes it may find the queue full.
impl AdmissionRule for PieState {
    fn judge(&mut self, now: Ps, found: &Found, packet: &Packet) -> Action {
        let free = found.idle.map_or(now + found.bytes * self.ps_per_byte, |idle| now - idle);
        self.decide(now, free, found.bytes, packet)
    }

    /// Resets; updates continue on the same clock.
    fn reset(&mut self, now: Ps) {
        let missed =
            now.checked_sub(self.next_update).map_or(0, |late| late / self.pie.control.update + 1);
        self.next_update += missed * self.pie.control.update;
        (self.drop_prob, self.accu_prob, self.qdelay_old, self.burst_allowance) = (0.0, 0.0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::US;
    use crate::packet::Kind;

    fn packet(ect: bool) -> Packet {
        Packet { kind: Kind::Data, ect, ..Packet::datagram(0, 0, 0, 1_500) }
    }

    fn enhanced() -> PieState {
        PieState::new(&Pie::rfc8033(Limit::None), 800, Rng::new(3, 0))
    }

    fn close(got: f64, expected: f64) {
        assert!((got - expected).abs() <= 1e-12 + 1e-9 * expected, "{got} {expected}");
    }

    /// Section 4.2 by hand: alpha 0.125, beta 1.25, a target of 15 ms.
    #[test]
    fn updates_are_those_of_the_formula() {
        let after = |p: f64, before: Ps, delay: Ps| {
            let mut pie = PieState { drop_prob: p, qdelay_old: before * MS, ..enhanced() };
            pie.calculate_drop_prob(delay * MS);
            pie.drop_prob
        };
        // 0.125 * 25 ms + 1.25 * 10 ms = 0.015625 at 40 ms after 30.
        close(after(0.0, 30, 40), 0.015_625 / 2_048.0);
        close(after(2e-6, 30, 40), 2e-6 + 0.015_625 / 512.0);
        close(after(2e-5, 30, 40), 2e-5 + 0.015_625 / 128.0);
        close(after(2e-4, 30, 40), 2e-4 + 0.015_625 / 32.0);
        close(after(2e-3, 30, 40), 2e-3 + 0.015_625 / 8.0);
        close(after(2e-2, 30, 40), 2e-2 + 0.015_625 / 2.0);
        close(after(0.5, 30, 40), 0.515_625);
        // 0.125 * 85 ms + 1.25 * 70 ms is more than 0.02 at once.
        close(after(0.5, 30, 100), 0.52);
        // Falling: 0.125 * (-5) ms + 1.25 * (-20) ms.
        close(after(0.5, 30, 10), 0.5 - 0.025_625);
        // Idle: 0.125 * (-15) ms, and 2 % of the rest.
        close(after(0.5, 0, 0), (0.5 - 0.001_875) * 0.98);
        close(after(1e-4, 0, 0), 0.0f64.max((1e-4 - 0.001_875 / 32.0) * 0.98));
        close(after(0.0, 0, 0), 0.0);
    }

    /// With p constant a drop comes after at least 0.85/p and at most 8.5/p packets, and its share
    /// is that of the distribution between: each of these is the last with p.
    #[test]
    fn drops_are_spaced() {
        for p in [0.01f64, 0.05, 0.2] {
            let mut pie =
                PieState { drop_prob: p, qdelay_old: 20 * MS, next_update: Ps::MAX, ..enhanced() };
            let (mut since, mut gaps) = (0u32, Vec::new());
            for _ in 0..2_000_000 {
                since += 1;
                if pie.decide(0, 20 * MS, 1 << 20, &packet(false)) == Action::Drop {
                    gaps.push(since);
                    since = 0;
                }
            }
            let (least, most) = ((0.85 / p - 1e-9).ceil(), (8.5 / p - 1e-9).ceil());
            assert!(gaps.iter().all(|&gap| (least..=most + 1.0).contains(&f64::from(gap))), "{p}");
            // The mean of least + a geometric number that ends at most.
            let expected = least - 1.0 + (1.0 - (1.0 - p).powf(most - least + 1.0)) / p;
            let mean = gaps.iter().map(|&gap| f64::from(gap)).sum::<f64>() / gaps.len() as f64;
            assert!((mean / expected - 1.0).abs() < 0.02, "{p}: {mean} {expected}");
        }
    }

    /// Section 4.4: after short delays nothing is dropped for 150 ms; two packets may always wait;
    /// marks up to 0.1.
    #[test]
    fn bursts_short_queues_and_what_is_ecn_capable_are_spared() {
        let mut pie = enhanced();
        assert_eq!(pie.decide(0, 0, 0, &packet(false)), Action::Pass);
        // Delays of a second from here on: p is 1 soon, but for ten updates nothing is dropped.
        let first = (1..1_000)
            .find(|n| {
                pie.decide(n * MS, n * MS + 1_000 * MS, 1 << 20, &packet(false)) == Action::Drop
            })
            .unwrap();
        assert!((150..=165).contains(&first), "{first} ms");
        let with = |p: f64, bytes, ect| {
            let mut pie = PieState {
                drop_prob: p,
                accu_prob: 9.0,
                qdelay_old: 20 * MS,
                next_update: Ps::MAX,
                ..enhanced()
            };
            pie.decide(0, 20 * MS, bytes, &packet(ect))
        };
        assert_eq!(
            [2_048, 2_049].map(|bytes| with(0.05, bytes, false)),
            [Action::Pass, Action::Drop]
        );
        assert_eq!(
            [0.05, 0.1, 0.11].map(|p| with(p, 9_000, true)),
            [Action::Mark, Action::Mark, Action::Drop]
        );
        let short = |p: f64| {
            let mut pie = PieState {
                drop_prob: p,
                accu_prob: 9.0,
                qdelay_old: 7 * MS,
                next_update: Ps::MAX,
                ..enhanced()
            };
            pie.decide(0, 20 * MS, 9_000, &packet(false))
        };
        assert_eq!([0.19, 0.2].map(short), [Action::Pass, Action::Drop]);
    }

    /// Updates made up for are those made in time, and what lasts long ends.
    #[test]
    fn idle_times_are_made_up_for() {
        let begin = || PieState { drop_prob: 0.3, qdelay_old: 20 * MS, ..enhanced() };
        let (mut late, mut in_time) = (begin(), begin());
        for n in 1..=200 {
            in_time.update_until(n * MS, 40 * MS);
        }
        late.update_until(200 * MS, 40 * MS);
        close(late.drop_prob, in_time.drop_prob);
        assert_eq!((late.qdelay_old, late.next_update), (in_time.qdelay_old, in_time.next_update));
        late.update_until(1 << 61, 40 * MS);
        assert!(
            late.drop_prob <= 0.0
                && late.next_update > 1 << 61
                && late.next_update - (1 << 61) <= 15 * MS
                && late.next_update % (15_000 * US) == 0
        );
    }
}
