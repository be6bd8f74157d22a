// SPDX-License-Identifier: GPL-2.0-or-later
//! Many hosts to one, the case that QJump's bound is for.

use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::host::traffic::{Bytes, Gap, Source};

/// The stream of random numbers that phases are drawn from.
const PHASES: u64 = 1 << 62;

/// Sources with which each host sends a datagram of `bytes` an epoch to `dst`, `count` of them, from a phase in the first epoch on that
/// is drawn for each.
///
/// # Panics
/// The epoch is 0.
pub fn fan_in(senders: &[u32], dst: u32, level: u8, bytes: u16, epoch: Ps, count: u64, seed: u64) -> Vec<Source> {
    assert!(epoch > 0, "fan-in: its epoch is 0");
    let mut rng = Rng::new(seed, PHASES);
    let source =
        |&src| Source { src, dst, level, first: rng.below(epoch), gap: Gap::Every(epoch), bytes: Bytes::Fixed(bytes), count };
    senders.iter().map(source).collect()
}
