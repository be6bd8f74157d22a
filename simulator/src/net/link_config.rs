// SPDX-License-Identifier: GPL-2.0-or-later
//! Configuration of a network's links: queues, flow control and the largest packet.

use crate::core::error::{Error, Result};
use crate::net::pause::Pause;
use crate::net::shared_buffer::SharedBuffer;
use crate::queue::kinds::Queue;

/// Queues and flow control of all links.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkConfig {
    /// Queue of every link of a switch, and of hosts' links without a queue of their own.
    pub queue: Queue,
    /// Queue of the hosts' own links, before their cables; none: as at switches.
    pub host_queue: Option<Queue>,
    /// Queue of links between switches; none: as at links to hosts.
    pub trunk_queue: Option<Queue>,
    /// Flow control of all links or of their levels; none: no pauses.
    pub pause: Option<Pause>,
    /// Buffers that each switch's ports share; none: they share nothing.
    pub shared_buffer: Option<SharedBuffer>,
    /// Bytes of the largest packet of any transport; each queue must hold at least one.
    pub largest: u16,
    /// Ports record what they do in data packets.
    pub telemetry: bool,
}

impl LinkConfig {
    pub fn check(&self) -> Result<()> {
        self.queue.check("queue", self.largest)?;
        for (place, queue) in [("host_queue", &self.host_queue), ("trunk_queue", &self.trunk_queue)]
        {
            if let Some(queue) = queue {
                queue.check(place, self.largest)?;
            }
        }
        if let Some(shared) = self.shared_buffer {
            shared.check(self.largest)?;
            let trims = |queue: Option<Queue>| matches!(queue, Some(Queue::Trim(_)));
            if trims(Some(self.queue)) || trims(self.host_queue) || trims(self.trunk_queue) {
                return Err(Error::new("shared_buffer: queues that trim cannot share a buffer"));
            }
            if self.pause.is_some() {
                return Err(Error::new(
                    "shared_buffer: pauses count what a switch holds of each port it came by, and \
                     have buffers of their own: leave one of both out",
                ));
            }
        }
        let Some(pause) = self.pause else {
            return Ok(());
        };
        for (place, queue) in [
            ("queue", Some(self.queue)),
            ("host_queue", self.host_queue),
            ("trunk_queue", self.trunk_queue),
        ] {
            if let Some(what) = queue.and_then(|queue| queue.pause_conflict()) {
                return Err(Error::new(format!("{place}: {what}")));
            }
            if pause.per_level && queue.is_some_and(|queue| !queue.has_levels()) {
                return Err(Error::new(format!(
                    "{place}: a pause of levels needs a queue that serves by level"
                )));
            }
        }
        pause.check(self.largest)
    }

    /// All links need ports: only a port knows at departure what waits, and can be paused.
    pub fn has_ports(&self) -> bool {
        self.pause.is_some() || self.shared_buffer.is_some() || self.telemetry
    }

    /// The same queue everywhere.
    #[cfg(test)]
    pub fn all(queue: Queue) -> Self {
        LinkConfig {
            queue,
            host_queue: None,
            trunk_queue: None,
            pause: None,
            shared_buffer: None,
            largest: 1500,
            telemetry: false,
        }
    }
}
