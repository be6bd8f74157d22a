// SPDX-License-Identifier: GPL-2.0-or-later
//! Time series of queues, windows and counters, sampled between events: sampling adds no events.

use crate::core::error::{Error, Result};
use crate::core::memory::{left, size};
use crate::core::time::{human, Ps};
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
    room: Room,
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
    watched: bool,
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

/// Bytes of a sender: here and, as half of the columns that callers make of it, twice.
const SENDER_BYTES: u64 = 32;
/// The samples, as much again that their lists have reserved, and a caller's copy.
const COPIES: u64 = 3;

/// The room for samples, which depends on the machine: equal series may differ in it.
#[derive(Debug, Clone, Copy)]
struct Room {
    /// Bytes that samples may take.
    bytes: u64,
    /// More samples would not fit: no more are taken.
    full: bool,
}

impl PartialEq for Room {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Room {}

impl Series {
    /// Samples from 0 to `until`. Beyond `most` samples every second one is dropped and the
    /// interval doubled.
    pub(crate) fn new(every: Ps, until: Option<Ps>, most: Option<u32>, network: &Network) -> Self {
        Series {
            every,
            until: until.unwrap_or(Ps::MAX),
            most: most.map_or(usize::MAX, |most| most as usize),
            room: Room { bytes: left() / COPIES, full: false },
            at: Vec::new(),
            ports: network.links.len(),
            queued: Vec::new(),
            levels: Vec::new(),
            levelled: (0..network.links.len())
                .any(|port| network.links.levels(port, &network.pool).is_some()),
            watched: network.links.watch.is_some(),
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
        if next > self.until || self.room.full {
            Ps::MAX
        } else {
            next
        }
    }

    /// Bytes of a sample without its senders.
    fn sample_bytes(&self) -> u64 {
        let (levels, watched) = (u64::from(self.levelled), u64::from(self.watched));
        40 + u64::from(self.ports) * (8 + 8 * BANDS as u64 * levels + 24 * watched)
    }

    /// Bytes of all samples.
    pub(crate) fn bytes(&self) -> u64 {
        self.at.len() as u64 * self.sample_bytes() + self.senders.len() as u64 * SENDER_BYTES
    }

    /// Refuses more samples than this machine has room for, if the run lasts until `end`.
    pub(crate) fn check(&self, end: Ps) -> Result<()> {
        let (end, room) = (end.min(self.until), self.room.bytes / self.sample_bytes());
        let samples = (end / self.every + 1).min(self.most as u64);
        if samples <= room {
            return Ok(());
        }
        let bytes = size(u128::from(samples) * u128::from(self.sample_bytes()));
        let told = format!(
            "watch.every_ps: {samples} samples until {} would take {bytes}, and this machine has \
             room for {room}",
            human(end)
        );
        if room < 2 {
            return Err(Error::new(format!("{told}: watch a smaller network")));
        }
        let (step, most) = (two_digits(end.div_ceil(room - 1)), room.min(u32::MAX.into()));
        Err(Error::new(format!(
            "{told}: set every_ps to {step} or more, an earlier until, or most to {most} or less"
        )))
    }

    /// Refuses to go on if there is no room for more samples.
    pub(crate) fn check_room(&self) -> Result<()> {
        if !self.room.full {
            return Ok(());
        }
        let (samples, last) = (self.at.len(), self.at.last().copied().unwrap_or(0));
        Err(Error::new(format!(
            "watch.every_ps: {samples} samples until {} take {}, and this machine has no room for \
             more: set every_ps to more than {}, an earlier until, or most to {samples} or less",
            human(last),
            size(self.bytes().into()),
            self.every
        )))
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
        if self.bytes() > self.room.bytes {
            self.room.full = true;
            return;
        }
        let sample = self.at.len() as u32;
        self.at.push(at);
        for port in 0..self.ports {
            self.queued.push(network.links.queued(at, port));
            if self.levelled {
                self.levels.extend(network.links.levels(port, &network.pool).unwrap_or_default());
            }
            if self.watched {
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

/// The next number of two digits and zeros that is not smaller.
fn two_digits(number: u64) -> u64 {
    let unit = 10_u64.pow(number.max(1).ilog10().saturating_sub(1));
    number.div_ceil(unit).saturating_mul(unit)
}

/// Keeps every second row of `width` values, beginning with the first.
fn halve<T>(rows: &mut Vec<T>, width: usize) {
    let mut at = 0;
    rows.retain(|_| {
        at += 1;
        (at - 1) / width % 2 == 0
    });
}
