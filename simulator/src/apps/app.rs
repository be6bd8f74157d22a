// SPDX-License-Identifier: GPL-2.0-or-later
//! The kinds of applications: settings, running state and results.

use serde::{Deserialize, Serialize};

use crate::apps::barrier::{Barrier, BarrierRun};
use crate::apps::bulk::{Bulk, BulkResult, BulkRun};
use crate::apps::collective::{Collective, CollectiveRun};
use crate::apps::context::Context;
use crate::apps::datagrams::Datagrams;
use crate::apps::map_reduce::{MapReduce, MapReduceResult, MapReduceRun};
use crate::apps::ping::{Ping, PingRun};
use crate::apps::ptp::{Ptp, PtpResult, PtpRun};
use crate::apps::requests::{Requests, RequestsResult, RequestsRun};
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
    /// Operations that wait for each other.
    Collective(Collective),
}

/// The result of an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum AppResult {
    /// Round trips.
    Ping(Latencies),
    /// Latency of each datagram.
    Datagrams(Latencies),
    /// Delivered bytes.
    Bulk(BulkResult),
    /// Latency of each request.
    Requests(RequestsResult),
    /// Duration of each iteration.
    Barrier(Latencies),
    /// Offsets and delays that slaves computed.
    Ptp(PtpResult),
    /// Times and fetches.
    MapReduce(MapReduceResult),
    /// Duration of each iteration.
    Collective(Latencies),
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
            App::Collective(spec) => spec.check(topology),
        }
    }

    /// Its level, and the bytes of its largest packet, given those of a full packet.
    pub(crate) fn largest_packet(&self, full: u16) -> (u8, u16) {
        let of_message = |bytes: u64| u16::try_from(bytes).map_or(full, |bytes| bytes.min(full));
        match self {
            App::Ping(Ping { level, bytes, .. })
            | App::Datagrams(Datagrams { level, bytes, .. })
            | App::Ptp(Ptp { level, bytes, .. }) => (*level, *bytes),
            App::Bulk(Bulk { level, .. }) | App::MapReduce(MapReduce { level, .. }) => {
                (*level, full)
            }
            App::Barrier(Barrier { level, bytes, .. }) => (*level, of_message((*bytes).into())),
            App::Requests(Requests { level, exchanges, .. }) => {
                let largest =
                    exchanges.iter().map(|exchange| exchange.request.max(exchange.response)).max();
                (*level, of_message(largest.unwrap_or(0).into()))
            }
            App::Collective(Collective { level, hosts, pattern, .. }) => {
                (*level, of_message(pattern.largest(hosts.len() as u32)))
            }
        }
    }
}

/// A running application.
#[derive(Debug)]
pub(crate) enum Running {
    Ping(PingRun),
    Datagrams(PingRun),
    Bulk(BulkRun),
    Requests(RequestsRun),
    Barrier(BarrierRun),
    Ptp(PtpRun),
    MapReduce(MapReduceRun),
    Collective(CollectiveRun),
}

impl Running {
    pub fn begin(app: &App, ctx: &mut Context) -> Self {
        match app.clone() {
            App::Ping(spec) => Running::Ping(PingRun::begin(spec, ctx)),
            App::Datagrams(spec) => Running::Datagrams(PingRun::one_way(&spec, ctx)),
            App::Bulk(spec) => Running::Bulk(BulkRun::begin(spec, ctx)),
            App::Requests(spec) => Running::Requests(RequestsRun::begin(spec, ctx)),
            App::Barrier(spec) => Running::Barrier(BarrierRun::begin(spec, ctx)),
            App::Ptp(spec) => Running::Ptp(PtpRun::begin(spec, ctx)),
            App::MapReduce(spec) => Running::MapReduce(MapReduceRun::begin(spec, ctx)),
            App::Collective(spec) => Running::Collective(CollectiveRun::begin(spec, ctx)),
        }
    }

    pub fn act(&mut self, event: Event, ctx: &mut Context) {
        match self {
            Running::Ping(app) | Running::Datagrams(app) => app.act(event, ctx),
            Running::Bulk(app) => app.act(event, ctx),
            Running::Requests(app) => app.act(event, ctx),
            Running::Barrier(app) => app.act(event, ctx),
            Running::Ptp(app) => app.act(event, ctx),
            Running::MapReduce(app) => app.act(event, ctx),
            Running::Collective(app) => app.act(event, ctx),
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
            Running::Collective(app) => AppResult::Collective(app.results()),
        }
    }
}
