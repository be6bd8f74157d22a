// SPDX-License-Identifier: GPL-2.0-or-later
//! Links of which nobody knows at arrival when they send a packet, because `CoDel` may drop those before it or a pause may come:
//! packets wait in a store and every packet sent has a departure event.

use crate::core::time::Ps;
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
    /// By what link the packet being sent came into the switch, and its bytes.
    pub held: Option<(u32, u16)>,
    /// The other end has asked for silence.
    pub stopped: bool,
}

impl Port {
    pub fn new(queue: &Queue, gate: Gate) -> Self {
        let waiting = Discipline::new(queue);
        Port { gate, waiting, busy: false, sending: false, held: None, stopped: false }
    }

    /// What a packet finds that comes now; `CoDel`'s limit is one of what waits.
    pub fn found(&self, now: Ps, free: Ps, ps_per_byte: u32) -> Found {
        let rest = if let Discipline::CoDel(..) = self.waiting { 0 } else { free.saturating_sub(now) };
        let waiting = self.waiting.len() as u64;
        Found {
            bytes: self.waiting.bytes() + rest.div_ceil(ps_per_byte.into()),
            packets: waiting + u64::from(self.sending && rest > 0),
            idle: if self.busy || waiting > 0 { None } else { now.checked_sub(free) },
        }
    }
}
