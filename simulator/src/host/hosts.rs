// SPDX-License-Identifier: GPL-2.0-or-later
//! All hosts of a network: what they hold, take in and hand over.

use std::collections::{HashMap, VecDeque};

use crate::core::event::{EMIT, HAND_OVER, HOST, RELEASE, START};
use crate::core::fetch::fetch;
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::host::admission::Admission;
use crate::host::away::Away;
use crate::host::emitter::Emitter;
use crate::host::flow::Flow;
use crate::host::jitter::{Jitter, Stream};
use crate::host::limiter::{HostLimiter, Limiter};
use crate::host::messages::Messages;
use crate::host::path::Path;
use crate::host::result::{FlowResult, Latency};
use crate::host::sockets::Sockets;
use crate::host::traffic::Source;
use crate::host::transport::Transport;
use crate::net::network::{Network, Soon};
use crate::net::topology::Topology;
use crate::packet::{Kind, Packet, AGAIN, KINDS};

/// What hosts count.
#[derive(Debug, Default)]
pub(crate) struct Handled {
    pub sent: [u64; KINDS],
    pub delivered: [u64; KINDS],
    pub limited: [u64; KINDS],
    pub marked: u64,
    pub retransmitted: u64,
    pub timeouts: u64,
    /// Of data sent for the first time, and again.
    pub latency: [Latency; 2],
}

/// Transports of a run at most; a power of 2.
pub(crate) const TRANSPORTS: usize = 4;

/// What hosts tell whoever writes down what becomes of packets and flows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Notice {
    /// A packet was dropped, at the link that it names; by a limiter, at its host's own.
    Dropped(Packet),
    /// A packet of data is sent again.
    Again,
    /// A retransmission timer has expired.
    TimedOut,
    /// A packet waits so long in its host's limiter.
    Held(Ps),
}

/// Where a packet comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    /// The flow's key, or the number of a source or channel.
    pub flow: u32,
    pub host: u32,
    pub level: u8,
}

/// What all hosts have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// By the flows' numbers of them; a run has as many as it has, and then the first again.
    pub transports: [Transport; TRANSPORTS],
    /// Between transport and the host's queue.
    pub limiter: Limiter,
    /// Largest flow of levels 0 to 6, in packets.
    pub levels: [u32; 7],
}

impl Manner {
    /// That of a flow. As there are so many, none is outside of the list.
    #[inline]
    pub fn of(&self, flow: &Flow) -> &Transport {
        &self.transports[usize::from(flow.transport) % TRANSPORTS]
    }

    /// Level of a flow of so many packets, 0 to 7.
    pub fn level(&self, packets: u32) -> u8 {
        self.levels.partition_point(|&largest| largest < packets) as u8
    }
}

#[derive(Debug)]
pub(crate) struct Hosts {
    pub(super) manner: Manner,
    /// Rate of each host's link, in bit/s.
    pub(super) lines: Vec<u64>,
    host_limiter: Option<HostLimiter>,
    pub(super) admission: Option<Admission>,
    jitter: Option<Jitter>,
    pub flows: Vec<Flow>,
    /// Slots of flows that have ended and left nothing behind.
    pub(super) free_slots: Vec<u32>,
    pub records: Vec<FlowResult>,
    pub(super) started: usize,
    /// What another part of the run has.
    pub away: Option<Away>,
    /// What the open connections of a pair of hosts know, by transport, the longest unused first.
    pub(super) paths: HashMap<(u32, u32, u8), VecDeque<Path>>,
    pub(super) messages: Messages,
    pub sources: Vec<Emitter>,
    pub sockets: Sockets,
    pub handled: Handled,
    /// In the order of happening, if somebody wants to know, who clears them.
    pub notices: Option<Vec<(Origin, Notice)>>,
}

impl Hosts {
    /// `records`: flows in the order of their start; `sources` in the order of their numbers.
    pub fn new(topology: &Topology, manner: Manner, records: Vec<FlowResult>, sources: &[Source], seed: u64) -> Self {
        Hosts {
            host_limiter: match manner.limiter {
                Limiter::PerHost(rule) => Some(HostLimiter::new(rule, topology.hosts())),
                _ => None,
            },
            admission: match manner.limiter {
                Limiter::Aequitas(of) => Some(Admission::new(of, seed)),
                _ => None,
            },
            manner,
            lines: topology.hosts.iter().map(|(_, cable)| cable.rate).collect(),
            jitter: Jitter::new(topology, seed),
            flows: Vec::new(),
            free_slots: Vec::new(),
            records,
            started: 0,
            away: None,
            paths: HashMap::new(),
            messages: Messages::default(),
            sources: (0..).zip(sources).map(|(n, source)| Emitter::new(*source, Rng::new(seed, 1 + n))).collect(),
            sockets: Sockets::new(sources.len() as u32),
            handled: Handled::default(),
            notices: None,
        }
    }

    /// Something has happened to the flow of this slot.
    #[cold]
    pub(super) fn tell(&mut self, slot: u32, notice: Notice) {
        if let Some(notices) = &mut self.notices {
            let flow = &self.flows[slot as usize];
            notices.push((Origin { flow: flow.key, host: flow.from, level: flow.level }, notice));
        }
    }

    #[cold]
    fn tell_dropped(&mut self, packet: &Packet) {
        let origin = self.origin(packet);
        if let Some(notices) = &mut self.notices {
            notices.push((origin, Notice::Dropped(*packet)));
        }
    }

    /// Where a packet comes from.
    pub fn origin(&self, packet: &Packet) -> Origin {
        if packet.kind == Kind::Datagram {
            return Origin { flow: packet.flow, host: self.sender(packet.flow), level: (packet.rank - 1) as u8 };
        }
        let flow = &self.flows[packet.flow as usize];
        let back = matches!(packet.kind, Kind::Ack | Kind::SynAck);
        Origin { flow: flow.key, host: if back { flow.to } else { flow.from }, level: flow.level }
    }

    /// The first events.
    pub fn begin(&mut self, net: &mut Network) {
        for (number, source) in (0..).zip(&mut self.sources) {
            if let Some(first) = source.first() {
                net.wheel.push(first, EMIT | number);
            }
        }
        self.pass_over();
        if let Some(first) = self.records.get(self.started) {
            net.wheel.push(first.start, START);
        }
    }

    /// Whether no flow holds memory.
    pub fn is_clean(&self) -> bool {
        self.free_slots.len() == self.flows.len()
    }

    /// What a path per flow is chosen by: the flow and its direction.
    pub fn path_key(&self, flow: u32, kind: Kind) -> u64 {
        match kind {
            Kind::Datagram => u64::from(flow) << 2 | 2,
            Kind::Ack | Kind::SynAck => u64::from(self.flows[flow as usize].key) << 2 | 1,
            Kind::Data | Kind::Probe | Kind::Syn => u64::from(self.flows[flow as usize].key) << 2,
        }
    }

    /// A packet has arrived at a host; returns whether it has it at once.
    #[inline]
    pub fn takes(&mut self, net: &mut Network, host: u32, handle: u32) -> bool {
        self.jitter.is_none() || self.take_in(net, host, handle)
    }

    /// The same in a network of which some hosts draw. Not inlined, for networks of which none does.
    #[inline(never)]
    fn take_in(&mut self, net: &mut Network, host: u32, handle: u32) -> bool {
        let packet = net.pool.get(handle);
        let stream = match packet.kind {
            Kind::Datagram => Stream::Datagrams(self.sender(packet.flow)),
            _ => Stream::Tcp(self.flows[packet.flow as usize].key),
        };
        let at = self.jitter.as_mut().and_then(|jitter| jitter.hand_over(host, stream, net.now));
        if let Some(at) = at {
            net.wheel.push(at, HAND_OVER | handle);
        }
        at.is_none()
    }

    /// Whether a host has what arrives only later, when it is handed over.
    pub fn draws(&self, host: u32) -> bool {
        self.jitter.as_ref().is_some_and(|jitter| jitter.draws(host))
    }

    /// The host that sends a source's or a channel's datagrams.
    fn sender(&self, flow: u32) -> u32 {
        match flow.checked_sub(self.sockets.first()) {
            Some(channel) => self.sockets.sender(channel),
            None => self.sources[flow as usize].sender(),
        }
    }

    /// Asks for the memory that what happens soon will need.
    #[inline]
    pub fn fetch(&self, soon: Soon) {
        let flow = match soon {
            Soon::Arrival { flow, host } => {
                self.messages.fetch(flow, host);
                flow
            }
            Soon::Timer(whose) if whose & HOST != 0 => {
                self.messages.fetch_host(whose & !HOST);
                return;
            }
            Soon::Timer(slot) => slot,
        };
        if let Some(flow) = self.flows.get(flow as usize) {
            fetch(flow);
        }
    }

    /// A host has a packet.
    #[inline]
    pub fn deliver(&mut self, net: &mut Network, handle: u32) {
        let packet = *net.pool.get(handle);
        self.handled.delivered[packet.kind as usize] += 1;
        match packet.kind {
            Kind::Data => {
                self.handled.latency[usize::from(packet.echo & AGAIN != 0)].add(packet.under_way(net.now));
                self.answer(net, handle, &packet);
            }
            Kind::Probe => self.on_probe(net, handle, &packet),
            Kind::Syn => self.accept(net, handle, &packet),
            Kind::SynAck => {
                net.pool.remove(handle);
                self.connected(net, &packet);
            }
            Kind::Ack => {
                net.pool.remove(handle);
                self.acknowledge(net, &packet);
            }
            Kind::Datagram => {
                net.pool.remove(handle);
                if packet.flow < self.sockets.first() {
                    self.sources[packet.flow as usize].took(net.now - packet.created(), packet.bytes);
                } else {
                    self.sockets.datagram_ended(net, &packet, true);
                }
            }
        }
    }

    /// Hands a packet to its host's limiter; returns when it is let go, or now if it is dropped.
    pub fn admit(&mut self, net: &mut Network, host: u32, level: u8, handle: u32) -> Ps {
        net.pool.get_mut(handle).link = host;
        let bytes = u64::from(net.pool.get(handle).bytes);
        let release = match &mut self.host_limiter {
            Some(limiter) => limiter.release(net.now, host, level, bytes),
            None => Some(net.now),
        };
        let Some(release) = release else {
            self.handled.limited[net.pool.get(handle).kind as usize] += 1;
            self.discard(net, handle);
            return net.now;
        };
        if release > net.now {
            net.wheel.push(release, RELEASE | handle);
        } else {
            self.release(net, handle);
        }
        release
    }

    /// A packet passes from its host's limiter to its host's queue.
    pub fn release(&mut self, net: &mut Network, handle: u32) {
        let packet = net.pool.get_mut(handle);
        if packet.kind == Kind::Datagram {
            packet.set_created(net.now);
        } else {
            packet.set_sent(net.now);
        }
        let link = packet.link;
        self.offer(net, link, handle);
    }

    /// Puts a packet into a link's queue.
    #[inline]
    pub(super) fn offer(&mut self, net: &mut Network, link: u32, handle: u32) {
        if net.offer(link, handle) {
            self.collect(net);
        }
    }

    /// Packets were lost in the network.
    #[inline(never)]
    pub fn collect(&mut self, net: &mut Network) {
        for at in 0..net.lost.len() {
            self.discard(net, net.lost[at]);
        }
        net.lost.clear();
    }

    fn discard(&mut self, net: &mut Network, handle: u32) {
        let packet = net.pool.get(handle);
        if self.notices.is_some() {
            let packet = *packet;
            self.tell_dropped(&packet);
        }
        let packet = net.pool.get(handle);
        if packet.kind != Kind::Datagram {
            let slot = packet.flow;
            self.flows[slot as usize].arrives();
            self.free_if_done(slot);
        } else if packet.flow >= self.sockets.first() {
            let packet = *packet;
            self.sockets.datagram_ended(net, &packet, false);
        }
        net.pool.remove(handle);
    }

    /// A source's next datagram.
    pub fn emit(&mut self, net: &mut Network, number: u32) {
        let emitter = &mut self.sources[number as usize];
        let source = *emitter.source();
        let (bytes, gap) = emitter.next();
        if let Some(gap) = gap {
            net.wheel.push(net.now + gap, EMIT | number);
        }
        let Source { src, dst, level, .. } = source;
        self.send_datagram(net, src, level, Packet::datagram(number, dst, level, bytes));
    }

    /// Hands over a datagram; returns when the host's limiter lets it go, or now if it drops it.
    pub fn send_datagram(&mut self, net: &mut Network, from: u32, level: u8, datagram: Packet) -> Ps {
        self.handled.sent[Kind::Datagram as usize] += 1;
        let handle = net.pool.add(datagram);
        self.admit(net, from, level, handle)
    }

    /// Bytes on the wire of a full data packet.
    pub fn data_bytes(&self) -> u16 {
        self.manner.transports[0].data_bytes
    }

    /// All of a flow has arrived at its receiver, which is told if it is an application.
    #[cold]
    pub(super) fn tell_received(&mut self, net: &mut Network, slot: u32) {
        if let Some(place) = self.flows[slot as usize].record.checked_sub(self.records.len() as u32) {
            self.sockets.received(net, place);
        }
    }
}
