// SPDX-License-Identifier: GPL-2.0-or-later
//! Partition a network for a parallel run: each part has some of the switches, their hosts, and the
//! links that begin there.

use std::sync::Arc;

use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::net::topology::Topology;
use crate::packet::Packet;

/// The partition: which part owns which host and link end.
#[derive(Debug)]
pub(crate) struct Partition {
    pub parts: u32,
    /// Part of each host.
    pub of_host: Vec<u16>,
    /// Part of each link's end.
    pub of_end: Vec<u16>,
    /// The least delay of a cable between two parts: an event in one part affects no other part
    /// before that.
    pub window: Ps,
}

/// The most parts.
const MAX: u32 = 1 << 10;

impl Partition {
    /// Distributes switches with hosts in order, so that each part has about as many hosts. Any
    /// other switch joins the part that it has most cables to; on a tie, the one with the fewest
    /// switches.
    pub fn new(topology: &Topology, parts: u32) -> Result<Self> {
        let leaves = leaves(topology);
        let most = leaves.iter().filter(|&&hosts| hosts > 0).count().min(MAX as usize);
        if parts == 0 || parts as usize > most {
            return Err(Error::new(format!(
                "parts: {parts} must be 1 to {most}, the switches with hosts, and at most {MAX}"
            )));
        }
        let of_switch = share_out(topology, &leaves, parts);
        let of_host: Vec<u16> =
            topology.hosts.iter().map(|&(switch, _)| of_switch[switch as usize]).collect();
        let ends = topology
            .trunks
            .iter()
            .flat_map(|&(a, b, _)| [of_switch[b as usize], of_switch[a as usize]]);
        let of_end = of_host.iter().chain(&of_host).copied().chain(ends).collect();
        let between = topology
            .trunks
            .iter()
            .filter(|&&(a, b, _)| of_switch[a as usize] != of_switch[b as usize]);
        let window = between.map(|(_, _, cable)| cable.delay).min().unwrap_or(Ps::MAX);
        if window == 0 {
            return Err(Error::new(
                "parts: a cable between two parts has no delay, which parallel runs need",
            ));
        }
        Ok(Partition { parts, of_host, of_end, window })
    }
}

/// Number of hosts of each switch.
fn leaves(topology: &Topology) -> Vec<usize> {
    let mut hosts = vec![0; topology.switches as usize];
    for &(switch, _) in &topology.hosts {
        hosts[switch as usize] += 1;
    }
    hosts
}

/// Part of each switch.
fn share_out(topology: &Topology, leaves: &[usize], parts: u32) -> Vec<u16> {
    let mut of = vec![None; leaves.len()];
    let mut sizes = vec![0; parts as usize];
    let (mut with_hosts, mut seen) = (leaves.iter().filter(|&&hosts| hosts > 0).count(), 0);
    let mut part = 0;
    for (switch, &hosts) in leaves.iter().enumerate().filter(|(_, &hosts)| hosts > 0) {
        // The next part starts once this one has its share of hosts, or when only as many switches
        // as parts are left.
        let due = seen * parts as usize >= (part + 1) * topology.hosts.len();
        if part + 1 < parts as usize
            && sizes[part] > 0
            && (due || with_hosts < parts as usize - part)
        {
            part += 1;
        }
        of[switch] = Some(part as u16);
        sizes[part] += 1;
        seen += hosts;
        with_hosts -= 1;
    }
    let mut neighbours = vec![Vec::new(); leaves.len()];
    for &(a, b, _) in &topology.trunks {
        neighbours[a as usize].push(b as usize);
        neighbours[b as usize].push(a as usize);
    }
    // From the switches with hosts outwards.
    let mut near: Vec<usize> = (0..leaves.len()).filter(|&switch| of[switch].is_some()).collect();
    while !near.is_empty() {
        let mut next: Vec<usize> = near
            .iter()
            .flat_map(|&at| neighbours[at].iter().copied())
            .filter(|&at| of[at].is_none())
            .collect();
        next.sort_unstable();
        next.dedup();
        for &switch in &next {
            let mut cables = vec![0; sizes.len()];
            for part in neighbours[switch].iter().filter_map(|&at| of[at]) {
                cables[usize::from(part)] += 1;
            }
            let best = (0..sizes.len())
                .max_by_key(|&part| (cables[part], usize::MAX - sizes[part], usize::MAX - part));
            let best = best.unwrap_or(0);
            of[switch] = Some(best as u16);
            sizes[best] += 1;
        }
        near = next;
    }
    of.into_iter().map(|part| part.unwrap_or(0)).collect()
}

/// A packet on its way from one part to another.
#[derive(Debug)]
pub(crate) struct Crossing {
    /// When it arrives.
    pub at: Ps,
    pub packet: Packet,
    /// The link that it was on, if that has failed.
    pub failed: Option<u32>,
}

/// One part's view of the partition.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub partition: Arc<Partition>,
    pub mine: u16,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::US;
    use crate::net::graph::Graph;
    use crate::net::topology::{Cable, LeafSpine};

    #[test]
    fn racks_are_shared_out_side_by_side_and_spines_in_turn() {
        let topology = Topology::leaf_spine(&LeafSpine {
            racks: 5,
            hosts_per_rack: 2,
            spines: 3,
            ..LeafSpine::FIG9
        })
        .unwrap();
        let partition = Partition::new(&topology, 2).unwrap();
        assert_eq!(partition.of_host, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
        // From racks to spines: the first spine is in the part with fewer racks; and back.
        let of: Vec<u16> = partition.of_end[20..].to_vec();
        let to_spines: Vec<u16> = of.iter().step_by(2).copied().collect();
        assert_eq!(to_spines[..3], to_spines[3..6]);
        let back: Vec<u16> = of.iter().skip(1).step_by(2).copied().collect();
        assert_eq!(back, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
        assert_eq!(partition.window, LeafSpine::FIG9.uplink.delay);
    }

    #[test]
    fn a_pod_of_a_fat_tree_stays_together() {
        let cable = Cable { rate: 10_000_000_000, delay: US };
        let topology = Graph::new(Graph::fat_tree(4, cable, cable).unwrap()).build().unwrap();
        let partition = Partition::new(&topology, 4).unwrap();
        for part in 0..4 {
            assert_eq!(partition.of_host.iter().filter(|&&of| of == part).count(), 4);
        }
        // All cables lead to another part except one a pod of each of the 4 core switches.
        let within = topology
            .trunks
            .iter()
            .zip(partition.of_end[32..].chunks(2))
            .filter(|(_, ends)| ends[0] == ends[1])
            .count();
        assert_eq!(within, 16 + 4);
    }

    #[test]
    fn what_cannot_be_divided_is_refused() {
        let fabric = LeafSpine { racks: 3, hosts_per_rack: 2, spines: 1, ..LeafSpine::FIG9 };
        let topology = Topology::leaf_spine(&fabric).unwrap();
        for parts in [0, 4] {
            let error = Partition::new(&topology, parts).unwrap_err().to_string();
            assert!(error.starts_with(&format!("parts: {parts} must be 1 to 3, ")), "{error}");
        }
        let uplink = Cable { delay: 0, ..fabric.uplink };
        let topology = Topology::leaf_spine(&LeafSpine { uplink, ..fabric }).unwrap();
        assert!(Partition::new(&topology, 2).unwrap_err().to_string().contains("no delay"));
    }
}
