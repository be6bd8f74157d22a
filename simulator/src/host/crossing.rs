// SPDX-License-Identifier: GPL-2.0-or-later
//! What hosts do in a run in parts: flows of others are passed over, and packets say flows' numbers on their way between parts.

use crate::host::away::NONE;
use crate::host::flow::Flow;
use crate::host::hosts::Hosts;
use crate::host::path::Path;
use crate::host::sending::listed;
use crate::packet::Packet;

impl Hosts {
    /// Listed flows that are next to start and that other parts begin are passed over.
    pub(super) fn pass_over(&mut self) {
        let Some(away) = &self.away else { return };
        let next = self.records[self.started..].iter().position(|record| !away.has(record.src));
        self.started = next.map_or(self.records.len(), |more| self.started + more);
    }

    /// A packet leaves for another part, where slots are others: it says its flow's number instead.
    #[inline]
    pub fn leave(&self, packet: &Packet) -> Packet {
        let flow = self.away.as_ref().map_or(packet.flow, |away| away.number(packet.flow));
        Packet { flow, ..*packet }
    }

    /// A packet comes from another part.
    #[inline]
    pub fn enter(&mut self, packet: Packet) -> Packet {
        let slot = match self.away.as_ref().map_or(NONE, |away| away.slot(packet.flow)) {
            NONE => self.meet(packet.flow),
            slot => slot,
        };
        Packet { flow: slot, ..packet }
    }

    /// The slot of a listed flow that another part has begun.
    #[cold]
    fn meet(&mut self, number: u32) -> u32 {
        let task = listed(number, &self.records[number as usize]);
        let transport = &self.manner.transports[usize::from(task.transport)];
        let path = Path::new(transport, self.lines[task.from as usize]);
        self.put(Flow::new(transport, task, path))
    }
}
