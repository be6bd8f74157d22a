// SPDX-License-Identifier: GPL-2.0-or-later
//! Figure 9's statistics: flow completion times over those of an empty network, by size of the flow.

use crate::core::time::{ps_per_byte, Ps};
use crate::host::result::FlowResult;
use crate::net::topology::LeafSpine;

/// Completion times of the flows of a size, each over the one in an empty network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Region {
    /// Flows that finished.
    pub flows: u64,
    /// Mean; NaN without flows.
    pub mean: f64,
    /// The value at position ⌈0.99 (n−1)⌉ of the sorted ones, as the published script takes it; NaN without flows.
    pub p99: f64,
}

/// Figure 9's sizes, by bytes on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regions {
    /// At most 10 kB.
    pub short: Region,
    /// More, at most 10 MB.
    pub medium: Region,
    /// More than 10 MB.
    pub long: Region,
    /// All flows.
    pub all: Region,
    /// Flows that did not finish.
    pub unfinished: u64,
}

const DATA: u64 = 1500;
const ACK: u64 = 40;

/// Completion time of a flow in an empty leaf-spine network whose sender is never held up by its window, in ps: the published
/// normalisation, (packets − 1) · 1.2 us + 13.264 us in a rack and 14.680 us across for Figure 9's fabric.
fn ideal(of: &LeafSpine, flow: &FlowResult) -> Option<Ps> {
    let edge = u64::from(ps_per_byte(of.edge.rate).ok()?);
    let uplink = u64::from(ps_per_byte(of.uplink.rate).ok()?);
    let rack = |host: u32| host / of.hosts_per_rack;
    let hop = |per_byte: u64, delay: Ps| (DATA + ACK) * per_byte + 2 * delay;
    let across = rack(flow.src) != rack(flow.dst);
    let core = if across { 2 * hop(uplink, of.uplink.delay) } else { 0 };
    Some((u64::from(flow.packets) - 1) * DATA * edge + 2 * hop(edge, of.edge.delay) + core)
}

impl Regions {
    /// Statistics of these flows in this network.
    pub fn of(flows: &[FlowResult], fabric: &LeafSpine) -> Self {
        let mut by_size: [Vec<f64>; 4] = Default::default();
        let mut unfinished = 0;
        for flow in flows {
            let (Some(finish), Some(ideal)) = (flow.finish, ideal(fabric, flow)) else {
                unfinished += 1;
                continue;
            };
            let slowdown = (finish - flow.start) as f64 / ideal as f64;
            let size = match u64::from(flow.packets) * DATA {
                0..=10_000 => 0,
                10_001..=10_000_000 => 1,
                _ => 2,
            };
            by_size[size].push(slowdown);
            by_size[3].push(slowdown);
        }
        let [short, medium, long, all] = by_size.map(region);
        Regions { short, medium, long, all, unfinished }
    }
}

fn region(mut values: Vec<f64>) -> Region {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let at = (last * 99).div_ceil(100);
    Region {
        flows: values.len() as u64,
        mean: values.iter().sum::<f64>() / values.len() as f64,
        p99: values.get(at).copied().unwrap_or(f64::NAN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(packets: u32, dst: u32, finish: Ps) -> FlowResult {
        FlowResult { start: 0, finish: Some(finish), packets, src: 0, dst, level: 0, transport: 0, last: 1_500, deadline: None }
    }

    #[test]
    fn ideals_are_the_published_ones() {
        let ideals = [(1, 1), (1, 16), (6, 1), (6, 143)].map(|(packets, dst)| ideal(&LeafSpine::FIG9, &flow(packets, dst, 0)));
        let published = [13_264_000, 14_680_000, 19_264_000, 20_680_000];
        assert_eq!(ideals, published.map(Some));
    }

    #[test]
    fn regions_divide_by_wire_bytes() {
        // 6 packets are 9 kB, 7 are 10.5 kB; 6666 packets 9.999 MB, 6667 more than 10 MB. Slowdowns 1, 2, 3, 4.
        let flows: Vec<FlowResult> = [6, 7, 6666, 6667]
            .into_iter()
            .zip(1..)
            .map(|(packets, slow)| {
                let alone = flow(packets, 1, 0);
                flow(packets, 1, slow * ideal(&LeafSpine::FIG9, &alone).unwrap())
            })
            .collect();
        let regions = Regions::of(&flows, &LeafSpine::FIG9);
        assert_eq!((regions.short.flows, regions.short.mean), (1, 1.0));
        assert_eq!((regions.medium.flows, regions.medium.mean, regions.medium.p99), (2, 2.5, 3.0));
        assert_eq!((regions.long.flows, regions.long.p99), (1, 4.0));
        assert_eq!((regions.all.flows, regions.all.mean), (4, 2.5));
    }
}
