// SPDX-License-Identifier: GPL-2.0-or-later
//! What hosts know of messages that their receivers grant.

use smallvec::SmallVec;

use crate::core::fetch::fetch;
use crate::core::time::Ps;

/// A message, by its flow's slot. What both hosts choose by is here and not in flows, so that they read one cache line for each.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct Message {
    /// Packets of its flow, those of them that have come, and the number that its flow is known by.
    pub size: u32,
    pub got: u32,
    pub key: u32,
    /// The sender may send those below; the receiver has said so.
    pub granted: u32,
    pub asked: u32,
    /// Of those that were granted, as the sender has heard; as the receiver has said.
    pub level: u8,
    pub asked_level: u8,
    /// The sender's next new packet, and those that are asked for again.
    pub next: u32,
    pub again: (u32, u32),
    /// The receiver knows of it, and has asked again so often since something came.
    pub known: bool,
    pub asks: u32,
}

/// Slots of some flows. As many as a host mostly has lie in the host, so that they come from memory together with it.
pub(crate) type Slots = SmallVec<[u32; 12]>;

/// What a host is about.
#[derive(Debug, Clone, Default)]
#[repr(align(64))]
pub(crate) struct Host {
    /// Its messages that are not finished, and those that come to it and are not complete.
    pub out: Slots,
    pub coming: Slots,
    /// When its link will have sent what it was given.
    pub free: Ps,
    /// An event looks again then.
    pub wakes: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// By the slots of their flows.
    pub all: Vec<Message>,
    pub hosts: Vec<Host>,
    /// Those that wait for grants, while a receiver chooses among them.
    pub active: Vec<u32>,
}

impl Messages {
    /// Asks for the memory of a host, and of a message to it or from it.
    #[inline]
    pub fn fetch(&self, slot: u32, host: u32) {
        if let Some(message) = self.all.get(slot as usize) {
            fetch(message);
            self.fetch_host(host);
        }
    }

    /// Asks for that of a host alone.
    #[inline]
    pub fn fetch_host(&self, host: u32) {
        if let Some(host) = self.hosts.get(host as usize) {
            fetch(host);
        }
    }

    /// A message has no more packets than these. What its receiver has asked for beyond them is not sent; once the rest has come, the
    /// sender's next probe tells it.
    pub fn cut_short(&mut self, slot: u32, size: u32) {
        // Only flows that are messages are known here.
        if let Some(message) = self.all.get_mut(slot as usize) {
            message.size = size;
            message.granted = message.granted.min(size);
            message.asked = message.asked.min(size);
            message.again.1 = message.again.1.min(size);
        }
    }

    /// Packets that a message may send now.
    pub fn ready(&self, slot: u32) -> bool {
        let message = &self.all[slot as usize];
        message.next < message.granted || message.again.0 < message.again.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A large network has ten thousand, each looked at for every packet that it has or sends.
    #[test]
    fn a_host_has_two_cache_lines() {
        assert_eq!(size_of::<Host>(), 128);
    }
}
