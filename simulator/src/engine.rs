// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulation itself: takes events in order and moves packets.

use std::collections::{HashMap, VecDeque};

use crate::error::{Error, Result};
use crate::flow::{Ack, Expired, Flow, Path, Task};
use crate::limiter::{flow_may_send, HostLimiter};
use crate::link::{Links, Node, Offered};
use crate::outcome::{ByKind, Counters, FlowResult, Outcome, SourceResult};
use crate::packet::{since, stamp, Kind, Packet, Pool, KINDS};
use crate::rng::Rng;
use crate::routes::Routes;
use crate::scheme::{Limiter, Rank, Scheme};
use crate::time::Ps;
use crate::topology::Topology;
use crate::wheel::Wheel;
use crate::workload::{check_source, Bytes, Gap, Source, Workload};

/// An event's kind is in the upper 3 bits of 32, its index in the others.
const INDEX: u32 = 29;
const ARRIVE: u32 = 0;
const RELEASE: u32 = 1 << INDEX;
const DEPART: u32 = 2 << INDEX;
const TIMER: u32 = 3 << INDEX;
const START: u32 = 4 << INDEX;
const EMIT: u32 = 5 << INDEX;

/// A network with its traffic, at some time of its life.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) now: Ps,
    pub(crate) scheme: Scheme,
    pub(crate) wheel: Wheel,
    pub(crate) pool: Pool,
    pub(crate) links: Links,
    pub(crate) routes: Routes,
    host_limiter: Option<HostLimiter>,
    pub(crate) flows: Vec<Flow>,
    /// Slots of flows that have ended and left nothing behind.
    free_slots: Vec<u32>,
    records: Vec<FlowResult>,
    started: usize,
    /// What the open connections of a pair of hosts know, the longest unused first.
    paths: HashMap<(u16, u16), VecDeque<Path>>,
    pub(crate) sources: Vec<Emitter>,
    pub(crate) tally: Tally,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    sent: [u64; KINDS],
    delivered: [u64; KINDS],
    full: [u64; KINDS],
    pushed_out: [u64; KINDS],
    limited: [u64; KINDS],
    hops: u64,
    events: u64,
    marked: u64,
    retransmitted: u64,
    timeouts: u64,
}

#[derive(Debug)]
pub(crate) struct Emitter {
    source: Source,
    left: u64,
    rng: Rng,
    result: SourceResult,
}

impl Simulation {
    /// A network at time 0.
    ///
    /// # Errors
    /// Whatever cannot be in the scheme or the workload, in a sentence.
    pub fn new(topology: &Topology, scheme: &Scheme, workload: &Workload, seed: u64) -> Result<Self> {
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
            links: Links::new(topology, scheme.queue)?,
            routes: Routes::new(topology, scheme.routing),
            host_limiter: match scheme.limiter {
                Limiter::PerHost { epoch, budgets } => {
                    Some(HostLimiter::new(epoch, budgets, topology.hosts()))
                }
                _ => None,
            },
            flows: Vec::new(),
            free_slots: Vec::new(),
            records: Vec::with_capacity(records.len()),
            started: 0,
            paths: HashMap::new(),
            sources: Vec::with_capacity(sources.len()),
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
        Ok(simulation)
    }

    fn add_source(&mut self, number: u32, source: Source, mut rng: Rng) {
        let first = match source.gap {
            Gap::Every(_) => source.first,
            Gap::Poisson(mean) => source.first + rng.exponential(mean as f64),
        };
        if source.count > 0 {
            self.wheel.push(first, EMIT | number);
        }
        self.sources.push(Emitter { source, left: source.count, rng, result: SourceResult::default() });
    }

    /// Runs until nothing is left to happen.
    pub fn run(&mut self) {
        self.run_until(Ps::MAX);
    }

    /// Runs everything that happens at `last` or before.
    pub fn run_until(&mut self, last: Ps) {
        while let Some(event) = self.wheel.pop_until(last) {
            self.now = event.time;
            self.tally.events += 1;
            let index = event.what & ((1 << INDEX) - 1);
            match event.what & !((1 << INDEX) - 1) {
                ARRIVE => self.arrive(index),
                DEPART => self.depart(index),
                RELEASE => self.release(index),
                TIMER => self.timer(index),
                START => self.start_flows(),
                _ => self.emit(index),
            }
        }
        if last != Ps::MAX {
            self.now = last;
        }
    }

    /// What has come out so far.
    pub fn outcome(&self) -> Outcome {
        let tally = &self.tally;
        let packets = |what: &u32| *what < DEPART;
        let counters = Counters {
            sent: ByKind::of(&tally.sent),
            delivered: ByKind::of(&tally.delivered),
            full: ByKind::of(&tally.full),
            pushed_out: ByKind::of(&tally.pushed_out),
            limited: ByKind::of(&tally.limited),
            in_flight: self.wheel.pending().filter(packets).count() as u64 + self.links.waiting(),
            hops: tally.hops,
            events: tally.events,
            marked: tally.marked,
            retransmitted: tally.retransmitted,
            timeouts: tally.timeouts,
        };
        Outcome {
            flows: self.records.clone(),
            sources: self.sources.iter().map(|s| s.result).collect(),
            counters,
            end: self.now,
        }
    }

    /// A packet has crossed its link.
    #[inline]
    fn arrive(&mut self, handle: u32) {
        self.tally.hops += 1;
        let packet = self.pool.get(handle);
        match self.links.end(packet.link) {
            Node::Switch(switch) => {
                let (to, flow, kind) = (packet.to, packet.flow, packet.kind);
                let flows = &self.flows;
                let link = self.routes.next(switch, to, || path_key(flows, flow, kind));
                self.offer(link, handle);
            }
            Node::Host(_) => self.deliver(handle),
        }
    }

    /// Puts a packet into a link's queue.
    #[inline]
    fn offer(&mut self, link: u32, handle: u32) {
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
            Offered::Dropped => {
                self.tally.full[self.pool.get(handle).kind as usize] += 1;
                self.discard(handle);
            }
        }
        while let Some(victim) = self.links.evicted.pop() {
            self.tally.pushed_out[self.pool.get(victim).kind as usize] += 1;
            self.discard(victim);
        }
    }

    fn depart(&mut self, link: u32) {
        if let Some(departure) = self.links.depart(self.now, link, &self.pool) {
            self.wheel.push(departure.arrival, ARRIVE | departure.handle);
            if let Some(next) = departure.next {
                self.wheel.push(next, DEPART | link);
            }
        }
    }

    fn discard(&mut self, handle: u32) {
        let packet = self.pool.get(handle);
        if packet.kind != Kind::Datagram {
            let slot = packet.flow;
            self.flows[slot as usize].in_network -= 1;
            self.free_if_done(slot);
        }
        self.pool.remove(handle);
    }

    fn deliver(&mut self, handle: u32) {
        let packet = *self.pool.get(handle);
        self.tally.delivered[packet.kind as usize] += 1;
        match packet.kind {
            Kind::Data | Kind::Probe => self.answer(handle, &packet),
            Kind::Ack => {
                self.pool.remove(handle);
                self.acknowledge(&packet);
            }
            Kind::Datagram => {
                self.pool.remove(handle);
                let result = &mut self.sources[packet.flow as usize].result;
                let delay = self.now - packet.created();
                result.delivered += 1;
                result.bytes += u64::from(packet.bytes);
                result.delay_sum += u128::from(delay);
                result.delay_max = result.delay_max.max(delay);
            }
        }
    }

    /// A data packet has arrived and becomes its own ACK.
    #[inline]
    fn answer(&mut self, handle: u32, packet: &Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        let (seq, echo) = if packet.kind == Kind::Data {
            (flow.receive(packet.seq), packet.seq)
        } else {
            (flow.expected(), NO_ECHO)
        };
        self.tally.marked += u64::from(packet.marked);
        self.tally.sent[Kind::Ack as usize] += 1;
        let host = u32::from(packet.to);
        *self.pool.get_mut(handle) = Packet {
            seq,
            echo,
            rank: 0,
            bytes: self.scheme.transport.ack_bytes,
            to: flow.from,
            kind: Kind::Ack,
            ..*packet
        };
        self.offer(host, handle);
    }

    #[inline]
    fn acknowledge(&mut self, packet: &Packet) {
        let slot = packet.flow;
        let flow = &mut self.flows[slot as usize];
        flow.in_network -= 1;
        if flow.finished() {
            self.free_if_done(slot);
            return;
        }
        let ack = Ack {
            cumulative: packet.seq,
            echo: (packet.echo != NO_ECHO).then_some(packet.echo),
            marked: packet.marked,
            round_trip: since(packet.stamp, self.now),
        };
        flow.acknowledge(&self.scheme.transport, self.now, ack);
        if flow.finished() {
            self.finish(slot);
        } else {
            self.send_window(slot);
        }
    }

    fn start_flows(&mut self) {
        while let Some(record) = self.records.get(self.started) {
            if record.start > self.now {
                self.wheel.push(record.start, START);
                return;
            }
            let task = Task {
                record: self.started as u32,
                from: record.src,
                to: record.dst,
                packets: record.packets,
                level: self.scheme.level(record.packets),
                start: record.start,
            };
            self.started += 1;
            self.start_flow(task);
        }
    }

    fn start_flow(&mut self, task: Task) {
        let transport = &self.scheme.transport;
        let idle = self.paths.get_mut(&(task.from, task.to)).and_then(VecDeque::pop_front);
        let path = match idle {
            Some(mut path) => {
                path.restart(transport, self.now);
                path
            }
            None => Path::new(transport),
        };
        let flow = Flow::new(transport, task, path);
        let slot = if let Some(slot) = self.free_slots.pop() {
            self.flows[slot as usize] = flow;
            slot
        } else {
            self.flows.push(flow);
            self.flows.len() as u32 - 1
        };
        self.send_window(slot);
    }

    fn finish(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        self.records[flow.record as usize].finish = Some(self.now);
        let idle = self.paths.entry((flow.from, flow.to)).or_default();
        if (idle.len() as u64) < u64::from(self.scheme.transport.connections) {
            flow.path.used = self.now;
            idle.push_back(flow.path);
        }
        self.free_if_done(slot);
    }

    /// Stray packets and timers of a flow that has ended still name its slot.
    fn free_if_done(&mut self, slot: u32) {
        let flow = &self.flows[slot as usize];
        if flow.finished() && flow.in_network == 0 && flow.timers == 0 {
            self.free_slots.push(slot);
        }
    }

    /// Sends what the flow's window lets go, and keeps its timer.
    fn send_window(&mut self, slot: u32) {
        while let Some(number) = self.flows[slot as usize].next_to_send(&self.scheme.transport, self.now) {
            self.send_data(slot, number);
        }
        self.keep_timer(slot);
    }

    /// A timer event that comes too early looks again later; only one that would come too late is doubled.
    fn keep_timer(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if flow.deadline < flow.timer_at {
            flow.timer_at = flow.deadline;
            flow.timers += 1;
            self.wheel.push(flow.deadline, TIMER | slot);
        }
    }

    fn send_data(&mut self, slot: u32, number: u32) {
        let transport = &self.scheme.transport;
        let flow = &mut self.flows[slot as usize];
        self.tally.sent[Kind::Data as usize] += 1;
        self.tally.retransmitted += u64::from(flow.was_sent(number));
        flow.sent(number);
        if let Limiter::PerFlow { epoch, ref budgets } = self.scheme.limiter {
            if !flow_may_send(flow, self.now, u64::from(transport.data_bytes), epoch, budgets) {
                self.tally.limited[Kind::Data as usize] += 1;
                return;
            }
        }
        let (level, from) = (flow.level, flow.from);
        let packet = data(slot, number, Kind::Data, transport.data_bytes, flow, transport.rank);
        flow.in_network += 1;
        let handle = self.pool.add(packet);
        let release = self.admit(from, level, handle);
        if release > self.now {
            // What waits in the host is not lost: as in Linux, it is not sent again before it has left.
            let flow = &mut self.flows[slot as usize];
            flow.deadline = flow.deadline.max(release + flow.rto(&self.scheme.transport));
        }
    }

    fn send_probe(&mut self, slot: u32) {
        let transport = &self.scheme.transport;
        let flow = &mut self.flows[slot as usize];
        self.tally.sent[Kind::Probe as usize] += 1;
        let (level, from) = (flow.level, flow.from);
        let packet = data(slot, 0, Kind::Probe, transport.ack_bytes, flow, transport.rank);
        flow.in_network += 1;
        let handle = self.pool.add(packet);
        self.admit(from, level, handle);
    }

    /// Hands a packet to its host's limiter; returns when it is let go.
    fn admit(&mut self, host: u16, level: u8, handle: u32) -> Ps {
        self.pool.get_mut(handle).link = u32::from(host);
        let bytes = u64::from(self.pool.get(handle).bytes);
        let release = match &mut self.host_limiter {
            Some(limiter) => limiter.release(self.now, host, level, bytes),
            None => self.now,
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
            packet.stamp = stamp(self.now);
        }
        let link = packet.link;
        self.offer(link, handle);
    }

    fn timer(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        flow.timers -= 1;
        if flow.timer_at != self.now || flow.finished() {
            self.free_if_done(slot);
            return;
        }
        flow.timer_at = Ps::MAX;
        if flow.deadline > self.now {
            self.keep_timer(slot);
            return;
        }
        self.tally.timeouts += 1;
        match flow.expire(&self.scheme.transport, self.now) {
            Expired::Resend => self.send_window(slot),
            Expired::Probe => {
                self.send_probe(slot);
                self.keep_timer(slot);
            }
        }
    }

    /// A source's next datagram.
    fn emit(&mut self, number: u32) {
        let emitter = &mut self.sources[number as usize];
        let source = emitter.source;
        let bytes = match source.bytes {
            Bytes::Fixed(bytes) => bytes,
            Bytes::Exponential(mean) => emitter.rng.exponential(f64::from(mean)).clamp(1, 65_535) as u16,
        };
        let gap = match source.gap {
            Gap::Every(gap) => gap,
            Gap::Poisson(mean) => emitter.rng.exponential(mean as f64),
        };
        emitter.left -= 1;
        if emitter.left > 0 {
            self.wheel.push(self.now + gap, EMIT | number);
        }
        self.tally.sent[Kind::Datagram as usize] += 1;
        let handle = self.pool.add(Packet {
            flow: number,
            seq: 0,
            echo: 0,
            stamp: 0,
            rank: 1 + u32::from(source.level),
            link: 0,
            bytes,
            to: source.dst as u16,
            kind: Kind::Datagram,
            marked: false,
        });
        self.admit(source.src as u16, source.level, handle);
    }
}

/// An ACK that answers a probe.
const NO_ECHO: u32 = u32::MAX;

fn data(slot: u32, number: u32, kind: Kind, bytes: u16, flow: &Flow, rank: Rank) -> Packet {
    Packet {
        flow: slot,
        seq: number,
        echo: 0,
        stamp: 0,
        rank: match rank {
            Rank::Level => 1 + u32::from(flow.level),
            Rank::Remaining => flow.remaining(),
        },
        link: 0,
        bytes,
        to: flow.to,
        kind,
        marked: false,
    }
}

/// What a path per flow is chosen by: the flow and its direction.
fn path_key(flows: &[Flow], flow: u32, kind: Kind) -> u64 {
    match kind {
        Kind::Datagram => u64::from(flow) << 2 | 2,
        Kind::Ack => u64::from(flows[flow as usize].record) << 2 | 1,
        Kind::Data | Kind::Probe => u64::from(flows[flow as usize].record) << 2,
    }
}
