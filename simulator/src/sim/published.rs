// SPDX-License-Identifier: GPL-2.0-or-later
//! Flows as the scripts behind Figure 9 of the paper draw them in ns-2.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::core::mrg::Mrg;
use crate::core::time::{Ps, S};

/// The scripts' flows begin after a second, which is part of the times that they add up.
const BEGIN_S: f64 = 1.0;

/// So far apart are the generators' seeds of two runs.
const RUN: u64 = 1_000_000;

/// So many runs there are, for a seed of ns-2's has 31 bits.
const RUNS: u64 = 2_000;

/// What one host sends to another: gaps and sizes, each of a generator whose seed is a sum of small multiples of both hosts'
/// numbers. What is drawn first is linear in the seed, so that those who send to one host begin within moments of each other,
/// and with sizes that are nearly the same: the published input has incasts that a Poisson process has not.
struct Pair {
    src: u32,
    dst: u32,
    gaps: Mrg,
    sizes: Mrg,
    next_s: f64,
}

impl Pair {
    /// The run with seed 1 is the published one; the seeds of others lie so far behind its own.
    fn new(src: u32, dst: u32, seed: u64) -> Self {
        let run = seed.wrapping_sub(1) % RUNS * RUN;
        let generator =
            |source: u64, destination: u64| Mrg::new((source * u64::from(src) + destination * u64::from(dst) + run) as u32);
        Pair { src, dst, gaps: generator(17, 1_244), sizes: generator(33, 4_369), next_s: BEGIN_S }
    }

    /// Moves on to its next flow.
    fn step(&mut self, gap_s: f64) {
        self.next_s += as_printed(-libm::log(self.gaps.unit()) * gap_s);
    }

    /// When its next flow begins.
    fn start(&self) -> Ps {
        ((self.next_s - BEGIN_S) * S as f64 + 0.5) as Ps
    }
}

/// A number as ns-2 hands it to a script: with seven digits.
fn as_printed(value: f64) -> f64 {
    format!("{value:.6e}").parse().expect("a number")
}

/// A flow: when it begins, its ends, and the share of flows that are not larger.
pub(crate) struct Drawn {
    pub(crate) start: Ps,
    pub(crate) src: u32,
    pub(crate) dst: u32,
    pub(crate) share: f64,
}

/// The first `count` flows; each host sends one every `host_gap` ps on average, to the others alike.
pub(crate) fn flows(host_gap: f64, count: u32, hosts: u32, seed: u64) -> impl Iterator<Item = Drawn> {
    let gap_s = host_gap / S as f64 * f64::from(hosts - 1);
    let ends = (0..hosts).flat_map(|dst| (0..hosts).filter(move |&src| src != dst).map(move |src| (src, dst)));
    let mut pairs: Vec<Pair> = ends.map(|(src, dst)| Pair::new(src, dst, seed)).collect();
    for pair in &mut pairs {
        pair.step(gap_s);
    }
    let mut order: BinaryHeap<_> = pairs.iter().enumerate().map(|(i, pair)| Reverse((pair.start(), i))).collect();
    let next = move |_| {
        let Reverse((start, i)) = order.pop()?;
        let pair = &mut pairs[i];
        pair.step(gap_s);
        order.push(Reverse((pair.start(), i)));
        Some(Drawn { start, src: pair.src, dst: pair.dst, share: pair.sizes.unit() })
    };
    (0..count).map_while(next)
}
