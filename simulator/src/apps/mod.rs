// SPDX-License-Identifier: GPL-2.0-or-later
//! Applications: traffic that reacts to what the network delivers. Datagrams and messages on the
//! hosts' reliable transport; the level of their packets is the application's own. Messages between
//! two hosts use the connections that the pair keeps open
//! ([`Transport::connections`](crate::Transport::connections)), and open others. Sizes are bytes on
//! the wire, headers included.
//!
//! ```
//! use qjump_sim::apps::{App, AppResult, Ping};
//! use qjump_sim::{Gap, LeafSpine, Scenario, Scheme, Topology, Workload, MS};
//!
//! let ping = Ping {
//!     src: 0, dst: 1, level: 0, first: 0, gap: Gap::Every(MS), bytes: 100, count: 3,
//!     turnaround: 0,
//! };
//! let topology = Topology::leaf_spine(&LeafSpine::FIG9)?;
//! let workload = Workload::of_apps(vec![App::Ping(ping)]);
//! let scenario = Scenario::new(topology, Scheme::tcp(), workload);
//! let AppResult::Ping(round_trips) = &scenario.run()?.apps[0] else { unreachable!() };
//! assert_eq!(round_trips.times, [Some(11_120_000); 3]); // ps: four links of 2.7 us and 80 ns each
//! # Ok::<(), qjump_sim::Error>(())
//! ```

pub(crate) mod app;
pub(crate) mod app_set;
mod barrier;
mod bulk;
mod check;
mod collective;
mod context;
mod datagrams;
mod fan_in;
mod goal;
mod map_reduce;
mod operations;
mod ping;
mod ptp;
mod requests;
mod time;

pub use app::{App, AppResult};
pub use barrier::Barrier;
pub use bulk::{Bulk, BulkResult};
pub use collective::Collective;
pub use datagrams::Datagrams;
pub use fan_in::fan_in;
pub use goal::read_goal;
pub use map_reduce::{MapReduce, MapReduceResult};
pub use operations::{Operation, Pattern};
pub use ping::Ping;
pub use ptp::{Ptp, PtpResult};
pub use requests::{Arrival, Exchange, Requests, RequestsResult};
pub use time::{Latencies, Span};
