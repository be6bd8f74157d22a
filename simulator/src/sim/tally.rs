// SPDX-License-Identifier: GPL-2.0-or-later
//! What a simulation counts, and what comes out of it.

use crate::packet::KINDS;
use crate::sim::engine::{Simulation, HAND_OVER, INDEX};
use crate::sim::outcome::{ByKind, Counters, Latency, Outcome};

#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub sent: [u64; KINDS],
    pub delivered: [u64; KINDS],
    pub full: [u64; KINDS],
    pub pushed_out: [u64; KINDS],
    pub early: [u64; KINDS],
    pub limited: [u64; KINDS],
    pub hops: u64,
    pub events: u64,
    pub marked: u64,
    pub retransmitted: u64,
    pub timeouts: u64,
    /// Of data sent for the first time, and again.
    pub latency: [Latency; 2],
}

impl Simulation {
    /// What has come out so far.
    pub fn outcome(&self) -> Outcome {
        let tally = &self.tally;
        let packets = |what: &u32| what >> INDEX <= HAND_OVER >> INDEX;
        let counters = Counters {
            sent: ByKind::of(&tally.sent),
            delivered: ByKind::of(&tally.delivered),
            full: ByKind::of(&tally.full),
            pushed_out: ByKind::of(&tally.pushed_out),
            early: ByKind::of(&tally.early),
            limited: ByKind::of(&tally.limited),
            in_flight: self.wheel.pending().filter(packets).count() as u64 + self.links.waiting(),
            pauses: self.links.pauses.as_ref().map_or(0, |pauses| pauses.count),
            hops: tally.hops,
            events: tally.events,
            marked: tally.marked,
            retransmitted: tally.retransmitted,
            timeouts: tally.timeouts,
            latency: tally.latency[0],
            latency_again: tally.latency[1],
        };
        Outcome {
            flows: self.records.clone(),
            sources: self.sources.iter().map(|s| s.result).collect(),
            apps: self.apps.running().map(|app| app.results(&self.flows)).collect(),
            counters,
            end: self.now,
        }
    }
}
