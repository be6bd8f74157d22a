// SPDX-License-Identifier: GPL-2.0-or-later
//! Routing: the link that a packet takes next, among all shortest paths, in turn or by flow.
//!
//! Routes of trees and leaf-spine networks are computed from their shape: tables by switch and
//! destination would be most of a large network's memory. Only a graph has a table.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::core::rng::mix;
use crate::core::time::Ps;
use crate::core::units::{Duration, In};
use crate::net::adaptive::Adaptive;
use crate::net::link::Links;
use crate::net::shortest::Shortest;
use crate::net::topology::{Node, Shape, Topology};

/// How a packet's path is chosen among equal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// Packet spraying: each packet takes the next link in turn; each switch counts by destination
    /// switch.
    Spray,
    /// ECMP: all packets of a flow in one direction take the same path.
    PerFlow,
    /// Each packet takes the link of this switch that will have sent what it holds first.
    Adaptive,
    /// Likewise the first packet of a flowlet (Sinha, Kandula and Katabi, 2004); others
    /// follow it. Where `gap` is longer than paths differ, a flow stays in order.
    #[serde(rename = "Flowlets")]
    Flowlets {
        /// The longest pause within a flowlet.
        #[serde(with = "In::<Duration>")]
        gap: Ps,
    },
}

/// Link numbers: host `h`'s own is `h`, the link to it `hosts + h`; then both directions of every
/// trunk; in a graph, last, the link that leads nowhere.
#[derive(Debug)]
pub(crate) struct Routes {
    choice: Choice,
    hosts: u32,
    switch_of: Vec<u32>,
    trunks: Vec<(u32, u32)>,
    /// The link that leads nowhere, for packets without a route.
    nowhere: u32,
    paths: Paths,
}

/// The choice where no load decides.
#[derive(Debug, Clone, Copy)]
enum Choice {
    Spray,
    PerFlow,
}

#[derive(Debug)]
enum Paths {
    /// Switches of racks come before spines; trunks are in the order of racks.
    LeafSpine {
        racks: u32,
        spines: u32,
        turns: Turns,
    },
    Tree(Branches),
    Graph(Shortest),
    /// Of any shape, where load decides: apart, so that nothing else is slower for it.
    Adaptive(Box<(Adaptive, Shortest)>),
}

impl Routes {
    pub fn new(topology: &Topology, routing: Routing) -> Self {
        let hosts = topology.hosts();
        let by_load = |gap| {
            let shortest = Shortest::new(topology, &[]);
            Paths::Adaptive(Box::new((Adaptive::new(gap, topology.switches), shortest)))
        };
        let paths = match (routing, topology.shape) {
            (Routing::Adaptive, _) => by_load(None),
            (Routing::Flowlets { gap }, _) => by_load(Some(gap)),
            (_, Shape::LeafSpine { racks, spines }) => {
                Paths::LeafSpine { racks, spines, turns: Turns::new(racks) }
            }
            (_, Shape::Tree) => Paths::Tree(Branches::new(topology)),
            (_, Shape::Graph) => Paths::Graph(Shortest::new(topology, &[])),
        };
        Routes {
            choice: match routing {
                Routing::PerFlow => Choice::PerFlow,
                _ => Choice::Spray,
            },
            hosts,
            switch_of: topology.hosts.iter().map(|(switch, _)| *switch).collect(),
            trunks: topology.trunks.iter().map(|&(a, b, _)| (a, b)).collect(),
            nowhere: topology.links(),
            paths,
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

    /// Whether the link leads to a host.
    pub fn leads_to_host(&self, link: u32) -> bool {
        (self.hosts..2 * self.hosts).contains(&link)
    }

    /// Recomputes routes without the failed links, given as one direction of each cable.
    pub fn avoid(&mut self, topology: &Topology, failed: &[u32]) {
        let shortest = Shortest::new(topology, failed);
        match &mut self.paths {
            Paths::Adaptive(of) => of.1 = shortest,
            paths => *paths = Paths::Graph(shortest),
        }
    }

    /// The link by which a packet for `to` leaves `switch`. `flow` is called only for routing by
    /// flow; `loads` are the links now, for adaptive routing.
    #[inline]
    pub fn next(
        &mut self,
        switch: u32,
        to: u32,
        flow: impl FnOnce() -> u64,
        loads: (Ps, &Links),
    ) -> u32 {
        let leaf = self.switch_of[to as usize];
        let here = leaf == switch;
        match &mut self.paths {
            Paths::LeafSpine { racks, spines, turns } => {
                // The direction is unpredictable, so that nothing branches on it: 5 to 8 % of a
                // hop's time on 144 hosts.
                let (up, down) =
                    (u32::from(!here) * u32::from(switch < *racks), switch.saturating_sub(*racks));
                let pick = match self.choice {
                    Choice::Spray => turns.next(up, switch, leaf, *spines),
                    Choice::PerFlow if up == 1 => of_flow(flow(), switch, *spines),
                    Choice::PerFlow => 0,
                };
                let ways = [
                    2 * (self.hosts + leaf * *spines + down) + 1,
                    2 * (self.hosts + switch * *spines + pick),
                    self.to_host(to),
                ];
                ways[up as usize + 2 * usize::from(here)]
            }
            _ if here => self.to_host(to),
            Paths::Tree(branches) => branches.next(switch, leaf),
            Paths::Adaptive(of) => by_load(of, self.nowhere, (switch, leaf), flow, loads),
            Paths::Graph(shortest) => {
                let (links, turn) = shortest.next(switch, leaf);
                match (links, self.choice) {
                    ([], _) => self.nowhere,
                    ([link], _) => *link,
                    (_, Choice::Spray) => {
                        let pick = usize::from(*turn);
                        *turn = if pick + 1 >= links.len() { 0 } else { *turn + 1 };
                        links[pick]
                    }
                    (_, Choice::PerFlow) => {
                        links[of_flow(flow(), switch, links.len() as u32) as usize]
                    }
                }
            }
        }
    }
}

/// The next link where load decides.
#[cold]
#[inline(never)]
fn by_load(
    (adaptive, shortest): &mut (Adaptive, Shortest),
    nowhere: u32,
    (switch, leaf): (u32, u32),
    flow: impl FnOnce() -> u64,
    (now, links): (Ps, &Links),
) -> u32 {
    match shortest.next(switch, leaf).0 {
        [] => nowhere,
        [link] => *link,
        equal => adaptive.pick((now, switch), equal, flow, |link| links.load(now, link)),
    }
}

/// The link of a flow among this many.
#[inline]
fn of_flow(flow: u64, switch: u32, links: u32) -> u32 {
    let hash = mix(flow ^ u64::from(switch) << 48) >> 32;
    ((hash * u64::from(links)) >> 32) as u32
}

/// The next spine by rack of origin and destination.
#[derive(Debug)]
enum Turns {
    /// A table of all pairs.
    All { racks: u32, table: Vec<u16> },
    /// Only pairs in use, when a table would exceed 32 MB.
    Used(HashMap<(u32, u32), u16>),
}

/// The most racks with a table.
const MAX_IN_TABLE: u32 = 1 << 12;

impl Turns {
    fn new(racks: u32) -> Self {
        if racks > MAX_IN_TABLE {
            return Turns::Used(HashMap::new());
        }
        Turns::All { racks, table: vec![0; (racks * racks) as usize] }
    }

    /// The spine of a packet that goes up (`up` = 1); meaningless for others (0). Branch-free with
    /// a table, where a rack's entry for itself is unused.
    #[inline]
    fn next(&mut self, up: u32, from: u32, to: u32, spines: u32) -> u32 {
        let turn = match self {
            Turns::All { racks, table } => &mut table[(up * from * *racks + up * to) as usize],
            Turns::Used(_) if up == 0 => return 0,
            Turns::Used(map) => map.entry((from, to)).or_default(),
        };
        let pick = u32::from(*turn);
        *turn = if pick + up == spines { 0 } else { (pick + up) as u16 };
        pick
    }
}

/// A tree's switches in depth-first order, in which a switch is followed by its subtree.
#[derive(Debug)]
struct Branches {
    /// By switch: its place, and the place after its subtree.
    below: Vec<(u32, u32)>,
    /// By switch: the link upwards.
    up: Vec<u32>,
    /// By switch: places and links of its children, in order.
    down: Vec<Vec<(u32, u32)>>,
}

impl Branches {
    fn new(topology: &Topology) -> Self {
        let switches = topology.switches as usize;
        let mut neighbours = vec![Vec::new(); switches];
        // The link to the other end, and the link back.
        for (&(a, b, _), there) in topology.trunks.iter().zip((2 * topology.hosts()..).step_by(2)) {
            neighbours[a as usize].push((b, there, there + 1));
            neighbours[b as usize].push((a, there + 1, there));
        }
        let mut branches = Branches {
            below: vec![(0, 0); switches],
            up: vec![u32::MAX; switches],
            down: vec![Vec::new(); switches],
        };
        let (mut walk, mut above) = (Vec::with_capacity(switches), vec![None; switches]);
        let mut next = vec![0];
        while let Some(at) = next.pop() {
            let place = walk.len() as u32;
            walk.push(at);
            branches.below[at as usize] = (place, place + 1);
            if let Some((parent, link)) = above[at as usize] {
                branches.down[parent as usize].push((place, link));
            }
            for &(other, there, back) in &neighbours[at as usize] {
                if above[at as usize].is_none_or(|(parent, _)| parent != other) {
                    above[other as usize] = Some((at, there));
                    branches.up[other as usize] = back;
                    next.push(other);
                }
            }
        }
        for &at in walk.iter().rev() {
            if let Some((parent, _)) = above[at as usize] {
                let end = branches.below[at as usize].1;
                let all = &mut branches.below[parent as usize].1;
                *all = end.max(*all);
            }
        }
        branches
    }

    #[inline]
    fn next(&self, switch: u32, leaf: u32) -> u32 {
        let (begin, end) = self.below[switch as usize];
        let place = self.below[leaf as usize].0;
        if !(begin..end).contains(&place) {
            return self.up[switch as usize];
        }
        let down = &self.down[switch as usize];
        down[down.partition_point(|&(first, _)| first <= place) - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::rng::Rng;
    use crate::net::link_config::LinkConfig;
    use crate::net::topology::{Cable, LeafSpine, Tree};
    use crate::queue::kinds::Queue;
    use crate::queue::limit::Limit;

    /// The switches that a packet passes between two hosts.
    fn path(routes: &mut Routes, links: &Links, from: u32, to: u32) -> Vec<u32> {
        let (mut link, mut path) = (from, Vec::new());
        loop {
            match links.end(link) {
                Node::Host(host) => {
                    assert_eq!(host, to);
                    return path;
                }
                Node::Switch(switch) => {
                    path.push(switch);
                    link = routes.next(switch, to, || 7, (0, links));
                    assert_eq!(routes.starts()[link as usize], Node::Switch(switch));
                }
            }
        }
    }

    #[test]
    fn a_tree_has_one_path() {
        let mut rng = Rng::new(1, 0);
        let cable = Cable { rate: 1_000_000_000, delay: 0 };
        for switches in [1, 2, 3, 10, 40] {
            let parents: Vec<u64> =
                (0..switches).map(|n| if n == 0 { 0 } else { rng.below(n) }).collect();
            let mut tree = Tree::new();
            for n in 0..switches {
                tree = tree
                    .switch(&format!("s{n:02}"))
                    .host(&format!("h{n:02}"))
                    .host(&format!("i{n:02}"));
                tree = tree.cable(&format!("s{n:02}"), &format!("h{n:02}"), cable);
                tree = tree.cable(&format!("i{n:02}"), &format!("s{n:02}"), cable);
                if n > 0 {
                    tree = tree.cable(
                        &format!("s{n:02}"),
                        &format!("s{:02}", parents[n as usize]),
                        cable,
                    );
                }
            }
            let topology = tree.build().unwrap();
            let mut routes = Routes::new(&topology, Routing::Spray);
            let links =
                Links::new(&topology, &LinkConfig::all(Queue::DropTail(Limit::None)), 1, false)
                    .unwrap();
            let to_root = |n: u64| {
                std::iter::successors(Some(n), |&n| (n > 0).then(|| parents[n as usize]))
                    .collect::<Vec<u64>>()
            };
            for from in 0..switches {
                for to in 0..switches {
                    // Up to the first common ancestor, then down.
                    let (up, down) = (to_root(from), to_root(to));
                    let top = *up.iter().find(|n| down.contains(n)).unwrap();
                    let there = up.iter().take_while(|&&n| n != top).chain([&top]);
                    let back: Vec<&u64> = down.iter().take_while(|&&n| n != top).collect();
                    let expected: Vec<u32> =
                        there.chain(back.into_iter().rev()).map(|&n| n as u32).collect();
                    let hosts = [("h", from), ("i", to)]
                        .map(|(name, n)| topology.host(&format!("{name}{n:02}")).unwrap());
                    assert_eq!(path(&mut routes, &links, hosts[0], hosts[1]), expected);
                }
            }
        }
    }

    /// Each pair of racks has turns of its own, whether all pairs or those in use are remembered.
    #[test]
    fn spines_are_used_in_turn() {
        for racks in [3, MAX_IN_TABLE + 1] {
            let fabric = LeafSpine { racks, hosts_per_rack: 2, spines: 3, ..LeafSpine::FIG9 };
            let topology = Topology::leaf_spine(&fabric).unwrap();
            let mut routes = Routes::new(&topology, Routing::Spray);
            let links =
                Links::new(&topology, &LinkConfig::all(Queue::DropTail(Limit::None)), 1, false)
                    .unwrap();
            let mut through = |from: u32, to: u32| path(&mut routes, &links, from, to)[1] - racks;
            let last = 2 * racks - 1;
            let got = [
                through(0, 2),
                through(1, 3),
                through(0, last),
                through(2, 0),
                through(1, 2),
                through(0, 3),
                through(1, last),
            ];
            assert_eq!(got, [0, 1, 0, 0, 2, 0, 1]);
        }
    }
}
