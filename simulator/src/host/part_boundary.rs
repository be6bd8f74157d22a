// SPDX-License-Identifier: GPL-2.0-or-later
//! Hosts at the boundary of a part: skip other parts' flows, and translate flow slots of packets
//! that leave or enter.

use crate::host::flow::Flow;
use crate::host::flow_events::listed_task;
use crate::host::hosts::Hosts;
use crate::host::path::Path;
use crate::host::remote_flows::NONE;
use crate::packet::Packet;

impl Hosts {
    /// Skips listed flows that other parts start.
    pub(super) fn skip_remote_flows(&mut self) {
        let Some(remote) = &self.remote else { return };
        let next = self.records[self.started..].iter().position(|record| !remote.has(record.src));
        self.started = next.map_or(self.records.len(), |more| self.started + more);
    }

    /// A packet leaves for another part: replaces its slot by its flow's number.
    #[inline]
    pub fn leave(&self, packet: &Packet) -> Packet {
        let flow = self.remote.as_ref().map_or(packet.flow, |remote| remote.number(packet.flow));
        Packet { flow, ..*packet }
    }

    /// A packet enters from another part.
    #[inline]
    pub fn enter(&mut self, packet: Packet) -> Packet {
        let slot = match self.remote.as_ref().map_or(NONE, |remote| remote.slot(packet.flow)) {
            NONE => self.add_remote(packet.flow),
            slot => slot,
        };
        Packet { flow: slot, ..packet }
    }

    /// The slot of a listed flow that another part has started.
    #[cold]
    fn add_remote(&mut self, number: u32) -> u32 {
        let task = listed_task(number, &self.records[number as usize]);
        let transport = &self.config.transports[usize::from(task.transport)];
        let path = Path::new(transport, self.lines[task.from as usize]);
        self.allocate(Flow::new(transport, task, path))
    }
}
