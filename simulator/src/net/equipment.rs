// SPDX-License-Identifier: GPL-2.0-or-later
//! What stands at a network's links.

use crate::core::error::{Error, Result};
use crate::net::pause::Pause;
use crate::queue::setting::Queue;

/// Queues and flow control of all links.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Equipment {
    /// At every link of a switch, and of a host, if there is no other for those.
    pub queue: Queue,
    /// At the hosts' own links, before their cables; none: as at switches.
    pub host_queue: Option<Queue>,
    /// At links between switches; none: as at those to hosts.
    pub trunk_queue: Option<Queue>,
    /// Flow control of all links, or of their levels; none: no pauses.
    pub pause: Option<Pause>,
    /// Bytes of the largest packet of any transport, of which each queue holds at least one.
    pub largest: u16,
}

impl Equipment {
    pub fn check(&self) -> Result<()> {
        self.queue.check("queue", self.largest)?;
        for (place, queue) in [("host_queue", &self.host_queue), ("trunk_queue", &self.trunk_queue)] {
            if let Some(queue) = queue {
                queue.check(place, self.largest)?;
            }
        }
        let Some(pause) = self.pause else {
            return Ok(());
        };
        for (place, queue) in [("queue", Some(self.queue)), ("host_queue", self.host_queue), ("trunk_queue", self.trunk_queue)] {
            if let Some(what) = queue.and_then(|queue| queue.wrong_with_pauses()) {
                return Err(Error::new(format!("{place}: {what}")));
            }
            if pause.per_level && queue.is_some_and(|queue| !queue.has_levels()) {
                return Err(Error::new(format!("{place}: a pause of levels needs a queue that serves by level")));
            }
        }
        pause.check(self.largest)
    }

    /// The same queue everywhere.
    #[cfg(test)]
    pub fn all(queue: Queue) -> Self {
        Equipment { queue, host_queue: None, trunk_queue: None, pause: None, largest: 1500 }
    }
}
