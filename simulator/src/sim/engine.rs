// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulation itself: takes events in order and moves packets.

use std::collections::{HashMap, VecDeque};

use crate::apps::net::Apps;
use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::wheel::Wheel;
use crate::host::emitter::Emitter;
use crate::host::flow::Flow;
use crate::host::jitter::Jitter;
use crate::host::limiter::{HostLimiter, Limiter};
use crate::host::path::Path;
use crate::net::link::{Links, Node, Offered};
use crate::net::port::TOLD;
use crate::net::routes::Routes;
use crate::net::stats::PortResult;
use crate::net::topology::Topology;
use crate::packet::{Kind, Pool, AGAIN};
use crate::sim::outcome::FlowResult;
use crate::sim::scheme::Scheme;
use crate::sim::tally::Tally;
use crate::sim::workload::{check_source, Workload};

/// An event's kind is in the upper 3 bits of 32, its index in the others.
pub(crate) const INDEX: u32 = 29;
pub(crate) const ARRIVE: u32 = 0;
const RELEASE: u32 = 1 << INDEX;
/// A host that has drawn how long it takes hands a packet over. It is the last kind of which the index is a packet's handle.
pub(crate) const HAND_OVER: u32 = 2 << INDEX;
pub(crate) const DEPART: u32 = 3 << INDEX;
pub(crate) const TIMER: u32 = 4 << INDEX;
pub(crate) const START: u32 = 5 << INDEX;
/// Of a source's datagram; above the number of sources of an application's event.
pub(crate) const EMIT: u32 = 6 << INDEX;

/// So many events ahead packets are fetched: 10 % less time a hop on 10,000 hosts, no other on 144.
const SOON: usize = 8;

/// A network with its traffic, at some time of its life.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) now: Ps,
    pub(crate) scheme: Scheme,
    pub(crate) wheel: Wheel,
    pub(crate) pool: Pool,
    pub(crate) links: Links,
    routes: Routes,
    host_limiter: Option<HostLimiter>,
    pub(crate) jitter: Option<Jitter>,
    pub(crate) flows: Vec<Flow>,
    /// Slots of flows that have ended and left nothing behind.
    pub(crate) free_slots: Vec<u32>,
    pub(crate) records: Vec<FlowResult>,
    pub(crate) started: usize,
    /// What the open connections of a pair of hosts know, the longest unused first.
    pub(crate) paths: HashMap<(u16, u16), VecDeque<Path>>,
    pub(crate) sources: Vec<Emitter>,
    pub(crate) apps: Apps,
    pub(crate) tally: Tally,
}

impl Simulation {
    /// A network at time 0.
    ///
    /// # Errors
    /// Whatever cannot be in the scheme or the workload, in a sentence.
    pub fn new(topology: &Topology, scheme: &Scheme, workload: &Workload, seed: u64) -> Result<Self> {
        Self::build(topology, scheme, workload, seed, false)
    }

    /// The same, with what [`Simulation::ports`] tells. Nothing else is different; it takes longer.
    ///
    /// # Errors
    /// As of [`Simulation::new`].
    pub fn watching(topology: &Topology, scheme: &Scheme, workload: &Workload, seed: u64) -> Result<Self> {
        Self::build(topology, scheme, workload, seed, true)
    }

    fn build(topology: &Topology, scheme: &Scheme, workload: &Workload, seed: u64, watched: bool) -> Result<Self> {
        scheme.check()?;
        let records = workload.flows.draw(topology, seed)?;
        if records.len() >= 1 << INDEX {
            return Err(Error::new(format!("workload: {} flows are more than 2^29", records.len())));
        }
        let mut sources = workload.sources.clone();
        sources.sort_unstable();
        let mut simulation = Simulation {
            now: 0,
            scheme: *scheme,
            wheel: Wheel::new(),
            pool: Pool::default(),
            links: Links::new(topology, scheme, seed, watched)?,
            routes: Routes::new(topology, scheme.routing),
            host_limiter: match scheme.limiter {
                Limiter::PerHost(rule) => Some(HostLimiter::new(rule, topology.hosts())),
                _ => None,
            },
            jitter: Jitter::new(topology, seed),
            flows: Vec::new(),
            free_slots: Vec::new(),
            records: Vec::with_capacity(records.len()),
            started: 0,
            paths: HashMap::new(),
            sources: Vec::with_capacity(sources.len()),
            apps: Apps::new(seed),
            tally: Tally::default(),
        };
        simulation.records.extend(records.into_iter().map(|flow| FlowResult {
            start: flow.start,
            finish: None,
            packets: flow.packets,
            src: flow.src as u16,
            dst: flow.dst as u16,
        }));
        for (number, source) in (0..).zip(sources) {
            check_source(&source, topology)?;
            simulation.add_source(number, source, Rng::new(seed, 1 + u64::from(number)));
        }
        if let Some(first) = simulation.records.first() {
            simulation.wheel.push(first.start, START);
        }
        for app in &workload.apps {
            app.check(topology)?;
            simulation.add_app(app);
        }
        Ok(simulation)
    }

    /// Runs until nothing is left to happen.
    pub fn run(&mut self) {
        self.run_until(Ps::MAX);
    }

    /// Runs everything that happens at `last` or before.
    pub fn run_until(&mut self, last: Ps) {
        while self.run_some(last, u64::MAX) {}
    }

    /// Runs at most so many events of those that happen at `last` or before; returns whether it stopped for their number. Runs
    /// in any pieces yield the outcome of one.
    pub fn run_some(&mut self, last: Ps, most: u64) -> bool {
        for _ in 0..most {
            let Some(event) = self.wheel.pop_until(last) else {
                if last != Ps::MAX {
                    self.now = last;
                }
                return false;
            };
            self.now = event.time;
            self.tally.events += 1;
            self.fetch();
            let index = event.what & ((1 << INDEX) - 1);
            match event.what & !((1 << INDEX) - 1) {
                ARRIVE if !self.arrive(index) => {}
                // In one place, so that what hosts do is part of this loop: 1 % of all instructions.
                ARRIVE | HAND_OVER => self.deliver(index),
                DEPART => self.depart(index),
                RELEASE => self.release(index),
                TIMER => self.timer(index),
                START => self.start_flows(),
                _ if index < self.sources() => self.emit(index),
                _ => self.act(index - self.sources()),
            }
        }
        true
    }

    /// Reads a packet some events before its arrival, so that its memory is near by then: the load overlaps with the events between.
    #[inline]
    fn fetch(&self) {
        if let Some(soon) = self.wheel.ahead(SOON).filter(|what| what >> INDEX == ARRIVE) {
            std::hint::black_box(self.pool.get(soon).link);
        }
    }

    /// Number of sources.
    pub(crate) fn sources(&self) -> u32 {
        self.sources.len() as u32
    }

    /// Whether nothing is left of any traffic: no packet, no flow and no timer holds memory.
    pub fn is_clean(&self) -> bool {
        self.pool.is_empty() && self.free_slots.len() == self.flows.len() && self.wheel.pending().next().is_none()
    }

    /// What happened at every port, in the order of links: hosts' own, those to hosts, both directions of every cable between
    /// switches. Nothing if it was not watched.
    pub fn ports(&self) -> Vec<PortResult> {
        self.links.results(self.now, &self.routes.starts())
    }

    /// How long the link to `host` takes to send what has been accepted for it. Of a link with priorities: the packet being sent.
    ///
    /// # Panics
    /// There is no such host.
    pub fn backlog_to(&self, host: u32) -> Ps {
        self.links.backlog(self.now, self.routes.to_host(host))
    }

    /// A packet has crossed its link; returns whether a host has it now.
    #[inline]
    fn arrive(&mut self, handle: u32) -> bool {
        self.tally.hops += 1;
        let packet = self.pool.get(handle);
        match self.links.end(packet.link) {
            Node::Switch(switch) => {
                let (to, flow, kind) = (packet.to, packet.flow, packet.kind);
                let flows = &self.flows;
                let link = self.routes.next(switch, to, || path_key(flows, flow, kind));
                self.offer(link, handle);
                false
            }
            Node::Host(host) => self.jitter.is_none() || self.take_in(host, handle),
        }
    }

    /// Puts a packet into a link's queue.
    #[inline]
    pub(crate) fn offer(&mut self, link: u32, handle: u32) {
        match self.links.offer(self.now, link, handle, &mut self.pool) {
            Offered::Arrives(at) => {
                self.wheel.push(at, ARRIVE | handle);
                return;
            }
            Offered::Waits { departure } => {
                if let Some(at) = departure {
                    self.wheel.push(at, DEPART | link);
                }
            }
            Offered::Queued => {}
            Offered::Dropped => {
                self.tally.full[self.pool.get(handle).kind as usize] += 1;
                self.links.refused(link, false);
                self.discard(handle);
            }
            Offered::Early => {
                self.tally.early[self.pool.get(handle).kind as usize] += 1;
                self.links.refused(link, true);
                self.discard(handle);
            }
        }
        self.settle();
    }

    /// Takes over what links have done beside the offer or departure of a packet.
    fn settle(&mut self) {
        while let Some(victim) = self.links.evicted.pop() {
            self.tally.pushed_out[self.pool.get(victim).kind as usize] += 1;
            self.discard(victim);
        }
        while let Some(victim) = self.links.early.pop() {
            self.tally.early[self.pool.get(victim).kind as usize] += 1;
            self.discard(victim);
        }
        for (at, what) in self.links.due.drain(..) {
            self.wheel.push(at, what);
        }
    }

    /// A link has sent a packet; or, with a bit, a pause frame has crossed it.
    fn depart(&mut self, index: u32) {
        let link = index & !TOLD;
        if index != link {
            self.links.told(self.now, link, &mut self.pool);
        } else if let Some(departure) = self.links.depart(self.now, link, &mut self.pool) {
            self.wheel.push(departure.arrival, ARRIVE | departure.handle);
            if let Some(next) = departure.next {
                self.wheel.push(next, DEPART | link);
            }
            return;
        }
        self.settle();
    }

    fn discard(&mut self, handle: u32) {
        let packet = self.pool.get(handle);
        if packet.kind != Kind::Datagram {
            let slot = packet.flow;
            self.flows[slot as usize].in_network -= 1;
            self.free_if_done(slot);
        } else if packet.flow >= self.sources() {
            let packet = *packet;
            self.datagram_ended(&packet, false);
        }
        self.pool.remove(handle);
    }

    /// A host has a packet.
    fn deliver(&mut self, handle: u32) {
        let packet = *self.pool.get(handle);
        self.tally.delivered[packet.kind as usize] += 1;
        match packet.kind {
            Kind::Data => {
                self.tally.latency[usize::from(packet.echo & AGAIN != 0)].add(packet.under_way(self.now));
                self.answer(handle, &packet);
            }
            Kind::Probe => self.answer_probe(handle, &packet),
            Kind::Syn => self.accept(handle, &packet),
            Kind::SynAck => {
                self.pool.remove(handle);
                self.connected(&packet);
            }
            Kind::Ack => {
                self.pool.remove(handle);
                self.acknowledge(&packet);
            }
            Kind::Datagram => {
                self.pool.remove(handle);
                if packet.flow < self.sources() {
                    self.sources[packet.flow as usize].took(self.now - packet.created(), packet.bytes);
                } else {
                    self.datagram_ended(&packet, true);
                }
            }
        }
    }

    /// Hands a packet to its host's limiter; returns when it is let go, or now if it is dropped.
    pub(crate) fn admit(&mut self, host: u16, level: u8, handle: u32) -> Ps {
        self.pool.get_mut(handle).link = u32::from(host);
        let bytes = u64::from(self.pool.get(handle).bytes);
        let release = match &mut self.host_limiter {
            Some(limiter) => limiter.release(self.now, host, level, bytes),
            None => Some(self.now),
        };
        let Some(release) = release else {
            self.tally.limited[self.pool.get(handle).kind as usize] += 1;
            self.discard(handle);
            return self.now;
        };
        if release > self.now {
            self.wheel.push(release, RELEASE | handle);
        } else {
            self.release(handle);
        }
        release
    }

    /// A packet passes from its host's limiter to its host's queue.
    fn release(&mut self, handle: u32) {
        let packet = self.pool.get_mut(handle);
        if packet.kind == Kind::Datagram {
            packet.set_created(self.now);
        } else {
            packet.set_sent(self.now);
        }
        let link = packet.link;
        self.offer(link, handle);
    }
}

/// What a path per flow is chosen by: the flow and its direction.
fn path_key(flows: &[Flow], flow: u32, kind: Kind) -> u64 {
    match kind {
        Kind::Datagram => u64::from(flow) << 2 | 2,
        Kind::Ack | Kind::SynAck => u64::from(flows[flow as usize].key) << 2 | 1,
        Kind::Data | Kind::Probe | Kind::Syn => u64::from(flows[flow as usize].key) << 2,
    }
}
