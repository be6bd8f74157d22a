// SPDX-License-Identifier: GPL-2.0-or-later
//! What links hold and have sent at an instant, for samples and statistics.

use crate::core::time::Ps;
use crate::net::link::{bytes_to_send, Links, Service, NOWHERE};
use crate::packet::Pool;
use crate::queue::kinds::Discipline;
use crate::queue::traits::BANDS;

impl Links {
    /// Number of links, without the one that leads nowhere.
    pub fn len(&self) -> u32 {
        let nowhere = self.all.last().is_some_and(|last| last.to == 2 * NOWHERE);
        self.all.len() as u32 - u32::from(nowhere)
    }

    /// The queue of a link whose departures are not known at arrival.
    fn discipline(&self, number: u32) -> Option<&Discipline> {
        let place = self.places[number as usize] as usize;
        match self.class(number).service {
            Service::Queued => Some(&self.queued[place]),
            Service::Port => Some(&self.ports[place].waiting),
            _ => None,
        }
    }

    /// Bytes still to be sent of packets whose sending has started or is fixed.
    pub(crate) fn rest(&self, now: Ps, number: u32) -> u64 {
        let free = self.all[number as usize].free;
        if self.cut.get(&number) == Some(&free) {
            return 0;
        }
        bytes_to_send(free, now, self.class(number).ps_per_byte)
    }

    /// Bytes accepted and not sent.
    pub fn queued(&self, now: Ps, number: u32) -> u64 {
        self.rest(now, number) + self.discipline(number).map_or(0, Discipline::bytes)
    }

    /// Bytes times ps of future waiting that a watched link has already counted at arrival.
    pub fn to_wait(&self, now: Ps, number: u32) -> u128 {
        let class = self.class(number);
        match class.service {
            Service::PredictedQueue => self.predicted[self.places[number as usize] as usize]
                .to_wait(now, class.ps_per_byte),
            _ => 0,
        }
    }

    /// Waiting bytes of ACKs and of each level, without the packet being sent; none for queues
    /// without levels.
    pub fn levels(&self, number: u32, pool: &Pool) -> Option<[u64; BANDS]> {
        self.discipline(number).and_then(|queue| queue.band_bytes(pool))
    }

    /// Bytes that a watched link has sent.
    pub fn sent(&self, now: Ps, number: u32) -> u64 {
        let begun = self.watch.as_ref().map_or(0, |watch| watch[number as usize].begun);
        begun - self.rest(now, number)
    }

    /// Marks and drops of a watched link.
    pub fn acted(&self, number: u32) -> (u64, u64) {
        self.watch.as_ref().map_or((0, 0), |watch| watch[number as usize].acted())
    }
}
