// SPDX-License-Identifier: GPL-2.0-or-later
//! Topologies: switches joined by cables, and hosts with one cable each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::quantiles::Quantiles;
use crate::core::time::{ps_per_byte, Ps};
use crate::core::units::{Duration, In};
use crate::net::loss::Loss;

/// A cable: the same rate and delay in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cable {
    /// Bit/s.
    pub rate: u64,
    /// Time from the last bit's departure to its arrival, including the processing of the packet at
    /// the end.
    #[serde(with = "In::<Duration>")]
    pub delay: Ps,
}

/// Settings of a leaf-spine network: racks of hosts, each rack's switch joined to every spine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeafSpine {
    /// Number of racks.
    pub racks: u32,
    /// Hosts in each rack.
    pub hosts_per_rack: u32,
    /// Number of spines.
    pub spines: u32,
    /// Cable between a host and its rack's switch.
    pub edge: Cable,
    /// Cable between a rack's switch and a spine.
    pub uplink: Cable,
}

/// The node at the end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    Host(u32),
    Switch(u32),
}

/// The shape of a network, which decides how routes are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    LeafSpine { racks: u32, spines: u32 },
    Tree,
    Graph,
}

/// A cable fails, or works again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Change {
    pub at: Ps,
    /// One of its links.
    pub link: u32,
    pub works: bool,
}

/// A network of numbered switches and hosts. Hosts are numbered 0, 1, ... by rack or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    pub(crate) switches: u32,
    /// Each host's switch and cable.
    pub(crate) hosts: Vec<(u32, Cable)>,
    /// Cables between switches, sorted.
    pub(crate) trunks: Vec<(u32, u32, Cable)>,
    pub(crate) shape: Shape,
    /// Jitter by host.
    pub(crate) jitter: BTreeMap<u32, Quantiles>,
    /// Cable changes of a graph, in the order of time.
    pub(crate) changes: Vec<Change>,
    /// By link: the share of packets that it loses, in millionths.
    pub(crate) losses: BTreeMap<u32, u32>,
    names: BTreeMap<String, u32>,
}

/// Host numbers fit 24 bits of a packet.
const MAX_HOSTS: u32 = 1 << 24;
/// Spines fit 16 bits.
const MAX_SPINES: u32 = u16::MAX as u32;
/// Most cables between racks and spines: with them a simulation takes 600 MB before anything is
/// sent.
const MAX_TRUNKS: u64 = 1 << 23;

impl Topology {
    /// A leaf-spine network; host `i` is in rack `i / hosts_per_rack`.
    ///
    /// # Errors
    /// No rack or no host; several racks without a spine; more than 16,777,216 hosts, 65,535 spines
    /// or 8,388,608 cables between racks and spines; a rate that [`ps_per_byte`] refuses.
    pub fn leaf_spine(of: &LeafSpine) -> Result<Self> {
        let hosts = u64::from(of.racks) * u64::from(of.hosts_per_rack);
        if hosts == 0 {
            return Err(Error::new("a leaf-spine network needs a rack with a host"));
        }
        if of.spines == 0 && of.racks > 1 {
            return Err(Error::new("a leaf-spine network of several racks needs a spine"));
        }
        check_count(hosts)?;
        let trunks = u64::from(of.racks) * u64::from(of.spines);
        if of.spines > MAX_SPINES || trunks > MAX_TRUNKS {
            return Err(Error::new(format!(
                "a network of {} spines and {trunks} cables to them is larger than the most, \
                 {MAX_SPINES} and {MAX_TRUNKS}",
                of.spines
            )));
        }
        check_cable("edge", &of.edge)?;
        check_cable("uplink", &of.uplink)?;
        let trunks = (0..of.racks)
            .flat_map(|rack| (0..of.spines).map(move |spine| (rack, of.racks + spine, of.uplink)))
            .collect();
        Ok(Topology {
            switches: of.racks + of.spines,
            hosts: (0..hosts as u32).map(|host| (host / of.hosts_per_rack, of.edge)).collect(),
            trunks,
            shape: Shape::LeafSpine { racks: of.racks, spines: of.spines },
            jitter: BTreeMap::new(),
            changes: Vec::new(),
            losses: BTreeMap::new(),
            names: BTreeMap::new(),
        })
    }

    /// Number of hosts.
    pub fn hosts(&self) -> u32 {
        self.hosts.len() as u32
    }

    /// Number of links, two for each cable.
    pub(crate) fn links(&self) -> u32 {
        2 * (self.hosts.len() + self.trunks.len()) as u32
    }

    /// Number of routes in the table of a graph, from each switch to each with hosts; others have
    /// none.
    pub(crate) fn routes(&self) -> u64 {
        if self.shape != Shape::Graph {
            return 0;
        }
        let mut ends: Vec<u32> = self.hosts.iter().map(|(switch, _)| *switch).collect();
        ends.sort_unstable();
        ends.dedup();
        ends.len() as u64 * u64::from(self.switches)
    }

    /// The number of the host with this name, in a tree or graph.
    pub fn host(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    /// Gives a host jitter: extra time drawn from `quantiles` for each incoming packet; packets of
    /// one flow stay in order.
    ///
    /// # Errors
    /// There is no such host, or it has jitter already.
    pub fn set_jitter(&mut self, host: u32, quantiles: Quantiles) -> Result<()> {
        if host >= self.hosts() {
            return Err(Error::new(format!("there is no host {host} among {}", self.hosts())));
        }
        match self.jitter.insert(host, quantiles) {
            None => Ok(()),
            Some(_) => Err(Error::new(format!("host {host} has quantiles already"))),
        }
    }

    /// The most time that cables and jitter take on a path between two hosts.
    pub(crate) fn longest_way(&self) -> u128 {
        let (mut most, mut sum) = (0, 0);
        for (_, _, cable) in &self.trunks {
            most = cable.delay.max(most);
            sum += u128::from(cable.delay);
        }
        // No path crosses a switch twice.
        let trunks = match self.shape {
            Shape::LeafSpine { .. } => 2,
            Shape::Tree | Shape::Graph => self.switches - 1,
        };
        let edge = self.hosts.iter().map(|(_, cable)| cable.delay).max().unwrap_or(0);
        let drawn = self.jitter.values().map(Quantiles::most).max().unwrap_or(0);
        2 * u128::from(edge) + (u128::from(most) * u128::from(trunks)).min(sum) + u128::from(drawn)
    }

    /// Picoseconds per byte of the slowest host cable, on which loads and levels are based.
    pub(crate) fn slowest_edge(&self) -> Result<u32> {
        let rate = self.hosts.iter().map(|(_, cable)| cable.rate).min();
        ps_per_byte(rate.unwrap_or(0))
    }
}

fn check_count(hosts: u64) -> Result<()> {
    if hosts > u64::from(MAX_HOSTS) {
        return Err(Error::new(format!(
            "a network of {hosts} hosts is larger than the most, {MAX_HOSTS}"
        )));
    }
    Ok(())
}

fn check_cable(name: &str, cable: &Cable) -> Result<()> {
    ps_per_byte(cable.rate).map(|_| ()).map_err(|e| Error::new(format!("{name}: {e}")))
}

/// A tree under construction: nodes have names, in any order; cables define the structure.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    switches: Vec<String>,
    hosts: Vec<String>,
    cables: Vec<(String, String, Cable)>,
    pub(crate) losses: Vec<Loss>,
}

impl Tree {
    /// An empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a switch.
    #[must_use]
    pub fn switch(mut self, name: &str) -> Self {
        self.switches.push(name.to_owned());
        self
    }

    /// Adds a host.
    #[must_use]
    pub fn host(mut self, name: &str) -> Self {
        self.hosts.push(name.to_owned());
        self
    }

    /// Joins two nodes.
    #[must_use]
    pub fn cable(mut self, one: &str, other: &str, cable: Cable) -> Self {
        self.cables.push((one.to_owned(), other.to_owned(), cable));
        self
    }

    /// Lets a cable lose packets at random.
    #[must_use]
    pub fn loss(mut self, loss: Loss) -> Self {
        self.losses.push(loss);
        self
    }

    /// Names of its switches, in the order of adding.
    pub fn switches(&self) -> &[String] {
        &self.switches
    }

    /// Names of its hosts.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Its cables.
    pub fn cables(&self) -> &[(String, String, Cable)] {
        &self.cables
    }

    /// Builds the network. Nodes are numbered in the order of their names, so that the order of
    /// adding does not matter.
    ///
    /// # Errors
    /// A name used twice, or unknown to a cable; a host without a cable or with several; a cable
    /// between two hosts, or from a switch to itself; a loop; parts that are not joined; more than
    /// 16,777,216 hosts; a rate that [`ps_per_byte`] refuses.
    pub fn build(&self) -> Result<Topology> {
        let topology = self.network(Shape::Tree)?;
        check_tree(self.switches.len(), &topology.trunks)?;
        Ok(topology)
    }

    /// Builds the network without checking that it is a tree.
    pub(crate) fn network(&self, shape: Shape) -> Result<Topology> {
        let switches = numbered(&self.switches)?;
        let names = numbered(&self.hosts)?;
        check_count(names.len() as u64)?;
        if let Some(name) = names.keys().find(|name| switches.contains_key(*name)) {
            return Err(Error::new(format!("{name}: both a switch and a host have this name")));
        }
        if names.is_empty() {
            return Err(Error::new(format!(
                "a {} has no host",
                if shape == Shape::Tree { "tree" } else { "graph" }
            )));
        }
        let mut hosts = vec![None; names.len()];
        let mut trunks = Vec::new();
        for (one, other, cable) in &self.cables {
            let place = format!("cable {one}--{other}");
            check_cable(&place, cable)?;
            for end in [one, other] {
                if !switches.contains_key(end) && !names.contains_key(end) {
                    return Err(Error::new(format!("{place}: there is no node {end}")));
                }
            }
            match (switches.get(one), switches.get(other)) {
                (Some(a), Some(b)) if a == b => {
                    return Err(Error::new(format!("{place}: joins a switch to itself")))
                }
                (Some(&a), Some(&b)) => trunks.push((a.min(b), a.max(b), *cable)),
                (None, None) => return Err(Error::new(format!("{place}: joins two hosts"))),
                (Some(&switch), None) => attach(&mut hosts, names[other], switch, *cable, &place)?,
                (None, Some(&switch)) => attach(&mut hosts, names[one], switch, *cable, &place)?,
            }
        }
        if let Some((name, _)) = names.iter().find(|(_, &host)| hosts[host as usize].is_none()) {
            return Err(Error::new(format!("host {name}: has no cable")));
        }
        trunks.sort_unstable();
        let mut topology = Topology {
            switches: switches.len() as u32,
            hosts: hosts.into_iter().flatten().collect(),
            trunks,
            shape,
            jitter: BTreeMap::new(),
            changes: Vec::new(),
            losses: BTreeMap::new(),
            names,
        };
        self.add_losses(&mut topology)?;
        Ok(topology)
    }

    /// Number of the switch of this name.
    pub(crate) fn switch_number(&self, name: &str) -> Result<Option<u32>> {
        Ok(numbered(&self.switches)?.get(name).copied())
    }
}

fn numbered(names: &[String]) -> Result<BTreeMap<String, u32>> {
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    if let Some([name, _]) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::new(format!("{name}: two nodes have this name")));
    }
    Ok(sorted.into_iter().cloned().zip(0..).collect())
}

fn attach(
    hosts: &mut [Option<(u32, Cable)>],
    host: u32,
    switch: u32,
    cable: Cable,
    place: &str,
) -> Result<()> {
    match hosts[host as usize].replace((switch, cable)) {
        None => Ok(()),
        Some(_) => Err(Error::new(format!("{place}: its host has a cable already"))),
    }
}

/// A graph is a tree if it is connected by one cable fewer than it has nodes.
fn check_tree(switches: usize, trunks: &[(u32, u32, Cable)]) -> Result<()> {
    let mut root: Vec<usize> = (0..switches).collect();
    let find = |root: &[usize], mut at: usize| {
        while root[at] != at {
            at = root[at];
        }
        at
    };
    for (a, b, _) in trunks {
        let (a, b) = (find(&root, *a as usize), find(&root, *b as usize));
        if a == b {
            return Err(Error::new("the cables between a tree's switches close a loop"));
        }
        root[a] = b;
    }
    if trunks.len() + 1 != switches {
        return Err(Error::new("a tree must be connected"));
    }
    Ok(())
}
