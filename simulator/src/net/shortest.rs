// SPDX-License-Identifier: GPL-2.0-or-later
//! Shortest paths of a graph by the number of cables: for each switch and destination switch, the
//! links that lead closer.
//!
//! A single link is stored in place. Sets of several links are stored once each, because switches
//! have few different ones.

use std::collections::{HashMap, VecDeque};

use crate::net::topology::Topology;

#[derive(Debug)]
pub(crate) struct Shortest {
    switches: usize,
    /// By switch: its place among switches with hosts.
    leaves: Vec<usize>,
    /// By destination's place and switch: a link, or, from the number of links on, a set's number.
    steps: Vec<u32>,
    links: u32,
    /// Sets of no link or of several.
    sets: Vec<Vec<u32>>,
    /// Indexed as `steps`: the next link in turn.
    turns: Vec<u16>,
}

impl Shortest {
    /// Without the failed trunks, given as one direction each.
    pub fn new(topology: &Topology, failed: &[u32]) -> Self {
        let switches = topology.switches as usize;
        let mut links = vec![Vec::new(); switches];
        for (&(a, b, _), there) in topology.trunks.iter().zip((2 * topology.hosts()..).step_by(2)) {
            if !failed.contains(&there) {
                links[a as usize].push((b as usize, there));
                links[b as usize].push((a as usize, there + 1));
            }
        }
        let mut leaves = vec![usize::MAX; switches];
        let mut ends = Vec::new();
        for &(switch, _) in &topology.hosts {
            let place = &mut leaves[switch as usize];
            if *place == usize::MAX {
                *place = ends.len();
                ends.push(switch as usize);
            }
        }
        let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut steps = Vec::with_capacity(switches * ends.len());
        for end in ends {
            let far = distances(&links, end);
            steps.extend((0..switches).map(|at| {
                let nearer =
                    |&&(next, _): &&(usize, u32)| far[at] != u32::MAX && far[next] < far[at];
                let mut set = links[at].iter().filter(nearer).map(|&(_, link)| link).peekable();
                match (set.next(), set.peek()) {
                    (Some(link), None) => link,
                    (first, _) => {
                        let number = topology.links() + known.len() as u32;
                        *known.entry(first.into_iter().chain(set).collect()).or_insert(number)
                    }
                }
            }));
        }
        let mut sets = vec![Vec::new(); known.len()];
        for (set, number) in known {
            sets[(number - topology.links()) as usize] = set;
        }
        Shortest {
            switches,
            leaves,
            turns: vec![0; steps.len()],
            steps,
            links: topology.links(),
            sets,
        }
    }

    /// The links from a switch towards another, and the turn.
    #[inline]
    pub fn next(&mut self, switch: u32, leaf: u32) -> (&[u32], &mut u16) {
        let place = self.leaves[leaf as usize] * self.switches + switch as usize;
        let step = &self.steps[place];
        let links = match step.checked_sub(self.links) {
            None => std::slice::from_ref(step),
            Some(set) => &self.sets[set as usize],
        };
        (links, &mut self.turns[place])
    }
}

/// Distance of each switch in cables.
fn distances(links: &[Vec<(usize, u32)>], from: usize) -> Vec<u32> {
    let mut far = vec![u32::MAX; links.len()];
    far[from] = 0;
    let mut next = VecDeque::from([from]);
    while let Some(at) = next.pop_front() {
        for &(other, _) in &links[at] {
            if far[other] == u32::MAX {
                far[other] = far[at] + 1;
                next.push_back(other);
            }
        }
    }
    far
}
