// SPDX-License-Identifier: GPL-2.0-or-later
//! A first-in, first-out queue that remembers when each packet came.

use std::collections::VecDeque;

use crate::core::time::Ps;
use crate::packet::Pool;

/// A FIFO queue with the arrival time of each packet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fifo {
    pub(super) waiting: VecDeque<(u32, Ps)>,
    bytes: u64,
}

impl Fifo {
    pub fn push(&mut self, now: Ps, handle: u32, pool: &Pool) {
        self.waiting.push_back((handle, now));
        self.bytes += u64::from(pool.get(handle).bytes);
    }

    /// The first packet and its arrival time.
    pub fn pop(&mut self, pool: &Pool) -> Option<(u32, Ps)> {
        let (handle, came) = self.waiting.pop_front()?;
        self.bytes -= u64::from(pool.get(handle).bytes);
        Some((handle, came))
    }

    /// Moves all waiting packets to `lost`.
    pub fn flush(&mut self, lost: &mut Vec<u32>) {
        lost.extend(self.waiting.drain(..).map(|(handle, _)| handle));
        self.bytes = 0;
    }

    /// Arrival time of the packet that has waited longest.
    pub fn oldest(&self) -> Option<Ps> {
        self.waiting.front().map(|&(_, came)| came)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}
