// SPDX-License-Identifier: GPL-2.0-or-later
//! What NDP's and EQDS's senders and receivers know of each other.

use std::collections::VecDeque;

use crate::core::time::Ps;

/// A flow, by its slot.
#[derive(Debug, Default)]
pub(crate) struct Pulled {
    /// Sender: packets that may have left, by pulls; those asked for again, which need none; those
    /// that have left.
    pub credit: u32,
    pub extra: u32,
    pub used: u32,
    /// Sender: the next new packet, and those to send again.
    pub next: u32,
    pub again: VecDeque<u32>,
    /// Receiver: packets that it has pulled, or that wait for their pull; the last pull's count.
    pub granted: u32,
    pub last_pull: u32,
    /// Receiver: trimmed packets that have come.
    pub trimmed: u32,
    /// Receiver, EQDS: packets that have come, whole or trimmed; it is among the turns.
    pub arrived: u32,
    pub takes_part: bool,
}

/// A host as receiver.
#[derive(Debug, Clone, Default)]
pub(crate) struct Puller {
    /// Flows to pull, in the order of their packets' arrival; EQDS's in turns.
    pub queue: VecDeque<u32>,
    /// EQDS: flows to pull before them.
    pub first: VecDeque<u32>,
    /// When it may pull next.
    pub free: Ps,
    /// An event is pending.
    pub waits: bool,
}

impl Puller {
    /// Pulls a flow no more.
    pub fn forget(&mut self, slot: u32) {
        self.queue.retain(|&other| other != slot);
        self.first.retain(|&other| other != slot);
    }

    /// Whether a pull of a flow is to come.
    pub fn will_pull(&self, slot: u32) -> bool {
        self.queue.contains(&slot) || self.first.contains(&slot)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Pulls {
    pub flows: Vec<Pulled>,
    pub hosts: Vec<Puller>,
}
