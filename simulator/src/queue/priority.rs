// SPDX-License-Identifier: GPL-2.0-or-later
//! Strict priority, as 802.1Q's eight levels are served.

use std::collections::VecDeque;

use crate::packet::Pool;

/// Eight levels, and acknowledgements before them.
pub(crate) const BANDS: usize = 9;

/// Strict priority by rank, first come first served within one.
#[derive(Debug, Clone)]
pub(crate) struct Bands {
    queues: [VecDeque<u32>; BANDS],
    occupied: u32,
    bytes: u64,
    /// Of all packets, without the one being sent.
    limit: u64,
}

impl Bands {
    /// With a limit in bytes.
    pub fn new(limit: u64) -> Self {
        Bands { queues: std::array::from_fn(|_| VecDeque::new()), occupied: 0, bytes: 0, limit }
    }

    /// Queues the packet, false if it is dropped instead.
    #[inline]
    pub fn push(&mut self, handle: u32, pool: &Pool, evicted: &mut Vec<u32>) -> bool {
        let packet = pool.get(handle);
        let rank = packet.rank.min(BANDS as u32 - 1);
        while self.bytes + u64::from(packet.bytes) > self.limit {
            let worst = match self.occupied.checked_ilog2() {
                Some(worst) if worst > rank => worst,
                _ => return false,
            };
            let victim = self.take(worst, VecDeque::pop_back, pool);
            evicted.extend(victim);
        }
        self.queues[rank as usize].push_back(handle);
        self.occupied |= 1 << rank;
        self.bytes += u64::from(packet.bytes);
        true
    }

    /// Takes the packet to be sent next, of a level that is not `stopped` (a bit each); ACKs stop with the first.
    #[inline]
    pub fn pop(&mut self, stopped: u8, pool: &Pool) -> Option<u32> {
        let stopped = u32::from(stopped) << 1 | u32::from(stopped & 1);
        let open = self.occupied & !stopped;
        if open == 0 {
            return None;
        }
        self.take(open.trailing_zeros(), VecDeque::pop_front, pool)
    }

    fn take(&mut self, band: u32, end: fn(&mut VecDeque<u32>) -> Option<u32>, pool: &Pool) -> Option<u32> {
        let queue = &mut self.queues[band as usize];
        let handle = end(queue)?;
        if queue.is_empty() {
            self.occupied &= !(1 << band);
        }
        self.bytes -= u64::from(pool.get(handle).bytes);
        Some(handle)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of each band.
    pub fn band_bytes(&self, pool: &Pool) -> [u64; BANDS] {
        std::array::from_fn(|band| self.queues[band].iter().map(|&handle| u64::from(pool.get(handle).bytes)).sum())
    }

    pub fn len(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Kind, Packet};

    fn packet(pool: &mut Pool, flow: u32, rank: u32, bytes: u16) -> u32 {
        let kind = if rank == 0 { Kind::Ack } else { Kind::Data };
        pool.add(Packet { rank, kind, ..Packet::datagram(flow, 0, 0, bytes) })
    }

    #[test]
    fn bands_serve_by_rank_and_drop_the_newest_of_the_last() {
        let (mut pool, mut queue, mut evicted) = (Pool::default(), Bands::new(9_000), Vec::new());
        let ranks = [3, 8, 8, 1, 0, 3];
        let handles: Vec<u32> = ranks.iter().map(|&r| packet(&mut pool, 0, r, 1500)).collect();
        for &h in &handles {
            assert!(queue.push(h, &pool, &mut evicted));
        }
        let more = packet(&mut pool, 0, 2, 1500);
        assert!(queue.push(more, &pool, &mut evicted));
        assert_eq!(evicted, [handles[2]]);
        let equal = packet(&mut pool, 0, 8, 1500);
        assert!(!queue.push(equal, &pool, &mut evicted));
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop(0, &pool)).collect();
        let expected = [handles[4], handles[3], more, handles[0], handles[5], handles[1]];
        assert_eq!(order, expected);
        assert_eq!((queue.bytes, queue.len()), (0, 0));
    }
}
