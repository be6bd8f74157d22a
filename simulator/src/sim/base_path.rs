// SPDX-License-Identifier: GPL-2.0-or-later
//! The base path of a network: the longest of the shortest paths between two hosts, when it is
//! empty.

use std::collections::VecDeque;

use crate::core::error::Result;
use crate::core::time::{ps_per_byte, Ps};
use crate::host::transport::DATA;
use crate::net::topology::{Cable, Shape, Topology};

/// Bytes of an ACK in the published schemes.
const ACK: u16 = 40;
/// Switches of a graph from which paths are searched; of more, as many evenly spaced ones.
const STARTS: usize = 1_024;

/// The base path of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BasePath {
    /// Time of a full packet and its ACK between the two hosts for which it takes longest, over as
    /// few cables as possible. A host with jitter adds the median of its draws.
    pub round_trip: Ps,
    /// Picoseconds per byte of the fastest and the slowest host cable.
    pub fastest: u32,
    /// See `fastest`.
    pub slowest: u32,
}

impl BasePath {
    /// # Errors
    /// A rate that [`ps_per_byte`] refuses.
    pub fn of(topology: &Topology) -> Result<Self> {
        let rates = topology.hosts.iter().map(|(_, cable)| cable.rate);
        Ok(BasePath {
            round_trip: longest(topology)?,
            fastest: ps_per_byte(rates.clone().max().unwrap_or(0))?,
            slowest: ps_per_byte(rates.min().unwrap_or(0))?,
        })
    }

    /// Bytes that the path holds at the rate of the fastest host.
    pub fn holds(&self) -> u64 {
        self.round_trip.div_ceil(u64::from(self.fastest))
    }
}

/// What a full packet and its ACK take on a cable.
fn both_ways(cable: &Cable) -> Result<Ps> {
    let sent = u64::from(DATA + ACK) * u64::from(ps_per_byte(cable.rate)?);
    Ok(cable.delay.saturating_mul(2).saturating_add(sent))
}

/// The two hosts of a switch that are farthest away from it; 0: there is none.
type Ends = [Ps; 2];

/// The longest round trip.
fn longest(topology: &Topology) -> Result<Ps> {
    let mut ends: Vec<Option<Ends>> = vec![None; topology.switches as usize];
    for (host, (switch, cable)) in (0..).zip(&topology.hosts) {
        let drawn = topology.jitter.get(&host).map_or(0, |quantiles| quantiles.at(u32::MAX / 2));
        let far = both_ways(cable)?.saturating_add(drawn);
        let [first, second] = ends[*switch as usize].get_or_insert([0, 0]);
        if far > *first {
            (*first, *second) = (far, *first);
        } else {
            *second = far.max(*second);
        }
    }
    if let Shape::LeafSpine { racks, .. } = topology.shape {
        return Ok(over_spines(topology, &ends[..racks as usize])?.max(within(&ends)));
    }
    let mut cables = vec![Vec::new(); ends.len()];
    for (one, other, cable) in &topology.trunks {
        let time = both_ways(cable)?;
        cables[*one as usize].push((*other as usize, time));
        cables[*other as usize].push((*one as usize, time));
    }
    let leaves: Vec<usize> = (0..ends.len()).filter(|&at| ends[at].is_some()).collect();
    let search = |from: usize| farthest(&cables, &ends, from);
    if topology.shape == Shape::Tree {
        // The host farthest from any is an end of the longest path.
        let (_, end) = search(leaves[0]);
        return Ok(search(end).0.max(within(&ends)));
    }
    let step = leaves.len().div_ceil(STARTS);
    let far = leaves.iter().step_by(step).map(|&from| search(from).0).max();
    Ok(far.unwrap_or(0).max(within(&ends)))
}

/// The longest between two hosts of one switch.
fn within(ends: &[Option<Ends>]) -> Ps {
    ends.iter().flatten().map(|[first, second]| first.saturating_add(*second)).max().unwrap_or(0)
}

/// The longest between two racks, whose cables to spines are all alike; 0 with a single rack.
fn over_spines(topology: &Topology, ends: &[Option<Ends>]) -> Result<Ps> {
    let mut firsts: Vec<Ps> = ends.iter().flatten().map(|[first, _]| *first).collect();
    firsts.sort_unstable_by(|a, b| b.cmp(a));
    match (&firsts[..], topology.trunks.first()) {
        ([one, other, ..], Some((_, _, uplink))) => {
            Ok(one.saturating_add(*other).saturating_add(both_ways(uplink)?.saturating_mul(2)))
        }
        _ => Ok(0),
    }
}

/// The longest round trip from the farthest host of a switch to a host of another, over as few
/// cables as possible, and the other switch; among equally many cables those that take longest.
fn farthest(cables: &[Vec<(usize, Ps)>], ends: &[Option<Ends>], from: usize) -> (Ps, usize) {
    let mut reached: Vec<Option<(u32, Ps)>> = vec![None; cables.len()];
    reached[from] = Some((0, 0));
    let (mut next, mut best) = (VecDeque::from([from]), (0, from));
    while let Some(at) = next.pop_front() {
        // All that are nearer have been here, so that its time is final.
        let (hops, time) = reached[at].unwrap_or_default();
        if let (Some([first, _]), true) = (ends[at], at != from) {
            let own = ends[from].map_or(0, |[first, _]| first);
            best = best.max((own.saturating_add(time).saturating_add(first), at));
        }
        for &(other, more) in &cables[at] {
            let there = time.saturating_add(more);
            match &mut reached[other] {
                Some((known, longest)) if *known == hops + 1 => *longest = there.max(*longest),
                Some(_) => {}
                new @ None => {
                    *new = Some((hops + 1, there));
                    next.push_back(other);
                }
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::quantiles::Quantiles;
    use crate::core::rng::Rng;
    use crate::core::time::{MS, US};
    use crate::net::graph::Graph;
    use crate::net::topology::{LeafSpine, Tree};
    use crate::sim::scenario::Scenario;
    use crate::sim::scheme::Scheme;
    use crate::sim::workload::{FlowSpec, Flows, Workload};

    /// The longest that a packet and its ACK take in a simulation, between any two hosts.
    fn simulated(topology: &Topology) -> Ps {
        let hosts = topology.hosts();
        let pairs = (0..hosts).flat_map(|src| (0..hosts).map(move |dst| (src, dst)));
        let flows = (0..)
            .zip(pairs.filter(|(src, dst)| src != dst))
            .map(|(number, (src, dst))| FlowSpec { start: number * MS, src, dst, packets: 1 });
        let workload = Workload::of_flows(Flows::List(flows.collect()));
        let mut scheme = Scheme::tcp();
        scheme.transport.min_rto = MS;
        let outcome = Scenario::new(topology.clone(), scheme, workload).run().unwrap();
        outcome.flows.iter().map(|flow| flow.finish.unwrap() - flow.start).max().unwrap()
    }

    fn cable(rng: &mut Rng) -> Cable {
        let rate = [1_000_000_000, 10_000_000_000, 40_000_000_000][rng.below(3) as usize];
        Cable { rate, delay: rng.below(30) * US }
    }

    /// Random networks with one shortest path for each pair: trees, and rings of an odd number.
    #[test]
    fn it_is_as_long_as_an_empty_network_takes() {
        let mut rng = Rng::new(7, 0);
        for case in 0..40 {
            let switches = [1, 2, 3, 5, 7, 9][case % 6];
            let looped = case % 2 == 0 && switches > 2;
            let name = |at: u64| format!("s{at}");
            let mut tree = Tree::new();
            for at in 0..switches {
                tree = tree.switch(&name(at));
                let up = if looped { at.saturating_sub(1) } else { rng.below(at.max(1)) };
                if at > 0 {
                    tree = tree.cable(&name(at), &name(up), cable(&mut rng));
                }
            }
            if looped {
                tree = tree.cable(&name(0), &name(switches - 1), cable(&mut rng));
            }
            for host in 0..2 + rng.below(6) {
                let host = format!("h{host}");
                tree = tree.host(&host).cable(&host, &name(rng.below(switches)), cable(&mut rng));
            }
            let topology =
                if looped { Graph::new(tree).build().unwrap() } else { tree.build().unwrap() };
            assert_eq!(BasePath::of(&topology).unwrap().round_trip, simulated(&topology), "{case}");
        }
    }

    #[test]
    fn fabrics_have_closed_forms_and_jitter_counts() {
        let small = LeafSpine { racks: 3, hosts_per_rack: 2, ..LeafSpine::FIG9 };
        for racks in [1, 3] {
            let topology = Topology::leaf_spine(&LeafSpine { racks, ..small }).unwrap();
            assert_eq!(BasePath::of(&topology).unwrap().round_trip, simulated(&topology));
        }
        let mut topology = Topology::leaf_spine(&small).unwrap();
        let always = |time| Quantiles::new(&[(0.0, time), (100.0, time)]).unwrap();
        topology.set_jitter(0, always(5 * US)).unwrap();
        topology.set_jitter(1, always(70 * US)).unwrap();
        assert_eq!(BasePath::of(&topology).unwrap().round_trip, simulated(&topology));
        let tree = Graph::fat_tree(4, small.edge, small.uplink).unwrap();
        let topology = Graph::new(tree).build().unwrap();
        assert_eq!(BasePath::of(&topology).unwrap().round_trip, simulated(&topology));
        assert_eq!(BasePath::of(&topology).unwrap().holds(), 16_096_000 / 800);
    }
}
