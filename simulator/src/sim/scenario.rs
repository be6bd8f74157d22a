// SPDX-License-Identifier: GPL-2.0-or-later
//! All that a run depends on, in one.

use crate::core::error::Result;
use crate::core::time::Ps;
use crate::net::topology::Topology;
use crate::sim::engine::Simulation;
use crate::sim::outcome::Outcome;
use crate::sim::scheme::Scheme;
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
