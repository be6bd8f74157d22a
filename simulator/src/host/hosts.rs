// SPDX-License-Identifier: GPL-2.0-or-later
//! All hosts of a network: what they hold, take in and hand over.

use std::collections::{HashMap, VecDeque};

use crate::core::event::{EMIT, HAND_OVER, HOST, RELEASE, START};
use crate::core::prefetch::prefetch;
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::host::aequitas::AequitasState;
use crate::host::emitter::Emitter;
use crate::host::flow::Flow;
use crate::host::homa_messages::Messages;
use crate::host::jitter::{Jitter, Stream};
use crate::host::limiter::{HostLimiter, Limiter};
use crate::host::ndp_pulls::Pulls;
use crate::host::path::Path;
use crate::host::remote_flows::RemoteFlows;
use crate::host::result::{FlowResult, Latency};
use crate::host::sockets::Sockets;
use crate::host::traffic::Source;
use crate::host::transport::Transport;
use crate::net::network::{Network, Soon};
use crate::net::topology::Topology;
use crate::packet::{Kind, Packet, AGAIN, KINDS};

/// Counters of all hosts.
#[derive(Debug, Default)]
pub(crate) struct Handled {
    pub sent: [u64; KINDS],
    pub delivered: [u64; KINDS],
    pub limited: [u64; KINDS],
    pub marked: u64,
    pub retransmitted: u64,
    pub timeouts: u64,
    /// Of first transmissions, and of retransmissions.
    pub latency: [Latency; 2],
}

/// The most transports of a run; a power of 2.
pub(crate) const TRANSPORTS: usize = 4;

/// Notices for a trace or flow counts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Notice {
    /// A packet was dropped, at the link that it names; by a limiter, at its host's own link.
    Dropped(Packet),
    /// A data packet is retransmitted.
    Again,
    /// A retransmission timer has expired.
    TimedOut,
    /// A packet waits this long in its host's limiter.
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

/// The configuration that all hosts share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostConfig {
    /// By transport number; unused places repeat the first.
    pub transports: [Transport; TRANSPORTS],
    /// Limiter between transport and the host's queue.
    pub limiter: Limiter,
    /// Largest flow of levels 0 to 6, in packets.
    pub levels: [u32; 7],
}

impl HostConfig {
    /// The transport of a flow; the modulo keeps the index in bounds.
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
    pub(super) config: HostConfig,
    /// Rate of each host's link, in bit/s.
    pub(super) lines: Vec<u64>,
    host_limiter: Option<HostLimiter>,
    pub(super) admission: Option<AequitasState>,
    jitter: Option<Jitter>,
    pub flows: Vec<Flow>,
    /// Slots of finished flows, to be reused.
    pub(super) free_slots: Vec<u32>,
    pub records: Vec<FlowResult>,
    pub(super) started: usize,
    /// Flows of other parts, in a parallel run.
    pub remote: Option<RemoteFlows>,
    /// Idle connections of each pair of hosts and transport, the longest unused first.
    pub(super) paths: HashMap<(u32, u32, u8), VecDeque<Path>>,
    pub(super) messages: Messages,
    pub(super) pulls: Pulls,
    pub sources: Vec<Emitter>,
    pub sockets: Sockets,
    pub handled: Handled,
    /// In the order of happening, if requested; the reader clears them.
    pub notices: Option<Vec<(Origin, Notice)>>,
}

impl Hosts {
    /// `records`: flows in the order of their start; `sources` in the order of their numbers.
    pub fn new(
        topology: &Topology,
        config: HostConfig,
        records: Vec<FlowResult>,
        sources: &[Source],
        seed: u64,
    ) -> Self {
        Hosts {
            host_limiter: match config.limiter {
                Limiter::PerHost(rule) => Some(HostLimiter::new(rule, topology.hosts())),
                _ => None,
            },
            admission: match config.limiter {
                Limiter::Aequitas(of) => Some(AequitasState::new(of, seed)),
                _ => None,
            },
            config,
            lines: topology.hosts.iter().map(|(_, cable)| cable.rate).collect(),
            jitter: Jitter::new(topology, seed),
            flows: Vec::new(),
            free_slots: Vec::new(),
            records,
            started: 0,
            remote: None,
            paths: HashMap::new(),
            messages: Messages::default(),
            pulls: Pulls::default(),
            sources: (0..)
                .zip(sources)
                .map(|(n, source)| Emitter::new(*source, Rng::new(seed, 1 + n)))
                .collect(),
            sockets: Sockets::new(sources.len() as u32),
            handled: Handled::default(),
            notices: None,
        }
    }

    /// Adds a notice about a flow.
    #[cold]
    pub(super) fn note(&mut self, slot: u32, notice: Notice) {
        if let Some(notices) = &mut self.notices {
            let flow = &self.flows[slot as usize];
            notices.push((Origin { flow: flow.key, host: flow.from, level: flow.level }, notice));
        }
    }

    #[cold]
    fn note_dropped(&mut self, packet: &Packet) {
        let origin = self.origin(packet);
        if let Some(notices) = &mut self.notices {
            notices.push((origin, Notice::Dropped(*packet)));
        }
    }

    /// Where a packet comes from.
    pub fn origin(&self, packet: &Packet) -> Origin {
        if packet.kind == Kind::Datagram {
            return Origin {
                flow: packet.flow,
                host: self.sender(packet.flow),
                level: (packet.rank - 1) as u8,
            };
        }
        let flow = &self.flows[packet.flow as usize];
        let back = matches!(packet.kind, Kind::Ack | Kind::SynAck);
        Origin { flow: flow.key, host: if back { flow.to } else { flow.from }, level: flow.level }
    }

    /// Schedules the first events.
    pub fn begin(&mut self, net: &mut Network) {
        for (number, source) in (0..).zip(&mut self.sources) {
            if let Some(first) = source.first() {
                net.wheel.push(first, EMIT | number);
            }
        }
        self.skip_remote_flows();
        if let Some(first) = self.records.get(self.started) {
            net.wheel.push(first.start, START);
        }
    }

    /// Whether no flow holds memory.
    pub fn is_clean(&self) -> bool {
        self.free_slots.len() == self.flows.len()
    }

    /// The key of per-flow paths: the flow and its direction.
    pub fn path_key(&self, flow: u32, kind: Kind) -> u64 {
        match kind {
            Kind::Datagram => u64::from(flow) << 2 | 2,
            Kind::Ack | Kind::SynAck => u64::from(self.flows[flow as usize].key) << 2 | 1,
            Kind::Data | Kind::Probe | Kind::Syn => u64::from(self.flows[flow as usize].key) << 2,
        }
    }

    /// A packet has arrived at a host; returns whether the host has it at once.
    #[inline]
    pub fn takes(&mut self, net: &mut Network, host: u32, handle: u32) -> bool {
        self.jitter.is_none() || self.take_in(net, host, handle)
    }

    /// The same in a network with jitter. Not inlined, for networks without.
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

    /// Whether a host has jitter, so that it gets packets only when they are handed over.
    pub fn draws(&self, host: u32) -> bool {
        self.jitter.as_ref().is_some_and(|jitter| jitter.draws(host))
    }

    /// The host that sends a source's or channel's datagrams.
    fn sender(&self, flow: u32) -> u32 {
        match flow.checked_sub(self.sockets.first()) {
            Some(channel) => self.sockets.sender(channel),
            None => self.sources[flow as usize].sender(),
        }
    }

    /// Prefetches the state for an upcoming event.
    #[inline]
    pub fn prefetch(&self, soon: Soon) {
        let flow = match soon {
            Soon::Arrival { flow, host } => {
                self.messages.prefetch(flow, host);
                flow
            }
            Soon::Timer(whose) if whose & HOST != 0 => {
                self.messages.prefetch_host(whose & !HOST);
                return;
            }
            Soon::Timer(slot) => slot,
        };
        if let Some(flow) = self.flows.get(flow as usize) {
            prefetch(flow);
        }
    }

    /// Delivers a packet to its host.
    #[inline]
    pub fn deliver(&mut self, net: &mut Network, handle: u32) {
        let packet = *net.pool.get(handle);
        self.handled.delivered[packet.kind as usize] += 1;
        match packet.kind {
            Kind::Data => {
                self.handled.latency[usize::from(packet.echo & AGAIN != 0)]
                    .add(packet.under_way(net.now));
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
                self.acknowledge(net, handle, &packet);
            }
            Kind::Datagram => {
                net.pool.remove(handle);
                if packet.flow < self.sockets.first() {
                    self.sources[packet.flow as usize]
                        .took(net.now - packet.created(), packet.bytes);
                } else {
                    self.sockets.datagram_ended(net, &packet, true);
                }
            }
        }
    }

    /// Passes a packet to its host's limiter; returns when it is released, or now if it is dropped.
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

    /// Passes a packet from its host's limiter to its host's queue.
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

    /// Offers a packet to a link.
    #[inline]
    pub(super) fn offer(&mut self, net: &mut Network, link: u32, handle: u32) {
        if net.offer(link, handle) {
            self.collect(net);
        }
    }

    /// Disposes of packets that were lost in the network.
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
            self.note_dropped(&packet);
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

    /// Emits a source's next datagram.
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

    /// Sends a datagram; returns when the host's limiter releases it, or now if it is dropped.
    pub fn send_datagram(
        &mut self,
        net: &mut Network,
        from: u32,
        level: u8,
        datagram: Packet,
    ) -> Ps {
        self.handled.sent[Kind::Datagram as usize] += 1;
        let handle = net.pool.add(datagram);
        self.admit(net, from, level, handle)
    }

    /// Bytes on the wire of a full data packet.
    pub fn data_bytes(&self) -> u16 {
        self.config.transports[0].data_bytes
    }

    /// All of a flow has arrived; notifies the application, if it is one's.
    #[cold]
    pub(super) fn notify_received(&mut self, net: &mut Network, slot: u32) {
        if let Some(place) = self.flows[slot as usize].record.checked_sub(self.records.len() as u32)
        {
            self.sockets.received(net, place);
        }
    }
}
