// SPDX-License-Identifier: GPL-2.0-or-later
//! Eight FIFO queues, one a level, each with its own limit. The caller chooses which level is
//! served.

use std::collections::VecDeque;

use crate::packet::Pool;
use crate::queue::traits::BANDS;

/// Number of levels.
pub(crate) const LEVELS: usize = 8;

#[derive(Debug)]
pub(crate) struct Levels {
    lines: [VecDeque<u32>; LEVELS],
    held: [u64; LEVELS],
    bytes: u64,
    packets: usize,
    /// Levels with packets, one bit each.
    occupied: u8,
    /// Limit of each level in bytes, without the packet being sent.
    limit: u64,
}

impl Levels {
    /// With a limit in bytes for each level.
    pub fn new(limit: u64) -> Self {
        Levels {
            lines: std::array::from_fn(|_| VecDeque::new()),
            held: [0; LEVELS],
            bytes: 0,
            packets: 0,
            occupied: 0,
            limit,
        }
    }

    /// Queues a packet and returns its level; none if the packet is dropped instead.
    pub fn push(&mut self, handle: u32, pool: &Pool) -> Option<usize> {
        let packet = pool.get(handle);
        let (level, bytes) = (usize::from(packet.level()), u64::from(packet.bytes));
        if self.held[level] + bytes > self.limit {
            return None;
        }
        self.lines[level].push_back(handle);
        self.held[level] += bytes;
        self.bytes += bytes;
        self.packets += 1;
        self.occupied |= 1 << level;
        Some(level)
    }

    /// Waiting bytes of a level.
    pub fn held(&self, level: u8) -> u64 {
        self.held[usize::from(level)]
    }

    /// Waiting bytes by band; ACKs have no band of their own here.
    pub fn band_bytes(&self) -> [u64; BANDS] {
        let mut bands = [0; BANDS];
        bands[BANDS - LEVELS..].copy_from_slice(&self.held);
        bands
    }

    /// Levels with packets that are not `stopped` (one bit each), most urgent first.
    #[inline]
    pub fn waiting(&self, stopped: u8) -> impl Iterator<Item = usize> {
        let mut left = self.occupied & !stopped;
        std::iter::from_fn(move || {
            let level = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(level)
        })
    }

    /// The first packet of a level.
    pub fn front(&self, level: usize) -> Option<u32> {
        self.lines[level].front().copied()
    }

    /// Takes the first packet of a level.
    pub fn pop(&mut self, level: usize, pool: &Pool) -> Option<u32> {
        let handle = self.lines[level].pop_front()?;
        let bytes = u64::from(pool.get(handle).bytes);
        self.held[level] -= bytes;
        self.bytes -= bytes;
        self.packets -= 1;
        self.occupied &= !(u8::from(self.lines[level].is_empty()) << level);
        Some(handle)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn len(&self) -> usize {
        self.packets
    }
}
