// SPDX-License-Identifier: GPL-2.0-or-later
//! What happens when a link fails: what it carries and what waits for it is lost, and so is what is offered to it until it works again.

use crate::core::error::Result;
use crate::core::time::Ps;
use crate::net::link::{Class, Link, Links, Service, NOWHERE};
use crate::packet::Pool;

impl Links {
    /// Adds the link that leads nowhere, to which what cannot reach its end is offered.
    pub(crate) fn add_nowhere(&mut self) -> Result<()> {
        let dead = Class { delay: 0, limit: 0, mark: 0, ps_per_byte: 1, service: Service::Dead };
        let class = self.class_like(&dead)?;
        self.places.push(0);
        self.all.push(Link { free: 0, to: 2 * NOWHERE, class, above: false, waiting: false });
        Ok(())
    }

    /// A link fails; `lost` gets what waits for it. What it carries is for others to find.
    pub(crate) fn fail(&mut self, now: Ps, number: u32, pool: &mut Pool, lost: &mut Vec<u32>) {
        let place = self.places[number as usize] as usize;
        let service = self.class(number).service;
        let (rest, in_vain) = (self.rest(now, number), self.to_wait(now, number));
        match service {
            Service::Counted => self.counted[place].clear(),
            Service::Gated => self.gated[place].clear(now),
            Service::Queued => self.queued[place].flush(now, pool, lost),
            // As links that fail are not paused, its gate remembers nothing.
            Service::Port => self.ports[place].waiting.flush(now, pool, lost),
            Service::Fifo | Service::Dead => {}
        }
        if let Some(watch) = &mut self.watch {
            watch[number as usize].fails(now, rest, in_vain);
        }
        let free = &mut self.all[number as usize].free;
        if matches!(service, Service::Queued | Service::Port) {
            // The departure of the packet that it sent is still to come.
            self.cut.insert(number, *free);
        } else {
            *free = now;
        }
        // Of the link that leads nowhere.
        let dead = self.all[self.all.len() - 1].class;
        let class = std::mem::replace(&mut self.all[number as usize].class, dead);
        self.failed.insert(number, class);
    }

    /// A link works again.
    pub(crate) fn mend(&mut self, number: u32) {
        if let Some(class) = self.failed.remove(&number) {
            self.all[number as usize].class = class;
        }
    }

    /// Links that have failed.
    pub(crate) fn failed(&self) -> Vec<u32> {
        self.failed.keys().copied().collect()
    }
}
