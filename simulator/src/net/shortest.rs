// SPDX-License-Identifier: GPL-2.0-or-later
//! Shortest paths of any graph, by the number of cables: for each switch and each switch of destination the links that are a step
//! of one. Where there is one link it stands there itself; of others few switches have many different sets, so that each is kept once.

use std::collections::{HashMap, VecDeque};

use crate::net::topology::Topology;

#[derive(Debug)]
pub(crate) struct Shortest {
    switches: usize,
    /// By switch that has hosts: its place among those.
    leaves: Vec<usize>,
    /// By place of the destination and switch: a link, or, after the numbers of all links, the number of a set.
    steps: Vec<u32>,
    links: u32,
    /// None, or several.
    sets: Vec<Vec<u32>>,
    /// As `steps`: whose turn it is.
    turns: Vec<u16>,
}

impl Shortest {
    /// Without those links of trunks that have `failed`, both directions of each.
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
                let nearer = |&&(next, _): &&(usize, u32)| far[at] != u32::MAX && far[next] < far[at];
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
        Shortest { switches, leaves, turns: vec![0; steps.len()], steps, links: topology.links(), sets }
    }

    /// The links from a switch to another, and whose turn it is.
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

/// How many cables each switch is from this one.
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
