// SPDX-License-Identifier: GPL-2.0-or-later
//! Deserialize scenarios and traffic from JSON and from Python's objects.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::apps::App;
use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::core::units::{In, Instant, Octets};
use crate::host::traffic::Source;
use crate::net::topology::Topology;
use crate::sim::scenario::Scenario;
use crate::sim::scheme::Scheme;
use crate::sim::workload::{Arrivals, FlowSpec, Flows, Sizes, Wish, Workload};

/// The serialized scenario, in which the workload's fields stand beside the others.
#[derive(Deserialize)]
#[serde(rename = "Scenario", deny_unknown_fields)]
struct WrittenScenario {
    topology: Topology,
    scheme: WrittenScheme,
    #[serde(default = "no_flows")]
    flows: Flows,
    #[serde(default)]
    sources: Vec<Source>,
    #[serde(default)]
    apps: Vec<App>,
    #[serde(default = "one")]
    seed: u64,
    #[serde(default, with = "In::<Instant>")]
    stop: Option<Ps>,
    #[serde(default = "one")]
    parts: u32,
}

fn no_flows() -> Flows {
    Flows::List(Vec::new())
}

fn one<N: From<u8>>() -> N {
    1.into()
}

impl<'de> Deserialize<'de> for Scenario {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        WrittenScenario::deserialize(from)?.try_into().map_err(D::Error::custom)
    }
}

impl TryFrom<WrittenScenario> for Scenario {
    type Error = Error;

    fn try_from(written: WrittenScenario) -> Result<Self> {
        let WrittenScenario { topology, scheme, flows, sources, apps, seed, stop, parts } = written;
        let scheme = match scheme {
            WrittenScheme::Scheme(scheme) => *scheme,
            WrittenScheme::Named(name) => Scheme::named(&name, &topology)
                .map_err(|error| Error::new(format!("scheme: {error}")))?,
        };
        Ok(Scenario {
            seed,
            stop,
            parts,
            ..Scenario::new(topology, scheme, Workload { flows, sources, apps })
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum WrittenScheme {
    Scheme(Box<Scheme>),
    Named(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum WrittenFlows {
    Poisson { sizes: Sizes, load: f64, count: u32 },
    Published { sizes: Sizes, load: f64, count: u32 },
    Flows(Vec<Row>),
}

/// A flow with its own settings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    #[serde(with = "In::<Instant>")]
    start: Ps,
    src: u32,
    dst: u32,
    packets: u32,
    #[serde(default)]
    level: Option<u8>,
    #[serde(default)]
    transport: u8,
    #[serde(default, with = "In::<Instant>")]
    deadline: Option<Ps>,
    #[serde(default, with = "In::<Octets>")]
    bytes: Option<u64>,
}

impl<'de> Deserialize<'de> for Flows {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        WrittenFlows::deserialize(from).map(Self::from)
    }
}

impl From<WrittenFlows> for Flows {
    fn from(written: WrittenFlows) -> Self {
        let own = |Row { start, src, dst, packets, level, transport, deadline, bytes }| {
            (FlowSpec { start, src, dst, packets }, Wish { level, transport, deadline, bytes })
        };
        match written {
            WrittenFlows::Poisson { sizes, load, count } => {
                Flows::Drawn { arrivals: Arrivals::Poisson, sizes, load, count }
            }
            WrittenFlows::Published { sizes, load, count } => {
                Flows::Drawn { arrivals: Arrivals::Published, sizes, load, count }
            }
            WrittenFlows::Flows(rows) => Flows::Own(rows.into_iter().map(own).collect()),
        }
    }
}

/// Sizes, by name or by points.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
enum WrittenSizes {
    #[serde(rename = "search")]
    Search,
    #[serde(rename = "mining")]
    Mining,
    Sizes {
        points: Vec<Point>,
    },
}

#[derive(Deserialize)]
#[serde(expecting = "a size and a share")]
struct Point(u32, f64);

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        WrittenSizes::deserialize(from)?.try_into().map_err(D::Error::custom)
    }
}

impl TryFrom<WrittenSizes> for Sizes {
    type Error = Error;

    fn try_from(written: WrittenSizes) -> Result<Self> {
        match written {
            WrittenSizes::Search => Ok(Sizes::web_search()),
            WrittenSizes::Mining => Ok(Sizes::data_mining()),
            WrittenSizes::Sizes { points } => Sizes::new(
                &points.iter().map(|Point(packets, share)| (*packets, *share)).collect::<Vec<_>>(),
            ),
        }
    }
}
