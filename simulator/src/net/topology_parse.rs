// SPDX-License-Identifier: GPL-2.0-or-later
//! Deserialize topologies from JSON and from Python's objects.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::core::error::{Error, Result};
use crate::core::quantiles::Quantiles;
use crate::net::graph::{Failure, Graph};
use crate::net::loss::Loss;
use crate::net::topology::{Cable, LeafSpine, Topology, Tree};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum Written {
    LeafSpine {
        racks: u32,
        hosts_per_rack: u32,
        spines: u32,
        edge: Cable,
        uplink: Cable,
        #[serde(default)]
        jitter: Vec<Drawing<u32>>,
    },
    Tree {
        switches: Vec<String>,
        hosts: Vec<String>,
        cables: Vec<Joined>,
        #[serde(default)]
        jitter: Vec<Drawing<String>>,
        #[serde(default)]
        losses: Vec<Loss>,
    },
    Graph {
        switches: Vec<String>,
        hosts: Vec<String>,
        cables: Vec<Joined>,
        #[serde(default)]
        jitter: Vec<Drawing<String>>,
        #[serde(default)]
        losses: Vec<Loss>,
        #[serde(default)]
        failures: Vec<Failure>,
    },
}

/// A host and its jitter.
#[derive(Deserialize)]
#[serde(expecting = "a host and its Quantiles")]
struct Drawing<T>(T, Quantiles);

#[derive(Deserialize)]
#[serde(expecting = "two names and a Cable")]
struct Joined(String, String, Cable);

impl<'de> Deserialize<'de> for Topology {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        WrittenTopology::deserialize(from)?.build().map_err(D::Error::custom)
    }
}

/// A topology as it is written. To build it from this takes seconds if it is large.
pub struct WrittenTopology(Written);

impl<'de> Deserialize<'de> for WrittenTopology {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        Written::deserialize(from).map(WrittenTopology)
    }
}

impl WrittenTopology {
    /// Builds the topology.
    ///
    /// # Errors
    /// Those of [`Topology::leaf_spine`], [`Tree::build`] and [`Graph::build`].
    pub fn build(self) -> Result<Topology> {
        self.0.try_into()
    }
}

impl TryFrom<Written> for Topology {
    type Error = Error;

    fn try_from(written: Written) -> Result<Self> {
        match written {
            Written::LeafSpine { racks, hosts_per_rack, spines, edge, uplink, jitter } => {
                let topology = Topology::leaf_spine(&LeafSpine {
                    racks,
                    hosts_per_rack,
                    spines,
                    edge,
                    uplink,
                })?;
                with_jitter(topology, jitter, |_, host| Ok(*host))
            }
            Written::Tree { switches, hosts, cables, jitter, losses } => {
                with_jitter(nodes(&switches, &hosts, &cables, losses).build()?, jitter, by_name)
            }
            Written::Graph { switches, hosts, cables, jitter, losses, failures } => {
                let graph = failures
                    .into_iter()
                    .fold(Graph::new(nodes(&switches, &hosts, &cables, losses)), Graph::failure);
                with_jitter(graph.build()?, jitter, by_name)
            }
        }
    }
}

fn nodes(switches: &[String], hosts: &[String], cables: &[Joined], losses: Vec<Loss>) -> Tree {
    let tree = switches.iter().fold(Tree::new(), |tree, name| tree.switch(name));
    let tree = hosts.iter().fold(tree, |tree, name| tree.host(name));
    let tree =
        cables.iter().fold(tree, |tree, Joined(one, other, cable)| tree.cable(one, other, *cable));
    losses.into_iter().fold(tree, Tree::loss)
}

fn by_name(topology: &Topology, name: &String) -> Result<u32> {
    topology.host(name).ok_or_else(|| Error::new(format!("there is no host {name}")))
}

/// `number` finds the number of a host.
fn with_jitter<T>(
    mut topology: Topology,
    jitter: Vec<Drawing<T>>,
    number: fn(&Topology, &T) -> Result<u32>,
) -> Result<Topology> {
    for (place, Drawing(host, quantiles)) in jitter.into_iter().enumerate() {
        number(&topology, &host)
            .and_then(|host| topology.set_jitter(host, quantiles))
            .map_err(|error| Error::new(format!("jitter[{place}]: {error}")))?;
    }
    Ok(topology)
}
