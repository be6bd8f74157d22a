// SPDX-License-Identifier: GPL-2.0-or-later
//! A packet-level simulator of datacentre networks, made to reproduce Figure 9 of QJump (Grosvenor et al., NSDI'15).
//!
//! A [`Scenario`] is a network, a scheme, traffic and a seed; running it yields an [`Outcome`]:
//!
//! ```
//! use qjump_sim::{FlowSpec, Flows, LeafSpine, Scenario, Scheme, Topology, Workload};
//!
//! let flow = FlowSpec { start: 0, src: 0, dst: 1, packets: 6 };
//! let scenario = Scenario {
//!     topology: Topology::leaf_spine(&LeafSpine::FIG9)?,
//!     scheme: Scheme::dctcp(),
//!     workload: Workload::of_flows(Flows::List(vec![flow])),
//!     seed: 1,
//!     stop: None,
//! };
//! let outcome = scenario.run()?;
//! assert_eq!(outcome.flows[0].finish, Some(19_264_000)); // ps
//! # Ok::<(), qjump_sim::Error>(())
//! ```
//!
//! # One seed, one result
//! The same scenario yields the same outcome on every machine. Time is whole picoseconds; events at the same time happen in the
//! order in which they were scheduled; windows and DCTCP's alpha are fixed-point; random numbers are the crate's own, and their
//! logarithm is `libm`'s, made of IEEE 754's exact operations. Flows, sources and the nodes of a tree are sorted first, so that
//! the order in which they were given does not matter; that of applications numbers their random numbers.

pub mod apps;
mod aqm;
mod codel;
mod cubic;
mod emitter;
mod engine;
mod error;
mod flow;
mod gate;
mod hosts;
mod jitter;
mod limiter;
mod link;
mod outcome;
mod packet;
mod path;
mod pause;
mod port;
mod queue;
mod receiver;
mod red;
mod regions;
mod reply;
mod rng;
mod routes;
mod scheme;
mod stats;
mod tally;
mod time;
mod topology;
mod transport;
mod wheel;
mod window;
mod workload;

pub use aqm::{CoDel, Pause, Profile, Protection, Reading, Red};
pub use engine::Simulation;
pub use error::{Error, Result};
pub use jitter::Quantiles;
pub use limiter::{Budgets, Epochs, Limiter, Mode, PerHost};
pub use outcome::{ByKind, Counters, FlowResult, Latency, Outcome, SourceResult};
pub use regions::{Region, Regions};
pub use rng::Rng;
pub use routes::Routing;
pub use scheme::{network_epoch, Congestion, Limit, Queue, Rank, Scheme, Transport};
pub use stats::{End, PortResult};
pub use time::{ps_per_byte, Ps, MS, NS, S, US};
pub use topology::{Cable, LeafSpine, Topology, Tree};
pub use workload::{Bytes, FlowSpec, Flows, Gap, Sizes, Source, Workload};

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
