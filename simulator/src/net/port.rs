// SPDX-License-Identifier: GPL-2.0-or-later
//! Links of which nobody knows at arrival when they send a packet, because `CoDel` may drop those before it or a pause may come:
//! packets wait in a store and every packet sent has a departure event.

use crate::core::time::Ps;
use crate::net::link::{to_go, Links, Node, Offered};
use crate::packet::Pool;
use crate::queue::aqm::PAUSE_FRAME;
use crate::queue::codel::{Controller, Fifo};
use crate::queue::gate::{Gate, Verdict};
use crate::queue::ranked::Ranked;
use crate::queue::red::Found;
use crate::sim::engine::{ARRIVE, DEPART};
use crate::sim::scheme::Queue;

/// Beside a link's number in a departure event: a pause frame has arrived at the link's end.
pub(crate) const TOLD: u32 = 1 << 28;

#[derive(Debug)]
enum Store {
    Fifo(Fifo),
    CoDel(Fifo, Controller),
    Ranked(Ranked),
}

#[derive(Debug)]
pub(crate) struct Port {
    gate: Gate,
    store: Store,
    /// A packet or pause frame is being sent: a departure event comes.
    busy: bool,
    /// A packet is.
    sending: bool,
    /// By what link the packet being sent came into the switch, and its bytes.
    held: Option<(u32, u16)>,
    /// The other end has asked for silence.
    stopped: bool,
}

impl Port {
    pub fn new(queue: &Queue, gate: Gate) -> Self {
        let store = match queue {
            Queue::CoDel(codel) => Store::CoDel(Fifo::default(), Controller::new(codel)),
            _ => Ranked::new(queue).map_or_else(|| Store::Fifo(Fifo::default()), Store::Ranked),
        };
        Port { gate, store, busy: false, sending: false, held: None, stopped: false }
    }

    /// Packets that wait.
    pub fn len(&self) -> usize {
        match &self.store {
            Store::Fifo(queue) | Store::CoDel(queue, _) => queue.len(),
            Store::Ranked(queue) => queue.len(),
        }
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        match &self.store {
            Store::Fifo(queue) | Store::CoDel(queue, _) => queue.bytes(),
            Store::Ranked(queue) => queue.bytes(),
        }
    }

    /// What a packet finds that comes now; `CoDel`'s limit is one of what waits.
    fn found(&self, now: Ps, free: Ps, ps_per_byte: u32) -> Found {
        let rest = if let Store::CoDel(..) = self.store { 0 } else { free.saturating_sub(now) };
        let waiting = self.len() as u64;
        Found {
            bytes: self.bytes() + rest.div_ceil(ps_per_byte.into()),
            packets: waiting + u64::from(self.sending && rest > 0),
            idle: if self.busy || waiting > 0 { None } else { now.checked_sub(free) },
        }
    }
}

impl Links {
    /// Offers a packet to a port. `from`: the link it was on, or its host's own.
    pub(crate) fn offer_port(
        &mut self,
        now: Ps,
        (number, place): (u32, u32),
        handle: u32,
        from: u32,
        pool: &mut Pool,
    ) -> Offered {
        let came_by = (from != number && matches!(self.end(from), Node::Switch(_))).then_some(from);
        let bytes = pool.get(handle).bytes;
        if let (Some(pauses), Some(link)) = (&self.pauses, came_by) {
            if !pauses.has_room(link, bytes) {
                return Offered::Dropped;
            }
        }
        let (free, ps_per_byte) = (self.all[number as usize].free, self.class(number).ps_per_byte);
        let port = &mut self.ports[place as usize];
        let found = port.found(now, free, ps_per_byte);
        let verdict = port.gate.admit(&found, pool.get_mut(handle));
        match verdict {
            Verdict::Early => return Offered::Early,
            Verdict::Full => return Offered::Dropped,
            Verdict::Taken | Verdict::Marked => {}
        }
        let taken = match &mut port.store {
            Store::Fifo(queue) | Store::CoDel(queue, _) => {
                queue.push(now, handle, pool);
                true
            }
            Store::Ranked(queue) => queue.push(handle, pool, &mut self.evicted),
        };
        let marked = verdict == Verdict::Marked;
        if let Some(watch) = self.watch.as_mut().filter(|_| taken) {
            watch[number as usize].taken(port.bytes() + to_go(free, now, ps_per_byte), marked);
        }
        for i in 0..self.evicted.len() {
            self.let_go(now, self.evicted[i], pool);
        }
        if !taken {
            return Offered::Dropped;
        }
        if self.pauses.as_mut().is_some_and(|pauses| pauses.hold(handle, came_by, bytes)) {
            self.ask(now, from, true);
        }
        let port = &self.ports[place as usize];
        if !port.busy && !port.stopped {
            self.send_next(now, number, place, pool);
        } else {
            self.watch_waiting(now, number, place);
        }
        Offered::Queued
    }

    /// A port has sent a packet or pause frame.
    pub(crate) fn depart_port(&mut self, now: Ps, number: u32, place: u32, pool: &mut Pool) {
        let port = &mut self.ports[place as usize];
        port.sending = false;
        if let Some((link, bytes)) = port.held.take() {
            self.let_go_bytes(now, link, bytes);
        }
        let free = self.all[number as usize].free;
        if free > now {
            // A pause frame is next.
            self.due.push((free, DEPART | number));
            return;
        }
        let port = &mut self.ports[place as usize];
        port.busy = false;
        if !port.stopped {
            self.send_next(now, number, place, pool);
        }
    }

    /// A pause frame has crossed a link: the other direction stops, or goes on.
    pub(crate) fn told(&mut self, now: Ps, number: u32, pool: &mut Pool) {
        let Some(pauses) = &mut self.pauses else {
            return;
        };
        let Some(stop) = pauses.take_frame(number) else {
            return;
        };
        let other = pauses.reverse(number);
        let place = self.port_of(other);
        if let Some(watch) = &mut self.watch {
            watch[other as usize].stop(now, stop);
        }
        let port = &mut self.ports[place as usize];
        port.stopped = stop;
        if !stop && !port.busy {
            self.send_next(now, other, place, pool);
        }
    }

    fn send_next(&mut self, now: Ps, number: u32, place: u32, pool: &mut Pool) {
        let dropped = self.early.len();
        let next = match &mut self.ports[place as usize].store {
            Store::Fifo(queue) => queue.pop(pool).map(|(handle, _)| (handle, false)),
            Store::CoDel(queue, controller) => controller.pop(now, queue, pool, &mut self.early),
            Store::Ranked(queue) => queue.pop(pool).map(|handle| (handle, false)),
        };
        if let Some((handle, marked)) = next {
            let bytes = pool.get(handle).bytes;
            let held = self.pauses.as_ref().and_then(|pauses| pauses.came_by(handle));
            let class = self.class(number);
            let free = now + u64::from(bytes) * u64::from(class.ps_per_byte);
            self.due.push((free + class.delay, ARRIVE | handle));
            self.due.push((free, DEPART | number));
            self.all[number as usize].free = free;
            let port = &mut self.ports[place as usize];
            port.busy = true;
            port.sending = true;
            port.held = held.map(|link| (link, bytes));
            if let Some(watch) = self.watch.as_mut().filter(|_| marked) {
                watch[number as usize].marked += 1;
            }
        }
        self.watch_waiting(now, number, place);
        for i in dropped..self.early.len() {
            if let Some(watch) = &mut self.watch {
                watch[number as usize].early += 1;
            }
            self.let_go(now, self.early[i], pool);
        }
    }

    /// A packet that was held is dropped.
    fn let_go(&mut self, now: Ps, handle: u32, pool: &Pool) {
        if let Some(link) = self.pauses.as_ref().and_then(|pauses| pauses.came_by(handle)) {
            self.let_go_bytes(now, link, pool.get(handle).bytes);
        }
    }

    fn let_go_bytes(&mut self, now: Ps, link: u32, bytes: u16) {
        if self.pauses.as_mut().is_some_and(|pauses| pauses.let_go(link, bytes)) {
            self.ask(now, link, false);
        }
    }

    /// Sends a pause frame to the other end of `link`, after the frame being sent and before all others.
    fn ask(&mut self, now: Ps, link: u32, stop: bool) {
        let Some(pauses) = &mut self.pauses else {
            return;
        };
        let back = pauses.reverse(link);
        let start = self.all[back as usize].free.max(now);
        if !pauses.add_frame(now, back, start, stop) {
            return;
        }
        let class = *self.class(back);
        let free = start + u64::from(PAUSE_FRAME) * u64::from(class.ps_per_byte);
        self.all[back as usize].free = free;
        self.due.push((free + class.delay, DEPART | TOLD | back));
        let place = self.port_of(back);
        let port = &mut self.ports[place as usize];
        if !port.busy {
            port.busy = true;
            self.due.push((free, DEPART | back));
        }
    }
}
