// SPDX-License-Identifier: GPL-2.0-or-later
//! Between the network and its applications. An application is told of everything by an event of its own at the same time, in the
//! order of happening, so that it is never entered while it sends.

use crate::apps::{App, Running};
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::host::flow::{Flow, Task};
use crate::packet::{Kind, Packet};
use crate::sim::engine::{Simulation, EMIT, INDEX};

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

/// All applications of a simulation, with what is still to be told to them.
#[derive(Debug)]
pub(crate) struct Apps {
    seed: u64,
    /// Taken out while it acts.
    running: Vec<Option<Box<Running>>>,
    events: Slots<(u32, Event)>,
    /// The applications' flows under way, with their tokens.
    flows: Slots<(u32, u32)>,
    /// Of the applications' datagrams.
    channels: Vec<Channel>,
    /// Next key of a path.
    keys: u32,
}

/// The streams of random numbers that belong to applications: the upper half.
const STREAMS: u64 = 1 << 63;
/// First key of applications' paths; flows of the list have their place in it, which is lower.
const KEYS: u32 = 1 << 29;

impl Apps {
    pub fn new(seed: u64) -> Self {
        Apps { seed, running: Vec::new(), events: Slots::new(), flows: Slots::new(), channels: Vec::new(), keys: KEYS }
    }

    /// Those that run, each with its number.
    pub fn running(&self) -> impl Iterator<Item = &Running> {
        self.running.iter().flatten().map(Box::as_ref)
    }
}

/// A message over the hosts' reliable transport.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub from: u32,
    pub to: u32,
    pub level: u8,
    /// On the wire.
    pub bytes: u64,
    /// What its path is chosen by.
    pub key: u32,
}

/// What an application may do.
pub(crate) struct Net<'a> {
    sim: &'a mut Simulation,
    app: u32,
}

impl Net<'_> {
    pub fn now(&self) -> Ps {
        self.sim.now
    }

    /// A stream of random numbers of the application's own.
    pub fn stream(&self, number: u32) -> Rng {
        Rng::new(self.sim.apps.seed, STREAMS | u64::from(self.app) << 32 | u64::from(number))
    }

    pub fn wake(&mut self, at: Ps, token: u32) {
        self.sim.tell(at, self.app, Event::Timer(token));
    }

    /// One-way connections for datagrams, by the host that sends; returns the number of the first.
    pub fn channels(&mut self, senders: impl IntoIterator<Item = u32>) -> u32 {
        let (app, channels) = (self.app, &mut self.sim.apps.channels);
        let first = channels.len() as u32;
        channels.extend((0..).zip(senders).map(|(number, from)| Channel { app, number, from }));
        first
    }

    /// So many keys that nobody else's path is chosen by; returns the first. After some 2^32 they come again.
    pub fn keys(&mut self, count: u32) -> u32 {
        let first = self.sim.apps.keys;
        self.sim.apps.keys = first.wrapping_add(count);
        first
    }

    /// Hands over a datagram; returns when the host's limiter lets it go, or now if it drops it.
    pub fn datagram(&mut self, channel: u32, to: u32, level: u8, bytes: u16, token: u32) -> Ps {
        let sim = &mut *self.sim;
        sim.tally.sent[Kind::Datagram as usize] += 1;
        let handle = sim.pool.add(Packet {
            flow: sim.sources() + channel,
            seq: 0,
            echo: 0,
            stamp: token,
            rank: 1 + u32::from(level),
            link: 0,
            bytes,
            to: to as u16,
            kind: Kind::Datagram,
            marked: false,
            ect: false,
        });
        let from = sim.apps.channels[channel as usize].from;
        sim.admit(from as u16, level, handle)
    }

    /// Hands over a message, which is one flow.
    pub fn send(&mut self, message: Message, token: u32) {
        let packets = self.packets(message.bytes);
        let last = message.bytes - u64::from(packets - 1) * u64::from(self.data_bytes());
        self.start(message, packets, last as u16, u16::MAX, token);
    }

    /// Packets of a message.
    pub fn packets(&self, bytes: u64) -> u32 {
        bytes.div_ceil(self.data_bytes().into()) as u32
    }

    /// Begins a flow of the most packets there can be; returns its slot. `cap`: its largest window, in packets.
    pub fn send_endless(&mut self, from: u32, to: u32, level: u8, key: u32, cap: u16) -> u32 {
        let last = self.data_bytes();
        self.start(Message { from, to, level, bytes: 0, key }, MOST_PACKETS, last, cap, 0)
    }

    fn start(&mut self, message: Message, packets: u32, last: u16, cap: u16, token: u32) -> u32 {
        let sim = &mut *self.sim;
        let record = sim.records.len() as u32 + sim.apps.flows.add((self.app, token));
        let Message { from, to, level, key, .. } = message;
        sim.start_flow(Task { record, key, from: from as u16, to: to as u16, packets, level, start: sim.now, last, cap })
    }

    /// Bytes on the wire of a full data packet.
    pub fn data_bytes(&self) -> u16 {
        self.sim.scheme.transport.data_bytes
    }

    /// The flow with this key, if its slot is still its own.
    pub fn flow(&self, slot: u32, key: u32) -> Option<&Flow> {
        Some(&self.sim.flows[slot as usize]).filter(|flow| flow.key == key)
    }

    /// A flow sends nothing new any more.
    pub fn cut_short(&mut self, slot: u32, key: u32) {
        let flow = &mut self.sim.flows[slot as usize];
        if flow.key == key && !flow.finished() && flow.cut_short() {
            self.sim.finish(slot);
        }
    }
}

/// Largest flow.
const MOST_PACKETS: u32 = (1 << 31) - 1;

// Cold: runs without applications shall be no slower for them.
impl Simulation {
    /// Adds an application, which begins at its time.
    pub(crate) fn add_app(&mut self, app: &App) {
        let number = self.apps.running.len() as u32;
        let running = Running::begin(app, &mut Net { sim: self, app: number });
        self.apps.running.push(Some(Box::new(running)));
    }

    fn tell(&mut self, at: Ps, app: u32, event: Event) {
        let slot = self.apps.events.add((app, event));
        let index = self.sources() + slot;
        assert!(index < 1 << INDEX, "applications wait for more than 2^29 events");
        self.wheel.push(at, EMIT | index);
    }

    /// An application's event.
    #[cold]
    pub(crate) fn act(&mut self, slot: u32) {
        let (number, event) = self.apps.events.take(slot);
        let Some(mut app) = self.apps.running[number as usize].take() else {
            unreachable!("applications are only entered by events");
        };
        app.act(event, &mut Net { sim: self, app: number });
        self.apps.running[number as usize] = Some(app);
    }

    /// All of a flow has arrived at its receiver.
    #[cold]
    pub(crate) fn received(&mut self, slot: u32) {
        let record = self.flows[slot as usize].record as usize;
        if let Some(place) = record.checked_sub(self.records.len()) {
            let (app, token) = self.apps.flows.items[place];
            self.tell(self.now, app, Event::Received(token));
        }
    }

    /// All of an application's flow has been acknowledged at its sender.
    #[cold]
    pub(crate) fn acknowledged(&mut self, record: u32, packets: u32) {
        let (app, token) = self.apps.flows.take(record - self.records.len() as u32);
        self.tell(self.now, app, Event::Acknowledged { token, packets });
    }

    /// The host that has sent a datagram.
    pub(crate) fn sender(&self, datagram: &Packet) -> u32 {
        match datagram.flow.checked_sub(self.sources()) {
            Some(channel) => self.apps.channels[channel as usize].from,
            None => self.sources[datagram.flow as usize].sender(),
        }
    }

    /// An application's datagram has come to its end: it has arrived, or was dropped.
    #[cold]
    pub(crate) fn datagram_ended(&mut self, packet: &Packet, arrived: bool) {
        let Channel { app, number: channel, .. } = self.apps.channels[(packet.flow - self.sources()) as usize];
        let event = if arrived { Event::Arrived { channel, token: packet.stamp } } else { Event::Dropped(packet.stamp) };
        self.tell(self.now, app, event);
    }
}
