// SPDX-License-Identifier: GPL-2.0-or-later
//! What a run yields.

use crate::apps::AppResult;
use crate::core::time::Ps;
use crate::packet::KINDS;

/// One flow's fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowResult {
    /// When its first byte was handed over.
    pub start: Ps,
    /// When the sender got the last ACK; none: the run stopped before.
    pub finish: Option<Ps>,
    /// Data packets.
    pub packets: u32,
    /// Number of the sending host.
    pub src: u16,
    /// Number of the receiving host.
    pub dst: u16,
}

/// One source's datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceResult {
    /// Delivered datagrams.
    pub delivered: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sum of their delays from the limiter's release to delivery, in ps.
    pub delay_sum: u128,
    /// Largest of their delays.
    pub delay_max: Ps,
}

/// Packets by what they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByKind {
    /// Data of flows.
    pub data: u64,
    /// ACKs.
    pub acks: u64,
    /// pFabric's probes.
    pub probes: u64,
    /// Datagrams.
    pub datagrams: u64,
    /// Requests for a connection.
    pub syns: u64,
    /// Answers to them.
    pub syn_acks: u64,
}

impl ByKind {
    pub(crate) fn of(counts: &[u64; KINDS]) -> Self {
        let [data, acks, probes, datagrams, syns, syn_acks] = *counts;
        ByKind { data, acks, probes, datagrams, syns, syn_acks }
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.data + self.acks + self.probes + self.datagrams + self.syns + self.syn_acks
    }
}

/// Times that delivered packets took, from leaving the host's limiter to the receiving host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Latency {
    /// Packets.
    pub packets: u64,
    /// Sum of their times, in ps.
    pub sum: u128,
    /// Largest of them, exact below 35 s.
    pub max: Ps,
}

impl Latency {
    #[inline]
    pub(crate) fn add(&mut self, took: Ps) {
        self.packets += 1;
        self.sum += u128::from(took);
        self.max = self.max.max(took);
    }
}

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
    /// Dropped by a limiter.
    pub limited: ByKind,
    /// In limiters, queues, on links and in hosts that take them in when the run stopped, counted there: sent = delivered + full + pushed out + early +
    /// limited + in flight.
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

/// All that a run yields.
#[derive(Debug, Clone, PartialEq, Eq)]
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
