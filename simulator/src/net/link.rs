// SPDX-License-Identifier: GPL-2.0-or-later
//! Links and the queues in front of them.
//!
//! A FIFO link knows when a packet will arrive as soon as it is offered: one event a hop. A link
//! with priorities has departure events while packets wait. A link that may be paused, or whose
//! queue must be asked for every packet, has departure events for every packet ([`Port`]).

use std::collections::{BTreeMap, VecDeque};

use crate::core::error::{Error, Result};
use crate::core::prefetch::prefetch;
use crate::core::rng::Rng;
use crate::core::time::{ps_per_byte, Ps};
use crate::net::link_config::LinkConfig;
use crate::net::pause::Pauses;
use crate::net::port::Port;
use crate::net::shared_buffer::SharedBuffers;
use crate::net::stats::Watched;
use crate::net::telemetry::Telemetry;
use crate::net::topology::{Cable, Node, Shape, Topology};
use crate::packet::{Kind, Packet, Pool};
use crate::queue::admission::{Admission, PredictedQueue, Verdict};
use crate::queue::kinds::Discipline;
use crate::queue::kinds::{Marking, Queue};
use crate::queue::limit::Limit;
use crate::queue::next::Next;

/// How a link is served. All but the first have an entry in a list of [`Links`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Fifo,
    Counted,
    Queued,
    PredictedQueue,
    Port,
    /// The link has failed.
    Dead,
}

/// The host number at the end of the link that leads nowhere.
pub(crate) const NOWHERE: u32 = u32::MAX >> 1;

/// Properties shared by links that are alike. There are few classes, so that they stay in the
/// nearest cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Class {
    pub delay: Ps,
    /// Limit of a link whose departures are known at arrival: in sending time, or in packets for
    /// `Counted`.
    pub limit: u64,
    /// Sending time of the queue from which on packets are marked.
    pub mark: Ps,
    pub ps_per_byte: u32,
    pub service: Service,
}

/// A link's own state: 16 bytes, because a large network has tens of thousands of links, each used
/// twice a hop.
#[derive(Debug)]
pub(crate) struct Link {
    /// When all accepted packets will have been sent; of a link with priorities, the packet being
    /// sent.
    pub free: Ps,
    /// Twice the number of the node at its end, plus 1 if it is a switch.
    pub to: u32,
    pub class: u16,
    /// The last packet found a queue above the threshold.
    pub above: bool,
    /// Packets wait, and a departure event is pending.
    pub waiting: bool,
}

/// Bytes still to be sent until the link is free.
pub(crate) fn bytes_to_send(free: Ps, now: Ps, ps_per_byte: u32) -> u64 {
    free.saturating_sub(now).div_ceil(ps_per_byte.into())
}

/// What became of a packet offered to a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offered {
    /// It will arrive at the other end at this time.
    Arrives(Ps),
    /// It waits; `departure` is when to call [`Links::depart`], if no event is pending.
    Waits {
        departure: Option<Ps>,
    },
    /// A port has taken it; events that follow are in [`Links::due`].
    Queued,
    Dropped,
    /// Dropped by early detection.
    Early,
    /// Lost, because the link has failed.
    Failed,
}

/// The next packet of a link with priorities.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Departure {
    pub handle: u32,
    pub arrival: Ps,
    /// When to call [`Links::depart`] again, if packets wait.
    pub next: Option<Ps>,
}

#[derive(Debug, Default)]
pub(crate) struct Links {
    pub all: Vec<Link>,
    classes: Vec<Class>,
    /// By link: its place in the list of its service.
    pub places: Vec<u32>,
    /// Of counted queues: when each packet will have been sent.
    pub counted: Vec<VecDeque<Ps>>,
    pub queued: Vec<Discipline>,
    pub predicted: Vec<PredictedQueue>,
    pub ports: Vec<Port>,
    pub pauses: Option<Pauses>,
    /// What ports record in packets, if some transport reads it.
    pub telemetry: Option<Box<Telemetry>>,
    pub shared: Option<SharedBuffers>,
    /// Failed links, with their former classes.
    pub failed: BTreeMap<u32, u16>,
    /// Failed links with departure events: when the packet that was being sent would have left.
    /// While `free` is still that time, nothing is being sent.
    pub cut: BTreeMap<u32, Ps>,
    /// Statistics of each link, if requested.
    pub watch: Option<Vec<Watched>>,
    /// Evicted packets, packets dropped from the head, and new events of ports; the caller clears
    /// them.
    pub evicted: Vec<u32>,
    pub early: Vec<u32>,
    pub due: Vec<(Ps, u32)>,
}

/// First random stream of links; streams of sources are below.
const STREAMS: u64 = 1 << 48;

impl Links {
    /// Links in the order of `Routes`.
    pub fn new(
        topology: &Topology,
        link_config: &LinkConfig,
        seed: u64,
        watched: bool,
    ) -> Result<Self> {
        let queue = link_config.queue;
        let mut links = Links::default();
        if watched {
            links.watch = Some(Vec::new());
        }
        for (switch, cable) in &topology.hosts {
            links.add(
                cable,
                Node::Switch(*switch),
                link_config.host_queue.unwrap_or(queue),
                link_config,
                seed,
            )?;
        }
        for (host, (_, cable)) in (0..).zip(&topology.hosts) {
            links.add(cable, Node::Host(host), queue, link_config, seed)?;
        }
        let queue = link_config.trunk_queue.unwrap_or(queue);
        for (a, b, cable) in &topology.trunks {
            links.add(cable, Node::Switch(*b), queue, link_config, seed)?;
            links.add(cable, Node::Switch(*a), queue, link_config, seed)?;
        }
        if topology.shape == Shape::Graph || !topology.losses.is_empty() {
            links.add_nowhere()?;
        }
        links.pauses =
            link_config.pause.map(|pause| Pauses::new(pause, topology.hosts(), links.all.len()));
        links.telemetry = link_config
            .telemetry
            .then(|| Box::new(Telemetry::new(topology.hosts(), links.ports.len())));
        links.shared = link_config.shared_buffer.map(|shared| SharedBuffers::new(shared, topology));
        Ok(links)
    }

    fn add(
        &mut self,
        cable: &Cable,
        to: Node,
        queue: Queue,
        link_config: &LinkConfig,
        seed: u64,
    ) -> Result<()> {
        let per_byte = ps_per_byte(cable.rate)?;
        let time = |bytes: u64| bytes.saturating_mul(u64::from(per_byte));
        let rate = cable.rate;
        queue
            .check_on_link(per_byte)
            .map_err(|error| Error::new(format!("queue: at {rate} bit/s {error}")))?;
        let admission =
            Admission::new(&queue, per_byte, Rng::new(seed, STREAMS + self.all.len() as u64));
        let (bytes, largest) = (admission.limits().0, u64::from(link_config.largest));
        if bytes < largest {
            let rate = cable.rate;
            return Err(Error::new(format!(
                "queue: at {rate} bit/s its limit of {bytes} bytes is less than a packet of \
                 {largest}"
            )));
        }
        if let Some(watch) = &mut self.watch {
            watch.push(Watched::default());
        }
        let watched = self.watch.is_some();
        let mut place = 0;
        let (service, limit, mark) = match queue {
            _ if link_config.has_ports() || queue.needs_port() => {
                place = put(&mut self.ports, Port::new(&queue, admission, per_byte));
                (Service::Port, u64::MAX, u64::MAX)
            }
            Queue::DropTail(Limit::None) if !watched => (Service::Fifo, u64::MAX, u64::MAX),
            Queue::DropTail(Limit::Bytes(bytes)) if !watched => {
                (Service::Fifo, time(bytes), u64::MAX)
            }
            Queue::DropTail(Limit::Packets(packets)) if !watched => {
                place = put(&mut self.counted, VecDeque::new());
                (Service::Counted, u64::from(packets), u64::MAX)
            }
            Queue::Marking(Marking { limit, threshold }) if !watched => {
                (Service::Fifo, time(limit), time(threshold))
            }
            _ if queue.departs_in_order() => {
                place = put(&mut self.predicted, PredictedQueue::new(admission));
                (Service::PredictedQueue, u64::MAX, u64::MAX)
            }
            _ => {
                place = put(&mut self.queued, Discipline::new(&queue, per_byte));
                (Service::Queued, u64::MAX, u64::MAX)
            }
        };
        let class = Class { delay: cable.delay, limit, mark, ps_per_byte: per_byte, service };
        let to = match to {
            Node::Host(host) => 2 * host,
            Node::Switch(switch) => 2 * switch + 1,
        };
        let class = self.class_like(&class)?;
        self.places.push(place);
        self.all.push(Link { free: 0, to, class, above: false, waiting: false });
        Ok(())
    }

    /// The number of this class, which is added if it is new.
    pub fn class_like(&mut self, class: &Class) -> Result<u16> {
        // Search from the end: neighbouring links are often alike.
        let place = if let Some(place) = self.classes.iter().rposition(|known| known == class) {
            place
        } else {
            self.classes.push(*class);
            self.classes.len() - 1
        };
        u16::try_from(place)
            .map_err(|_| Error::new("the links of a network differ in more than 65,536 ways"))
    }

    #[inline]
    pub fn class(&self, number: u32) -> &Class {
        &self.classes[usize::from(self.all[number as usize].class)]
    }

    #[inline]
    pub fn end(&self, link: u32) -> Node {
        let to = self.all[link as usize].to;
        if to & 1 == 0 {
            Node::Host(to >> 1)
        } else {
            Node::Switch(to >> 1)
        }
    }

    /// Offers a packet to a link's queue.
    #[inline]
    pub fn offer(&mut self, now: Ps, number: u32, handle: u32, pool: &mut Pool) -> Offered {
        let link = &mut self.all[number as usize];
        let packet = pool.get_mut(handle);
        let from = std::mem::replace(&mut packet.link, number);
        let class = &self.classes[usize::from(link.class)];
        let send = u64::from(packet.bytes) * u64::from(class.ps_per_byte);
        match class.service {
            Service::Fifo => {
                let backlog = link.free.saturating_sub(now);
                if backlog.saturating_add(send) > class.limit {
                    return Offered::Dropped;
                }
                if backlog > class.mark {
                    packet.marked |= link.above && packet.ect && packet.kind == Kind::Data;
                    link.above = true;
                } else {
                    link.above = false;
                }
            }
            Service::Counted => {
                let held = &mut self.counted[self.places[number as usize] as usize];
                while held.front().is_some_and(|&sent| sent <= now) {
                    held.pop_front();
                }
                if held.len() as u64 >= class.limit {
                    return Offered::Dropped;
                }
                held.push_back(link.free.max(now) + send);
            }
            Service::Queued => {
                if link.waiting || link.free > now {
                    let queue = &mut self.queued[self.places[number as usize] as usize];
                    let taken = queue.enqueue(now, handle, pool, &mut self.evicted);
                    if let Some(watch) = &mut self.watch {
                        let rest = taken.then(|| bytes_to_send(link.free, now, class.ps_per_byte));
                        watch[number as usize].waits(now, queue.bytes(), rest);
                    }
                    if !taken {
                        return Offered::Dropped;
                    }
                    let waited = std::mem::replace(&mut link.waiting, true);
                    return Offered::Waits { departure: (!waited).then_some(link.free) };
                }
                if let Some(watch) = &mut self.watch {
                    watch[number as usize].accept(0, packet.bytes, 0, false);
                }
            }
            Service::PredictedQueue => {
                let predicted = &mut self.predicted[self.places[number as usize] as usize];
                let verdict = predicted.admit(now, link.free, class.ps_per_byte, packet);
                match verdict {
                    Verdict::Early => return Offered::Early,
                    Verdict::Full => return Offered::Dropped,
                    Verdict::Taken | Verdict::Marked => {}
                }
                if let Some(watch) = &mut self.watch {
                    let (found, wait) = (
                        bytes_to_send(link.free, now, class.ps_per_byte),
                        link.free.saturating_sub(now),
                    );
                    watch[number as usize].accept(
                        found,
                        packet.bytes,
                        wait,
                        verdict == Verdict::Marked,
                    );
                }
            }
            Service::Dead => return offered_dead(link, packet, from),
            Service::Port => {
                let place = self.places[number as usize];
                return self.offer_port(now, (number, place), handle, from, pool);
            }
        }
        link.free = link.free.max(now) + send;
        Offered::Arrives(link.free + class.delay)
    }

    /// The link has sent a packet and takes the next one, if any.
    pub fn depart(&mut self, now: Ps, number: u32, pool: &mut Pool) -> Option<Departure> {
        let mut class = *self.class(number);
        if class.service == Service::Dead {
            // The packet that was being sent when the link failed.
            class = self.classes[usize::from(self.failed[&number])];
        }
        if class.service == Service::Port {
            self.depart_port(now, number, self.places[number as usize], pool);
        }
        if class.service != Service::Queued {
            return None;
        }
        let queue = &mut self.queued[self.places[number as usize] as usize];
        let next = queue.dequeue(now, 0, pool, &mut self.early);
        if let Some(watch) = &mut self.watch {
            watch[number as usize].waits(now, queue.bytes(), None);
        }
        self.all[number as usize].waiting = queue.bytes() > 0;
        let Next::Send { handle, .. } = next else {
            return None;
        };
        let bytes = u64::from(pool.get(handle).bytes);
        let free = now + bytes * u64::from(class.ps_per_byte);
        let link = &mut self.all[number as usize];
        link.free = free;
        if let Some(watch) = &mut self.watch {
            watch[number as usize].begun += bytes;
        }
        Some(Departure { handle, arrival: free + class.delay, next: link.waiting.then_some(free) })
    }

    /// Prefetches the queue of a pending departure event. Only the link's number is known to be
    /// valid.
    #[inline]
    pub fn prefetch(&self, index: u32) {
        if let Some(queue) = self.queue_of(index) {
            prefetch(queue);
        }
    }

    /// Prefetches the packet that this queue will send next.
    #[inline]
    pub fn prefetch_next(&self, index: u32, pool: &Pool) {
        if let Some(queue) = self.queue_of(index) {
            queue.prefetch(pool);
        }
    }

    #[inline]
    fn queue_of(&self, index: u32) -> Option<&Discipline> {
        self.places.get(index as usize).and_then(|&place| self.queued.get(place as usize))
    }

    /// The port of a link, in networks whose links all have one.
    pub fn port_of(&self, number: u32) -> u32 {
        self.places[number as usize]
    }

    /// Sending time of everything a link has accepted; for a link with priorities and no port, of
    /// the packet being sent.
    pub fn backlog(&self, now: Ps, number: u32) -> Ps {
        let class = self.class(number);
        let rest = self.all[number as usize].free.saturating_sub(now);
        match class.service {
            Service::Port => {
                rest + self.ports[self.port_of(number) as usize].waiting.bytes()
                    * u64::from(class.ps_per_byte)
            }
            _ => rest,
        }
    }

    /// Sending time of everything a link has accepted.
    pub fn load(&self, now: Ps, number: u32) -> Ps {
        let (class, place) = (self.class(number), self.places[number as usize] as usize);
        let waiting = match class.service {
            Service::Queued => self.queued[place].bytes(),
            _ => 0,
        };
        self.backlog(now, number) + waiting * u64::from(class.ps_per_byte)
    }

    /// Counts a drop of an offered or waiting packet.
    #[cold]
    pub fn refused(&mut self, number: u32, early: bool) {
        if let Some(watch) = &mut self.watch {
            let watched = &mut watch[number as usize];
            *(if early { &mut watched.early } else { &mut watched.full }) += 1;
        }
    }

    /// Records that the waiting bytes of a port changed.
    pub fn watch_waiting(&mut self, now: Ps, number: u32, place: u32) {
        if let Some(watch) = &mut self.watch {
            watch[number as usize].waits(now, self.ports[place as usize].waiting.bytes(), None);
        }
    }

    /// Packets waiting in queues with departure events; all other packets are in the event queue.
    pub fn waiting(&self) -> u64 {
        let ranked = self.queued.iter().map(Discipline::len).sum::<usize>();
        let ports = self.ports.iter().map(|port| port.waiting.len()).sum::<usize>();
        (ranked + ports) as u64
    }
}

/// A packet is lost at a failed link; if it had no route, it is attributed to the link by which it
/// came.
#[cold]
#[inline(never)]
fn offered_dead(link: &Link, packet: &mut Packet, from: u32) -> Offered {
    if link.to == 2 * NOWHERE {
        packet.link = from;
    }
    Offered::Failed
}

/// Appends an item and returns its place.
fn put<T>(list: &mut Vec<T>, item: T) -> u32 {
    list.push(item);
    list.len() as u32 - 1
}

#[cfg(test)]
mod tests;
