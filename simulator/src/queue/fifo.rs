// SPDX-License-Identifier: GPL-2.0-or-later
//! Drop tail: a first-in, first-out queue, which remembers when each packet came.

use std::collections::VecDeque;

use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::packet::Pool;
use crate::queue::limit::Limit;
use crate::queue::next::Next;
use crate::queue::traits::{admits_all, AdmitAll, QueueDiscipline, QueueKind};

/// In [`QueueKind`]: packets wait in a FIFO.
macro_rules! waits_in_a_fifo {
    () => {
        type Discipline = Fifo;

        fn discipline(&self, _ps_per_byte: u32) -> Fifo {
            Fifo::default()
        }
    };
}

pub(crate) use waits_in_a_fifo;

/// Drop tail has no setting but its limit.
impl QueueKind for Limit {
    admits_all!();
    waits_in_a_fifo!();
    const NAME: &str = "drop-tail";
    const DEPARTS_IN_ORDER: bool = true;
    const LIMITED_AT_ADMISSION: bool = true;

    fn limit(&self) -> Limit {
        *self
    }
}

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

    /// Arrival time of the packet that has waited longest.
    pub fn oldest(&self) -> Option<Ps> {
        self.waiting.front().map(|&(_, came)| came)
    }
}

impl QueueDiscipline for Fifo {
    #[inline]
    fn enqueue(&mut self, now: Ps, handle: u32, pool: &mut Pool, _evicted: &mut Vec<u32>) -> bool {
        self.push(now, handle, pool);
        true
    }

    #[inline]
    fn dequeue(
        &mut self,
        _now: Ps,
        _stopped: u8,
        pool: &mut Pool,
        _dropped: &mut Vec<u32>,
    ) -> Next {
        self.pop(pool).map(|(handle, _)| handle).into()
    }

    fn flush(&mut self, _now: Ps, _pool: &mut Pool, lost: &mut Vec<u32>) {
        lost.extend(self.waiting.drain(..).map(|(handle, _)| handle));
        self.bytes = 0;
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    fn len(&self) -> usize {
        self.waiting.len()
    }
}
