// SPDX-License-Identifier: GPL-2.0-or-later
//! Homa's state: messages by flow, and the messages that each host sends and receives.

use smallvec::SmallVec;

use crate::core::prefetch::prefetch;
use crate::core::time::Ps;

/// A message, by its flow's slot. What both hosts select by is here, not in the flow, so that they
/// read one cache line a message.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct Message {
    /// Packets of the flow, packets that have arrived, and the flow's key.
    pub size: u32,
    pub got: u32,
    pub key: u32,
    /// Packets granted, as the sender knows; and as the receiver has sent.
    pub granted: u32,
    pub grant_sent: u32,
    /// Level of granted packets, as the sender knows; and as the receiver has sent.
    pub level: u8,
    pub grant_sent_level: u8,
    /// The sender's next new packet, and the packets to retransmit.
    pub next: u32,
    pub resend: (u32, u32),
    /// The receiver expects more of it; RESENDs since the last news.
    pub in_progress: bool,
    pub resends: u32,
}

/// Slots of flows. The usual number of them is stored inline, so that it is loaded together with
/// the host.
pub(crate) type Slots = SmallVec<[u32; 12]>;

/// A host's messages.
#[derive(Debug, Clone, Default)]
#[repr(align(64))]
pub(crate) struct Host {
    /// Outgoing messages that are not finished, and incoming ones that are not complete.
    pub out: Slots,
    pub coming: Slots,
    /// When its link will have sent everything given to it.
    pub free: Ps,
    /// A wake-up event is pending.
    pub wakes: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// By their flows' slots.
    pub all: Vec<Message>,
    pub hosts: Vec<Host>,
    /// Scratch list of messages that wait for grants.
    pub active: Vec<u32>,
}

impl Messages {
    /// Prefetches a host, and a message to or from it.
    #[inline]
    pub fn prefetch(&self, slot: u32, host: u32) {
        if let Some(message) = self.all.get(slot as usize) {
            prefetch(message);
            self.prefetch_host(host);
        }
    }

    /// Prefetches a host.
    #[inline]
    pub fn prefetch_host(&self, host: u32) {
        if let Some(host) = self.hosts.get(host as usize) {
            prefetch(host);
        }
    }

    /// Ends a message after `size` packets. Grants beyond it are void; once the rest has arrived,
    /// the answer to the sender's next probe ends it.
    pub fn cut_short(&mut self, slot: u32, size: u32) {
        // Other flows have no message.
        if let Some(message) = self.all.get_mut(slot as usize) {
            message.size = size;
            message.granted = message.granted.min(size);
            message.grant_sent = message.grant_sent.min(size);
            message.resend.1 = message.resend.1.min(size);
        }
    }

    /// Whether a message has packets to send.
    pub fn ready(&self, slot: u32) -> bool {
        let message = &self.all[slot as usize];
        message.next < message.granted || message.resend.0 < message.resend.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A large network has ten thousand hosts, each accessed for every packet.
    #[test]
    fn a_host_has_two_cache_lines() {
        assert_eq!(size_of::<Host>(), 128);
    }
}
