// SPDX-License-Identifier: GPL-2.0-or-later
//! The progress of a run.

use crate::core::time::Ps;
use crate::host::flow::Flow;
use crate::host::hosts::Hosts;
use crate::host::result::FlowResult;

/// The progress of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// The simulated time.
    pub now: Ps,
    /// Listed flows that have finished.
    pub finished: u64,
    /// Listed flows.
    pub flows: u64,
    /// The share of listed flows' packets that is acknowledged, or the share of the time until the
    /// run stops that has passed, whichever is more; 0 with neither flows nor a stop.
    pub share: f64,
}

impl Progress {
    /// Takes a stop time into account.
    pub(crate) fn until(self, stop: Option<Ps>) -> Self {
        let passed = stop.map_or(0.0, |stop| share(self.now, stop));
        Progress { share: self.share.max(passed), ..self }
    }

    pub(crate) fn of(now: Ps, stop: Option<Ps>, hosts: &Hosts) -> Self {
        let done = |flow: &&FlowResult| flow.finish.is_some();
        let listed = |key: u32| (key as usize) < hosts.records.len();
        let under_way = hosts.flows.iter().filter(|flow| !flow.finished() && listed(flow.key));
        let sum = |packets: &mut dyn Iterator<Item = u32>| packets.map(u64::from).sum::<u64>();
        let acknowledged = sum(&mut hosts.records.iter().filter(done).map(|flow| flow.packets))
            + sum(&mut under_way.map(Flow::acknowledged));
        let all = sum(&mut hosts.records.iter().map(|flow| flow.packets));
        Progress {
            now,
            finished: hosts.records.iter().filter(done).count() as u64,
            flows: hosts.records.len() as u64,
            share: share(acknowledged, all),
        }
        .until(stop)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}
