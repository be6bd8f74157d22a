// SPDX-License-Identifier: GPL-2.0-or-later
//! What a running application may do: send, set timers and draw random numbers.

use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::host::flow::{Flow, Task};
use crate::host::hosts::Hosts;
use crate::host::sockets::Event;
use crate::net::network::Network;
use crate::packet::Packet;

/// Random streams of applications: the upper half.
const STREAMS: u64 = 1 << 63;

/// A message over the hosts' reliable transport.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub from: u32,
    pub to: u32,
    pub level: u8,
    /// On the wire.
    pub bytes: u64,
    /// The key by which its path is chosen.
    pub key: u32,
}

/// An application's access to the simulation.
pub(crate) struct Context<'a> {
    pub network: &'a mut Network,
    pub hosts: &'a mut Hosts,
    /// The seed of the run.
    pub seed: u64,
    /// The next unused path key.
    pub keys: &'a mut u32,
    /// The application's number.
    pub app: u32,
}

impl Context<'_> {
    pub fn now(&self) -> Ps {
        self.network.now
    }

    /// A random stream of the application's own.
    pub fn stream(&self, number: u32) -> Rng {
        Rng::new(self.seed, STREAMS | u64::from(self.app) << 32 | u64::from(number))
    }

    pub fn wake(&mut self, at: Ps, token: u32) {
        self.hosts.sockets.tell(self.network, at, self.app, Event::Timer(token));
    }

    /// Opens one-way channels for datagrams, given their sending hosts; returns the number of the
    /// first.
    pub fn channels(&mut self, senders: impl IntoIterator<Item = u32>) -> u32 {
        self.hosts.sockets.open(self.app, senders)
    }

    /// Reserves path keys; returns the first. They repeat after 2^32.
    pub fn keys(&mut self, count: u32) -> u32 {
        let first = *self.keys;
        *self.keys = first.wrapping_add(count);
        first
    }

    /// Sends a datagram; returns when the host's limiter releases it, or now if it is dropped.
    pub fn datagram(&mut self, channel: u32, to: u32, level: u8, bytes: u16, token: u32) -> Ps {
        let from = self.hosts.sockets.sender(channel);
        let flow = self.hosts.sockets.first() + channel;
        let datagram = Packet { stamp: token, ..Packet::datagram(flow, to, level, bytes) };
        self.hosts.send_datagram(self.network, from, level, datagram)
    }

    /// Sends a message as one flow.
    pub fn send(&mut self, message: Message, token: u32) {
        let packets = self.packets(message.bytes);
        let last = self.last(message.bytes);
        self.start(message, packets, last, u16::MAX, token);
    }

    /// Packets of a message.
    pub fn packets(&self, bytes: u64) -> u32 {
        bytes.div_ceil(self.data_bytes().into()) as u32
    }

    /// Bytes of a message's last packet.
    pub fn last(&self, bytes: u64) -> u16 {
        (bytes - u64::from(self.packets(bytes) - 1) * u64::from(self.data_bytes())) as u16
    }

    /// Starts a flow of the largest size; returns its slot. `cap`: largest window in packets.
    pub fn send_endless(&mut self, from: u32, to: u32, level: u8, key: u32, cap: u16) -> u32 {
        let last = self.data_bytes();
        self.start(Message { from, to, level, bytes: 0, key }, MAX_PACKETS, last, cap, 0)
    }

    fn start(&mut self, message: Message, packets: u32, last: u16, cap: u16, token: u32) -> u32 {
        let record = self.hosts.records.len() as u32 + self.hosts.sockets.expect(self.app, token);
        let Message { from, to, level, key, .. } = message;
        let start = self.now();
        self.hosts.start_flow(
            self.network,
            Task {
                record,
                key,
                from,
                to,
                packets,
                level,
                transport: 0,
                deadline: Ps::MAX,
                start,
                last,
                cap,
            },
        )
    }

    /// Bytes on the wire of a full data packet.
    pub fn data_bytes(&self) -> u16 {
        self.hosts.data_bytes()
    }

    /// The flow with this key, if its slot has not been reused.
    pub fn flow(&self, slot: u32, key: u32) -> Option<&Flow> {
        Some(&self.hosts.flows[slot as usize]).filter(|flow| flow.key == key)
    }

    /// Ends a flow: it sends nothing new.
    pub fn cut_short(&mut self, slot: u32, key: u32) {
        let flow = &self.hosts.flows[slot as usize];
        if flow.key == key && !flow.finished() {
            self.hosts.cut_short(self.network, slot);
        }
    }
}

/// Largest flow.
const MAX_PACKETS: u32 = (1 << 31) - 1;
