// SPDX-License-Identifier: GPL-2.0-or-later
//! Time series of queues, windows and counters, sampled between events: sampling adds no events.

use crate::core::time::Ps;
use crate::host::hosts::Hosts;
use crate::net::network::Network;
use crate::queue::traits::BANDS;

/// Bands of a queue with levels: ACKs, and levels 0 to 7.
pub const SERIES_BANDS: usize = BANDS;

/// The sender of an unfinished flow at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sender {
    /// Place of the sample.
    pub sample: u32,
    /// The flow's place in the list; an application's flow has its path key, above all places.
    pub flow: u32,
    /// Packets that may be under way.
    pub window: u32,
    /// Packets acknowledged cumulatively.
    pub acknowledged: u32,
}

/// Samples of a network, each after everything that happened at its instant. Values of ports are in
/// the order of [`crate::Simulation::ports`], port by port within an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Interval of samples.
    pub every: Ps,
    until: Ps,
    most: usize,
    /// Times of the samples, from 0 on.
    pub at: Vec<Ps>,
    /// Number of ports.
    pub ports: u32,
    /// Bytes that each port had accepted and not sent.
    pub queued: Vec<u64>,
    /// Waiting bytes of each of [`SERIES_BANDS`], without the packet being sent; 0 for queues
    /// without levels. Empty if no queue has levels.
    pub levels: Vec<u64>,
    levelled: bool,
    /// Bytes sent so far by each port; empty if ports are not watched.
    pub sent: Vec<u64>,
    /// Packets marked so far by each port.
    pub marked: Vec<u64>,
    /// Packets dropped so far by each port.
    pub dropped: Vec<u64>,
    /// Totals of the network so far: packets dropped by queues, retransmissions, data delivered
    /// with a mark, timeouts.
    pub totals: Vec<[u64; 4]>,
    /// Unfinished flows.
    pub senders: Vec<Sender>,
}

impl Series {
    /// Samples from 0 to `until`. Beyond `most` samples every second one is dropped and the
    /// interval doubled.
    pub(crate) fn new(every: Ps, until: Option<Ps>, most: Option<u32>, network: &Network) -> Self {
        Series {
            every,
            until: until.unwrap_or(Ps::MAX),
            most: most.map_or(usize::MAX, |most| most as usize),
            at: Vec::new(),
            ports: network.links.len(),
            queued: Vec::new(),
            levels: Vec::new(),
            levelled: (0..network.links.len())
                .any(|port| network.links.levels(port, &network.pool).is_some()),
            sent: Vec::new(),
            marked: Vec::new(),
            dropped: Vec::new(),
            totals: Vec::new(),
            senders: Vec::new(),
        }
    }

    /// Time of the next sample; `Ps::MAX`: none.
    pub(crate) fn next(&self) -> Ps {
        let next = self.at.last().map_or(0, |last| last + self.every);
        if next > self.until {
            Ps::MAX
        } else {
            next
        }
    }

    /// Takes a sample, once everything until its time has happened.
    pub(crate) fn sample(&mut self, network: &Network, hosts: &Hosts) {
        let at = self.next();
        if self.at.len() == self.most {
            self.thin();
            if at < self.next() {
                return;
            }
        }
        let sample = self.at.len() as u32;
        self.at.push(at);
        for port in 0..self.ports {
            self.queued.push(network.links.queued(at, port));
            if self.levelled {
                self.levels.extend(network.links.levels(port, &network.pool).unwrap_or_default());
            }
            if network.links.watch.is_some() {
                let (marked, dropped) = network.links.acted(port);
                self.sent.push(network.links.sent(at, port));
                self.marked.push(marked);
                self.dropped.push(dropped);
            }
        }
        let passed = &network.passed;
        let dropped = [&passed.full, &passed.pushed_out, &passed.early].into_iter().flatten().sum();
        let handled = &hosts.handled;
        self.totals.push([dropped, handled.retransmitted, handled.marked, handled.timeouts]);
        let under_way = hosts.flows.iter().filter(|flow| !flow.finished());
        self.senders.extend(under_way.map(|flow| Sender {
            sample,
            flow: flow.key,
            window: flow.window(),
            acknowledged: flow.acknowledged(),
        }));
    }

    /// Drops every second sample.
    fn thin(&mut self) {
        let ports = self.ports as usize;
        halve(&mut self.at, 1);
        halve(&mut self.queued, ports);
        halve(&mut self.levels, ports * BANDS);
        for column in [&mut self.sent, &mut self.marked, &mut self.dropped] {
            halve(column, ports);
        }
        halve(&mut self.totals, 1);
        self.senders.retain(|sender| sender.sample % 2 == 0);
        for sender in &mut self.senders {
            sender.sample /= 2;
        }
        self.every *= 2;
    }
}

/// Keeps every second row of `width` values, beginning with the first.
fn halve<T>(rows: &mut Vec<T>, width: usize) {
    let mut at = 0;
    rows.retain(|_| {
        at += 1;
        (at - 1) / width % 2 == 0
    });
}
