// SPDX-License-Identifier: GPL-2.0-or-later
//! Applications: traffic that reacts to what the network delivers. Datagrams and messages on the hosts' reliable transport; the level
//! of their packets is the application's own. Messages between two hosts use the connections that the pair keeps open
//! ([`Transport::connections`](crate::Transport::connections)), and open others. Sizes are bytes on the wire, headers included.
//!
//! ```
//! use qjump_sim::apps::{App, AppResult, Ping};
//! use qjump_sim::{Gap, LeafSpine, Scenario, Scheme, Topology, Workload, MS};
//!
//! let ping = Ping { src: 0, dst: 1, level: 0, first: 0, gap: Gap::Every(MS), bytes: 100, count: 3, turnaround: 0 };
//! let scenario = Scenario {
//!     topology: Topology::leaf_spine(&LeafSpine::FIG9)?,
//!     scheme: Scheme::tcp(),
//!     workload: Workload::of_apps(vec![App::Ping(ping)]),
//!     seed: 1,
//!     stop: None,
//! };
//! let AppResult::Ping(round_trips) = &scenario.run()?.apps[0] else { unreachable!() };
//! assert_eq!(round_trips.times, [Some(11_120_000); 3]); // ps: four links of 2.7 us and 80 ns each
//! # Ok::<(), qjump_sim::Error>(())
//! ```

mod barrier;
mod bulk;
mod check;
mod datagrams;
mod fan_in;
mod map_reduce;
pub(crate) mod net;
mod ping;
mod ptp;
mod requests;

pub use barrier::Barrier;
pub use bulk::{Bulk, BulkResult};
pub use datagrams::Datagrams;
pub use fan_in::fan_in;
pub use map_reduce::{MapReduce, MapReduceResult};
pub use ping::Ping;
pub use ptp::{Ptp, PtpResult};
pub use requests::{Arrival, Exchange, Requests, RequestsResult};

use crate::core::error::Result;
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::host::flow::Flow;
use crate::net::topology::Topology;
use barrier::Meeting;
use bulk::Sending;
use map_reduce::Job;
use net::{Event, Net};
use ping::Pinging;
use ptp::Clocks;
use requests::Requesting;

/// An application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum App {
    /// Echo requests.
    Ping(Ping),
    /// Datagrams one way.
    Datagrams(Datagrams),
    /// An endless flow.
    Bulk(Bulk),
    /// Requests and responses.
    Requests(Requests),
    /// Iterations of all to all.
    Barrier(Barrier),
    /// Clock synchronisation.
    Ptp(Ptp),
    /// A job with a shuffle.
    MapReduce(MapReduce),
}

/// What an application yields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppResult {
    /// Round trips.
    Ping(Latencies),
    /// How long each was under way.
    Datagrams(Latencies),
    /// What was delivered.
    Bulk(BulkResult),
    /// From request to response.
    Requests(RequestsResult),
    /// How long each iteration took.
    Barrier(Latencies),
    /// What slaves computed.
    Ptp(PtpResult),
    /// Times and fetches.
    MapReduce(MapReduceResult),
}

/// A time of computing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// Always this.
    Fixed(Ps),
    /// Exponential with this mean.
    Exponential(Ps),
}

impl Span {
    fn mean(self) -> Ps {
        let (Span::Fixed(mean) | Span::Exponential(mean)) = self;
        mean
    }

    fn draw(self, rng: &mut Rng) -> Ps {
        match self {
            Span::Fixed(time) => time,
            Span::Exponential(mean) => rng.exponential(mean as f64),
        }
    }
}

/// How long things took, in the order of their start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Latencies {
    /// When each began.
    pub starts: Vec<Ps>,
    /// How long it took; none: it has not ended.
    pub times: Vec<Option<Ps>>,
    /// Of those that have not ended: lost for good, for a datagram was dropped. The others were under way.
    pub lost: u64,
}

impl Latencies {
    fn begun(&self) -> u32 {
        self.starts.len() as u32
    }

    /// Returns the number of the one that begins.
    fn begin(&mut self, now: Ps) -> u32 {
        self.starts.push(now);
        self.times.push(None);
        self.begun() - 1
    }

    fn end(&mut self, number: u32, now: Ps) {
        self.times[number as usize] = Some(now - self.starts[number as usize]);
    }
}

impl App {
    pub(crate) fn check(&self, topology: &Topology) -> Result<()> {
        match self {
            App::Ping(spec) => spec.check(topology),
            App::Datagrams(spec) => spec.check(topology),
            App::Bulk(spec) => spec.check(topology),
            App::Requests(spec) => spec.check(topology),
            App::Barrier(spec) => spec.check(topology),
            App::Ptp(spec) => spec.check(topology),
            App::MapReduce(spec) => spec.check(topology),
        }
    }
}

/// An application at some time of its life.
#[derive(Debug)]
pub(crate) enum Running {
    Ping(Pinging),
    Datagrams(Pinging),
    Bulk(Sending),
    Requests(Requesting),
    Barrier(Meeting),
    Ptp(Clocks),
    MapReduce(Job),
}

impl Running {
    pub fn begin(app: &App, net: &mut Net) -> Self {
        match app.clone() {
            App::Ping(spec) => Running::Ping(Pinging::begin(spec, net)),
            App::Datagrams(spec) => Running::Datagrams(Pinging::one_way(&spec, net)),
            App::Bulk(spec) => Running::Bulk(Sending::begin(spec, net)),
            App::Requests(spec) => Running::Requests(Requesting::begin(spec, net)),
            App::Barrier(spec) => Running::Barrier(Meeting::begin(spec, net)),
            App::Ptp(spec) => Running::Ptp(Clocks::begin(spec, net)),
            App::MapReduce(spec) => Running::MapReduce(Job::begin(spec, net)),
        }
    }

    pub fn act(&mut self, event: Event, net: &mut Net) {
        match self {
            Running::Ping(app) => app.act(event, net),
            Running::Datagrams(app) => app.act(event, net),
            Running::Bulk(app) => app.act(event, net),
            Running::Requests(app) => app.act(event, net),
            Running::Barrier(app) => app.act(event, net),
            Running::Ptp(app) => app.act(event, net),
            Running::MapReduce(app) => app.act(event, net),
        }
    }

    pub fn results(&self, flows: &[Flow]) -> AppResult {
        match self {
            Running::Ping(app) => AppResult::Ping(app.results()),
            Running::Datagrams(app) => AppResult::Datagrams(app.results()),
            Running::Bulk(app) => AppResult::Bulk(app.results(flows)),
            Running::Requests(app) => AppResult::Requests(app.results()),
            Running::Barrier(app) => AppResult::Barrier(app.results()),
            Running::Ptp(app) => AppResult::Ptp(app.results()),
            Running::MapReduce(app) => AppResult::MapReduce(app.results()),
        }
    }
}
