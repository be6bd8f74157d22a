// SPDX-License-Identifier: GPL-2.0-or-later
//! What hosts know of the other parts of a run. Each part has all listed flows, begins those of its own hosts, and makes a flow of its own
//! of another one whose packets come to it: of that only the receiving end is used, or nothing where they only pass.

use crate::net::division::Part;

#[derive(Debug)]
pub(crate) struct Away {
    part: Part,
    /// By the number of a listed flow its slot here, and the other way round: flows themselves take more memory than caches have.
    slots: Vec<u32>,
    numbers: Vec<u32>,
}

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

impl Away {
    pub fn new(part: Part, flows: usize) -> Self {
        Away { part, slots: vec![NONE; flows], numbers: Vec::new() }
    }

    /// A flow has the next slot.
    pub fn know(&mut self, number: u32, slot: u32) {
        self.slots[number as usize] = slot;
        self.numbers.push(number);
    }

    /// The slot of a listed flow, or `NONE`.
    #[inline]
    pub fn slot(&self, number: u32) -> u32 {
        self.slots[number as usize]
    }

    /// The number of the flow that has that slot.
    #[inline]
    pub fn number(&self, slot: u32) -> u32 {
        self.numbers[slot as usize]
    }

    /// Whether another part has that host.
    pub fn has(&self, host: u32) -> bool {
        self.part.division.of_host[host as usize] != self.part.mine
    }
}
