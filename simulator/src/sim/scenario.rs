// SPDX-License-Identifier: GPL-2.0-or-later
//! All that a run depends on, in one.

use crate::core::error::Result;
use crate::core::time::Ps;
use crate::net::topology::Topology;
use crate::sim::engine::Simulation;
use crate::sim::outcome::Outcome;
use crate::sim::scheme::Scheme;
use crate::sim::workload::Workload;

/// All that a run depends on.
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
    /// When to stop; none: when nothing is left to happen.
    pub stop: Option<Ps>,
}

impl Scenario {
    /// Runs it.
    ///
    /// # Errors
    /// A scheme or workload that cannot be simulated, in a sentence that says where.
    pub fn run(&self) -> Result<Outcome> {
        let mut simulation = Simulation::new(&self.topology, &self.scheme, &self.workload, self.seed)?;
        simulation.run_until(self.stop.unwrap_or(Ps::MAX));
        Ok(simulation.outcome())
    }
}
