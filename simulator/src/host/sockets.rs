// SPDX-License-Identifier: GPL-2.0-or-later
//! Sockets: what hosts report to applications.
//!
//! An application gets every report as an event of its own at the same time, in the order of
//! happening. So it is never entered while it sends.

use crate::core::event::{EMIT, INDEX};
use crate::core::time::Ps;
use crate::net::network::Network;
use crate::packet::Packet;

/// A report to an application. Tokens are the application's own; a channel is one of those that it
/// opened.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// A timer is due; the first is its start.
    Timer(u32),
    /// All of a flow has arrived at its receiver.
    Received(u32),
    /// All `packets` of a flow have been acknowledged at its sender, which is later.
    Acknowledged { token: u32, packets: u32 },
    /// A datagram has arrived.
    Arrived { channel: u32, token: u32 },
    /// A datagram with this token was dropped.
    Dropped(u32),
}

/// A list that reuses its places.
#[derive(Debug)]
struct Slots<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slots<T> {
    fn new() -> Self {
        Slots { items: Vec::new(), free: Vec::new() }
    }

    fn add(&mut self, item: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.items[slot as usize] = item;
            slot
        } else {
            self.items.push(item);
            self.items.len() as u32 - 1
        }
    }

    fn take(&mut self, slot: u32) -> T {
        self.free.push(slot);
        self.items[slot as usize]
    }
}

/// A one-way channel for datagrams, with a path of its own.
#[derive(Debug)]
struct Channel {
    app: u32,
    /// Its number within the application.
    number: u32,
    from: u32,
}

/// The flows and channels of applications, and pending reports.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// Events and channels are numbered from here on; sources of datagrams before.
    first: u32,
    events: Slots<(u32, Event)>,
    /// Flows under way, with their application and token.
    flows: Slots<(u32, u32)>,
    channels: Vec<Channel>,
}

// Cold: runs without applications must not be slower for them.
impl Sockets {
    pub fn new(first: u32) -> Self {
        Sockets { first, events: Slots::new(), flows: Slots::new(), channels: Vec::new() }
    }

    /// The first number that is not a source's.
    #[inline]
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Opens one-way channels for datagrams, given their sending hosts; returns the number of the
    /// first.
    pub fn open(&mut self, app: u32, senders: impl IntoIterator<Item = u32>) -> u32 {
        let first = self.channels.len() as u32;
        self.channels.extend((0..).zip(senders).map(|(number, from)| Channel {
            app,
            number,
            from,
        }));
        first
    }

    /// The host that sends on this channel.
    pub fn sender(&self, channel: u32) -> u32 {
        self.channels[channel as usize].from
    }

    /// Registers a flow of an application; returns its place.
    pub fn expect(&mut self, app: u32, token: u32) -> u32 {
        self.flows.add((app, token))
    }

    /// Schedules a report to an application.
    pub fn tell(&mut self, net: &mut Network, at: Ps, app: u32, event: Event) {
        let index = self.first + self.events.add((app, event));
        assert!(index < 1 << INDEX, "applications wait for more than 2^29 events");
        net.wheel.push(at, EMIT | index);
    }

    /// Takes a report that is due, with its application.
    pub fn take(&mut self, index: u32) -> (u32, Event) {
        self.events.take(index - self.first)
    }

    /// All of the flow at this place has arrived.
    #[cold]
    pub fn received(&mut self, net: &mut Network, place: u32) {
        let (app, token) = self.flows.items[place as usize];
        self.tell(net, net.now, app, Event::Received(token));
    }

    /// All of it has been acknowledged.
    #[cold]
    pub fn acknowledged(&mut self, net: &mut Network, place: u32, packets: u32) {
        let (app, token) = self.flows.take(place);
        self.tell(net, net.now, app, Event::Acknowledged { token, packets });
    }

    /// A datagram has arrived or was dropped.
    #[cold]
    pub fn datagram_ended(&mut self, net: &mut Network, packet: &Packet, arrived: bool) {
        let Channel { app, number: channel, .. } =
            self.channels[(packet.flow - self.first) as usize];
        let event = if arrived {
            Event::Arrived { channel, token: packet.stamp }
        } else {
            Event::Dropped(packet.stamp)
        };
        self.tell(net, net.now, app, event);
    }
}
