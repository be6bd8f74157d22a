// SPDX-License-Identifier: GPL-2.0-or-later
//! Aequitas (Zhang et al., SIGCOMM 2022): a sender admits a flow to its level with a probability
//! kept for each receiver and level.
//!
//! A flow that is not admitted runs on the lowest level. The probability rises slowly while flows
//! meet their level's target time, and falls at once, by the flow's size, when one does not
//! (Algorithm 1).

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::core::rng::Rng;
use crate::core::time::{Ps, S};
use crate::core::units::{Duration, In};

/// Settings of Aequitas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aequitas {
    /// By level: target time for each packet of a flow; none: everything is admitted.
    #[serde(with = "In::<Duration>")]
    pub targets: [Option<Ps>; 8],
    /// Share of flows that should meet the target, in thousandths.
    pub share: u32,
    /// Alpha, in millionths: the probability rises by it at most once in target / (1 − share).
    pub increase: u32,
    /// Beta, in millionths: the probability falls by it for each packet of a flow that misses its
    /// target.
    pub decrease: u32,
    /// The least probability, in millionths: it must stay above 0 to notice that targets are met
    /// again.
    pub floor: u32,
}

impl Default for Aequitas {
    /// The paper's alpha and beta, 0.01; no targets.
    fn default() -> Self {
        Aequitas {
            targets: [None; 8],
            share: 999,
            increase: 10_000,
            decrease: 10_000,
            floor: 10_000,
        }
    }
}

/// A probability of 1.
const ONE: u32 = 1_000_000;
/// The level of flows that are not admitted.
const LOWEST: u8 = 7;

impl Aequitas {
    pub(crate) fn problem(&self) -> Option<String> {
        if self.targets[usize::from(LOWEST)].is_some() {
            Some(format!(
                "level {LOWEST} takes flows that are not admitted and cannot have a target"
            ))
        } else if self.targets.iter().flatten().any(|&target| target == 0 || target > S) {
            Some("a target must be between 0 and 1 s".to_owned())
        } else if self.share >= 1_000 {
            Some(format!("a share of {} thousandths must be below 1000", self.share))
        } else if self.increase > ONE || self.decrease > ONE || self.floor > ONE {
            Some("a share of more than 1".to_owned())
        } else {
            None
        }
    }
}

/// What a sender knows of a receiver and level.
#[derive(Debug, Clone, Copy)]
struct Channel {
    probability: u32,
    raised: Ps,
}

/// The state of all senders.
#[derive(Debug)]
pub(crate) struct AequitasState {
    of: Aequitas,
    channels: HashMap<(u32, u32, u8), Channel>,
    rng: Rng,
}

/// Its random stream; streams of hosts with jitter are below.
const STREAM: u64 = 1 << 50;

impl AequitasState {
    pub fn new(of: Aequitas, seed: u64) -> Self {
        AequitasState { of, channels: HashMap::new(), rng: Rng::new(seed, STREAM) }
    }

    /// The level that a flow gets when it requests this one.
    pub fn admit(&mut self, from: u32, to: u32, level: u8) -> u8 {
        if self.of.targets[usize::from(level)].is_none() {
            return level;
        }
        let probability =
            self.channels.get(&(from, to, level)).map_or(ONE, |channel| channel.probability);
        if self.rng.below(ONE.into()) < probability.into() {
            level
        } else {
            LOWEST
        }
    }

    /// Updates the probability after a flow of this many packets took this long.
    pub fn judge(&mut self, now: Ps, (from, to, level): (u32, u32, u8), took: Ps, packets: u32) {
        let Some(target) = self.of.targets[usize::from(level)] else { return };
        let channel = self
            .channels
            .entry((from, to, level))
            .or_insert(Channel { probability: ONE, raised: 0 });
        if took <= target.saturating_mul(packets.into()) {
            if now - channel.raised > target * 1_000 / u64::from(1_000 - self.of.share) {
                channel.probability = (channel.probability + self.of.increase).min(ONE);
                channel.raised = now;
            }
        } else {
            let less = self.of.decrease.saturating_mul(packets);
            channel.probability = channel.probability.saturating_sub(less).max(self.of.floor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::US;

    /// Algorithm 1 by hand.
    #[test]
    fn the_probability_follows_algorithm_1() {
        let targets = std::array::from_fn(|level| (level < 2).then_some(10 * US));
        let mut admission =
            AequitasState::new(Aequitas { targets, share: 900, ..Aequitas::default() }, 1);
        let mut after = |now, took, packets| {
            admission.judge(now, (1, 2, 0), took, packets);
            admission.channels[&(1, 2, 0)].probability
        };
        assert_eq!(after(0, 51 * US, 5), 950_000);
        assert_eq!(after(50 * US, 50 * US, 5), 950_000, "within 100 us of the last rise");
        assert_eq!(after(101 * US, 50 * US, 5), 960_000);
        assert_eq!(after(150 * US, 50 * US, 5), 960_000);
        assert_eq!(after(202 * US, 50 * US, 5), 970_000);
        assert_eq!(after(203 * US, 5_000 * US, 300), 10_000, "the floor");
        let admitted = (0..100_000).filter(|_| admission.admit(1, 2, 0) == 0).count();
        assert!(
            (900..1_100).contains(&admitted),
            "{admitted} of 100,000 with a probability of 1 %"
        );
        assert_eq!(
            [admission.admit(1, 2, 1), admission.admit(1, 3, 0), admission.admit(1, 2, 6)],
            [1, 0, 6]
        );
    }
}
