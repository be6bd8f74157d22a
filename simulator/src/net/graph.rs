// SPDX-License-Identifier: GPL-2.0-or-later
//! Arbitrary networks of switches, whose cables may fail; fat-trees among them.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::core::units::{In, Instant};
use crate::net::topology::{Cable, Change, Shape, Topology, Tree};

/// A failure of a cable, or of all cables between two switches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// A node at one end.
    pub one: String,
    /// The node at the other end.
    pub other: String,
    /// Start of the failure. Packets on the cable or waiting for it are lost; switches know at
    /// once.
    #[serde(with = "In::<Instant>")]
    pub down: Ps,
    /// End of the failure; none: for ever.
    #[serde(with = "In::<Instant>")]
    pub up: Option<Ps>,
}

/// A graph under construction: like a [`Tree`], but with loops. Packets take one of the shortest
/// working paths by the number of cables.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Tree,
    failures: Vec<Failure>,
}

/// The largest fat-tree has 524,288 hosts, and routes of 1 GB.
const MAX_PORTS: u32 = 128;

impl Graph {
    /// From switches, hosts and cables.
    pub fn new(nodes: Tree) -> Self {
        Graph { nodes, failures: Vec::new() }
    }

    /// Adds a failure.
    #[must_use]
    pub fn failure(mut self, failure: Failure) -> Self {
        self.failures.push(failure);
        self
    }

    /// The nodes of a k-ary fat-tree (Al-Fares, Loukissas and Vahdat, SIGCOMM'08, section 2.2): k
    /// pods of k/2 edge switches (`e0-0`: pod and place) and k/2 aggregation switches (`a0-0`),
    /// (k/2)^2 core switches (`c00000`), all with k ports, and k^3/4 hosts (`h00000`, `h000000`
    /// where they are more than 100,000), k/2 at each edge switch. Core switch i is joined to
    /// aggregation switch i / (k/2) of every pod.
    ///
    /// # Errors
    /// A k that is odd, or not between 2 and 128.
    pub fn fat_tree(k: u32, edge: Cable, trunk: Cable) -> Result<Tree> {
        if k % 2 == 1 || !(2..=MAX_PORTS).contains(&k) {
            return Err(Error::new(format!(
                "a fat-tree of switches with {k} ports needs an even number of them from 2 to \
                 {MAX_PORTS}"
            )));
        }
        let half = k / 2;
        // Padded, so that the order of names is that of places.
        let digits = (k * half * half - 1).to_string().len().max(5);
        let mut tree =
            (0..half * half).fold(Tree::new(), |tree, core| tree.switch(&format!("c{core:05}")));
        for pod in 0..k {
            for place in 0..half {
                let (down, up) = (format!("e{pod}-{place}"), format!("a{pod}-{place}"));
                tree = tree.switch(&down).switch(&up);
                for other in 0..half {
                    let host = format!("h{:0digits$}", (pod * half + place) * half + other);
                    tree = tree.host(&host).cable(&down, &host, edge).cable(
                        &down,
                        &format!("a{pod}-{other}"),
                        trunk,
                    );
                    tree = tree.cable(&up, &format!("c{:05}", place * half + other), trunk);
                }
            }
        }
        Ok(tree)
    }

    /// Builds the network. Nodes are numbered as in a tree.
    ///
    /// # Errors
    /// As for [`Tree::build`], but loops are allowed; a failure of a cable that does not exist, one
    /// that ends before it begins, or two that overlap on a cable; a network that is split before
    /// the first failure or after the last, because its hosts would send in vain for ever.
    pub fn build(&self) -> Result<Topology> {
        let mut topology = self.nodes.network(Shape::Graph)?;
        check_joined(&topology, &[], "a graph must be connected")?;
        let mut changes = Vec::new();
        for failure in &self.failures {
            let Failure { one, other, down, up } = failure;
            let place = format!("failure {one}--{other}");
            let links = self.nodes.links(&topology, one, other)?;
            if links.is_empty() {
                return Err(Error::new(format!("{place}: there is no such cable")));
            }
            if up.is_some_and(|up| up <= *down) {
                return Err(Error::new(format!("{place}: it ends before it begins")));
            }
            for link in links {
                changes.push(Change { at: *down, link, works: false });
                changes.extend(up.map(|at| Change { at, link, works: true }));
            }
        }
        changes.sort_unstable_by_key(|change| (change.link, change.at));
        let twice = changes.windows(2).any(|two| {
            two[0].link == two[1].link && (two[0].works == two[1].works || two[0].at == two[1].at)
        });
        if twice {
            return Err(Error::new("failures: two of the same cable overlap"));
        }
        changes.sort_unstable();
        let mut failed: Vec<u32> = Vec::new();
        for change in &changes {
            failed.retain(|link| *link != change.link);
            failed.extend((!change.works).then_some(change.link));
        }
        check_joined(&topology, &failed, "after all failures a graph must be connected")?;
        topology.changes = changes;
        Ok(topology)
    }
}

/// Checks that every host reaches every other.
fn check_joined(topology: &Topology, failed: &[u32], sentence: &str) -> Result<()> {
    let hosts = topology.hosts();
    let mut seen = vec![false; topology.switches as usize];
    let mut neighbours = vec![Vec::new(); topology.switches as usize];
    for (&(a, b, _), link) in topology.trunks.iter().zip((2 * hosts..).step_by(2)) {
        if !failed.contains(&link) {
            neighbours[a as usize].push(b);
            neighbours[b as usize].push(a);
        }
    }
    let mut next = vec![topology.hosts[0].0];
    while let Some(at) = next.pop() {
        if !std::mem::replace(&mut seen[at as usize], true) {
            next.extend(&neighbours[at as usize]);
        }
    }
    let reached = topology.hosts.iter().all(|(switch, _)| seen[*switch as usize])
        && failed.iter().all(|&link| link >= hosts);
    if reached {
        Ok(())
    } else {
        Err(Error::new(sentence))
    }
}
