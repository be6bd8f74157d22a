// SPDX-License-Identifier: GPL-2.0-or-later
//! Statistics of each port.

use crate::core::time::Ps;
use crate::net::topology::Node;

/// A node at an end of a cable, by number: switches of racks before spines, a tree's nodes in the
/// order of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A host.
    Host(u32),
    /// A switch.
    Switch(u32),
}

impl From<Node> for End {
    fn from(node: Node) -> Self {
        match node {
            Node::Host(number) => End::Host(number),
            Node::Switch(number) => End::Switch(number),
        }
    }
}

/// Statistics of one direction of a cable and the queue before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortResult {
    /// The node with the queue.
    pub from: End,
    /// The node that the cable leads to.
    pub to: End,
    /// Most bytes accepted and not sent.
    pub longest: u64,
    /// Bytes times ps of waiting so far; divided by the run's time, the mean number of waiting
    /// bytes (Little's law).
    pub waiting: u128,
    /// Packets marked here.
    pub marked: u64,
    /// Packets dropped early.
    pub early: u64,
    /// Packets dropped because the queue, or the switch's buffer for the incoming port, was full;
    /// and packets evicted for others.
    pub full: u64,
    /// Time paused, in ps.
    pub paused: Ps,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Watched {
    longest: u64,
    waited: u128,
    /// Waiting bytes, and since when.
    waiting: (u64, Ps),
    pub marked: u64,
    pub early: u64,
    pub full: u64,
    /// Bytes whose sending has started or is fixed.
    pub begun: u64,
    paused: Ps,
    since: Option<Ps>,
}

impl Watched {
    /// Records an accepted packet; `bytes` are to be sent with it.
    pub fn taken(&mut self, bytes: u64, marked: bool) {
        self.longest = self.longest.max(bytes);
        self.marked += u64::from(marked);
    }

    /// Records an accepted packet whose wait is known: `found` bytes were before it.
    // Not inlined, so that the path of unwatched links stays short.
    #[cold]
    #[inline(never)]
    pub fn accept(&mut self, found: u64, bytes: u16, wait: Ps, marked: bool) {
        let bytes = u64::from(bytes);
        self.taken(found + bytes, marked);
        self.waited += u128::from(bytes) * u128::from(wait);
        self.begun += bytes;
    }

    /// Records the waiting bytes from now on. `rest`: bytes of the packet being sent, if a packet
    /// was accepted.
    pub fn waits(&mut self, now: Ps, bytes: u64, rest: Option<u64>) {
        self.waited += u128::from(self.waiting.0) * u128::from(now - self.waiting.1);
        self.waiting = (bytes, now);
        if let Some(rest) = rest {
            self.longest = self.longest.max(bytes + rest);
        }
    }

    /// Records a failure: all waiting packets are lost, and `rest` bytes whose sending was fixed.
    /// `in_vain`: bytes times ps of waiting that was counted at arrival and will not happen.
    pub fn fails(&mut self, now: Ps, rest: u64, in_vain: u128) {
        self.waits(now, 0, None);
        self.begun -= rest;
        self.waited -= in_vain;
    }

    /// Records that the port stops or resumes.
    pub fn stop(&mut self, now: Ps, stop: bool) {
        if !stop {
            self.paused += self.since.take().map_or(0, |since| now - since);
        } else if self.since.is_none() {
            self.since = Some(now);
        }
    }

    /// Packets marked and dropped.
    pub fn acted(&self) -> (u64, u64) {
        (self.marked, self.early + self.full)
    }

    /// The statistics until now, for a link between these nodes. `later`: waiting already counted
    /// that lies after now.
    pub fn result(&self, now: Ps, later: u128, from: Node, to: Node) -> PortResult {
        let (bytes, since) = self.waiting;
        PortResult {
            from: from.into(),
            to: to.into(),
            longest: self.longest,
            waiting: self.waited + u128::from(bytes) * u128::from(now - since) - later,
            marked: self.marked,
            early: self.early,
            full: self.full,
            paused: self.paused + self.since.map_or(0, |since| now - since),
        }
    }
}
