// SPDX-License-Identifier: GPL-2.0-or-later
//! Ports: links that cannot tell at arrival when a packet will leave, because their queue decides
//! later or a pause may come.

use crate::core::time::Ps;
use crate::net::pause::{Held, ALL};
use crate::queue::admission::Admission;
use crate::queue::kinds::Discipline;
use crate::queue::kinds::Queue;
use crate::queue::traits::Found;

#[derive(Debug)]
pub(crate) struct Port {
    pub admission: Admission,
    pub waiting: Discipline,
    counts_sending: bool,
    /// A packet or pause frame is being sent: a departure event is pending.
    pub busy: bool,
    /// A packet is being sent.
    pub sending: bool,
    /// What the switch holds of the packet being sent.
    pub held: Option<Held>,
    /// Levels that the other end has paused, one bit each.
    pub stopped: u8,
    /// When a wake-up is due, if packets wait that may not be sent yet.
    pub wakes: Option<Ps>,
}

impl Port {
    pub fn new(queue: &Queue, admission: Admission, ps_per_byte: u32) -> Self {
        Port {
            admission,
            waiting: Discipline::new(queue, ps_per_byte),
            counts_sending: queue.counts_sending(),
            busy: false,
            sending: false,
            held: None,
            stopped: 0,
            wakes: None,
        }
    }

    /// Whether it may send.
    pub fn is_free(&self) -> bool {
        !self.busy && self.stopped != ALL
    }

    /// What a packet of this level finds now. CoDel's limit counts waiting packets only; levels
    /// that mark count their own bytes.
    pub fn found(&self, now: Ps, free: Ps, ps_per_byte: u32, level: u8) -> Found {
        let rest = if self.counts_sending { free.saturating_sub(now) } else { 0 };
        let all = || self.waiting.bytes() + rest.div_ceil(ps_per_byte.into());
        let bytes = self.waiting.level_bytes(level).unwrap_or_else(all);
        let waiting = self.waiting.len() as u64;
        Found {
            bytes,
            packets: waiting + u64::from(self.sending && rest > 0),
            idle: if self.busy || waiting > 0 { None } else { now.checked_sub(free) },
        }
    }
}
