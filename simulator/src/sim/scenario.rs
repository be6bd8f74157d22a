// SPDX-License-Identifier: GPL-2.0-or-later
//! Scenarios: everything that a run depends on.

use std::num::NonZero;
use std::thread;

use crate::core::error::{Error, Result};
use crate::core::memory::{check_memory, left, size};
use crate::core::time::{human, Ps};
use crate::host::congestion::Failures;
use crate::net::topology::Topology;
use crate::sim::engine::Simulation;
use crate::sim::outcome::Outcome;
use crate::sim::parallel::ParallelRun;
use crate::sim::progress::Progress;
use crate::sim::scheme::Scheme;
use crate::sim::trace::Hop;
use crate::sim::watch::Watch;
use crate::sim::workload::Workload;

/// Everything that a run depends on. It can be deserialized from JSON, or any other format of
/// serde:
///
/// ```
/// let written = r#"{
///     "topology": {"LeafSpine": {"racks": 1, "hosts_per_rack": 2, "spines": 0,
///                                "edge": {"rate": 10000000000, "delay": 1000000},
///                                "uplink": {"rate": 40000000000, "delay": 0}}},
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
    /// Queues, transports and limiters.
    pub scheme: Scheme,
    /// Traffic.
    pub workload: Workload,
    /// Seed of all random numbers.
    pub seed: u64,
    /// When to stop; none: when no event is left, or after 107 days.
    pub stop: Option<Ps>,
    /// Number of parts, which several cores can run in parallel. It changes no outcome.
    pub parts: u32,
}

impl Scenario {
    /// With seed 1, in one part, until no event is left.
    pub fn new(topology: Topology, scheme: Scheme, workload: Workload) -> Self {
        Scenario { topology, scheme, workload, seed: 1, stop: None, parts: 1 }
    }

    /// Runs the scenario.
    ///
    /// # Errors
    /// An invalid scheme or workload: one sentence that says where.
    pub fn run(&self) -> Result<Outcome> {
        let mut run = self.begin(&Watch::default())?;
        while run.run_some(CHECKED)? {}
        Ok(run.outcome())
    }

    /// Starts a run at time 0 that records what `watch` asks for.
    ///
    /// # Errors
    /// As for [`Scenario::run`]; and an invalid `watch`.
    pub fn begin(&self, watch: &Watch) -> Result<Run> {
        let Scenario { topology, scheme, workload, seed, stop, parts } = self;
        let copies = u64::from((*parts).max(1));
        let (ports, routes) = (topology.links().into(), topology.routes());
        for (count, what, each) in [(ports, "ports", PORT_BYTES), (routes, "routes", ROUTE_BYTES)] {
            check_memory("topology", count * copies, what, each, "make the network smaller")?;
        }
        let failures = Failures::begin();
        let of = match parts {
            1 => {
                let one = Simulation::watched(topology, scheme, workload, *seed, watch)?;
                if let Some(series) = one.series() {
                    let last = || workload.last_datagram().max(one.last_start());
                    series.check(stop.unwrap_or_else(last))?;
                }
                Of::One(Box::new(one))
            }
            _ if *watch != Watch::default() => {
                return Err(Error::new(format!(
                    "parts: a run in {parts} parts cannot be watched: watch it in one"
                )));
            }
            _ if !scheme.runs_in_parts() => {
                return Err(Error::new(
                    "parts: a run with a law in Python must have one part: write the law in \
                     WebAssembly",
                ));
            }
            _ => Of::Several(ParallelRun::new(topology, scheme, workload, *seed, *parts)?),
        };
        Ok(Run { of, stop: *stop, unchecked: CHECKED, failures })
    }
}

/// Events between two looks at the memory that is left: a tenth of a second.
const CHECKED: u64 = 1 << 20;
/// Bytes of a port with its link, before its queue has packets.
const PORT_BYTES: u64 = 48;
/// Bytes of a route in a graph, from a switch to a switch with hosts.
const ROUTE_BYTES: u64 = 6;
/// Bytes of a row of a trace: as much again that its list reserves, and 14 columns for a caller.
const HOP_BYTES: u64 = size_of::<Hop>() as u64 + 14 * 8;

/// A run in progress.
#[derive(Debug)]
pub struct Run {
    of: Of,
    stop: Option<Ps>,
    /// Events since memory was last looked at.
    unchecked: u64,
    failures: Failures,
}

#[derive(Debug)]
enum Of {
    One(Box<Simulation>),
    Several(ParallelRun),
}

impl Run {
    /// Runs about `most` events, or eight times as many for parallel runs, which start and end
    /// threads; returns whether there are more. Parallel runs use all cores available to the
    /// process.
    ///
    /// # Errors
    /// Not enough memory to go on: one sentence with what takes it. A law of the user's own that has
    /// failed.
    pub fn run_some(&mut self, most: u64) -> Result<bool> {
        self.check_memory(most)?;
        let last = self.stop.unwrap_or(Ps::MAX);
        let more = match &mut self.of {
            Of::One(simulation) => simulation.run_some(last, most),
            Of::Several(parallel) => parallel.run_some(
                last,
                most.saturating_mul(8),
                thread::available_parallelism().map_or(1, NonZero::get),
            ),
        };
        if let Some(failure) = self.failures.take() {
            return Err(Error::new(failure.sentence));
        }
        self.simulation().and_then(Simulation::series).map_or(Ok(more), |series| {
            series.check_room()?;
            Ok(more)
        })
    }

    /// Refuses to go on if memory has run out, or would for what a trace becomes.
    fn check_memory(&mut self, most: u64) -> Result<()> {
        self.unchecked = self.unchecked.saturating_add(most);
        if self.unchecked < CHECKED {
            return Ok(());
        }
        self.unchecked = 0;
        let rows = self.simulation().map_or(0, |simulation| simulation.trace().len() as u64);
        let left = left();
        if left > rows * HOP_BYTES {
            return Ok(());
        }
        let now = human(self.progress().now);
        Err(Error::new(if left > 0 {
            format!(
                "watch.trace: {rows} packets until {now} need {} to hand over, and this machine \
                 has {} left: trace fewer hosts, or stop earlier",
                size(u128::from(rows * HOP_BYTES)),
                size(left.into())
            )
        } else {
            format!(
                "memory: at {now} of the run this machine has none left for it: simulate fewer \
                 flows, a smaller network or a shorter time"
            )
        }))
    }

    /// The progress of the run.
    pub fn progress(&self) -> Progress {
        match &self.of {
            Of::One(simulation) => simulation.progress(self.stop),
            Of::Several(parallel) => parallel.progress(self.stop),
        }
    }

    /// The outcome so far.
    pub fn outcome(&self) -> Outcome {
        match &self.of {
            Of::One(simulation) => simulation.outcome(),
            Of::Several(parallel) => parallel.outcome(),
        }
    }

    /// The simulation, with everything that was watched; none for a parallel run.
    pub fn simulation(&self) -> Option<&Simulation> {
        match &self.of {
            Of::One(simulation) => Some(simulation),
            Of::Several(_) => None,
        }
    }
}
