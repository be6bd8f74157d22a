// SPDX-License-Identifier: GPL-2.0-or-later
//! Strict priority among the eight levels of 802.1Q, with ACKs above them.

use serde::{Deserialize, Serialize};

use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{In, Size};
use crate::packet::chain::Chain;
use crate::packet::Pool;
use crate::queue::limit::Limit;
use crate::queue::next::Next;
use crate::queue::traits::{admits_all, AdmitAll, QueueDiscipline, QueueKind, BANDS};

/// Strict priority in eight levels, with ACKs above; evicts the newest packet of the least urgent
/// level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Priority {
    /// Bytes, without the packet being sent.
    #[serde(with = "In::<Size>")]
    pub limit: u64,
}

impl QueueKind for Priority {
    admits_all!();
    type Discipline = Bands;
    const NAME: &str = "priority";
    const HAS_LEVELS: bool = true;

    fn limit(&self) -> Limit {
        Limit::Bytes(self.limit)
    }

    fn discipline(&self, _ps_per_byte: u32) -> Bands {
        Bands::new(self.limit)
    }
}

/// Strict priority by rank, FIFO within a rank.
#[derive(Debug, Clone)]
pub(crate) struct Bands {
    lines: [Chain; BANDS],
    occupied: u32,
    packets: u32,
    bytes: u64,
    /// Bytes of all packets, without the one being sent.
    limit: u64,
}

impl Bands {
    /// With a limit in bytes.
    pub fn new(limit: u64) -> Self {
        Bands { lines: [Chain::default(); BANDS], occupied: 0, packets: 0, bytes: 0, limit }
    }

    /// Queues a packet; false if it is dropped instead.
    #[inline]
    pub fn push(&mut self, handle: u32, pool: &mut Pool, evicted: &mut Vec<u32>) -> bool {
        let packet = pool.get(handle);
        let (rank, bytes) = (packet.rank.min(BANDS as u32 - 1), u64::from(packet.bytes));
        let over = (self.bytes + bytes).saturating_sub(self.limit);
        if over > 0 && !self.spares(over, rank, pool) {
            return false;
        }
        while self.bytes + bytes > self.limit {
            let Some(worst) = self.occupied.checked_ilog2() else { return false };
            let victim = self.lines[worst as usize].pop_last(pool);
            evicted.extend(victim.map(|victim| self.without(worst, victim, pool)));
        }
        self.lines[rank as usize].push(handle, pool);
        self.occupied |= 1 << rank;
        self.packets += 1;
        self.bytes += bytes;
        true
    }

    /// Whether packets of less urgent bands have this many bytes: nothing is evicted for a packet
    /// that would not fit even then.
    fn spares(&self, over: u64, rank: u32, pool: &Pool) -> bool {
        let later =
            self.lines.iter().skip(rank as usize + 1).rev().flat_map(|line| line.iter(pool));
        is_enough(later.map(|handle| pool.get(handle).bytes), over)
    }

    /// Takes the next packet to send, of a level that is not `stopped` (one bit each); ACKs stop
    /// with level 0.
    #[inline]
    pub fn pop(&mut self, stopped: u8, pool: &mut Pool) -> Option<u32> {
        let stopped = u32::from(stopped) << 1 | u32::from(stopped & 1);
        let open = self.occupied & !stopped;
        if open == 0 {
            return None;
        }
        let band = open.trailing_zeros();
        let handle = self.lines[band as usize].pop(pool)?;
        Some(self.without(band, handle, pool))
    }

    /// Removes a taken packet from the counts.
    #[inline]
    fn without(&mut self, band: u32, handle: u32, pool: &Pool) -> u32 {
        self.occupied &= !(u32::from(self.lines[band as usize].is_empty()) << band);
        self.packets -= 1;
        self.bytes -= u64::from(pool.get(handle).bytes);
        handle
    }
}

impl QueueDiscipline for Bands {
    #[inline]
    fn enqueue(&mut self, _now: Ps, handle: u32, pool: &mut Pool, evicted: &mut Vec<u32>) -> bool {
        self.push(handle, pool, evicted)
    }

    #[inline]
    fn dequeue(&mut self, _now: Ps, stopped: u8, pool: &mut Pool, _dropped: &mut Vec<u32>) -> Next {
        self.pop(stopped, pool).into()
    }

    #[inline]
    fn prefetch(&self, pool: &Pool) {
        if let Some(first) =
            self.lines.get(self.occupied.trailing_zeros() as usize).and_then(|line| line.first())
        {
            pool.prefetch(first);
        }
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    fn len(&self) -> usize {
        self.packets as usize
    }

    fn band_bytes(&self, pool: &Pool) -> Option<[u64; BANDS]> {
        let bytes = |band: usize| {
            self.lines[band].iter(pool).map(|handle| u64::from(pool.get(handle).bytes)).sum()
        };
        Some(std::array::from_fn(bytes))
    }
}

/// Whether these sizes sum up to `bytes`; looks at no more of them than needed.
pub(crate) fn is_enough(sizes: impl Iterator<Item = u16>, bytes: u64) -> bool {
    let mut sum = 0;
    bytes == 0
        || sizes.map(u64::from).any(|size| {
            sum += size;
            sum >= bytes
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Kind, Packet};

    fn packet(pool: &mut Pool, flow: u32, rank: u32, bytes: u16) -> u32 {
        let kind = if rank == 0 { Kind::Ack } else { Kind::Data };
        pool.add(Packet { rank, kind, ..Packet::datagram(flow, 0, 0, bytes) })
    }

    /// 3,000 bytes, of which a later level gives up 50: too few for a packet of 1,500, enough for
    /// one of 50.
    #[test]
    fn nothing_is_pushed_out_in_vain() {
        let (mut pool, mut queue, mut evicted) = (Pool::default(), Bands::new(3_000), Vec::new());
        for (rank, bytes) in [(1, 1_500), (1, 1_450), (8, 20), (7, 30)] {
            let handle = packet(&mut pool, 0, rank, bytes);
            assert!(queue.push(handle, &mut pool, &mut evicted));
        }
        let large = packet(&mut pool, 0, 4, 1_500);
        assert!(!queue.push(large, &mut pool, &mut evicted));
        assert_eq!((evicted.len(), queue.bytes()), (0, 3_000));
        let small = packet(&mut pool, 0, 4, 50);
        assert!(queue.push(small, &mut pool, &mut evicted));
        assert_eq!((evicted.len(), queue.bytes()), (2, 3_000));
    }

    #[test]
    fn bands_serve_by_rank_and_drop_the_newest_of_the_last() {
        let (mut pool, mut queue, mut evicted) = (Pool::default(), Bands::new(9_000), Vec::new());
        let ranks = [3, 8, 8, 1, 0, 3];
        let handles: Vec<u32> = ranks.iter().map(|&r| packet(&mut pool, 0, r, 1500)).collect();
        for &h in &handles {
            assert!(queue.push(h, &mut pool, &mut evicted));
        }
        let more = packet(&mut pool, 0, 2, 1500);
        assert!(queue.push(more, &mut pool, &mut evicted));
        assert_eq!(evicted, [handles[2]]);
        let equal = packet(&mut pool, 0, 8, 1500);
        assert!(!queue.push(equal, &mut pool, &mut evicted));
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop(0, &mut pool)).collect();
        let expected = [handles[4], handles[3], more, handles[0], handles[5], handles[1]];
        assert_eq!(order, expected);
        assert_eq!((queue.bytes, queue.len()), (0, 0));
    }
}
