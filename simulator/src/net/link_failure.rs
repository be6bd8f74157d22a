// SPDX-License-Identifier: GPL-2.0-or-later
//! Failing links: everything on the link, waiting for it, or offered to it until it works again is
//! lost.

use crate::core::error::Result;
use crate::core::time::Ps;
use crate::net::link::{Class, Link, Links, Service, NOWHERE};
use crate::packet::Pool;

impl Links {
    /// Adds the link that leads nowhere; packets without a route are offered to it.
    pub(crate) fn add_nowhere(&mut self) -> Result<()> {
        let dead = Class { delay: 0, limit: 0, mark: 0, ps_per_byte: 1, service: Service::Dead };
        let class = self.class_like(&dead)?;
        self.places.push(0);
        self.all.push(Link { free: 0, to: 2 * NOWHERE, class, above: false, waiting: false });
        Ok(())
    }

    /// A link fails. Packets waiting for it go to `lost`; the caller finds those on it.
    pub(crate) fn fail(&mut self, now: Ps, number: u32, pool: &mut Pool, lost: &mut Vec<u32>) {
        let place = self.places[number as usize] as usize;
        let service = self.class(number).service;
        let (rest, in_vain) = (self.rest(now, number), self.to_wait(now, number));
        match service {
            Service::Counted => self.counted[place].clear(),
            Service::PredictedQueue => self.predicted[place].clear(now),
            Service::Queued => self.queued[place].flush(now, pool, lost),
            // Links that fail are never paused, so their admission has no state.
            Service::Port => self.ports[place].waiting.flush(now, pool, lost),
            Service::Fifo | Service::Dead => {}
        }
        if let Some(watch) = &mut self.watch {
            watch[number as usize].fails(now, rest, in_vain);
        }
        let free = &mut self.all[number as usize].free;
        if matches!(service, Service::Queued | Service::Port) {
            // The departure event of the packet being sent is still pending.
            self.cut.insert(number, *free);
        } else {
            *free = now;
        }
        // The class of the link that leads nowhere.
        let dead = self.all[self.all.len() - 1].class;
        let class = std::mem::replace(&mut self.all[number as usize].class, dead);
        self.failed.insert(number, class);
    }

    /// A link works again.
    pub(crate) fn repair(&mut self, number: u32) {
        if let Some(class) = self.failed.remove(&number) {
            self.all[number as usize].class = class;
        }
    }

    /// Links that have failed.
    pub(crate) fn failed(&self) -> Vec<u32> {
        self.failed.keys().copied().collect()
    }
}
