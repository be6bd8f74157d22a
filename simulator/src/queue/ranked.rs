// SPDX-License-Identifier: GPL-2.0-or-later
//! Queues that do not serve in the order of arrival. Both push out what matters least for what matters more, and give up
//! packets in `evicted`.

use std::collections::VecDeque;

use crate::packet::{Kind, Packet, Pool};
use crate::sim::scheme::Queue;

/// Eight levels, and acknowledgements before them.
const BANDS: usize = 9;

/// Strict priority by rank, first come first served within one.
#[derive(Debug, Clone, Default)]
struct Bands {
    queues: [VecDeque<u32>; BANDS],
    occupied: u32,
    bytes: u64,
}

impl Bands {
    /// Queues the packet, within `limit` bytes; false if it is dropped instead.
    pub fn push(&mut self, handle: u32, limit: u64, pool: &Pool, evicted: &mut Vec<u32>) -> bool {
        let packet = pool.get(handle);
        let rank = packet.rank.min(BANDS as u32 - 1);
        while self.bytes + u64::from(packet.bytes) > limit {
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

    /// Takes the packet to be sent next.
    pub fn pop(&mut self, pool: &Pool) -> Option<u32> {
        if self.occupied == 0 {
            return None;
        }
        self.take(self.occupied.trailing_zeros(), VecDeque::pop_front, pool)
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

    pub fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    pub fn len(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    handle: u32,
    flow: u32,
    rank: u32,
    bytes: u16,
}

/// pFabric's queue (Alizadeh et al., SIGCOMM'13, section 4.1): sends the first packet of the flow whose packet has the least
/// remaining, so that a flow stays in order; drops the packet with the most remaining. A few packets, searched linearly.
#[derive(Debug, Clone, Default)]
struct Remaining {
    acks: VecDeque<u32>,
    data: Vec<Waiting>,
    bytes: u64,
}

impl Remaining {
    /// Queues the packet, within `limit` bytes; false if it is dropped instead.
    pub fn push(&mut self, handle: u32, limit: u64, pool: &Pool, evicted: &mut Vec<u32>) -> bool {
        let Packet { flow, rank, bytes, kind, .. } = *pool.get(handle);
        // Sources of datagrams are numbered apart from flows, whose slots stay below 2^29.
        let flow = if kind == Kind::Datagram { flow | 1 << 31 } else { flow };
        while self.bytes + u64::from(bytes) > limit {
            // Of equal ranks the last comes last: the newest of them goes, and the arriving one before it.
            let worst = (0..self.data.len()).max_by_key(|&i| self.data[i].rank);
            match worst {
                Some(i) if self.data[i].rank > rank => {
                    let victim = self.data.remove(i);
                    self.bytes -= u64::from(victim.bytes);
                    evicted.push(victim.handle);
                }
                _ => return false,
            }
        }
        self.bytes += u64::from(bytes);
        if rank == 0 {
            self.acks.push_back(handle);
        } else {
            self.data.push(Waiting { handle, flow, rank, bytes });
        }
        true
    }

    /// Takes the packet to be sent next.
    pub fn pop(&mut self, pool: &Pool) -> Option<u32> {
        if let Some(ack) = self.acks.pop_front() {
            self.bytes -= u64::from(pool.get(ack).bytes);
            return Some(ack);
        }
        let flow = self.data.iter().min_by_key(|w| w.rank)?.flow;
        let first = self.data.iter().position(|w| w.flow == flow)?;
        let sent = self.data.remove(first);
        self.bytes -= u64::from(sent.bytes);
        Some(sent.handle)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.acks.is_empty() && self.data.is_empty()
    }

    pub fn len(&self) -> usize {
        self.acks.len() + self.data.len()
    }
}

/// A queue that does not serve in the order of arrival, with its limit in bytes.
#[derive(Debug)]
pub(crate) struct Ranked {
    limit: u64,
    order: Order,
}

// Not boxed: those of a network are all of one kind.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
enum Order {
    Bands(Bands),
    Remaining(Remaining),
}

impl Ranked {
    /// None: the scheme's queue serves in the order of arrival.
    pub fn new(queue: &Queue) -> Option<Self> {
        match *queue {
            Queue::Priority { limit } => Some(Ranked { limit, order: Order::Bands(Bands::default()) }),
            Queue::PFabric { limit } => Some(Ranked { limit, order: Order::Remaining(Remaining::default()) }),
            _ => None,
        }
    }

    /// Queues the packet; false if it is dropped instead.
    #[inline]
    pub fn push(&mut self, handle: u32, pool: &Pool, evicted: &mut Vec<u32>) -> bool {
        match &mut self.order {
            Order::Bands(queue) => queue.push(handle, self.limit, pool, evicted),
            Order::Remaining(queue) => queue.push(handle, self.limit, pool, evicted),
        }
    }

    /// Takes the packet to be sent next.
    #[inline]
    pub fn pop(&mut self, pool: &Pool) -> Option<u32> {
        match &mut self.order {
            Order::Bands(queue) => queue.pop(pool),
            Order::Remaining(queue) => queue.pop(pool),
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        match &self.order {
            Order::Bands(queue) => queue.is_empty(),
            Order::Remaining(queue) => queue.is_empty(),
        }
    }

    pub fn bytes(&self) -> u64 {
        match &self.order {
            Order::Bands(queue) => queue.bytes(),
            Order::Remaining(queue) => queue.bytes(),
        }
    }

    pub fn len(&self) -> usize {
        match &self.order {
            Order::Bands(queue) => queue.len(),
            Order::Remaining(queue) => queue.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(pool: &mut Pool, flow: u32, rank: u32, bytes: u16) -> u32 {
        pool.add(Packet {
            flow,
            seq: 0,
            echo: 0,
            stamp: 0,
            rank,
            link: 0,
            bytes,
            to: 0,
            kind: if rank == 0 { Kind::Ack } else { Kind::Data },
            marked: false,
            ect: false,
        })
    }

    #[test]
    fn bands_serve_by_rank_and_drop_the_newest_of_the_last() {
        let (mut pool, mut queue, mut evicted) = (Pool::default(), Bands::default(), Vec::new());
        let ranks = [3, 8, 8, 1, 0, 3];
        let handles: Vec<u32> = ranks.iter().map(|&r| packet(&mut pool, 0, r, 1500)).collect();
        for &h in &handles {
            assert!(queue.push(h, 9_000, &pool, &mut evicted));
        }
        let more = packet(&mut pool, 0, 2, 1500);
        assert!(queue.push(more, 9_000, &pool, &mut evicted));
        assert_eq!(evicted, [handles[2]]);
        let equal = packet(&mut pool, 0, 8, 1500);
        assert!(!queue.push(equal, 9_000, &pool, &mut evicted));
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop(&pool)).collect();
        let expected = [handles[4], handles[3], more, handles[0], handles[5], handles[1]];
        assert_eq!(order, expected);
        assert_eq!((queue.bytes, queue.len()), (0, 0));
    }

    #[test]
    fn pfabric_keeps_a_flow_in_order_and_drops_what_has_most_left() {
        let (mut pool, mut queue, mut evicted) = (Pool::default(), Remaining::default(), Vec::new());
        // Flow 1 sends 9, 8, 2 remaining: the last makes it the most urgent, its first packet goes first.
        let of = [(1, 9), (2, 5), (1, 8), (1, 2), (3, 40), (0, 0)];
        let handles: Vec<u32> = of.iter().map(|&(f, r)| packet(&mut pool, f, r, 1000)).collect();
        for &h in &handles {
            assert!(queue.push(h, 6_000, &pool, &mut evicted));
        }
        let urgent = packet(&mut pool, 4, 3, 1000);
        assert!(queue.push(urgent, 6_000, &pool, &mut evicted));
        assert_eq!(evicted, [handles[4]]);
        let hopeless = packet(&mut pool, 5, 9, 1000);
        assert!(!queue.push(hopeless, 6_000, &pool, &mut evicted));
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop(&pool)).collect();
        let expected = [handles[5], handles[0], handles[2], handles[3], urgent, handles[1]];
        assert_eq!(order, expected);
        assert_eq!((queue.bytes, queue.len()), (0, 0));
    }
}
