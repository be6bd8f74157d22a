// SPDX-License-Identifier: GPL-2.0-or-later
//! Flows of a parallel run that start in other parts: which slot here stands for which flow number.
//!
//! Each part knows all listed flows and starts those of its own hosts. When packets of another
//! part's flow arrive, it makes a flow of its own for them, of which only the receiving end is
//! used.

use crate::net::partition::Part;

#[derive(Debug)]
pub(crate) struct RemoteFlows {
    part: Part,
    /// The slot of each listed flow, and the flow of each slot. Kept apart because flows take more
    /// memory than caches have.
    slots: Vec<u32>,
    numbers: Vec<u32>,
}

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

impl RemoteFlows {
    pub fn new(part: Part, flows: usize) -> Self {
        RemoteFlows { part, slots: vec![NONE; flows], numbers: Vec::new() }
    }

    /// Records that a flow got the next slot.
    pub fn know(&mut self, number: u32, slot: u32) {
        self.slots[number as usize] = slot;
        self.numbers.push(number);
    }

    /// The slot of a listed flow, or `NONE`.
    #[inline]
    pub fn slot(&self, number: u32) -> u32 {
        self.slots[number as usize]
    }

    /// The number of the flow in this slot.
    #[inline]
    pub fn number(&self, slot: u32) -> u32 {
        self.numbers[slot as usize]
    }

    /// Whether the host is in another part.
    pub fn has(&self, host: u32) -> bool {
        self.part.partition.of_host[host as usize] != self.part.mine
    }
}
