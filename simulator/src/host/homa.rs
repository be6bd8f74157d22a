// SPDX-License-Identifier: GPL-2.0-or-later
//! Homa (Montazeri et al., SIGCOMM 2018): receivers decide who sends. The first packets of a message, as many as a round trip holds,
//! leave unasked; for the others its receiver grants so many at a time, to those messages that have the least left, and says on which
//! level. Senders send the message with the least left first.
//!
//! Grants and what ends a message are ACKs here, which say in `echo` what they are. What is left out: the share of levels and their
//! sizes are settings and not measured, and there is no BUSY, for a sender that hears nothing asks with a probe.

use crate::core::event::{HOST, TIMER};
use crate::core::rng::mix;
use crate::core::time::{Ps, S};
use crate::host::hosts::{Hosts, Notice};
use crate::host::messages::{Host, Message};
use crate::net::network::Network;
use crate::packet::{Destination, Kind, Packet, AGAIN, NO_ECHO};

/// In `echo` of an ACK: all has arrived. Every other number, but for `NO_ECHO`, is that of the first packet that is asked for again,
/// and `seq` one above the last.
const DONE: u32 = NO_ECHO - 1;
/// A receiver waits twice as long each time it asks again in vain, so often at most.
const DOUBLINGS: u32 = 16;
/// Levels of 802.1Q.
const LEVELS: u8 = 8;

impl Hosts {
    /// A message begins.
    pub(super) fn begin_message(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let t = self.manner.of(flow);
        let (host, size, key) = (flow.from as usize, flow.size(), flow.key);
        let granted = t.initial_window.min(size);
        flow.hear(t, net.now, true);
        if self.messages.hosts.is_empty() {
            self.messages.hosts = vec![Host::default(); self.lines.len()];
        }
        if self.messages.all.len() <= slot as usize {
            self.messages.all.resize(slot as usize + 1, Message::default());
        }
        self.messages.all[slot as usize] = Message { size, key, granted, asked: granted, ..Message::default() };
        self.messages.hosts[host].out.push(slot);
        self.pump(net, host as u32);
        self.keep_timer(net, slot);
    }

    /// The host's link may be free.
    pub(super) fn wake(&mut self, net: &mut Network, host: u32) {
        self.messages.hosts[host as usize].wakes = false;
        self.pump(net, host);
    }

    /// Sends a packet of the message that has the least left, as soon as the link is free.
    fn pump(&mut self, net: &mut Network, host: u32) {
        let of = &self.messages.hosts[host as usize];
        let ready = of.out.iter().copied().filter(|&slot| self.messages.ready(slot));
        let left = |&slot: &u32| {
            let message = &self.messages.all[slot as usize];
            (message.size - message.next, message.key)
        };
        let Some(slot) = ready.min_by_key(left) else { return };
        if of.free <= net.now {
            self.send_next(net, slot);
        }
        let of = &mut self.messages.hosts[host as usize];
        if !of.wakes {
            of.wakes = true;
            net.wheel.push(of.free, TIMER | HOST | host);
        }
    }

    fn send_next(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let t = self.manner.of(flow);
        let message = &mut self.messages.all[slot as usize];
        let again = message.again.0 < message.again.1;
        let counter = if again { &mut message.again.0 } else { &mut message.next };
        let number = *counter;
        *counter += 1;
        let unasked = LEVELS - t.congestion.scheduled();
        let level = if number < t.initial_window { flow.level.min(unasked - 1) } else { message.level };
        let bytes = flow.bytes(t, number);
        flow.sent(number);
        self.handled.sent[Kind::Data as usize] += 1;
        self.handled.retransmitted += u64::from(again);
        let host = flow.from;
        let packet = Packet {
            flow: slot,
            seq: number,
            echo: if again { AGAIN } else { 0 },
            stamp: 0,
            rank: 1 + u32::from(level),
            link: 0,
            bytes,
            to: Destination::new(flow.to),
            kind: Kind::Data,
            marked: false,
            ect: false,
        };
        if again {
            self.tell(slot, Notice::Again);
        }
        self.occupy(net.now, host, bytes);
        let release = self.send(net, packet);
        if release > net.now {
            let flow = &mut self.flows[slot as usize];
            flow.hold(self.manner.of(flow), net.now, release);
            self.tell(slot, Notice::Held(release - net.now));
        }
    }

    /// The host's link is given so many bytes.
    fn occupy(&mut self, now: Ps, host: u32, bytes: u16) {
        let time = u64::from(bytes) * 8 * S / self.lines[host as usize];
        let free = &mut self.messages.hosts[host as usize].free;
        *free = now.max(*free) + time;
    }

    /// A packet has come to its end; returns whether its message has as well.
    fn is_over(&mut self, net: &mut Network, handle: u32, slot: u32) -> bool {
        net.pool.remove(handle);
        let flow = &mut self.flows[slot as usize];
        flow.arrives();
        let over = flow.finished();
        if over {
            self.free_if_done(slot);
        }
        over
    }

    /// Data has arrived.
    pub(super) fn take_message(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
        let slot = packet.flow;
        if self.is_over(net, handle, slot) {
            return;
        }
        let flow = &mut self.flows[slot as usize];
        let (size, had) = (flow.size(), flow.receiver.got());
        flow.receiver.receive(packet.seq);
        let got = flow.receiver.got();
        self.messages.all[slot as usize].got = got;
        if got == size && had < size {
            self.tell_received(net, slot);
        }
        self.review(net, slot, got > had);
    }

    /// The sender asks what has become of its message.
    pub(super) fn asked_for(&mut self, net: &mut Network, handle: u32, slot: u32) {
        if self.is_over(net, handle, slot) {
            return;
        }
        self.review(net, slot, false);
        let flow = &self.flows[slot as usize];
        if flow.expected() < flow.size() {
            self.say(net, slot, self.messages.all[slot as usize].asked, NO_ECHO);
        }
    }

    /// The receiver looks at a message: it says that all has come, or waits for what was granted. Then it grants. It waits anew only
    /// where something new has come, and half as long as before: copies of what waits in a long queue, taken for news, would make it
    /// ask for yet more copies, and faster than the queue can empty.
    fn review(&mut self, net: &mut Network, slot: u32, news: bool) {
        let flow = &mut self.flows[slot as usize];
        let (host, size) = (flow.to as usize, flow.size());
        let message = &mut self.messages.all[slot as usize];
        let coming = &mut self.messages.hosts[host].coming;
        if flow.expected() == size {
            if std::mem::take(&mut message.known) {
                coming.retain(|other| *other != slot);
            }
            flow.receiver.due = Ps::MAX;
            self.say(net, slot, size, DONE);
        } else {
            let knew = std::mem::replace(&mut message.known, true);
            if !knew {
                coming.push(slot);
            }
            if news || !knew {
                message.asks = message.asks.saturating_sub(1);
                let t = self.manner.of(flow);
                let wait = (t.min_rto << message.asks).min(t.max_rto);
                flow.receiver.due = net.now + wait + mix(net.now ^ u64::from(slot)) % (wait / 4 + 1);
            }
            if flow.receiver.timer_at == Ps::MAX {
                self.keep_ack_timer(net, slot);
            }
        }
        self.grant(net, host);
    }

    /// The messages that have the least left may send as many packets as a round trip holds, each on a level of its own: the lowest
    /// ones, so that a shorter message that comes has one above them (section 3.4).
    fn grant(&mut self, net: &mut Network, host: usize) {
        let mut active = std::mem::take(&mut self.messages.active);
        active.clear();
        let asks = |slot: &u32| {
            let message = &self.messages.all[*slot as usize];
            message.asked < message.size
        };
        active.extend(self.messages.hosts[host].coming.iter().copied().filter(asks));
        active.sort_unstable_by_key(|&slot| {
            let message = &self.messages.all[slot as usize];
            (message.size - message.got, message.key)
        });
        if let Some(&first) = active.first() {
            active.truncate(self.manner.of(&self.flows[first as usize]).congestion.scheduled().into());
        }
        for (place, slot) in (1..).zip(&active) {
            let message = &mut self.messages.all[*slot as usize];
            let flow = &self.flows[*slot as usize];
            let t = self.manner.of(flow);
            let window = (message.got + t.initial_window).min(flow.expected() + t.max_window).min(message.size);
            if window > message.asked {
                message.asked = window;
                message.asked_level = LEVELS - 1 - (active.len() as u8 - place);
                self.say(net, *slot, window, NO_ECHO);
            }
        }
        self.messages.active = active;
    }

    /// The receiver's word, as an ACK.
    fn say(&mut self, net: &mut Network, slot: u32, seq: u32, echo: u32) {
        let flow = &mut self.flows[slot as usize];
        flow.leaves();
        let (host, to, bytes) = (flow.to, Destination::new(flow.from), self.manner.of(flow).ack_bytes);
        self.handled.sent[Kind::Ack as usize] += 1;
        let (stamp, kind) = (self.messages.all[slot as usize].asked_level.into(), Kind::Ack);
        let word = Packet { flow: slot, seq, echo, stamp, rank: 0, link: host, bytes, to, kind, marked: false, ect: false };
        let handle = net.pool.add(word);
        self.occupy(net.now, host, bytes);
        self.offer(net, host, handle);
    }

    /// The sender has the receiver's word.
    #[inline(never)]
    pub(super) fn heed_receiver(&mut self, net: &mut Network, packet: &Packet) {
        let slot = packet.flow;
        let flow = &mut self.flows[slot as usize];
        let host = flow.from;
        let message = &mut self.messages.all[slot as usize];
        if packet.echo == DONE {
            flow.complete();
            self.messages.hosts[host as usize].out.retain(|other| *other != slot);
            self.finish(net, slot);
            return;
        }
        // A grant that it had already is the answer to a probe.
        flow.hear(self.manner.of(flow), net.now, packet.echo != NO_ECHO || packet.seq > message.granted);
        if packet.echo == NO_ECHO {
            // It may have been cut short since.
            message.granted = message.granted.max(packet.seq.min(flow.size()));
            message.level = packet.stamp as u8;
        } else if !flow.is_held(net.now) {
            message.again = (packet.echo, packet.seq.min(message.next));
        }
        self.pump(net, host);
    }

    /// What was granted has not come in time: its first gap is asked for again, or the first packet of it where the last time was in
    /// vain, unless messages that have less left hold it up.
    pub(super) fn ask_again(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let message = &mut self.messages.all[slot as usize];
        message.asks = (message.asks + 1).min(DOUBLINGS);
        let (asked, asks) = (message.asked, message.asks);
        let (from, to) = flow.receiver.gap(asked);
        let (host, most) = (flow.to as usize, self.manner.of(flow).congestion.scheduled());
        let t = self.manner.of(flow);
        // Up to a quarter later, by the time: in step with its sender's probes, what is sent again would meet them for ever.
        let wait = (t.min_rto << asks).min(t.max_rto);
        flow.receiver.due = net.now + wait + mix(net.now ^ u64::from(slot)) % (wait / 4 + 1);
        self.keep_ack_timer(net, slot);
        let left = |slot: u32| self.messages.all[slot as usize].size - self.messages.all[slot as usize].got;
        let before = self.messages.hosts[host].coming.iter().filter(|&&other| left(other) < left(slot)).count();
        if from < to && before < usize::from(most) {
            self.say(net, slot, if asks > 1 { from + 1 } else { to }, from);
        }
    }

    /// The sender has heard nothing for long.
    pub(super) fn ask_receiver(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let t = self.manner.of(flow);
        flow.back_off(t, net.now);
        let (host, bytes) = (flow.from, t.ack_bytes);
        self.occupy(net.now, host, bytes);
        self.send_bare(net, slot, Kind::Probe, false);
        self.keep_timer(net, slot);
    }
}
