// SPDX-License-Identifier: GPL-2.0-or-later
//! All that a run depends on, in one.

use std::num::NonZero;
use std::thread;

use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::net::topology::Topology;
use crate::sim::engine::Simulation;
use crate::sim::outcome::Outcome;
use crate::sim::parted::Parted;
use crate::sim::progress::Progress;
use crate::sim::scheme::Scheme;
use crate::sim::watch::Watch;
use crate::sim::workload::Workload;

/// All that a run depends on. It may be written in JSON, or any other format of serde's:
///
/// ```
/// let written = r#"{
///     "topology": {"LeafSpine": {"racks": 1, "hosts_per_rack": 2, "spines": 0,
///                                "edge": {"rate": 10000000000, "delay": 1000000}, "uplink": {"rate": 40000000000, "delay": 0}}},
///     "scheme": {"Named": "dctcp"},
///     "flows": {"Flows": [{"start": 0, "src": 0, "dst": 1, "packets": 1}]}
/// }"#;
/// let scenario: qjump_sim::Scenario = serde_json::from_str(written)?;
/// // A packet of 1,500 bytes crosses two links, and an ACK of 40 goes back.
/// let there_and_back = 2 * (1_200_000 + 1_000_000) + 2 * (32_000 + 1_000_000);
/// assert_eq!(scenario.run()?.flows[0].finish, Some(there_and_back));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The network.
    pub topology: Topology,
    /// What queues, hosts and limiters do.
    pub scheme: Scheme,
    /// Traffic.
    pub workload: Workload,
    /// Of all random numbers.
    pub seed: u64,
    /// When to stop; none: when nothing is left to happen, or after 107 days.
    pub stop: Option<Ps>,
    /// In how many parts it runs, which several cores can go on with at the same time. Parts do not know in which order packets of
    /// different ones were scheduled that come at the same time, so that another number may yield another outcome.
    pub parts: u32,
}

impl Scenario {
    /// Runs it.
    ///
    /// # Errors
    /// A scheme or workload that cannot be simulated, in a sentence that says where.
    pub fn run(&self) -> Result<Outcome> {
        let mut run = self.begin(&Watch::default())?;
        while run.run_some(u64::MAX) {}
        Ok(run.outcome())
    }

    /// At time 0, with what `watch` asks for.
    ///
    /// # Errors
    /// As of [`Scenario::run`]; and what of `watch` cannot be.
    pub fn begin(&self, watch: &Watch) -> Result<Run> {
        let Scenario { topology, scheme, workload, seed, stop, parts } = self;
        let of = match parts {
            1 => Of::One(Box::new(Simulation::watched(topology, scheme, workload, *seed, watch)?)),
            _ if *watch != Watch::default() => {
                return Err(Error::new(format!("parts: a run in {parts} parts is not watched: watch it in one")));
            }
            _ => Of::Several(Parted::new(topology, scheme, workload, *seed, *parts)?),
        };
        Ok(Run { of, stop: *stop })
    }
}

/// A scenario that runs.
#[derive(Debug)]
pub struct Run {
    of: Of,
    stop: Option<Ps>,
}

#[derive(Debug)]
enum Of {
    One(Box<Simulation>),
    Several(Parted),
}

impl Run {
    /// Runs about so many events, or in parts eight times as many, for which threads begin and end; returns whether there are more. Parts
    /// go on on all cores that the process may use.
    pub fn run_some(&mut self, most: u64) -> bool {
        let last = self.stop.unwrap_or(Ps::MAX);
        match &mut self.of {
            Of::One(simulation) => simulation.run_some(last, most),
            Of::Several(parted) => {
                parted.run_some(last, most.saturating_mul(8), thread::available_parallelism().map_or(1, NonZero::get))
            }
        }
    }

    /// How far it has come.
    pub fn progress(&self) -> Progress {
        match &self.of {
            Of::One(simulation) => simulation.progress(self.stop),
            Of::Several(parted) => parted.progress(self.stop),
        }
    }

    /// What has come out so far.
    pub fn outcome(&self) -> Outcome {
        match &self.of {
            Of::One(simulation) => simulation.outcome(),
            Of::Several(parted) => parted.outcome(),
        }
    }

    /// That of a run in one part, with all that was watched.
    pub fn simulation(&self) -> Option<&Simulation> {
        match &self.of {
            Of::One(simulation) => Some(simulation),
            Of::Several(_) => None,
        }
    }
}
