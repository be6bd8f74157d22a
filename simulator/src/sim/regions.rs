// SPDX-License-Identifier: GPL-2.0-or-later
//! Slowdown by flow size: completion times over those in an empty network, in Figure 9's three
//! regions.

use crate::core::error::{Error, Result};
use crate::core::time::{ps_per_byte, Ps};
use crate::host::result::FlowResult;
use crate::net::topology::{LeafSpine, Topology};
use crate::sim::scheme::Wire;

/// Slowdowns of the flows of a region.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Region {
    /// Flows that finished.
    pub flows: u64,
    /// Mean; NaN without flows.
    pub mean: f64,
    /// The value at index ⌈0.99 (n−1)⌉ of the sorted values, as in the published script; NaN
    /// without flows.
    pub p99: f64,
}

/// Figure 9's regions, by bytes on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regions {
    /// At most 10 kB.
    pub short: Region,
    /// More than 10 kB, at most 10 MB.
    pub medium: Region,
    /// More than 10 MB.
    pub long: Region,
    /// All flows.
    pub all: Region,
    /// Flows that did not finish.
    pub unfinished: u64,
}

/// A path through a leaf-spine network.
struct Way {
    /// Picoseconds a byte at each hop.
    hops: Vec<u64>,
    /// Delay there and back.
    delay: Ps,
}

impl Way {
    /// The paths within a rack and across racks.
    fn both(of: &LeafSpine) -> Result<[Self; 2]> {
        let (edge, uplink) =
            (u64::from(ps_per_byte(of.edge.rate)?), u64::from(ps_per_byte(of.uplink.rate)?));
        let (inside, core) = (4 * of.edge.delay, 4 * of.uplink.delay);
        let across = Way { hops: vec![edge, uplink, uplink, edge], delay: inside + core };
        Ok([Way { hops: vec![edge; 2], delay: inside }, across])
    }

    /// Ideal completion time in ps: in an empty network, with a window that never limits the sender
    /// and an ACK for each packet. For Figure 9's fabric it is the published normalisation,
    /// (packets − 1) · 1.2 us + 13.264 us in a rack and 14.680 us across. ACKs return as packets
    /// arrive, so that the hops there and back form one pipeline: the last packet follows directly
    /// behind the others from some hop on, and up to there the slowest hop sets the pace.
    fn ideal(&self, flow: &FlowResult, wire: &Wire) -> u128 {
        let (data, ack) = (u64::from(wire.data), u64::from(wire.acks[usize::from(flow.transport)]));
        let crossed = |bytes: u64| {
            let there = self.hops.iter().map(move |hop| bytes * hop);
            there.chain(self.hops.iter().map(move |hop| ack * hop)).map(u128::from)
        };
        let mut left: u128 = crossed(flow.last.into()).sum();
        let mut longest = left;
        if let Some(others) = flow.packets.checked_sub(2) {
            let (mut sum, mut slowest) = (0, 0);
            for (full, last) in crossed(data).zip(crossed(flow.last.into())) {
                sum += full;
                slowest = slowest.max(full);
                longest = longest.max(sum + u128::from(others) * slowest + left);
                left -= last;
            }
        }
        longest + u128::from(self.delay)
    }
}

impl Regions {
    /// Slowdowns of these flows, which had packets of these sizes, in this network.
    ///
    /// # Errors
    /// An invalid network, or one without these hosts; one with several uplinks that are slower
    /// than its edges, because packets sprayed over them are faster than one path.
    pub fn of(flows: &[FlowResult], fabric: &LeafSpine, wire: &Wire) -> Result<Self> {
        let told = |what: String| Error::new(format!("fabric: {what}"));
        let hosts = Topology::leaf_spine(fabric).map_err(|error| told(error.to_string()))?.hosts();
        let ways = Way::both(fabric)?;
        if fabric.racks > 1 && fabric.spines > 1 && fabric.uplink.rate < fabric.edge.rate {
            return Err(told(
                "with several uplinks slower than its edges the ideal time depends on the routing"
                    .to_owned(),
            ));
        }
        let mut by_size: [Vec<f64>; 4] = Default::default();
        let mut unfinished = 0;
        for flow in flows {
            if let Some(host) = [flow.src, flow.dst].into_iter().find(|&host| host >= hosts) {
                return Err(told(format!("there is no host {host} among {hosts}")));
            }
            let Some(finish) = flow.finish else {
                unfinished += 1;
                continue;
            };
            let rack = |host: u32| host / fabric.hosts_per_rack;
            let ideal = ways[usize::from(rack(flow.src) != rack(flow.dst))].ideal(flow, wire);
            let slowdown = (finish - flow.start) as f64 / ideal as f64;
            let size =
                match u64::from(flow.packets - 1) * u64::from(wire.data) + u64::from(flow.last) {
                    0..=10_000 => 0,
                    10_001..=10_000_000 => 1,
                    _ => 2,
                };
            by_size[size].push(slowdown);
            by_size[3].push(slowdown);
        }
        let [short, medium, long, all] = by_size.map(region);
        Ok(Regions { short, medium, long, all, unfinished })
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
    use crate::net::topology::Cable;

    fn flow(packets: u32, dst: u32, finish: Ps) -> FlowResult {
        FlowResult {
            start: 0,
            finish: Some(finish),
            packets,
            src: 0,
            dst,
            level: 0,
            transport: 0,
            last: 1_500,
            deadline: None,
        }
    }

    const WIRE: Wire = Wire { data: 1_500, acks: [40; 4] };

    fn ideal(of: &LeafSpine, flow: &FlowResult, wire: &Wire) -> u128 {
        Way::both(of).unwrap()
            [usize::from(flow.src / of.hosts_per_rack != flow.dst / of.hosts_per_rack)]
        .ideal(flow, wire)
    }

    #[test]
    fn ideals_are_the_published_ones() {
        let ideals = [(1, 1), (1, 16), (6, 1), (6, 143)]
            .map(|(packets, dst)| ideal(&LeafSpine::FIG9, &flow(packets, dst, 0), &WIRE));
        assert_eq!(ideals, [13_264_000, 14_680_000, 19_264_000, 20_680_000]);
    }

    #[test]
    fn the_slowest_hop_sets_the_pace() {
        let slow = LeafSpine {
            spines: 1,
            uplink: Cable { rate: 1_000_000_000, delay: 0 },
            ..LeafSpine::FIG9
        };
        let (data, acks) = (1_200_000, 32_000);
        let across = 4 * 2_700_000 + 2 * (data + acks) + 2 * 10 * (data + acks);
        assert_eq!(ideal(&slow, &flow(6, 16, 0), &WIRE), across + 5 * 10 * data);
        // A byte that comes right behind the others waits at every hop for what is before it.
        let short = FlowResult { last: 1, ..flow(6, 16, 0) };
        assert_eq!(ideal(&slow, &short, &WIRE), across + 4 * 10 * data + 10 * acks);
    }

    #[test]
    fn regions_divide_by_wire_bytes() {
        // 6 packets are 9 kB, 7 are 10.5 kB; 6666 packets 9.999 MB, 6667 more than 10 MB. Slowdowns
        // 1, 2, 3, 4.
        let flows: Vec<FlowResult> = [6, 7, 6666, 6667]
            .into_iter()
            .zip(1..)
            .map(|(packets, slow)| {
                let alone = flow(packets, 1, 0);
                flow(packets, 1, slow * ideal(&LeafSpine::FIG9, &alone, &WIRE) as Ps)
            })
            .collect();
        let regions = Regions::of(&flows, &LeafSpine::FIG9, &WIRE).unwrap();
        assert_eq!((regions.short.flows, regions.short.mean), (1, 1.0));
        assert_eq!((regions.medium.flows, regions.medium.mean, regions.medium.p99), (2, 2.5, 3.0));
        assert_eq!((regions.long.flows, regions.long.p99), (1, 4.0));
        assert_eq!((regions.all.flows, regions.all.mean), (4, 2.5));
    }

    #[test]
    fn fabrics_of_which_nothing_is_known_are_told() {
        let sentence =
            |fabric| Regions::of(&[flow(6, 16, 1)], &fabric, &WIRE).unwrap_err().to_string();
        assert_eq!(
            sentence(LeafSpine { racks: 1, ..LeafSpine::FIG9 }),
            "fabric: there is no host 16 among 16"
        );
        assert!(sentence(LeafSpine { hosts_per_rack: 0, ..LeafSpine::FIG9 })
            .starts_with("fabric: a leaf-spine network needs a rack"));
        let slow = LeafSpine { uplink: Cable { rate: 1_000_000_000, delay: 0 }, ..LeafSpine::FIG9 };
        assert!(sentence(slow).starts_with("fabric: with several uplinks slower than its edges"));
    }
}
