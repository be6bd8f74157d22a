// SPDX-License-Identifier: GPL-2.0-or-later
//! Any of the applications.

use serde::{Deserialize, Serialize};

use crate::apps::barrier::{Barrier, Meeting};
use crate::apps::bulk::{Bulk, BulkResult, Sending};
use crate::apps::datagrams::Datagrams;
use crate::apps::map_reduce::{Job, MapReduce, MapReduceResult};
use crate::apps::net::Net;
use crate::apps::ping::{Ping, Pinging};
use crate::apps::ptp::{Clocks, Ptp, PtpResult};
use crate::apps::requests::{Requesting, Requests, RequestsResult};
use crate::apps::time::Latencies;
use crate::core::error::Result;
use crate::host::flow::Flow;
use crate::host::sockets::Event;
use crate::net::topology::Topology;

/// An application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

    /// Its level, and the bytes of its largest packet where a full one has `full`.
    pub(crate) fn largest_packet(&self, full: u16) -> (u8, u16) {
        let of_message = |bytes: u32| u16::try_from(bytes).map_or(full, |bytes| bytes.min(full));
        match self {
            App::Ping(Ping { level, bytes, .. })
            | App::Datagrams(Datagrams { level, bytes, .. })
            | App::Ptp(Ptp { level, bytes, .. }) => (*level, *bytes),
            App::Bulk(Bulk { level, .. }) | App::MapReduce(MapReduce { level, .. }) => (*level, full),
            App::Barrier(Barrier { level, bytes, .. }) => (*level, of_message(*bytes)),
            App::Requests(Requests { level, exchanges, .. }) => {
                let largest = exchanges.iter().map(|exchange| exchange.request.max(exchange.response)).max();
                (*level, of_message(largest.unwrap_or(0)))
            }
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
            Running::Ping(app) | Running::Datagrams(app) => app.act(event, net),
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
