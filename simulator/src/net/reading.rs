// SPDX-License-Identifier: GPL-2.0-or-later
//! What links' queues hold at an instant.

use crate::core::time::Ps;
use crate::net::link::{to_go, Links, Service, NOWHERE};
use crate::packet::Pool;
use crate::queue::discipline::Discipline;
use crate::queue::priority::BANDS;

impl Links {
    /// How many there are, without the one that leads nowhere.
    pub fn len(&self) -> u32 {
        let nowhere = self.all.last().is_some_and(|last| last.to == 2 * NOWHERE);
        self.all.len() as u32 - u32::from(nowhere)
    }

    /// Where packets of a link wait that are not known at arrival to be sent.
    fn discipline(&self, number: u32) -> Option<&Discipline> {
        let place = self.places[number as usize] as usize;
        match self.class(number).service {
            Service::Queued => Some(&self.queued[place]),
            Service::Port => Some(&self.ports[place].waiting),
            _ => None,
        }
    }

    /// Bytes to go of all that a link has begun to send, or will send whatever comes.
    pub(crate) fn rest(&self, now: Ps, number: u32) -> u64 {
        let free = self.all[number as usize].free;
        if self.cut.get(&number) == Some(&free) {
            return 0;
        }
        to_go(free, now, self.class(number).ps_per_byte)
    }

    /// Bytes taken and not sent.
    pub fn queued(&self, now: Ps, number: u32) -> u64 {
        self.rest(now, number) + self.discipline(number).map_or(0, Discipline::bytes)
    }

    /// Bytes times ps that packets are still to wait which a watched link has counted already, when they came.
    pub fn to_wait(&self, now: Ps, number: u32) -> u128 {
        let class = self.class(number);
        match class.service {
            Service::Gated => self.gated[self.places[number as usize] as usize].to_wait(now, class.ps_per_byte),
            _ => 0,
        }
    }

    /// Bytes that wait of ACKs and of each level, without the packet being sent; nothing where a queue has no levels.
    pub fn levels(&self, number: u32, pool: &Pool) -> Option<[u64; BANDS]> {
        self.discipline(number).and_then(|queue| queue.levels(pool))
    }

    /// Bytes that a link that is watched has sent.
    pub fn sent(&self, now: Ps, number: u32) -> u64 {
        let begun = self.watch.as_ref().map_or(0, |watch| watch[number as usize].begun);
        begun - self.rest(now, number)
    }

    /// Marks and drops of a link that is watched.
    pub fn acted(&self, number: u32) -> (u64, u64) {
        self.watch.as_ref().map_or((0, 0), |watch| watch[number as usize].acted())
    }
}
