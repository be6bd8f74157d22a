// SPDX-License-Identifier: GPL-2.0-or-later
//! Fan-in: many hosts send to one, the worst case of QJump's bound.

use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::host::traffic::{Bytes, Gap, Source};

/// The random stream of the phases.
const PHASES: u64 = 1 << 62;

/// Sources with which each host sends `count` datagrams of `bytes` to `dst`, one an epoch. Each
/// starts at a random phase of the first epoch.
///
/// # Panics
/// The epoch is 0.
pub fn fan_in(
    senders: &[u32],
    dst: u32,
    level: u8,
    bytes: u16,
    epoch: Ps,
    count: u64,
    seed: u64,
) -> Vec<Source> {
    assert!(epoch > 0, "fan-in: its epoch must be above 0");
    let mut rng = Rng::new(seed, PHASES);
    let source = |&src| Source {
        src,
        dst,
        level,
        first: rng.below(epoch),
        gap: Gap::Every(epoch),
        bytes: Bytes::Fixed(bytes),
        count,
    };
    senders.iter().map(source).collect()
}
