// SPDX-License-Identifier: GPL-2.0-or-later
//! The seam between links and queues: any queue takes packets and gives one to be sent next.

use crate::core::time::Ps;
use crate::packet::Pool;
use crate::queue::codel::Controller;
use crate::queue::drr::RoundRobin;
use crate::queue::fifo::Fifo;
use crate::queue::pfabric::Remaining;
use crate::queue::priority::{Bands, BANDS};
use crate::queue::setting::Queue;

/// What a link that is free does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It sends this packet, which was marked just now or was not.
    Send { handle: u32, marked: bool },
    /// Nothing waits.
    Idle,
}

impl From<Option<u32>> for Next {
    #[inline]
    fn from(handle: Option<u32>) -> Self {
        handle.map_or(Next::Idle, |handle| Next::Send { handle, marked: false })
    }
}

/// A queue of packets that wait, without the one being sent. Of these one is chosen by `match`, not by a table of functions, so that
/// what each does is compiled into its link.
// Not boxed: those of a network are all of one kind.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
pub(crate) enum Discipline {
    Fifo(Fifo),
    CoDel(Fifo, Controller),
    Priority(Bands),
    PFabric(Remaining),
    RoundRobin(RoundRobin),
}

impl Discipline {
    pub fn new(queue: &Queue) -> Self {
        match *queue {
            Queue::DropTail(_) | Queue::Marking { .. } | Queue::Threshold { .. } | Queue::Red(_) => {
                Discipline::Fifo(Fifo::default())
            }
            Queue::CoDel(codel) => Discipline::CoDel(Fifo::default(), Controller::new(&codel)),
            Queue::Priority { limit } => Discipline::Priority(Bands::new(limit)),
            Queue::PFabric { limit } => Discipline::PFabric(Remaining::new(limit)),
            Queue::RoundRobin { limit, quantum } => Discipline::RoundRobin(RoundRobin::new(limit, quantum)),
        }
    }

    /// Takes a packet, or returns false and leaves it. Packets that are given up for it go to `evicted`, in the order in which they
    /// go, which the caller frees from the last on.
    // Only for packets that wait: inlined, it makes the way of all others longer.
    #[inline(never)]
    pub fn enqueue(&mut self, now: Ps, handle: u32, pool: &Pool, evicted: &mut Vec<u32>) -> bool {
        match self {
            Discipline::Fifo(queue) | Discipline::CoDel(queue, _) => queue.push(now, handle, pool),
            Discipline::Priority(queue) => return queue.push(handle, pool, evicted),
            Discipline::PFabric(queue) => return queue.push(handle, pool, evicted),
            Discipline::RoundRobin(queue) => return queue.push(handle, pool, evicted),
        }
        true
    }

    /// What is sent next; packets that wait before it and are not to be sent go to `dropped`.
    // A call more is 1 % of all instructions of a network with priorities.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub fn dequeue(&mut self, now: Ps, pool: &mut Pool, dropped: &mut Vec<u32>) -> Next {
        match self {
            Discipline::Fifo(queue) => queue.pop(pool).map(|(handle, _)| handle).into(),
            Discipline::CoDel(queue, controller) => match controller.pop(now, queue, pool, dropped) {
                Some((handle, marked)) => Next::Send { handle, marked },
                None => Next::Idle,
            },
            Discipline::Priority(queue) => queue.pop(pool).into(),
            Discipline::PFabric(queue) => queue.pop(pool).into(),
            Discipline::RoundRobin(queue) => queue.pop(pool).into(),
        }
    }

    /// Bytes that wait; 0 only if no packet does.
    #[inline]
    pub fn bytes(&self) -> u64 {
        match self {
            Discipline::Fifo(queue) | Discipline::CoDel(queue, _) => queue.bytes(),
            Discipline::Priority(queue) => queue.bytes(),
            Discipline::PFabric(queue) => queue.bytes(),
            Discipline::RoundRobin(queue) => queue.bytes(),
        }
    }

    /// Bytes that wait of ACKs and of each level, most urgent first; nothing of queues that have no levels.
    pub fn levels(&self, pool: &Pool) -> Option<[u64; BANDS]> {
        match self {
            Discipline::Priority(queue) => Some(queue.band_bytes(pool)),
            _ => None,
        }
    }

    /// Packets that wait.
    pub fn len(&self) -> usize {
        match self {
            Discipline::Fifo(queue) | Discipline::CoDel(queue, _) => queue.len(),
            Discipline::Priority(queue) => queue.len(),
            Discipline::PFabric(queue) => queue.len(),
            Discipline::RoundRobin(queue) => queue.len(),
        }
    }
}
