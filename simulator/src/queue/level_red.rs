// SPDX-License-Identifier: GPL-2.0-or-later
//! Eight levels, each of which marks by its own queue length: what DCQCN needs of a switch (Zhu et
//! al., SIGCOMM 2015, section 3.1 and figure 5).

use serde::{Deserialize, Serialize};

use crate::core::error::Result;
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{Fraction, In, Size};
use crate::packet::Packet;
use crate::queue::aqm::MILLION;
use crate::queue::levels::LEVELS;
use crate::queue::limit::{Limit, Room};
use crate::queue::red::Profile;
use crate::queue::traits::{Action, AdmissionRule, Found, QueueKind};
use crate::queue::wfq::{LevelQueue, Wfq};

/// Settings: eight levels, served by strict priority or by weight; ACKs are in level 0. An
/// ECN-capable packet is marked with a probability that rises from 0 at `min` waiting bytes of its
/// level to `max_p` at `max`, and always above. Nothing is dropped early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelRed {
    /// Limit of each level in bytes, without the packet being sent; what does not fit is dropped.
    #[serde(with = "In::<Size>")]
    pub limit: u64,
    /// Waiting bytes at which marking starts, without the packet being sent.
    #[serde(with = "In::<Size>")]
    pub min: u64,
    /// Waiting bytes from which on every packet is marked.
    #[serde(with = "In::<Size>")]
    pub max: u64,
    /// In millionths.
    #[serde(with = "In::<Fraction>")]
    pub max_p: u32,
    /// Weights of the waiting levels, as in [`Wfq`]; none: strict priority.
    pub weights: Option<[u32; LEVELS]>,
}

impl QueueKind for LevelRed {
    type Discipline = Box<LevelQueue>;
    type Rule = Box<Marker>;
    const NAME: &str = "level-red";
    const NEEDS_PORT: bool = true;
    const HAS_LEVELS: bool = true;

    fn limit(&self) -> Limit {
        Limit::Bytes(self.limit)
    }

    fn check(&self) -> Result<()> {
        Profile { min: Limit::Bytes(self.min), max: Limit::Bytes(self.max), max_p: self.max_p }
            .check(1)?;
        let [limit, min] = [self.limit, self.min].map(Limit::Bytes);
        Room::new(min, 1).check_below(&Room::new(limit, 1))?;
        self.weights.map_or(Ok(()), |weights| Wfq { limit: self.limit, weights }.check())
    }

    fn discipline(&self, ps_per_byte: u32) -> Box<LevelQueue> {
        Box::new(LevelQueue::new(self.limit, self.weights, ps_per_byte))
    }

    fn rule(&self, _ps_per_byte: u32, rng: Rng) -> Box<Marker> {
        Box::new(Marker::new(self, rng))
    }
}

/// Decides on marks for all levels of a port.
#[derive(Debug)]
pub(crate) struct Marker {
    of: LevelRed,
    rng: Rng,
}

impl Marker {
    fn new(of: &LevelRed, rng: Rng) -> Self {
        Marker { of: *of, rng }
    }

    /// Whether a packet is marked that finds this many bytes of its level.
    fn marks(&mut self, found: u64) -> bool {
        let LevelRed { min, max, max_p, .. } = self.of;
        found >= max
            || found > min
                && self.rng.below((max - min) * u64::from(MILLION))
                    < (found - min) * u64::from(max_p)
    }
}

/// Judges by the waiting bytes of the packet's level.
impl AdmissionRule for Marker {
    fn judge(&mut self, _now: Ps, found: &Found, packet: &Packet) -> Action {
        if packet.ect && self.marks(found.bytes) {
            Action::Mark
        } else {
            Action::Pass
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_marks_is_figure_5s() {
        let law = LevelRed { limit: 0, min: 5_000, max: 45_000, max_p: 200_000, weights: None };
        let mut marker = Marker::new(&law, Rng::new(1, 2));
        let mut count = |found| (0..1_000_000).filter(|_| marker.marks(found)).count();
        assert_eq!(
            [0, 4_999, 5_000, 45_000, 1 << 40].map(&mut count),
            [0, 0, 0, 1_000_000, 1_000_000]
        );
        for (found, p) in [(6_000, 0.005), (25_000, 0.1), (44_999, 0.2)] {
            // Five standard deviations of a million draws.
            let share = count(found) as f64 / 1e6;
            assert!(
                (share - p).abs() < 5.0 * (p * (1.0 - p) / 1e6f64).sqrt(),
                "{found} bytes: {share}"
            );
        }
    }
}
