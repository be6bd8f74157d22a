// SPDX-License-Identifier: GPL-2.0-or-later
//! Events of links with ports: offer, departure, wake-up and pause frames. Every packet that such a
//! link sends has a departure event.

use crate::core::event::{ARRIVE, DEPART, PAUSE_FRAME, WAKE};
use crate::core::time::Ps;
use crate::net::link::{bytes_to_send, Class, Links, Offered};
use crate::net::pause::{Held, PauseFrame, PAUSE_FRAME_BYTES};
use crate::net::telemetry::PortRecord;
use crate::net::topology::Node;
use crate::packet::{Kind, Pool};
use crate::queue::admission::Verdict;
use crate::queue::next::Next;

impl Links {
    /// Offers a packet to a port. `from`: the link it came by, or its host's own link.
    pub(crate) fn offer_port(
        &mut self,
        now: Ps,
        (number, place): (u32, u32),
        handle: u32,
        from: u32,
        pool: &mut Pool,
    ) -> Offered {
        let packet = pool.get(handle);
        let (level, bytes) = (packet.level(), packet.bytes);
        let came_in = from != number && matches!(self.end(from), Node::Switch(_));
        let held = came_in.then_some(Held { link: from, level, bytes });
        // Pauses and shared buffers exclude each other.
        let room = match (&self.pauses, held) {
            (Some(pauses), Some(held)) => pauses.has_room(held),
            (Some(_), None) => true,
            _ => self.shared.as_ref().is_none_or(|shared| shared.has_room(number, packet)),
        };
        if !room {
            return Offered::Dropped;
        }
        let (free, ps_per_byte) = (self.all[number as usize].free, self.class(number).ps_per_byte);
        let port = &mut self.ports[place as usize];
        let found = port.found(now, free, ps_per_byte, level);
        let verdict = port.admission.admit(now, &found, pool.get_mut(handle));
        match verdict {
            Verdict::Early => return Offered::Early,
            Verdict::Full => return Offered::Dropped,
            Verdict::Taken | Verdict::Marked => {}
        }
        let taken = port.waiting.enqueue(now, handle, pool, &mut self.evicted);
        let marked = verdict == Verdict::Marked;
        if let Some(watch) = self.watch.as_mut().filter(|_| taken) {
            watch[number as usize]
                .taken(port.waiting.bytes() + bytes_to_send(free, now, ps_per_byte), marked);
        }
        for i in 0..self.evicted.len() {
            self.release_held(now, self.evicted[i], pool);
        }
        if !taken {
            return Offered::Dropped;
        }
        let full = match (&mut self.pauses, &mut self.shared) {
            (Some(pauses), _) => pauses.hold(handle, held),
            (None, Some(shared)) => {
                shared.hold(number, level, bytes);
                0
            }
            (None, None) => 0,
        };
        if full != 0 {
            self.send_pause_frame(now, from, PauseFrame { levels: full, stop: full });
        }
        if self.ports[place as usize].is_free() {
            self.send_next(now, number, place, pool);
        } else {
            self.watch_waiting(now, number, place);
        }
        Offered::Queued
    }

    /// A port has finished sending a packet or pause frame.
    pub(crate) fn depart_port(&mut self, now: Ps, number: u32, place: u32, pool: &mut Pool) {
        let port = &mut self.ports[place as usize];
        port.sending = false;
        if let Some(held) = port.held.take() {
            self.release(now, held);
        } else if let Some(shared) = &mut self.shared {
            shared.sent(number);
        }
        let free = self.all[number as usize].free;
        if free > now {
            // A pause frame is being sent next.
            self.due.push((free, DEPART | number));
            return;
        }
        let port = &mut self.ports[place as usize];
        port.busy = false;
        if port.is_free() {
            self.send_next(now, number, place, pool);
        }
    }

    /// A wake-up: waiting packets may be sent now, if the port has not been asked since.
    pub(crate) fn on_wake(&mut self, now: Ps, number: u32, pool: &mut Pool) {
        let place = self.port_of(number);
        let port = &mut self.ports[place as usize];
        if port.wakes == Some(now) {
            port.wakes = None;
            if port.is_free() {
                self.send_next(now, number, place, pool);
            }
        }
    }

    /// A pause frame has arrived: levels of the opposite direction stop or resume.
    pub(crate) fn on_pause_frame(&mut self, now: Ps, number: u32, pool: &mut Pool) {
        let Some(pauses) = &mut self.pauses else {
            return;
        };
        let Some(frame) = pauses.take_frame(number) else {
            return;
        };
        let other = pauses.reverse(number);
        let place = self.port_of(other);
        let port = &mut self.ports[place as usize];
        port.stopped = port.stopped & !frame.levels | frame.stop;
        if let Some(watch) = &mut self.watch {
            watch[other as usize].stop(now, port.stopped != 0);
        }
        if frame.stop != frame.levels && port.is_free() {
            self.send_next(now, other, place, pool);
        }
    }

    fn send_next(&mut self, now: Ps, number: u32, place: u32, pool: &mut Pool) {
        let dropped = self.early.len();
        let port = &mut self.ports[place as usize];
        let next = port.waiting.dequeue(now, port.stopped, pool, &mut self.early);
        if let Next::Wait(at) = next {
            if port.wakes.is_none_or(|other| at < other) {
                port.wakes = Some(at);
                self.due.push((at, DEPART | WAKE | number));
            }
        }
        if let Next::Send { handle, marked } = next {
            let packet = pool.get(handle);
            let held = match (&self.pauses, &mut self.shared) {
                (Some(pauses), _) => pauses.of(handle, packet),
                (None, Some(shared)) => {
                    shared.send(number, packet);
                    None
                }
                (None, None) => None,
            };
            let class = *self.class(number);
            let bytes = packet.bytes;
            if let Some(telemetry) = &mut self.telemetry {
                let waiting = self.ports[place as usize].waiting.bytes();
                let Class { ps_per_byte, .. } = class;
                let record = PortRecord { link: number, ps_per_byte, at: now, sent: 0, waiting };
                let data = packet.kind == Kind::Data;
                telemetry.pass(place, bytes, data.then_some((handle, record)));
            }
            let free = now + u64::from(bytes) * u64::from(class.ps_per_byte);
            self.due.push((free + class.delay, ARRIVE | handle));
            self.due.push((free, DEPART | number));
            self.all[number as usize].free = free;
            let port = &mut self.ports[place as usize];
            port.busy = true;
            port.sending = true;
            port.held = held;
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
            self.release_held(now, self.early[i], pool);
        }
    }

    /// A held packet is dropped.
    fn release_held(&mut self, now: Ps, handle: u32, pool: &Pool) {
        if let Some(shared) = &mut self.shared {
            let packet = pool.get(handle);
            shared.release(packet.link, packet.level(), packet.bytes);
        }
        if let Some(held) =
            self.pauses.as_ref().and_then(|pauses| pauses.of(handle, pool.get(handle)))
        {
            self.release(now, held);
        }
    }

    fn release(&mut self, now: Ps, held: Held) {
        let levels = self.pauses.as_mut().map_or(0, |pauses| pauses.release_held(held));
        if levels != 0 {
            self.send_pause_frame(now, held.link, PauseFrame { levels, stop: 0 });
        }
    }

    /// Sends a pause frame to the other end of `link`, after the frame being sent and before all
    /// others.
    fn send_pause_frame(&mut self, now: Ps, link: u32, frame: PauseFrame) {
        let Some(pauses) = &mut self.pauses else {
            return;
        };
        let back = pauses.reverse(link);
        let start = self.all[back as usize].free.max(now);
        if !pauses.add_frame(now, back, start, frame) {
            return;
        }
        let class = *self.class(back);
        let free = start + u64::from(PAUSE_FRAME_BYTES) * u64::from(class.ps_per_byte);
        self.all[back as usize].free = free;
        self.due.push((free + class.delay, DEPART | PAUSE_FRAME | back));
        if let Some(watch) = &mut self.watch {
            watch[back as usize].begun += u64::from(PAUSE_FRAME_BYTES);
        }
        let place = self.port_of(back);
        let port = &mut self.ports[place as usize];
        if !port.busy {
            port.busy = true;
            self.due.push((free, DEPART | back));
        }
    }
}
