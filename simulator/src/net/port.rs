// SPDX-License-Identifier: GPL-2.0-or-later
//! Links of which nobody knows at arrival when they send a packet, because their queue says when or a pause may come: packets wait
//! in a store and every packet sent has a departure event.

use crate::core::time::Ps;
use crate::net::pause::{Held, ALL};
use crate::queue::discipline::Discipline;
use crate::queue::gate::Gate;
use crate::queue::red::Found;
use crate::queue::setting::Queue;

#[derive(Debug)]
pub(crate) struct Port {
    pub gate: Gate,
    pub waiting: Discipline,
    /// A packet or pause frame is being sent: a departure event comes.
    pub busy: bool,
    /// A packet is.
    pub sending: bool,
    /// What the switch holds of the packet being sent.
    pub held: Option<Held>,
    /// Levels for which the other end has asked for silence, a bit each.
    pub stopped: u8,
    /// When it is asked again what it sends, because nothing may be before.
    pub wakes: Option<Ps>,
}

impl Port {
    pub fn new(queue: &Queue, gate: Gate, ps_per_byte: u32) -> Self {
        let waiting = Discipline::new(queue, ps_per_byte);
        Port { gate, waiting, busy: false, sending: false, held: None, stopped: 0, wakes: None }
    }

    /// Whether it may send something.
    pub fn is_free(&self) -> bool {
        !self.busy && self.stopped != ALL
    }

    /// What a packet of a level finds that comes now; `CoDel`'s limit is one of what waits, and levels that mark do so by that of each.
    pub fn found(&self, now: Ps, free: Ps, ps_per_byte: u32, level: u8) -> Found {
        let rest = if let Discipline::CoDel(..) = self.waiting { 0 } else { free.saturating_sub(now) };
        let bytes = match &self.waiting {
            Discipline::Levels(queue) => queue.held(level),
            Discipline::Fair(queue) => queue.held(level),
            all => all.bytes() + rest.div_ceil(ps_per_byte.into()),
        };
        let waiting = self.waiting.len() as u64;
        Found {
            bytes,
            packets: waiting + u64::from(self.sending && rest > 0),
            idle: if self.busy || waiting > 0 { None } else { now.checked_sub(free) },
        }
    }
}
