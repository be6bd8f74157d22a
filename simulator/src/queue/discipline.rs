// SPDX-License-Identifier: GPL-2.0-or-later
//! The queue disciplines of a link behind one interface: enqueue a packet, dequeue the next one or
//! say when.

use crate::core::time::Ps;
use crate::packet::Pool;
use crate::queue::codel::Controller;
use crate::queue::drr::RoundRobin;
use crate::queue::dualpi2::DualQueue;
use crate::queue::fifo::Fifo;
use crate::queue::levels::{open, Levels};
use crate::queue::next::Next;
use crate::queue::pfabric::PFabricQueue;
use crate::queue::priority::{Bands, BANDS};
use crate::queue::settings::Queue;
use crate::queue::time_aware::TimeAwareQueue;
use crate::queue::wfq::FairQueue;

/// Waiting packets, without the one being sent. A `match` selects the discipline, not a table of
/// functions, so that each is compiled into its link.
#[derive(Debug)]
pub(crate) enum Discipline {
    Fifo(Fifo),
    CoDel(Fifo, Controller),
    Priority(Bands),
    PFabric(PFabricQueue),
    RoundRobin(RoundRobin),
    Levels(Box<Levels>),
    Fair(Box<FairQueue>),
    Timed(Box<TimeAwareQueue>),
    Dual(Box<DualQueue>),
}

impl Discipline {
    /// The discipline for a setting, on a link with this time per byte.
    pub fn new(queue: &Queue, ps_per_byte: u32) -> Self {
        match *queue {
            Queue::CoDel(codel) => Discipline::CoDel(Fifo::default(), Controller::new(&codel)),
            Queue::Priority { limit } => Discipline::Priority(Bands::new(limit)),
            Queue::PFabric { limit } => Discipline::PFabric(PFabricQueue::new(limit)),
            Queue::RoundRobin { limit, quantum } => Discipline::RoundRobin(RoundRobin::new(limit, quantum)),
            Queue::LevelRed(red) => match red.wfq() {
                Some(wfq) => Discipline::Fair(Box::new(FairQueue::new(&wfq, ps_per_byte))),
                None => Discipline::Levels(Box::new(Levels::new(red.limit))),
            },
            Queue::Wfq(wfq) => Discipline::Fair(Box::new(FairQueue::new(&wfq, ps_per_byte))),
            Queue::TimeAware(gates) => Discipline::Timed(Box::new(TimeAwareQueue::new(&gates, ps_per_byte))),
            Queue::DualPi2(dual) => Discipline::Dual(Box::new(DualQueue::new(&dual))),
            // Whatever admission alone decides waits in a FIFO.
            _ => {
                assert!(queue.departs_in_order(), "{queue:?} has no discipline");
                Discipline::Fifo(Fifo::default())
            }
        }
    }

    /// Queues a packet, or returns false and leaves it. Packets evicted for it go to `evicted` in
    /// eviction order; the caller frees them from the last.
    // Only for packets that wait: inlined, it would lengthen the path of all others.
    #[inline(never)]
    pub fn enqueue(&mut self, now: Ps, handle: u32, pool: &mut Pool, evicted: &mut Vec<u32>) -> bool {
        match self {
            Discipline::Fifo(queue) | Discipline::CoDel(queue, _) => queue.push(now, handle, pool),
            Discipline::Priority(queue) => return queue.push(handle, pool, evicted),
            Discipline::PFabric(queue) => return queue.push(handle, pool, evicted),
            Discipline::RoundRobin(queue) => return queue.push(handle, pool, evicted),
            Discipline::Levels(queue) => return queue.push(handle, pool).is_some(),
            Discipline::Fair(queue) => return queue.push(now, handle, pool),
            Discipline::Timed(queue) => return queue.push(now, handle, pool),
            Discipline::Dual(queue) => return queue.push(now, handle, pool),
        }
        true
    }

    /// The next packet to send, or when one may be sent; packets dropped before it go to `dropped`.
    /// Disciplines with levels skip the levels in `stopped`, one bit each.
    // One more call is 1 % of all instructions in a network with priorities.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub fn dequeue(&mut self, now: Ps, stopped: u8, pool: &mut Pool, dropped: &mut Vec<u32>) -> Next {
        let send = |sent: Option<(u32, bool)>| sent.map_or(Next::Idle, |(handle, marked)| Next::Send { handle, marked });
        match self {
            Discipline::Fifo(queue) => queue.pop(pool).map(|(handle, _)| handle).into(),
            Discipline::CoDel(queue, controller) => send(controller.pop(now, queue, pool, dropped)),
            Discipline::Priority(queue) => queue.pop(stopped, pool).into(),
            Discipline::PFabric(queue) => queue.pop(pool).into(),
            Discipline::RoundRobin(queue) => queue.pop(pool).into(),
            Discipline::Levels(queue) => open(stopped).find_map(|level| queue.pop(level, pool)).into(),
            Discipline::Fair(queue) => queue.pop(stopped, pool).into(),
            Discipline::Timed(queue) => queue.next(now, stopped, pool),
            Discipline::Dual(queue) => send(queue.pop(now, pool, dropped)),
        }
    }

    /// Prefetches the next packet, if the discipline can tell quickly which it is.
    #[inline]
    pub fn prefetch(&self, pool: &Pool) {
        if let Discipline::Priority(queue) = self {
            queue.prefetch(pool);
        }
    }

    /// Moves all waiting packets to `lost` and resets the queue, as Linux does when a link loses
    /// its carrier. Disciplines in the last arm have no state but the waiting packets.
    pub fn flush(&mut self, now: Ps, pool: &mut Pool, lost: &mut Vec<u32>) {
        match self {
            Discipline::Fifo(queue) => queue.flush(lost),
            Discipline::CoDel(queue, controller) => {
                queue.flush(lost);
                controller.reset();
            }
            Discipline::Fair(queue) => queue.flush(now, pool, lost),
            Discipline::Timed(queue) => queue.flush(pool, lost),
            Discipline::Dual(queue) => queue.flush(lost),
            Discipline::Priority(_) | Discipline::PFabric(_) | Discipline::RoundRobin(_) | Discipline::Levels(_) => {
                while let Next::Send { handle, .. } = self.dequeue(now, 0, pool, lost) {
                    lost.push(handle);
                }
            }
        }
    }

    /// Waiting bytes; 0 only if no packet waits.
    #[inline]
    pub fn bytes(&self) -> u64 {
        match self {
            Discipline::Fifo(queue) | Discipline::CoDel(queue, _) => queue.bytes(),
            Discipline::Priority(queue) => queue.bytes(),
            Discipline::PFabric(queue) => queue.bytes(),
            Discipline::RoundRobin(queue) => queue.bytes(),
            Discipline::Levels(queue) => queue.bytes(),
            Discipline::Fair(queue) => queue.bytes(),
            Discipline::Timed(queue) => queue.bytes(),
            Discipline::Dual(queue) => queue.bytes(),
        }
    }

    /// Waiting bytes of ACKs and of each level, most urgent first; none for disciplines without
    /// levels.
    pub fn levels(&self, pool: &Pool) -> Option<[u64; BANDS]> {
        match self {
            Discipline::Priority(queue) => Some(queue.band_bytes(pool)),
            Discipline::Levels(queue) => Some(queue.band_bytes()),
            Discipline::Fair(queue) => Some(queue.band_bytes()),
            Discipline::Timed(queue) => Some(queue.band_bytes()),
            _ => None,
        }
    }

    /// Waiting packets.
    pub fn len(&self) -> usize {
        match self {
            Discipline::Fifo(queue) | Discipline::CoDel(queue, _) => queue.len(),
            Discipline::Priority(queue) => queue.len(),
            Discipline::PFabric(queue) => queue.len(),
            Discipline::RoundRobin(queue) => queue.len(),
            Discipline::Levels(queue) => queue.len(),
            Discipline::Fair(queue) => queue.len(),
            Discipline::Timed(queue) => queue.len(),
            Discipline::Dual(queue) => queue.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::{MS, US};
    use crate::packet::{Kind, Packet, SCALABLE};
    use crate::queue::aqm::{CoDel, Protection};
    use crate::queue::dualpi2::DualPi2;
    use crate::queue::level_red::LevelRed;
    use crate::queue::limit::Limit;
    use crate::queue::pi_controller::PiController;
    use crate::queue::time_aware::TimeAware;
    use crate::queue::wfq::Wfq;

    /// The packets sent, with their marks, and dropped, when packets of all levels arrive every us,
    /// faster than they leave.
    fn fates(queue: &mut Discipline, from: Ps, count: u64, pool: &mut Pool) -> (Vec<(u32, bool)>, Vec<u32>) {
        let (mut sent, mut dropped) = (Vec::new(), Vec::new());
        for n in 0..count {
            let echo = if n % 2 == 0 { SCALABLE } else { 0 };
            let packet =
                Packet { seq: n as u32, echo, ect: true, kind: Kind::Data, ..Packet::datagram(0, 1, (n % 3) as u8, 1_500) };
            let handle = pool.add(packet);
            queue.enqueue(from + n * US, handle, pool, &mut Vec::new());
            if n % 3 == 0 {
                if let Next::Send { handle, marked } = queue.dequeue(from + n * US, 0, pool, &mut dropped) {
                    sent.push((pool.get(handle).seq, marked));
                }
            }
        }
        (sent, dropped.iter().map(|&handle| pool.get(handle).seq).collect())
    }

    #[test]
    fn a_queue_that_has_lost_all_is_as_new() {
        let control = PiController { target: 10 * US, update: 10 * US, alpha: 4_000_000, beta: 40_000_000 };
        let red = LevelRed { limit: 1 << 30, min: 0, max: 1, max_p: 1, weights: Some([1, 2, 3, 1, 1, 1, 1, 1]) };
        let queues = [
            Queue::DropTail(Limit::None),
            Queue::CoDel(CoDel { limit: Limit::None, target: 10 * US, interval: 100 * US, protection: Protection::Default }),
            Queue::Priority { limit: 1 << 30 },
            Queue::PFabric { limit: 1 << 30 },
            Queue::RoundRobin { limit: 1 << 30, quantum: 700 },
            Queue::Wfq(Wfq { limit: 1 << 30, weights: [1, 2, 3, 1, 1, 1, 1, 1] }),
            Queue::LevelRed(red),
            Queue::LevelRed(LevelRed { weights: None, ..red }),
            Queue::TimeAware(TimeAware::new(1 << 30, 0, &[(5 * US, 1), (20 * US, 0xff)]).unwrap()),
            Queue::DualPi2(DualPi2 { control, least: US, range: US, ..DualPi2::rfc9332(1 << 30) }),
        ];
        for queue in queues {
            let (mut pool, mut lost) = (Pool::default(), Vec::new());
            let mut used = Discipline::new(&queue, 800);
            let (sent, dropped) = fates(&mut used, 0, 1_000, &mut pool);
            assert!(sent.len() > 100, "{queue:?}");
            let waiting = used.len();
            used.flush(MS, &mut pool, &mut lost);
            assert_eq!((lost.len(), used.len(), used.bytes()), (waiting, 0, 0), "{queue:?}");
            assert_eq!(waiting, 1_000 - sent.len() - dropped.len(), "{queue:?}");
            let new = fates(&mut Discipline::new(&queue, 800), MS + 100 * US, 1_000, &mut pool);
            assert!(fates(&mut used, MS + 100 * US, 1_000, &mut pool) == new, "{queue:?}");
        }
    }

    /// A large network has tens of thousands of queues, each used twice a hop.
    #[test]
    fn a_queue_has_two_cache_lines() {
        assert!(size_of::<Discipline>() <= 128);
    }
}
