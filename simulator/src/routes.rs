// SPDX-License-Identifier: GPL-2.0-or-later
//! Which link a packet takes next: all shortest paths, chosen in turn or by flow.

use std::collections::VecDeque;

use crate::link::Node;
use crate::rng::mix;
use crate::topology::Topology;

/// How a packet's path is chosen among equal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routing {
    /// Every packet takes the next link in turn; each switch counts for every switch of destination.
    Spray,
    /// All packets of a flow in one direction take the same path (ECMP).
    PerFlow,
}

/// The links that lead from one switch nearer to another, a range of `Routes::choices`.
#[derive(Debug, Clone, Copy, Default)]
struct Choice {
    first: u32,
    count: u16,
    turn: u16,
}

/// Links are numbered: host `h`'s own is `h`, the one to it `hosts + h`; then both directions of every trunk.
#[derive(Debug)]
pub(crate) struct Routes {
    routing: Routing,
    switches: usize,
    hosts: u32,
    switch_of: Vec<u32>,
    trunks: Vec<(u32, u32)>,
    table: Vec<Choice>,
    choices: Vec<u32>,
}

impl Routes {
    pub fn new(topology: &Topology, routing: Routing) -> Self {
        let switches = topology.switches as usize;
        let hosts = topology.hosts();
        // Neighbours of each switch with the link to them; trunks are sorted, and so are these.
        let mut neighbours = vec![Vec::new(); switches];
        for (i, &(a, b, _)) in (0..).zip(&topology.trunks) {
            neighbours[a as usize].push((b, 2 * hosts + 2 * i));
            neighbours[b as usize].push((a, 2 * hosts + 2 * i + 1));
        }
        let mut routes = Routes {
            routing,
            switches,
            hosts,
            switch_of: topology.hosts.iter().map(|(switch, _)| *switch).collect(),
            trunks: topology.trunks.iter().map(|&(a, b, _)| (a, b)).collect(),
            table: vec![Choice::default(); switches * switches],
            choices: Vec::new(),
        };
        let mut leaves = routes.switch_of.clone();
        leaves.sort_unstable();
        leaves.dedup();
        for leaf in leaves {
            routes.add_leaf(leaf as usize, &neighbours);
        }
        routes
    }

    fn add_leaf(&mut self, leaf: usize, neighbours: &[Vec<(u32, u32)>]) {
        let mut distance = vec![u32::MAX; self.switches];
        distance[leaf] = 0;
        let mut next = VecDeque::from([leaf]);
        while let Some(at) = next.pop_front() {
            for &(to, _) in &neighbours[at] {
                if distance[to as usize] == u32::MAX {
                    distance[to as usize] = distance[at] + 1;
                    next.push_back(to as usize);
                }
            }
        }
        for at in (0..self.switches).filter(|&at| at != leaf && distance[at] != u32::MAX) {
            let first = self.choices.len() as u32;
            let nearer =
                neighbours[at].iter().filter(|(to, _)| distance[*to as usize] + 1 == distance[at]).map(|(_, link)| *link);
            self.choices.extend(nearer);
            self.table[at * self.switches + leaf] = Choice { first, count: (self.choices.len() as u32 - first) as u16, turn: 0 };
        }
    }

    /// The node at which each link begins.
    pub fn starts(&self) -> Vec<Node> {
        let hosts = (0..self.hosts).map(Node::Host);
        let to_hosts = self.switch_of.iter().map(|&switch| Node::Switch(switch));
        let trunks = self.trunks.iter().flat_map(|&(a, b)| [Node::Switch(a), Node::Switch(b)]);
        hosts.chain(to_hosts).chain(trunks).collect()
    }

    /// The link that ends at `host`.
    pub fn to_host(&self, host: u32) -> u32 {
        self.hosts + host
    }

    /// The link by which a packet for `to` leaves `switch`. `flow` is asked only where paths are chosen by flow.
    #[inline]
    pub fn next(&mut self, switch: u32, to: u16, flow: impl FnOnce() -> u64) -> u32 {
        let leaf = self.switch_of[to as usize];
        if leaf == switch {
            return self.to_host(u32::from(to));
        }
        let choice = &mut self.table[switch as usize * self.switches + leaf as usize];
        let pick = if choice.count == 1 {
            0
        } else {
            match self.routing {
                Routing::Spray => {
                    let pick = choice.turn;
                    choice.turn = if pick + 1 == choice.count { 0 } else { pick + 1 };
                    u32::from(pick)
                }
                Routing::PerFlow => {
                    let hash = mix(flow() ^ u64::from(switch) << 48) >> 32;
                    ((hash * u64::from(choice.count)) >> 32) as u32
                }
            }
        };
        self.choices[(choice.first + pick) as usize]
    }
}
