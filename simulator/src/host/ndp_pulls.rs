// SPDX-License-Identifier: GPL-2.0-or-later
//! What NDP's senders and receivers know of each other.

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
}

/// A host as receiver.
#[derive(Debug, Clone, Default)]
pub(crate) struct Puller {
    /// Flows to pull, in the order of their packets' arrival.
    pub queue: VecDeque<u32>,
    /// When it may pull next.
    pub free: Ps,
    /// An event is pending.
    pub waits: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Pulls {
    pub flows: Vec<Pulled>,
    pub hosts: Vec<Puller>,
}
