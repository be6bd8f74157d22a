// SPDX-License-Identifier: GPL-2.0-or-later
//! pFabric's queue (Alizadeh et al., SIGCOMM'13): the flow with the least left to send goes first.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{In, Size};
use crate::packet::{Kind, Packet, Pool};
use crate::queue::limit::Limit;
use crate::queue::next::Next;
use crate::queue::priority::is_enough;
use crate::queue::traits::{admits_all, AdmitAll, QueueDiscipline, QueueKind};

/// pFabric's queue: least remaining first, flows in order, most remaining dropped. Datagrams count
/// as one more remaining packet than their level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PFabric {
    /// Bytes, without the packet being sent.
    #[serde(with = "In::<Size>")]
    pub limit: u64,
}

impl QueueKind for PFabric {
    admits_all!();
    type Discipline = PFabricQueue;
    const NAME: &str = "pfabric";

    fn limit(&self) -> Limit {
        Limit::Bytes(self.limit)
    }

    fn discipline(&self, _ps_per_byte: u32) -> PFabricQueue {
        PFabricQueue::new(self.limit)
    }
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    handle: u32,
    flow: u32,
    rank: u32,
    bytes: u16,
}

/// The flow that owns the packet of least rank, and the place of its first packet.
#[derive(Debug, Clone, Copy)]
struct Served {
    flow: u32,
    rank: u32,
    first: usize,
}

/// pFabric's queue (section 4.1): sends the first packet of the flow that owns the packet with the
/// least remaining, so that flows stay in order; drops the packet with the most remaining. Meant
/// for a few packets: they are searched linearly, and only when the served flow has no packet of
/// least rank left.
#[derive(Debug, Clone)]
pub(crate) struct PFabricQueue {
    acks: VecDeque<u32>,
    data: Vec<Waiting>,
    /// The flow being served, if it is known.
    served: Option<Served>,
    bytes: u64,
    /// Bytes of all packets, without the one being sent.
    limit: u64,
}

impl PFabricQueue {
    /// With a limit in bytes.
    pub fn new(limit: u64) -> Self {
        PFabricQueue { acks: VecDeque::new(), data: Vec::new(), served: None, bytes: 0, limit }
    }

    /// Queues a packet; false if it is dropped instead.
    #[inline(never)]
    pub fn push(&mut self, handle: u32, pool: &Pool, evicted: &mut Vec<u32>) -> bool {
        let Packet { flow, rank, bytes, kind, .. } = *pool.get(handle);
        // Sources of datagrams are numbered apart from flows, whose slots stay below 2^29.
        let flow = if kind == Kind::Datagram { flow | 1 << 31 } else { flow };
        let over = (self.bytes + u64::from(bytes)).saturating_sub(self.limit);
        let behind = self.data.iter().filter(|waiting| waiting.rank > rank);
        // Nothing is evicted for a packet that would not fit even then.
        if over > 0 && !is_enough(behind.map(|waiting| waiting.bytes), over) {
            return false;
        }
        while self.bytes + u64::from(bytes) > self.limit {
            // Among equal ranks the newest goes first, and an arriving packet before it.
            let Some(worst) = (0..self.data.len()).max_by_key(|&i| self.data[i].rank) else {
                return false;
            };
            let victim = self.data.remove(worst);
            self.served = None;
            self.bytes -= u64::from(victim.bytes);
            evicted.push(victim.handle);
        }
        self.bytes += u64::from(bytes);
        if rank == 0 {
            self.acks.push_back(handle);
        } else {
            self.data.push(Waiting { handle, flow, rank, bytes });
            self.served = match self.served {
                Some(served) if served.flow == flow => {
                    Some(Served { rank: rank.min(served.rank), ..served })
                }
                Some(served) if rank < served.rank => None,
                served => served,
            };
        }
        true
    }

    /// Takes the next packet to send.
    #[inline(never)]
    pub fn pop(&mut self, pool: &Pool) -> Option<u32> {
        if let Some(ack) = self.acks.pop_front() {
            self.bytes -= u64::from(pool.get(ack).bytes);
            return Some(ack);
        }
        // The common case: a single packet.
        if let [sent] = self.data[..] {
            self.data.clear();
            self.served = None;
            self.bytes -= u64::from(sent.bytes);
            return Some(sent.handle);
        }
        self.choose()
    }

    /// Chooses among several packets.
    #[inline(never)]
    fn choose(&mut self) -> Option<u32> {
        let Served { flow, rank, first } = self.served.or_else(|| self.search())?;
        let sent = self.data.remove(first);
        // The flow's least rank is still there, unless this packet had it.
        let next = if sent.rank > rank {
            self.data[first..].iter().position(|w| w.flow == flow)
        } else {
            None
        };
        self.served = next.map(|after| Served { flow, rank, first: first + after });
        self.bytes -= u64::from(sent.bytes);
        Some(sent.handle)
    }

    /// Among equal ranks the first is served.
    fn search(&self) -> Option<Served> {
        let Waiting { flow, rank, .. } = *self.data.iter().min_by_key(|w| w.rank)?;
        let first = self.data.iter().position(|w| w.flow == flow)?;
        Some(Served { flow, rank, first })
    }
}

impl QueueDiscipline for PFabricQueue {
    #[inline]
    fn enqueue(&mut self, _now: Ps, handle: u32, pool: &mut Pool, evicted: &mut Vec<u32>) -> bool {
        self.push(handle, pool, evicted)
    }

    #[inline]
    fn dequeue(
        &mut self,
        _now: Ps,
        _stopped: u8,
        pool: &mut Pool,
        _dropped: &mut Vec<u32>,
    ) -> Next {
        self.pop(pool).into()
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn len(&self) -> usize {
        self.acks.len() + self.data.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(pool: &mut Pool, flow: u32, rank: u32, bytes: u16) -> u32 {
        let kind = if rank == 0 { Kind::Ack } else { Kind::Data };
        pool.add(Packet { rank, kind, ..Packet::datagram(flow, 0, 0, bytes) })
    }

    /// 3,000 bytes, of which those with more left than 9 packets give up 50: too few for one of
    /// 1,500, enough for one of 50.
    #[test]
    fn nothing_is_pushed_out_in_vain() {
        let (mut pool, mut queue, mut evicted) =
            (Pool::default(), PFabricQueue::new(3_000), Vec::new());
        for (rank, bytes) in [(1, 1_500), (9, 1_450), (40, 20), (30, 30)] {
            let handle = packet(&mut pool, rank, rank, bytes);
            assert!(queue.push(handle, &pool, &mut evicted));
        }
        let large = packet(&mut pool, 5, 9, 1_500);
        assert!(!queue.push(large, &pool, &mut evicted));
        assert_eq!((evicted.len(), queue.bytes()), (0, 3_000));
        let small = packet(&mut pool, 5, 9, 50);
        assert!(queue.push(small, &pool, &mut evicted));
        assert_eq!((evicted.len(), queue.bytes()), (2, 3_000));
    }

    #[test]
    fn pfabric_keeps_a_flow_in_order_and_drops_what_has_most_left() {
        let (mut pool, mut queue, mut evicted) =
            (Pool::default(), PFabricQueue::new(6_000), Vec::new());
        // Flow 1 sends 9, 8, 2 remaining: the last makes it the most urgent, its first packet goes
        // first.
        let of = [(1, 9), (2, 5), (1, 8), (1, 2), (3, 40), (0, 0)];
        let handles: Vec<u32> = of.iter().map(|&(f, r)| packet(&mut pool, f, r, 1000)).collect();
        for &h in &handles {
            assert!(queue.push(h, &pool, &mut evicted));
        }
        let urgent = packet(&mut pool, 4, 3, 1000);
        assert!(queue.push(urgent, &pool, &mut evicted));
        assert_eq!(evicted, [handles[4]]);
        let hopeless = packet(&mut pool, 5, 9, 1000);
        assert!(!queue.push(hopeless, &pool, &mut evicted));
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop(&pool)).collect();
        let expected = [handles[5], handles[0], handles[2], handles[3], urgent, handles[1]];
        assert_eq!(order, expected);
        assert_eq!((queue.bytes, queue.len()), (0, 0));
    }
}
