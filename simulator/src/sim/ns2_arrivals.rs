// SPDX-License-Identifier: GPL-2.0-or-later
//! Flow arrivals as the ns-2 scripts behind the paper's Figure 9 draw them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::core::mrg32k3a::Mrg32k3a;
use crate::core::time::{Ps, S};

/// Flows of the scripts start after one second, which is part of the sums of times.
const BEGIN_S: f64 = 1.0;

/// Distance between the generators' seeds of two runs.
const RUN: u64 = 1_000_000;

/// The number of different runs: a seed of ns-2's has 31 bits.
const RUNS: u64 = 2_000;

/// The flows from one host to another: gaps and sizes, each from a generator whose seed is a sum of
/// small multiples of both hosts' numbers. First draws are linear in the seed, so that hosts that
/// send to one host start within moments of each other, with nearly equal sizes: the published
/// input has incasts that a Poisson process does not have.
struct Pair {
    src: u32,
    dst: u32,
    gaps: Mrg32k3a,
    sizes: Mrg32k3a,
    next_s: f64,
}

impl Pair {
    /// Seed 1 gives the published run; seeds of other runs are offset.
    fn new(src: u32, dst: u32, seed: u64) -> Self {
        let run = seed.wrapping_sub(1) % RUNS * RUN;
        let generator = |source: u64, destination: u64| {
            Mrg32k3a::new((source * u64::from(src) + destination * u64::from(dst) + run) as u32)
        };
        Pair { src, dst, gaps: generator(17, 1_244), sizes: generator(33, 4_369), next_s: BEGIN_S }
    }

    /// Advances to the next flow.
    fn step(&mut self, gap_s: f64) {
        self.next_s += as_printed(-libm::log(self.gaps.unit()) * gap_s);
    }

    /// Start of the next flow.
    fn start(&self) -> Ps {
        ((self.next_s - BEGIN_S) * S as f64 + 0.5) as Ps
    }
}

/// A number as ns-2 passes it to a script: with seven digits.
fn as_printed(value: f64) -> f64 {
    format!("{value:.6e}").parse().expect("a number")
}

/// A drawn flow: start, ends, and the share of flows that are not larger.
pub(crate) struct Drawn {
    pub(crate) start: Ps,
    pub(crate) src: u32,
    pub(crate) dst: u32,
    pub(crate) share: f64,
}

/// The first `count` flows; each host sends one every `host_gap` ps on average, evenly to all
/// others.
pub(crate) fn flows(
    host_gap: f64,
    count: u32,
    hosts: u32,
    seed: u64,
) -> impl Iterator<Item = Drawn> {
    let gap_s = host_gap / S as f64 * f64::from(hosts - 1);
    let ends = (0..hosts)
        .flat_map(|dst| (0..hosts).filter(move |&src| src != dst).map(move |src| (src, dst)));
    let mut pairs: Vec<Pair> = ends.map(|(src, dst)| Pair::new(src, dst, seed)).collect();
    for pair in &mut pairs {
        pair.step(gap_s);
    }
    let mut order: BinaryHeap<_> =
        pairs.iter().enumerate().map(|(i, pair)| Reverse((pair.start(), i))).collect();
    let next = move |_| {
        let Reverse((start, i)) = order.pop()?;
        let pair = &mut pairs[i];
        pair.step(gap_s);
        order.push(Reverse((pair.start(), i)));
        Some(Drawn { start, src: pair.src, dst: pair.dst, share: pair.sizes.unit() })
    };
    (0..count).map_while(next)
}
