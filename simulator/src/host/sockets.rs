// SPDX-License-Identifier: GPL-2.0-or-later
//! What hosts tell applications. An application is told of everything by an event of its own at the same time, in the order of
//! happening, so that it is never entered while it sends.

use crate::core::event::{EMIT, INDEX};
use crate::core::time::Ps;
use crate::net::network::Network;
use crate::packet::Packet;

/// What an application is told. Tokens are its own; a channel is one of those that it asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// It has begun, or a timer is due.
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

/// A list whose places are used again.
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

/// A one-way connection for datagrams, with a path of its own.
#[derive(Debug)]
struct Channel {
    app: u32,
    /// The application's number of it.
    number: u32,
    from: u32,
}

/// What applications have asked for, and what is still to be told to them.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// Events and channels are numbered from here on, sources of datagrams before.
    first: u32,
    events: Slots<(u32, Event)>,
    /// The applications' flows under way, with their tokens.
    flows: Slots<(u32, u32)>,
    channels: Vec<Channel>,
}

// Cold: runs without applications shall be no slower for them.
impl Sockets {
    pub fn new(first: u32) -> Self {
        Sockets { first, events: Slots::new(), flows: Slots::new(), channels: Vec::new() }
    }

    /// The first number that is not a source's.
    #[inline]
    pub fn first(&self) -> u32 {
        self.first
    }

    /// One-way connections for datagrams, by the host that sends; returns the number of the first.
    pub fn open(&mut self, app: u32, senders: impl IntoIterator<Item = u32>) -> u32 {
        let first = self.channels.len() as u32;
        self.channels.extend((0..).zip(senders).map(|(number, from)| Channel { app, number, from }));
        first
    }

    /// The host that sends datagrams of this channel.
    pub fn sender(&self, channel: u32) -> u32 {
        self.channels[channel as usize].from
    }

    /// A flow of an application begins; returns its place.
    pub fn expect(&mut self, app: u32, token: u32) -> u32 {
        self.flows.add((app, token))
    }

    /// An application is to be told something.
    pub fn tell(&mut self, net: &mut Network, at: Ps, app: u32, event: Event) {
        let index = self.first + self.events.add((app, event));
        assert!(index < 1 << INDEX, "applications wait for more than 2^29 events");
        net.wheel.push(at, EMIT | index);
    }

    /// What is to be told now, and to whom.
    pub fn take(&mut self, index: u32) -> (u32, Event) {
        self.events.take(index - self.first)
    }

    /// All of the flow at this place has arrived at its receiver.
    #[cold]
    pub fn received(&mut self, net: &mut Network, place: u32) {
        let (app, token) = self.flows.items[place as usize];
        self.tell(net, net.now, app, Event::Received(token));
    }

    /// All of it has been acknowledged at its sender.
    #[cold]
    pub fn acknowledged(&mut self, net: &mut Network, place: u32, packets: u32) {
        let (app, token) = self.flows.take(place);
        self.tell(net, net.now, app, Event::Acknowledged { token, packets });
    }

    /// A datagram has come to its end: it has arrived, or was dropped.
    #[cold]
    pub fn datagram_ended(&mut self, net: &mut Network, packet: &Packet, arrived: bool) {
        let Channel { app, number: channel, .. } = self.channels[(packet.flow - self.first) as usize];
        let event = if arrived { Event::Arrived { channel, token: packet.stamp } } else { Event::Dropped(packet.stamp) };
        self.tell(net, net.now, app, event);
    }
}
