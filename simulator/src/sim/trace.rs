// SPDX-License-Identifier: GPL-2.0-or-later
//! Trace packets and count what became of each flow's packets.
//!
//! The tracer looks at each event before it happens, and at the hosts' notices after it. A run
//! without a trace does not call it.

use std::collections::BTreeMap;

use crate::core::event::{ARRIVE, HAND_OVER, INDEX};
use crate::core::time::Ps;
use crate::core::wheel::Event;
use crate::host::hosts::{Hosts, Notice, Origin};
use crate::net::network::Network;
use crate::net::topology::Node;
use crate::packet::{Kind, Packet, AGAIN, CWR};

/// Which packets to trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Traced {
    /// All packets.
    All,
    /// Packets on these hosts' links, in both directions.
    Hosts(Vec<u32>),
}

/// A packet at the end of a link, dropped at its beginning, or lost on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
// Each is a bit of the packet.
#[allow(clippy::struct_excessive_bools)]
pub struct Hop {
    /// When its last bit arrived, or it was dropped; for a packet on a failed link, when it would
    /// have arrived.
    pub at: Ps,
    /// Number of the link, in the order of [`crate::Simulation::ports`]; for a packet without a
    /// route, the link by which it came.
    pub link: u32,
    /// The flow's place in the list, or its path key; a source's number; above those, an
    /// application's channel.
    pub flow: u32,
    /// Data: its number in the flow. ACK: the cumulative acknowledgement, in packets.
    pub seq: u32,
    /// Number of the sending host.
    pub src: u32,
    /// Number of the destination host.
    pub dst: u32,
    /// Bytes on the wire.
    pub bytes: u16,
    /// 0 data, 1 ACK, 2 probe, 3 datagram, 4 SYN, 5 SYN-ACK.
    pub kind: u8,
    /// 0 to 7; ACKs and SYN-ACKs have their flow's level.
    pub level: u8,
    /// Data: congestion experienced. ACK: its echo. SYN: the flow is ECN-capable.
    pub marked: bool,
    /// It is ECN-capable.
    pub ect: bool,
    /// A retransmission.
    pub again: bool,
    /// Data with CWR: the window was reduced.
    pub reduced: bool,
    /// It was dropped or lost.
    pub dropped: bool,
}

/// Counts of a flow's packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Data packets that reached the receiver, retransmissions included.
    pub delivered: u64,
    /// Of these, packets with a mark.
    pub marked: u64,
    /// Data packets retransmitted.
    pub retransmitted: u64,
    /// Data packets dropped by queues or limiters, or lost on failed links.
    pub dropped: u64,
    /// Timeouts, those of SYNs included.
    pub timeouts: u64,
    /// Total queueing time of delivered data, in ps.
    pub waited: u64,
    /// Longest queueing time.
    pub waited_most: Ps,
    /// Total time that data waited in its host's limiter, in ps.
    pub held: u64,
}

impl FlowCounts {
    /// The receiver got a packet after this queueing time.
    fn has(&mut self, packet: &Packet, waited: Ps) {
        self.delivered += 1;
        self.marked += u64::from(packet.marked);
        self.waited += waited;
        self.waited_most = self.waited_most.max(waited);
    }
}

#[derive(Debug)]
pub(crate) struct Tracer {
    traced: Option<Traced>,
    pub hops: Vec<Hop>,
    /// By flow, if counted.
    pub flows: Option<BTreeMap<u32, FlowCounts>>,
    /// By packet: time spent on links so far, without queueing; for a packet held by a host's
    /// jitter, its queueing time.
    crossing: Vec<Ps>,
}

impl Tracer {
    pub fn new(traced: Option<Traced>, flows: bool) -> Self {
        Tracer { traced, hops: Vec::new(), flows: flows.then(BTreeMap::new), crossing: Vec::new() }
    }

    /// Called before an event.
    pub fn before(&mut self, event: Event, network: &Network, hosts: &Hosts) {
        let kind = event.what & !((1 << INDEX) - 1);
        if kind != ARRIVE && kind != HAND_OVER {
            return;
        }
        let handle = event.what & ((1 << INDEX) - 1);
        let packet = *network.pool.get(handle);
        if network.is_stray(&packet) {
            return;
        }
        let origin = hosts.origin(&packet);
        let place = handle as usize;
        let waited = match &self.flows {
            Some(_) if packet.kind == Kind::Data && kind == ARRIVE => {
                self.arrived(event.time, place, &packet, network, hosts)
            }
            Some(_) if packet.kind == Kind::Data => Some(self.crossing[place]),
            _ => None,
        };
        if let (Some(flows), Some(waited)) = (&mut self.flows, waited) {
            flows.entry(origin.flow).or_default().has(&packet, waited);
        }
        if kind == ARRIVE {
            self.trace(event.time, &packet, origin, false, network);
        }
    }

    /// Data has crossed a link; returns its queueing time if the receiver has it now.
    fn arrived(
        &mut self,
        at: Ps,
        place: usize,
        packet: &Packet,
        network: &Network,
        hosts: &Hosts,
    ) -> Option<Ps> {
        let crossed = cross(&mut self.crossing, place, packet, network);
        let Node::Host(host) = network.links.end(packet.link) else { return None };
        let waited = packet.under_way(at) - crossed;
        if hosts.draws(host) {
            self.crossing[place] = waited;
            return None;
        }
        Some(waited)
    }

    /// Called after an event.
    pub fn after(&mut self, network: &Network, hosts: &mut Hosts) {
        let Some(notices) = hosts.notices.take() else { return };
        for (origin, notice) in &notices {
            if let Some(flows) = &mut self.flows {
                count(flows, origin.flow, notice);
            }
            if let Notice::Dropped(packet) = notice {
                self.trace(network.now, packet, *origin, true, network);
            }
        }
        hosts.notices = Some(Vec::new());
    }

    fn trace(&mut self, at: Ps, packet: &Packet, origin: Origin, dropped: bool, network: &Network) {
        let Some(traced) = &self.traced else { return };
        let end = network.links.end(packet.link);
        let of = |host: &u32| packet.link == *host || end == Node::Host(*host);
        if matches!(traced, Traced::Hosts(some) if !some.iter().any(of)) {
            return;
        }
        let Origin { flow, host: src, level } = origin;
        let data = packet.kind == Kind::Data;
        self.hops.push(Hop {
            at,
            link: packet.link,
            flow,
            seq: if packet.kind == Kind::Datagram { 0 } else { packet.seq },
            src,
            dst: packet.to.host(),
            bytes: packet.bytes,
            kind: packet.kind as u8,
            level,
            marked: packet.marked,
            ect: packet.ect,
            again: data && packet.echo & AGAIN != 0,
            reduced: data && packet.echo & CWR != 0,
            dropped,
        });
    }
}

/// Adds the time on the packet's current link; returns the total so far.
fn cross(crossing: &mut Vec<Ps>, place: usize, packet: &Packet, network: &Network) -> Ps {
    if crossing.len() <= place {
        crossing.resize(place + 1, 0);
    }
    let class = network.links.class(packet.link);
    let first = packet.link < network.hosts();
    let before = if first { 0 } else { crossing[place] };
    crossing[place] = before + class.delay + u64::from(packet.bytes) * u64::from(class.ps_per_byte);
    crossing[place]
}

fn count(flows: &mut BTreeMap<u32, FlowCounts>, flow: u32, notice: &Notice) {
    if matches!(notice, Notice::Dropped(packet) if packet.kind != Kind::Data) {
        return;
    }
    let counts = flows.entry(flow).or_default();
    match notice {
        Notice::Dropped(_) => counts.dropped += 1,
        Notice::Again => counts.retransmitted += 1,
        Notice::TimedOut => counts.timeouts += 1,
        Notice::Held(time) => counts.held += time,
    }
}
