// SPDX-License-Identifier: GPL-2.0-or-later
//! What a run yields.

use std::ops::AddAssign;

use serde::Serialize;

use crate::apps::running::Apps;
use crate::apps::AppResult;
use crate::core::event::{HAND_OVER, INDEX};
use crate::core::time::Ps;
use crate::host::hosts::Hosts;
use crate::host::result::{FlowResult, Latency, SourceResult};
use crate::net::network::Network;
use crate::packet::counts::ByKind;

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Handed over by the hosts' transports, every retransmission anew.
    pub sent: ByKind,
    /// Arrived at the host they were for.
    pub delivered: ByKind,
    /// Dropped because a queue was full.
    pub full: ByKind,
    /// Pushed out of a queue by what mattered more.
    pub pushed_out: ByKind,
    /// Dropped early, by active queue management.
    pub early: ByKind,
    /// Lost on a link that failed, before one, or because no other led to the host it was for.
    pub failed: ByKind,
    /// Dropped by a limiter.
    pub limited: ByKind,
    /// In limiters, queues, on links and in hosts that take them in when the run stopped, counted there: sent = delivered + full + pushed out + early +
    /// failed + limited + in flight.
    pub in_flight: u64,
    /// How often a switch's port asked the other end of its cable to pause.
    pub pauses: u64,
    /// Packets that finished crossing a link.
    pub hops: u64,
    /// Events.
    pub events: u64,
    /// Data packets delivered with a mark.
    pub marked: u64,
    /// Data packets sent again.
    pub retransmitted: u64,
    /// Expired retransmission timers, those of SYNs included.
    pub timeouts: u64,
    /// Of data sent for the first time.
    pub latency: Latency,
    /// Of data sent again.
    pub latency_again: Latency,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.delivered += other.delivered;
        self.full += other.full;
        self.pushed_out += other.pushed_out;
        self.early += other.early;
        self.failed += other.failed;
        self.limited += other.limited;
        self.in_flight += other.in_flight;
        self.pauses += other.pauses;
        self.hops += other.hops;
        self.events += other.events;
        self.marked += other.marked;
        self.retransmitted += other.retransmitted;
        self.timeouts += other.timeouts;
        self.latency += other.latency;
        self.latency_again += other.latency_again;
    }
}

/// All that a run yields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Those of the list or of the distribution, in the order of start, source, destination and size.
    pub flows: Vec<FlowResult>,
    /// In the sources' sorted order.
    pub sources: Vec<SourceResult>,
    /// In the order of the workload's.
    pub apps: Vec<AppResult>,
    /// Counters.
    pub counters: Counters,
    /// When the run stopped: the time of its last event, or the one asked for.
    pub end: Ps,
}

impl Outcome {
    pub(crate) fn of(network: &Network, hosts: &Hosts, apps: &Apps, events: u64) -> Self {
        let (passed, handled) = (&network.passed, &hosts.handled);
        let packets = |what: &u32| what >> INDEX <= HAND_OVER >> INDEX;
        let counters = Counters {
            sent: ByKind::of(&handled.sent),
            delivered: ByKind::of(&handled.delivered),
            full: ByKind::of(&passed.full),
            pushed_out: ByKind::of(&passed.pushed_out),
            early: ByKind::of(&passed.early),
            failed: ByKind::of(&passed.failed),
            limited: ByKind::of(&handled.limited),
            in_flight: network.wheel.pending().filter(packets).count() as u64 + network.waiting(),
            pauses: network.pauses(),
            hops: passed.hops,
            events,
            marked: handled.marked,
            retransmitted: handled.retransmitted,
            timeouts: handled.timeouts,
            latency: handled.latency[0],
            latency_again: handled.latency[1],
        };
        Outcome {
            flows: hosts.records.clone(),
            sources: hosts.sources.iter().map(|source| source.result).collect(),
            apps: apps.results(hosts),
            counters,
            end: network.now,
        }
    }
}
