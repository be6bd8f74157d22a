// SPDX-License-Identifier: GPL-2.0-or-later
//! The state of a network in a run: event queue, packets, links and routes.

use std::collections::BTreeMap;

use crate::core::error::{Error, Result};
use crate::core::event::{ARRIVE, CHANGE, DEPART, INDEX, PAUSE_FRAME, TIMER, WAKE};
use crate::core::prefetch::prefetch;
use crate::core::time::Ps;
use crate::core::wheel::{Event, Wheel};
use crate::net::link::{Links, Offered, NOWHERE};
use crate::net::link_config::LinkConfig;
use crate::net::lossy_links::LossyLinks;
use crate::net::partition::Part;
use crate::net::pause::reverse;
use crate::net::routes::{Routes, Routing};
use crate::net::stats::{End, PortResult, Watched};
use crate::net::topology::{Change, Node, Topology};
use crate::packet::{Kind, Packet, Pool, KINDS, STAMPS};

/// Prefetch distances in events: first the packet or queue that an event needs, then what is known
/// only from it.
const LATER: usize = 16;
const SOON: usize = 8;
/// Networks from this number of hosts on prefetch: a quarter less time a hop with priorities on
/// 10,000 hosts, a few hundredths more on 144.
const LARGE: u32 = 4_096;

/// Counters of the network.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    pub hops: u64,
    pub full: [u64; KINDS],
    pub pushed_out: [u64; KINDS],
    pub early: [u64; KINDS],
    pub failed: [u64; KINDS],
}

/// What became of a packet that has crossed a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// It has reached this host.
    At(u32),
    /// It goes on, and no packet was dropped.
    Passed,
    /// Packets in [`Network::lost`] were dropped for it, or it was dropped.
    Lost,
}

/// What will happen to a host soon.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Soon {
    /// A packet of this flow, or source of datagrams, arrives.
    Arrival { flow: u32, host: u32 },
    /// A timer expires; its index says whose.
    Timer(u32),
}

#[derive(Debug)]
pub(crate) struct Network {
    pub now: Ps,
    pub wheel: Wheel,
    pub pool: Pool,
    pub links: Links,
    routes: Routes,
    pub passed: Passed,
    /// Its memory does not stay in the processor's nearer caches.
    large: bool,
    /// The topology, if cables of it fail.
    changing: Option<Box<Topology>>,
    /// Packets on failed links, with those links; the packets name the link that leads nowhere.
    pub stray: BTreeMap<u32, u32>,
    /// Links that lose packets, if there are any.
    lossy: Option<Box<LossyLinks>>,
    /// Packets dropped in the network; the caller disposes of them at once.
    pub lost: Vec<u32>,
    /// This part, if the network is partitioned.
    pub part: Option<Part>,
    /// By part: packets on their way to it, with arrival times.
    pub leaving: Vec<Vec<(Ps, u32)>>,
}

impl Network {
    pub fn new(
        topology: &Topology,
        link_config: &LinkConfig,
        routing: Routing,
        seed: u64,
        watched: bool,
    ) -> Result<Self> {
        let mut wheel = Wheel::new();
        for (number, change) in (0..).zip(&topology.changes) {
            wheel.push(change.at, DEPART | CHANGE | number);
        }
        if !topology.changes.is_empty() && link_config.pause.is_some() {
            return Err(Error::new("pause: networks with failing cables cannot have pauses"));
        }
        if !topology.changes.is_empty() && link_config.shared_buffer.is_some() {
            return Err(Error::new(
                "shared_buffer: networks with failing cables cannot have shared buffers",
            ));
        }
        let way = topology.longest_way();
        if 2 * way >= STAMPS.into() {
            return Err(Error::new(format!(
                "network: a path may take {way} ps: its round trip must be below 35.18 s"
            )));
        }
        Ok(Network {
            now: 0,
            wheel,
            pool: Pool::default(),
            links: Links::new(topology, link_config, seed, watched)?,
            routes: Routes::new(topology, routing),
            passed: Passed::default(),
            large: topology.hosts() >= LARGE,
            changing: (!topology.changes.is_empty()).then(|| Box::new(topology.clone())),
            stray: BTreeMap::new(),
            lossy: LossyLinks::new(topology, seed),
            lost: Vec::new(),
            part: None,
            leaving: Vec::new(),
        })
    }

    /// Takes the next event if it happens at `last` or before.
    #[inline]
    pub fn pop_until(&mut self, last: Ps) -> Option<Event> {
        let Network { wheel, pool, .. } = self;
        wheel.pop_until(last, |handle, now| pool.arrival(handle, now))
    }

    /// The next event, without taking it.
    pub fn peek(&self) -> Option<Event> {
        self.wheel.peek(|handle, now| self.pool.arrival(handle, now))
    }

    /// Prefetches for upcoming events; returns what concerns a host.
    #[inline]
    pub fn prefetch(&self) -> Option<Soon> {
        if !self.large {
            return None;
        }
        let index = |what: u32| what & ((1 << INDEX) - 1);
        if let Some(later) = self.wheel.ahead(LATER) {
            match later >> INDEX << INDEX {
                ARRIVE => prefetch(self.pool.get(index(later))),
                DEPART => self.links.prefetch(index(later)),
                _ => {}
            }
        }
        let soon = self.wheel.ahead(SOON)?;
        match soon >> INDEX << INDEX {
            ARRIVE => {
                let &Packet { link, flow, to, .. } = self.pool.get(index(soon));
                prefetch(&self.links.all[link as usize]);
                self.routes.leads_to_host(link).then(|| Soon::Arrival { flow, host: to.host() })
            }
            DEPART => {
                self.links.prefetch_next(index(soon), &self.pool);
                None
            }
            TIMER => Some(Soon::Timer(index(soon))),
            _ => None,
        }
    }

    /// A packet has crossed its link. `key`: the path key of a flow and kind, for per-flow routing.
    #[inline]
    pub fn arrive(&mut self, handle: u32, key: impl FnOnce(u32, Kind) -> u64) -> Arrived {
        self.passed.hops += 1;
        let packet = self.pool.get(handle);
        match self.links.end(packet.link) {
            Node::Switch(switch) => {
                let (to, flow, kind) = (packet.to.host(), packet.flow, packet.kind);
                let loads = (self.now, &self.links);
                let link = self.routes.next(switch, to, || key(flow, kind), loads);
                if self.offer(link, handle) {
                    Arrived::Lost
                } else {
                    Arrived::Passed
                }
            }
            Node::Host(NOWHERE) => {
                self.lose_stray(handle);
                Arrived::Lost
            }
            Node::Host(host) => Arrived::At(host),
        }
    }

    /// A packet was on a link that failed.
    #[cold]
    fn lose_stray(&mut self, handle: u32) {
        self.passed.hops -= 1;
        if let Some(link) = self.stray.remove(&handle) {
            self.pool.get_mut(handle).link = link;
        }
        self.lose_failed(handle);
    }

    #[cold]
    fn lose_failed(&mut self, handle: u32) {
        self.passed.failed[self.pool.get(handle).kind as usize] += 1;
        self.lost.push(handle);
    }

    /// Offers a packet to a link; returns whether packets were dropped, which are then in `lost`.
    #[inline]
    pub fn offer(&mut self, link: u32, handle: u32) -> bool {
        match self.links.offer(self.now, link, handle, &mut self.pool) {
            Offered::Arrives(at) => {
                self.travel(at, handle);
                return false;
            }
            Offered::Waits { departure } => {
                if let Some(at) = departure {
                    self.wheel.push(at, DEPART | link);
                }
                // A queue without a port has no other effects.
                if self.links.evicted.is_empty() {
                    return false;
                }
            }
            Offered::Queued => {}
            Offered::Dropped => {
                self.passed.full[self.pool.get(handle).kind as usize] += 1;
                self.links.refused(link, false);
                self.lost.push(handle);
            }
            Offered::Early => {
                self.passed.early[self.pool.get(handle).kind as usize] += 1;
                self.links.refused(link, true);
                self.lost.push(handle);
            }
            Offered::Failed => self.lose_failed(handle),
        }
        self.settle()
    }

    /// Schedules a packet's arrival.
    #[inline]
    fn travel(&mut self, at: Ps, handle: u32) {
        if self.lossy.is_some() {
            self.lose_some(handle);
        }
        if self.part.is_none() || !self.leaves(at, handle) {
            self.wheel.push(at, ARRIVE | handle);
        }
    }

    /// Loses the packet, if its link does; that shows when it would have arrived.
    #[inline(never)]
    fn lose_some(&mut self, handle: u32) {
        let link = self.pool.get(handle).link;
        if self.lossy.as_mut().is_some_and(|lossy| lossy.loses(link)) {
            self.pool.get_mut(handle).link = self.links.len();
            self.stray.insert(handle, link);
        }
    }

    /// Whether the packet's link leads to another part; if so, hands it over.
    #[inline(never)]
    fn leaves(&mut self, at: Ps, handle: u32) -> bool {
        let Some(of) = &self.part else { return false };
        // A packet that is lost stays.
        let Some(&part) = of.partition.of_end.get(self.pool.get(handle).link as usize) else {
            return false;
        };
        if part != of.mine {
            self.leaving[usize::from(part)].push((at, handle));
        }
        part != of.mine
    }

    /// Applies side effects of an offer or departure; returns whether packets were lost.
    fn settle(&mut self) -> bool {
        while let Some(victim) = self.links.evicted.pop() {
            let packet = self.pool.get(victim);
            self.passed.pushed_out[packet.kind as usize] += 1;
            self.links.refused(packet.link, false);
            self.lost.push(victim);
        }
        while let Some(victim) = self.links.early.pop() {
            self.passed.early[self.pool.get(victim).kind as usize] += 1;
            self.lost.push(victim);
        }
        for place in 0..self.links.due.len() {
            match self.links.due[place] {
                (at, what) if what >> INDEX == ARRIVE => self.travel(at, what),
                (at, what) => self.wheel.push(at, what),
            }
        }
        self.links.due.clear();
        !self.lost.is_empty()
    }

    /// A departure event: a link has sent a packet, or, with a flag bit, a pause frame, wake-up or
    /// cable change. Returns whether packets were lost.
    pub fn depart(&mut self, index: u32) -> bool {
        let link = index & (CHANGE - 1);
        if index != link {
            match index - link {
                PAUSE_FRAME => self.links.on_pause_frame(self.now, link, &mut self.pool),
                WAKE => self.links.on_wake(self.now, link, &mut self.pool),
                _ => self.change(link),
            }
        } else if let Some(departure) = self.links.depart(self.now, link, &mut self.pool) {
            self.travel(departure.arrival, departure.handle);
            if let Some(next) = departure.next {
                self.wheel.push(next, DEPART | link);
            }
            return false;
        }
        self.settle()
    }

    /// A cable fails or works again.
    // Kept out of the path of departures.
    #[cold]
    #[inline(never)]
    fn change(&mut self, number: u32) {
        let Some(topology) = self.changing.take() else {
            return;
        };
        let Change { link, works, .. } = topology.changes[number as usize];
        for link in [link, reverse(link, topology.hosts())] {
            if works {
                self.links.repair(link);
            } else {
                self.fail(link, topology.links());
            }
        }
        self.routes.avoid(&topology, &self.links.failed());
        self.changing = Some(topology);
    }

    /// A link fails: packets waiting for it are lost now, packets on it when they would have
    /// arrived.
    fn fail(&mut self, link: u32, nowhere: u32) {
        let mut waited = Vec::new();
        self.links.fail(self.now, link, &mut self.pool, &mut waited);
        for handle in waited {
            self.lose_failed(handle);
        }
        let crossing = self.leaving.iter().flatten().map(|&(_, handle)| handle);
        let arriving = self.wheel.pending().filter(|what| what >> INDEX == ARRIVE);
        for what in arriving.chain(crossing) {
            let packet = self.pool.get_mut(what);
            if packet.link == link {
                packet.link = nowhere;
                self.stray.insert(what, link);
            }
        }
    }

    /// Whether a packet is on a link that has failed.
    pub fn is_stray(&self, packet: &Packet) -> bool {
        self.links.end(packet.link) == Node::Host(NOWHERE)
    }

    /// Sending time of everything accepted for the link to `host`.
    pub fn backlog_to(&self, host: u32) -> Ps {
        self.links.backlog(self.now, self.routes.to_host(host))
    }

    /// Packets waiting in queues with departure events; all other packets are in the event queue.
    pub fn waiting(&self) -> u64 {
        self.links.waiting()
    }

    /// Number of hosts; their own links come first.
    pub fn hosts(&self) -> u32 {
        self.routes.to_host(0)
    }

    /// Number of pauses requested by ports.
    pub fn pauses(&self) -> u64 {
        self.links.pauses.as_ref().map_or(0, |pauses| pauses.count)
    }

    /// Both ends of every link.
    pub fn cables(&self) -> Vec<(End, End)> {
        let starts = (0..).zip(self.routes.starts());
        starts.map(|(link, from)| (from.into(), self.links.end(link).into())).collect()
    }

    /// Statistics of every watched port.
    pub fn ports(&self) -> Vec<PortResult> {
        let watched = (0..).zip(self.links.watch.iter().flatten()).zip(self.routes.starts());
        let result = |((link, port), from): ((u32, &Watched), Node)| {
            port.result(self.now, self.links.to_wait(self.now, link), from, self.links.end(link))
        };
        watched.map(result).collect()
    }
}
