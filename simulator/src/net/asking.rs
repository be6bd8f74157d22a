// SPDX-License-Identifier: GPL-2.0-or-later
//! What happens at links with ports: every packet sent has a departure event, and pause frames come between.

use crate::core::event::{ARRIVE, DEPART, TOLD};
use crate::core::time::Ps;
use crate::net::link::{to_go, Links, Offered};
use crate::net::pause::PAUSE_FRAME;
use crate::net::topology::Node;
use crate::packet::Pool;
use crate::queue::discipline::Next;
use crate::queue::gate::Verdict;

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
        let taken = port.waiting.enqueue(now, handle, pool, &mut self.evicted);
        let marked = verdict == Verdict::Marked;
        if let Some(watch) = self.watch.as_mut().filter(|_| taken) {
            watch[number as usize].taken(port.waiting.bytes() + to_go(free, now, ps_per_byte), marked);
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
        let next = self.ports[place as usize].waiting.dequeue(now, pool, &mut self.early);
        if let Next::Send { handle, marked } = next {
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
            if let Some(watch) = &mut self.watch {
                watch[number as usize].begun += u64::from(bytes);
                watch[number as usize].marked += u64::from(marked);
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
        if let Some(watch) = &mut self.watch {
            watch[back as usize].begun += u64::from(PAUSE_FRAME);
        }
        let place = self.port_of(back);
        let port = &mut self.ports[place as usize];
        if !port.busy {
            port.busy = true;
            self.due.push((free, DEPART | back));
        }
    }
}
