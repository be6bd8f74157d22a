// SPDX-License-Identifier: GPL-2.0-or-later
//! What a queue that serves in the order of arrival does with a packet that comes, by what the packet finds.

use std::collections::VecDeque;

use crate::packet::{Kind, Packet};
use crate::red::{Action, Detector, Found};
use crate::rng::Rng;
use crate::scheme::{Limit, Queue};
use crate::time::Ps;

/// A limit or threshold on a certain link; the largest numbers where there is none.
#[derive(Debug, Clone, Copy)]
struct Room {
    bytes: u64,
    packets: u64,
}

impl Room {
    fn new(limit: Limit, ps_per_byte: u32) -> Self {
        let none = Room { bytes: u64::MAX, packets: u64::MAX };
        match limit {
            Limit::None => none,
            Limit::Bytes(bytes) => Room { bytes, ..none },
            Limit::Packets(packets) => Room { packets: packets.into(), ..none },
            Limit::Time(time) => Room { bytes: time / u64::from(ps_per_byte), ..none },
        }
    }

    fn holds(&self, found: &Found, more: u64) -> bool {
        found.bytes.saturating_add(more) <= self.bytes && found.packets < self.packets
    }

    fn is_reached(&self, found: &Found) -> bool {
        found.bytes >= self.bytes || found.packets >= self.packets
    }
}

#[derive(Debug)]
enum Rule {
    Tail,
    /// ns-2's, above a threshold; whether the last packet found the queue there.
    Marking {
        threshold: u64,
        above: bool,
    },
    Threshold(Room),
    Red(Box<Detector>),
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Taken,
    Marked,
    /// Dropped by early detection.
    Early,
    Full,
}

#[derive(Debug)]
pub(crate) struct Gate {
    room: Room,
    rule: Rule,
}

impl Gate {
    /// Of queues with priorities, which have their own limit, a gate that is always open.
    pub fn new(queue: &Queue, ps_per_byte: u32, rng: Rng) -> Self {
        let (limit, rule) = match queue {
            Queue::DropTail(limit) => (*limit, Rule::Tail),
            Queue::Marking { limit, threshold } => (Limit::Bytes(*limit), Rule::Marking { threshold: *threshold, above: false }),
            Queue::Threshold { limit, threshold } => (*limit, Rule::Threshold(Room::new(*threshold, ps_per_byte))),
            Queue::Red(red) => (red.limit, Rule::Red(Box::new(Detector::new(red, ps_per_byte, rng)))),
            Queue::CoDel(codel) => (codel.limit, Rule::Tail),
            Queue::Priority { .. } | Queue::PFabric { .. } => (Limit::None, Rule::Tail),
        };
        Gate { room: Room::new(limit, ps_per_byte), rule }
    }

    /// Bytes and packets that it holds at most.
    pub fn limits(&self) -> (u64, u64) {
        (self.room.bytes, self.room.packets)
    }

    pub fn admit(&mut self, found: &Found, packet: &mut Packet) -> Verdict {
        let full = !self.room.holds(found, packet.bytes.into());
        let marks = match &mut self.rule {
            // As Linux has it, early detection is first, and what it lets pass may find the queue full.
            Rule::Red(detector) => match detector.decide(found, packet) {
                Action::Drop => return Verdict::Early,
                action => action == Action::Mark,
            },
            _ if full => false,
            Rule::Tail => false,
            Rule::Marking { threshold, above } => {
                let again = *above && packet.kind == Kind::Data;
                *above = found.bytes > *threshold;
                *above && again
            }
            Rule::Threshold(room) => packet.ect && room.is_reached(found),
        };
        if full {
            return Verdict::Full;
        }
        packet.marked |= marks;
        if marks {
            Verdict::Marked
        } else {
            Verdict::Taken
        }
    }
}

/// A gate before a link that is known at arrival to send a packet after those it has.
#[derive(Debug)]
pub(crate) struct Gated {
    gate: Gate,
    /// When each packet that has been taken will have been sent.
    taken: VecDeque<Ps>,
}

impl Gated {
    pub fn new(gate: Gate) -> Self {
        Gated { gate, taken: VecDeque::new() }
    }

    /// `free`: when what was taken will have been sent.
    pub fn admit(&mut self, now: Ps, free: Ps, ps_per_byte: u32, packet: &mut Packet) -> Verdict {
        while self.taken.front().is_some_and(|&sent| sent <= now) {
            self.taken.pop_front();
        }
        let found = Found {
            // A byte that is being sent is still to go: so a limit in bytes is one in time, to the picosecond.
            bytes: free.saturating_sub(now).div_ceil(ps_per_byte.into()),
            packets: self.taken.len() as u64,
            idle: now.checked_sub(free),
        };
        let verdict = self.gate.admit(&found, packet);
        if matches!(verdict, Verdict::Taken | Verdict::Marked) {
            self.taken.push_back(free.max(now) + u64::from(packet.bytes) * u64::from(ps_per_byte));
        }
        verdict
    }
}
