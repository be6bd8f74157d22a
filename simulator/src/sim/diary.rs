// SPDX-License-Identifier: GPL-2.0-or-later
//! What is written down of packets and flows while a run goes on. It looks at each event before it happens and at hosts' notices after
//! it; the loop of a run of which nothing is written down knows nothing of it.

use std::collections::BTreeMap;

use crate::core::event::{ARRIVE, HAND_OVER, INDEX};
use crate::core::time::Ps;
use crate::core::wheel::Event;
use crate::host::hosts::{Hosts, Notice, Origin};
use crate::net::network::Network;
use crate::net::topology::Node;
use crate::packet::{Kind, Packet, AGAIN, CWR};

/// Whose packets are written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Traced {
    /// Everybody's.
    All,
    /// On the links of these hosts, both ways.
    Hosts(Vec<u32>),
}

/// A packet at the end of a link, or dropped at its beginning, or lost on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
// Each is a bit of the packet.
#[allow(clippy::struct_excessive_bools)]
pub struct Hop {
    /// When its last bit came, or it was dropped; of what was on a link that failed, when it would have come.
    pub at: Ps,
    /// Number of the link, in the order of [`crate::Simulation::ports`]; where none leads on, that by which the packet came.
    pub link: u32,
    /// The flow's place in the list, or what its path is chosen by; a source's number; above those of sources an application's channel.
    pub flow: u32,
    /// Data: its number in the flow. ACK: how many packets from the first on have arrived.
    pub seq: u32,
    /// Number of the host that sent it.
    pub src: u32,
    /// Number of the host that it is for.
    pub dst: u32,
    /// Bytes on the wire.
    pub bytes: u16,
    /// 0 data, 1 ACK, 2 probe, 3 datagram, 4 SYN, 5 SYN-ACK.
    pub kind: u8,
    /// 0 to 7; ACKs and SYN-ACKs have that of their flow.
    pub level: u8,
    /// Congestion experienced of data, its echo of an ACK; of SYNs that the flow is ECN-capable.
    pub marked: bool,
    /// It may be marked.
    pub ect: bool,
    /// Data sent before.
    pub again: bool,
    /// Data that tells of a reduced window.
    pub reduced: bool,
    /// It was dropped or lost.
    pub dropped: bool,
}

/// What became of a flow's packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Data packets that came to the receiver, those sent again too.
    pub delivered: u64,
    /// Of these, with a mark.
    pub marked: u64,
    /// Data packets sent again.
    pub retransmitted: u64,
    /// Data packets dropped in queues or by a limiter, or lost with a link that failed.
    pub dropped: u64,
    /// Expired timers, a SYN's too.
    pub timeouts: u64,
    /// Sum of the times that delivered data waited in queues, in ps.
    pub waited: u64,
    /// Longest of them.
    pub waited_most: Ps,
    /// Sum of the times that data waited in its host's limiter, in ps.
    pub held: u64,
}

impl FlowCounts {
    /// The receiver has a packet that waited so long.
    fn has(&mut self, packet: &Packet, waited: Ps) {
        self.delivered += 1;
        self.marked += u64::from(packet.marked);
        self.waited += waited;
        self.waited_most = self.waited_most.max(waited);
    }
}

#[derive(Debug)]
pub(crate) struct Diary {
    traced: Option<Traced>,
    pub hops: Vec<Hop>,
    /// By flow, if they are counted.
    pub flows: Option<BTreeMap<u32, FlowCounts>>,
    /// By packet: how long it has crossed links, without waits; of one that its host draws for, how long it has waited.
    crossing: Vec<Ps>,
}

impl Diary {
    pub fn new(traced: Option<Traced>, flows: bool) -> Self {
        Diary { traced, hops: Vec::new(), flows: flows.then(BTreeMap::new), crossing: Vec::new() }
    }

    /// This event is next.
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
            Some(_) if packet.kind == Kind::Data && kind == ARRIVE => self.arrived(event.time, place, &packet, network, hosts),
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

    /// Data has crossed a link; returns how long it has waited if the receiver has it now.
    fn arrived(&mut self, at: Ps, place: usize, packet: &Packet, network: &Network, hosts: &Hosts) -> Option<Ps> {
        let crossed = cross(&mut self.crossing, place, packet, network);
        let Node::Host(host) = network.links.end(packet.link) else { return None };
        let waited = packet.under_way(at) - crossed;
        if hosts.draws(host) {
            self.crossing[place] = waited;
            return None;
        }
        Some(waited)
    }

    /// It has happened, at this time.
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

/// Adds the time that a packet takes for the link that it is on; all until now.
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
