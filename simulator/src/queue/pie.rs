// SPDX-License-Identifier: GPL-2.0-or-later
//! PIE (RFC 8033): a probability to drop what comes, or mark it, so that the delay stays at a target. A link's queue in the order of
//! arrival knows its delay at any time; so updates are made up for when the next packet comes, each with the delay of its own time.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::{Ps, MS};
use crate::core::units::{Duration, Fraction, In};
use crate::packet::Packet;
use crate::queue::aqm::{Protection, MILLION};
use crate::queue::integral::Integral;
use crate::queue::limit::Limit;

/// Proportional integral controller enhanced (RFC 8033, section 4); of what is optional (section 5) with marks, the accumulated
/// probability and the cap of its changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pie {
    /// Of the queue behind it.
    pub limit: Limit,
    /// `QDELAY_REF`, `T_UPDATE` and the gains.
    pub control: Integral,
    /// `MAX_BURST`: nothing is dropped for so long after a time of short delays.
    #[serde(with = "In::<Duration>")]
    pub burst: Ps,
    /// `mark_ecnth` in millionths: ECN-capable packets are marked up to this probability, and dropped above it.
    #[serde(with = "In::<Fraction>")]
    pub mark_p: u32,
    /// Who is not dropped early.
    pub protection: Protection,
}

impl Pie {
    /// The RFC's constants, which are the Internet's: 15 ms of delay, updated every 15 ms, bursts of 150 ms, marks up to 0.1.
    pub fn rfc8033(limit: Limit) -> Self {
        let control = Integral { target: 15 * MS, update: 15 * MS, alpha: 125, beta: 1_250 };
        Pie { limit, control, burst: 150 * MS, mark_p: MILLION / 10, protection: Protection::Default }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.mark_p > MILLION {
            return Err(Error::new(format!("mark_p: {} millionths are more than 1", self.mark_p)));
        }
        self.control.check()
    }
}

/// Bytes of a mean packet, two of which may always wait (`MEAN_PKTSIZE`).
const MEAN_PACKET: u64 = 1_024;
/// Below the first sum of probabilities since the last drop nothing is dropped, from the second on the next is.
const ACCUMULATED: (f64, f64) = (0.85, 8.5);
/// Where the probability is smaller than the first, its changes are divided by the second (section 4.2).
const STEPS: [(f64, f64); 6] = [(1e-6, 2_048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
/// From a probability of the first on no update adds more than the second.
const CAP: (f64, f64) = (0.1, 0.02);
/// What is left of it after an update without delay.
const DECAY: f64 = 0.98;

/// What is to be done about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Pass,
    Mark,
    Drop,
}

#[derive(Debug)]
pub(crate) struct Enhanced {
    pie: Pie,
    p: f64,
    accumulated: f64,
    /// At the last update.
    delay: Ps,
    burst: Ps,
    next: Ps,
    pub(super) rng: Rng,
}

impl Enhanced {
    pub fn new(pie: &Pie, rng: Rng) -> Self {
        Enhanced { pie: *pie, p: 0.0, accumulated: 0.0, delay: 0, burst: 0, next: pie.control.update, rng }
    }

    /// Begins anew; the next update is that of its clock.
    pub fn reset(&mut self, now: Ps) {
        let missed = now.checked_sub(self.next).map_or(0, |late| late / self.pie.control.update + 1);
        self.next += missed * self.pie.control.update;
        (self.p, self.accumulated, self.delay, self.burst) = (0.0, 0.0, 0, 0);
    }

    /// A packet comes. `free`: when what was taken before will have been sent; `bytes` of it are still to go.
    pub fn decide(&mut self, now: Ps, free: Ps, bytes: u64, packet: &Packet) -> Decision {
        self.follow(now, free);
        let half = self.pie.control.target / 2;
        if self.p <= 0.0 && free.saturating_sub(now) < half && self.delay < half {
            self.burst = self.pie.burst;
        }
        if self.burst > 0 || !self.acts(bytes, half) {
            Decision::Pass
        } else if packet.ect && self.p * 1e6 <= f64::from(self.pie.mark_p) {
            Decision::Mark
        } else if self.pie.protection.spares(packet) {
            Decision::Pass
        } else {
            Decision::Drop
        }
    }

    fn acts(&mut self, bytes: u64, half: Ps) -> bool {
        if self.delay < half && self.p < 0.2 || bytes <= 2 * MEAN_PACKET {
            return false;
        }
        if self.p <= 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.p;
        let random = self.rng.unit();
        let acts = self.accumulated >= ACCUMULATED.1 || self.accumulated >= ACCUMULATED.0 && random < self.p;
        if acts {
            self.accumulated = 0.0;
        }
        acts
    }

    /// All updates until `now`.
    fn follow(&mut self, now: Ps, free: Ps) {
        let update = self.pie.control.update;
        while self.next <= now {
            let delay = free.saturating_sub(self.next);
            if self.p <= 0.0 && self.delay == 0 && delay == 0 && self.burst == 0 {
                // Nothing changes any more.
                self.next += (now - self.next) / update * update + update;
                return;
            }
            self.calculate(delay);
            self.next += update;
        }
    }

    /// Section 4.2, with the probability's decay and what is left of a burst (4.4).
    fn calculate(&mut self, delay: Ps) {
        let divisor = STEPS.iter().find(|step| self.p < step.0).map_or(1.0, |step| step.1);
        let mut change = self.pie.control.change(delay, self.delay) / divisor;
        if self.p >= CAP.0 {
            change = change.min(CAP.1);
        }
        self.p += change;
        if delay == 0 && self.delay == 0 {
            self.p *= DECAY;
        }
        self.p = self.p.clamp(0.0, 1.0);
        self.delay = delay;
        self.burst = self.burst.saturating_sub(self.pie.control.update);
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

    fn enhanced() -> Enhanced {
        Enhanced::new(&Pie::rfc8033(Limit::None), Rng::new(3, 0))
    }

    fn close(got: f64, expected: f64) {
        assert!((got - expected).abs() <= 1e-12 + 1e-9 * expected, "{got} {expected}");
    }

    /// Section 4.2 by hand: alpha 0.125, beta 1.25, a target of 15 ms.
    #[test]
    fn updates_are_those_of_the_formula() {
        let after = |p: f64, before: Ps, delay: Ps| {
            let mut pie = Enhanced { p, delay: before * MS, ..enhanced() };
            pie.calculate(delay * MS);
            pie.p
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

    /// With p constant a drop comes after at least 0.85/p and at most 8.5/p packets, and its share is that of the distribution
    /// between: each of these is the last with p.
    #[test]
    fn drops_are_spaced() {
        for p in [0.01f64, 0.05, 0.2] {
            let mut pie = Enhanced { p, delay: 20 * MS, next: Ps::MAX, ..enhanced() };
            let (mut since, mut gaps) = (0u32, Vec::new());
            for _ in 0..2_000_000 {
                since += 1;
                if pie.decide(0, 20 * MS, 1 << 20, &packet(false)) == Decision::Drop {
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

    /// Section 4.4: after short delays nothing is dropped for 150 ms; two packets may always wait; marks up to 0.1.
    #[test]
    fn bursts_short_queues_and_what_is_ecn_capable_are_spared() {
        let mut pie = enhanced();
        assert_eq!(pie.decide(0, 0, 0, &packet(false)), Decision::Pass);
        // Delays of a second from here on: p is 1 soon, but for ten updates nothing is dropped.
        let first =
            (1..1_000).find(|n| pie.decide(n * MS, n * MS + 1_000 * MS, 1 << 20, &packet(false)) == Decision::Drop).unwrap();
        assert!((150..=165).contains(&first), "{first} ms");
        let with = |p: f64, bytes, ect| {
            let mut pie = Enhanced { p, accumulated: 9.0, delay: 20 * MS, next: Ps::MAX, ..enhanced() };
            pie.decide(0, 20 * MS, bytes, &packet(ect))
        };
        assert_eq!([2_048, 2_049].map(|bytes| with(0.05, bytes, false)), [Decision::Pass, Decision::Drop]);
        assert_eq!([0.05, 0.1, 0.11].map(|p| with(p, 9_000, true)), [Decision::Mark, Decision::Mark, Decision::Drop]);
        let short = |p: f64| {
            let mut pie = Enhanced { p, accumulated: 9.0, delay: 7 * MS, next: Ps::MAX, ..enhanced() };
            pie.decide(0, 20 * MS, 9_000, &packet(false))
        };
        assert_eq!([0.19, 0.2].map(short), [Decision::Pass, Decision::Drop]);
    }

    /// Updates made up for are those made in time, and what lasts long ends.
    #[test]
    fn idle_times_are_made_up_for() {
        let begin = || Enhanced { p: 0.3, delay: 20 * MS, ..enhanced() };
        let (mut late, mut in_time) = (begin(), begin());
        for n in 1..=200 {
            in_time.follow(n * MS, 40 * MS);
        }
        late.follow(200 * MS, 40 * MS);
        close(late.p, in_time.p);
        assert_eq!((late.delay, late.next), (in_time.delay, in_time.next));
        late.follow(1 << 61, 40 * MS);
        assert!(late.p <= 0.0 && late.next > 1 << 61 && late.next - (1 << 61) <= 15 * MS && late.next % (15_000 * US) == 0);
    }
}
