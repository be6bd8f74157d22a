// SPDX-License-Identifier: GPL-2.0-or-later
//! A packet-level simulator of datacentre networks, made to reproduce Figure 9 of QJump (Grosvenor
//! et al., NSDI'15).
//!
//! A [`Scenario`] is a network, a scheme, traffic and a seed; running it yields an [`Outcome`]:
//!
//! ```
//! use qjump_sim::{FlowSpec, Flows, LeafSpine, Scenario, Scheme, Topology, Workload};
//!
//! let flow = FlowSpec { start: 0, src: 0, dst: 1, packets: 6 };
//! let topology = Topology::leaf_spine(&LeafSpine::FIG9)?;
//! let workload = Workload::of_flows(Flows::List(vec![flow]));
//! let outcome = Scenario::new(topology, Scheme::dctcp(), workload).run()?;
//! assert_eq!(outcome.flows[0].finish, Some(19_264_000)); // ps
//! # Ok::<(), qjump_sim::Error>(())
//! ```
//!
//! # One seed, one result
//! The same scenario yields the same outcome on every machine. Time is whole picoseconds; events at
//! the same time happen in the order in which they were scheduled; windows and DCTCP's alpha are
//! fixed-point; random numbers are the crate's own, and their logarithm is `libm`'s, made of IEEE
//! 754's exact operations. Flows, sources and the nodes of a tree are sorted first, so that the
//! order in which they were given does not matter; that of applications numbers their random
//! numbers.

pub mod apps;
mod core;
mod host;
mod net;
mod packet;
mod queue;
mod sim;

pub use core::error::{Error, Result};
pub use core::memory::check_memory;
pub use core::quantiles::Quantiles;
pub use core::rng::Rng;
pub use core::stop::stop_if;
pub use core::time::{ps_per_byte, Ps, MS, NS, S, US};
pub use core::units;
pub use host::aequitas::Aequitas;
pub use host::congestion::*;
pub use host::limiter::{Budgets, Epochs, Limiter, Mode, PerHost};
pub use host::result::{FlowResult, Latency, SourceResult};
pub use host::traffic::{Bytes, Gap, Source};
pub use host::transport::{Rank, Recovery, Transport};
pub use net::graph::{Failure, Graph};
pub use net::loss::Loss;
pub use net::pause::Pause;
pub use net::routes::Routing;
pub use net::shared_buffer::SharedBuffer;
pub use net::stats::{End, PortResult};
pub use net::topology::{Cable, LeafSpine, Topology, Tree};
pub use net::topology_parse::WrittenTopology;
pub use packet::counts::ByKind;
pub use queue::aqm::Protection;
pub use queue::kinds::*;
pub use queue::pi_controller::PiController;
pub use queue::red::{Profile, Reading};
pub use sim::engine::Simulation;
pub use sim::fig9::network_epoch;
pub use sim::outcome::{Counters, Outcome};
pub use sim::parallel::ParallelRun;
pub use sim::progress::Progress;
pub use sim::regions::{Region, Regions};
pub use sim::scenario::{Run, Scenario};
pub use sim::scheme::{Scheme, Wire};
pub use sim::series::{Sender, Series, SERIES_BANDS};
pub use sim::trace::{FlowCounts, Hop, Traced};
pub use sim::watch::Watch;
pub use sim::workload::{Arrivals, FlowSpec, Flows, Sizes, Wish, Workload};
