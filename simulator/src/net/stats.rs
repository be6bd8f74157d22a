// SPDX-License-Identifier: GPL-2.0-or-later
//! What happened at each port, for those who want to know.

use crate::core::time::Ps;
use crate::net::topology::Node;

/// A node at an end of a cable, by its number: racks' switches before spines, a tree's nodes in the order of their names.
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

/// One direction of a cable, with the queue before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortResult {
    /// Whose queue it is.
    pub from: End,
    /// Where the cable leads.
    pub to: End,
    /// Most bytes that had been taken and not been sent.
    pub longest: u64,
    /// Bytes times ps of waiting, without being sent until now: over the run's time, the mean number of bytes that wait (Little).
    pub waiting: u128,
    /// Packets marked here.
    pub marked: u64,
    /// Packets dropped early.
    pub early: u64,
    /// Packets dropped because the queue, or what the switch holds of the port they came by, was full; also those that it had taken
    /// and gave up for others.
    pub full: u64,
    /// For how long it was paused, in ps.
    pub paused: Ps,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Watched {
    longest: u64,
    waited: u128,
    /// Bytes that wait since then.
    waiting: (u64, Ps),
    pub marked: u64,
    pub early: u64,
    pub full: u64,
    /// Bytes that it has begun to send, or will send whatever comes.
    pub begun: u64,
    paused: Ps,
    since: Option<Ps>,
}

impl Watched {
    /// A packet was taken; `bytes` were to be sent with it.
    pub fn taken(&mut self, bytes: u64, marked: bool) {
        self.longest = self.longest.max(bytes);
        self.marked += u64::from(marked);
    }

    /// A packet was taken that finds so many bytes, waits so long and is sent whatever comes.
    // Not inlined, so that the way of links that are not watched stays short.
    #[cold]
    #[inline(never)]
    pub fn accept(&mut self, found: u64, bytes: u16, wait: Ps, marked: bool) {
        let bytes = u64::from(bytes);
        self.taken(found + bytes, marked);
        self.waited += u128::from(bytes) * u128::from(wait);
        self.begun += bytes;
    }

    /// So many bytes wait from now on. `rest`: of the packet being sent, when a packet was taken.
    pub fn waits(&mut self, now: Ps, bytes: u64, rest: Option<u64>) {
        self.waited += u128::from(self.waiting.0) * u128::from(now - self.waiting.1);
        self.waiting = (bytes, now);
        if let Some(rest) = rest {
            self.longest = self.longest.max(bytes + rest);
        }
    }

    /// The link fails: all that waits is lost, and so many bytes that it had begun to send or was to. `in_vain`: bytes times ps that
    /// these, which have counted their wait when they came, will not wait.
    pub fn fails(&mut self, now: Ps, rest: u64, in_vain: u128) {
        self.waits(now, 0, None);
        self.begun -= rest;
        self.waited -= in_vain;
    }

    /// The port stops or goes on.
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

    /// All of it until now, of a link between these nodes. `later`: what was counted of the time after now.
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
