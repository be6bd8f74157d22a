// SPDX-License-Identifier: GPL-2.0-or-later
//! The outcome of a run: flows, sources, applications and counters.

use std::ops::AddAssign;

use serde::Serialize;

use crate::apps::app_set::AppSet;
use crate::apps::AppResult;
use crate::core::event::{HAND_OVER, INDEX};
use crate::core::time::Ps;
use crate::host::hosts::Hosts;
use crate::host::result::{FlowResult, Latency, SourceResult};
use crate::net::network::Network;
use crate::packet::counts::ByKind;

/// Counters of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Sent by the hosts' transports; each retransmission counts.
    pub sent: ByKind,
    /// Delivered to the destination host.
    pub delivered: ByKind,
    /// Dropped because a queue was full.
    pub full: ByKind,
    /// Evicted from a queue by more urgent packets.
    pub pushed_out: ByKind,
    /// Dropped early, by active queue management.
    pub early: ByKind,
    /// Lost on a failed link, before one, for lack of a route, or on a cable that loses packets.
    pub failed: ByKind,
    /// Dropped by a limiter.
    pub limited: ByKind,
    /// In limiters, queues, links and hosts' jitter when the run stopped. sent = delivered + full +
    /// pushed out + early + failed + limited + in flight.
    pub in_flight: u64,
    /// Pauses requested by switch ports.
    pub pauses: u64,
    /// Packets that finished crossing a link.
    pub hops: u64,
    /// Events.
    pub events: u64,
    /// Data packets delivered with a mark.
    pub marked: u64,
    /// Data packets retransmitted.
    pub retransmitted: u64,
    /// Timeouts, those of SYNs included.
    pub timeouts: u64,
    /// Latency of first transmissions of data.
    pub latency: Latency,
    /// Latency of retransmissions.
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

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Listed or drawn flows, in the order of start, source, destination and size.
    pub flows: Vec<FlowResult>,
    /// Sources, in sorted order.
    pub sources: Vec<SourceResult>,
    /// Applications, in the workload's order.
    pub apps: Vec<AppResult>,
    /// Counters.
    pub counters: Counters,
    /// When the run stopped: the time of its last event, or the requested one.
    pub end: Ps,
}

impl Outcome {
    pub(crate) fn of(network: &Network, hosts: &Hosts, apps: &AppSet, events: u64) -> Self {
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
