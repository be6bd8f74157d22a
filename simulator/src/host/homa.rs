// SPDX-License-Identifier: GPL-2.0-or-later
//! Homa (Montazeri et al., SIGCOMM 2018): receivers grant, senders send the message with the least
//! left first.
//!
//! The first packets of a message, as many as a round trip holds, are unscheduled. The receiver
//! grants the others, so many at a time, to the messages with the least left, and chooses their
//! level. Grants, RESENDs and the end of a message are ACKs whose `echo` says which they are. Left
//! out: levels and the sizes that share them are settings, not measured; there is no BUSY, because
//! a sender that hears nothing asks with a probe.

use crate::core::event::{HOST, TIMER};
use crate::core::rng::mix;
use crate::core::time::{Ps, S};
use crate::host::flow_events::packet;
use crate::host::homa_messages::{Host, Message};
use crate::host::hosts::{Hosts, Notice};
use crate::host::receiver::Reply;
use crate::host::transport::Rank;
use crate::net::network::Network;
use crate::packet::{Kind, Packet, AGAIN, NO_ECHO};

/// In `echo` of an ACK: the whole message has arrived. `NO_ECHO` is a grant; any other number is a
/// RESEND of the packets from `echo` up to, but without, `seq`.
const DONE: u32 = NO_ECHO - 1;
/// The most doublings of a receiver's wait for retransmissions.
const DOUBLINGS: u32 = 16;
/// Levels of 802.1Q.
const LEVELS: u8 = 8;

impl Hosts {
    /// Starts a message.
    pub(super) fn begin_message(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let t = self.config.of(flow);
        let (host, size, key) = (flow.from as usize, flow.size(), flow.key);
        let granted = t.initial_window.min(size);
        flow.hear(t, net.now, true);
        if self.messages.hosts.is_empty() {
            self.messages.hosts = vec![Host::default(); self.lines.len()];
        }
        if self.messages.all.len() <= slot as usize {
            self.messages.all.resize(slot as usize + 1, Message::default());
        }
        self.messages.all[slot as usize] =
            Message { size, key, granted, grant_sent: granted, ..Message::default() };
        self.messages.hosts[host].out.push(slot);
        self.send_shortest(net, host as u32);
        self.set_timer_event(net, slot);
    }

    /// The host's link may be free.
    pub(super) fn wake(&mut self, net: &mut Network, host: u32) {
        self.messages.hosts[host as usize].wakes = false;
        self.send_shortest(net, host);
    }

    /// Sends a packet of the message with the least left, once the link is free.
    fn send_shortest(&mut self, net: &mut Network, host: u32) {
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
        let t = self.config.of(flow);
        let message = &mut self.messages.all[slot as usize];
        let resend = message.resend.0 < message.resend.1;
        let counter = if resend { &mut message.resend.0 } else { &mut message.next };
        let number = *counter;
        *counter += 1;
        let unasked = LEVELS - t.congestion.scheduled();
        let level =
            if number < t.initial_window { flow.level.min(unasked - 1) } else { message.level };
        let bytes = flow.bytes(t, number);
        flow.sent(number);
        self.handled.sent[Kind::Data as usize] += 1;
        self.handled.retransmitted += u64::from(resend);
        let host = flow.from;
        let packet = Packet {
            echo: if resend { AGAIN } else { 0 },
            rank: 1 + u32::from(level),
            ..packet(slot, number, Kind::Data, bytes, flow, Rank::Level)
        };
        if resend {
            self.note(slot, Notice::Again);
        }
        self.occupy(net.now, host, bytes);
        self.send_or_hold(net, packet);
    }

    /// Accounts for bytes given to the host's link.
    fn occupy(&mut self, now: Ps, host: u32, bytes: u16) {
        let time = u64::from(bytes) * 8 * S / self.lines[host as usize];
        let free = &mut self.messages.hosts[host as usize].free;
        *free = now.max(*free) + time;
    }

    /// A packet has left the network; returns whether its message is finished.
    pub(super) fn is_over(&mut self, net: &mut Network, handle: u32, slot: u32) -> bool {
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
    pub(super) fn on_homa_data(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
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
            self.notify_received(net, slot);
        }
        self.update_receiver(net, slot, got > had);
    }

    /// A sender's probe has arrived.
    pub(super) fn on_homa_probe(&mut self, net: &mut Network, handle: u32, slot: u32) {
        if self.is_over(net, handle, slot) {
            return;
        }
        self.update_receiver(net, slot, false);
        let flow = &self.flows[slot as usize];
        if flow.expected() < flow.size() {
            self.send_control(net, slot, self.messages.all[slot as usize].grant_sent, NO_ECHO);
        }
    }

    /// Updates the receiver's view of a message: confirms a complete message, or waits for what was
    /// granted. Then it grants. It restarts the wait only for news, and halves it: otherwise copies
    /// that wait in a long queue would count as news and trigger requests for more copies, faster
    /// than the queue can drain.
    fn update_receiver(&mut self, net: &mut Network, slot: u32, news: bool) {
        let flow = &mut self.flows[slot as usize];
        let (host, size) = (flow.to as usize, flow.size());
        let message = &mut self.messages.all[slot as usize];
        let coming = &mut self.messages.hosts[host].coming;
        if flow.expected() == size {
            if std::mem::take(&mut message.in_progress) {
                coming.retain(|other| *other != slot);
            }
            flow.receiver.due = Ps::MAX;
            self.send_control(net, slot, size, DONE);
        } else {
            let was_in_progress = std::mem::replace(&mut message.in_progress, true);
            if !was_in_progress {
                coming.push(slot);
            }
            if news || !was_in_progress {
                message.resends = message.resends.saturating_sub(1);
                let t = self.config.of(flow);
                let wait = (t.min_rto << message.resends).min(t.max_rto);
                flow.receiver.due =
                    net.now + wait + mix(net.now ^ u64::from(slot)) % (wait / 4 + 1);
            }
            if flow.receiver.timer_at == Ps::MAX {
                self.set_ack_timer(net, slot);
            }
        }
        self.grant(net, host);
    }

    /// Grants to the messages with the least left as many packets as a round trip holds, each
    /// message on a level of its own. The levels are the lowest ones, so that a shorter message
    /// that arrives has one above them (section 3.4).
    fn grant(&mut self, net: &mut Network, host: usize) {
        let mut active = std::mem::take(&mut self.messages.active);
        active.clear();
        let resends = |slot: &u32| {
            let message = &self.messages.all[*slot as usize];
            message.grant_sent < message.size
        };
        active.extend(self.messages.hosts[host].coming.iter().copied().filter(resends));
        active.sort_unstable_by_key(|&slot| {
            let message = &self.messages.all[slot as usize];
            (message.size - message.got, message.key)
        });
        if let Some(&first) = active.first() {
            active.truncate(
                self.config.of(&self.flows[first as usize]).congestion.scheduled().into(),
            );
        }
        for (place, slot) in (1..).zip(&active) {
            let message = &mut self.messages.all[*slot as usize];
            let flow = &self.flows[*slot as usize];
            let t = self.config.of(flow);
            let window = (message.got + t.initial_window)
                .min(flow.expected() + t.max_window)
                .min(message.size);
            if window > message.grant_sent {
                message.grant_sent = window;
                message.grant_sent_level = LEVELS - 1 - (active.len() as u8 - place);
                self.send_control(net, *slot, window, NO_ECHO);
            }
        }
        self.messages.active = active;
    }

    /// Sends a control packet to the sender, as an ACK.
    fn send_control(&mut self, net: &mut Network, slot: u32, seq: u32, echo: u32) {
        let flow = &self.flows[slot as usize];
        self.occupy(net.now, flow.to, self.config.of(flow).ack_bytes);
        let stamp = self.messages.all[slot as usize].grant_sent_level.into();
        self.send_ack(net, slot, Reply { cumulative: seq, echo, stamp, marked: false });
    }

    /// A control packet has arrived at the sender.
    #[inline(never)]
    pub(super) fn on_homa_control(&mut self, net: &mut Network, packet: &Packet) {
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
        // An old grant is the answer to a probe.
        flow.hear(
            self.config.of(flow),
            net.now,
            packet.echo != NO_ECHO || packet.seq > message.granted,
        );
        if packet.echo == NO_ECHO {
            // The message may have been cut short since.
            message.granted = message.granted.max(packet.seq.min(flow.size()));
            message.level = packet.stamp as u8;
        } else if !flow.is_held(net.now) {
            message.resend = (packet.echo, packet.seq.min(message.next));
        }
        self.send_shortest(net, host);
    }

    /// Granted packets are overdue: sends a RESEND for the first gap, or only its first packet if
    /// the last one was in vain. Messages with less left may be the reason for the delay; then it
    /// sends nothing.
    pub(super) fn send_resend(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let message = &mut self.messages.all[slot as usize];
        message.resends = (message.resends + 1).min(DOUBLINGS);
        let (grant_sent, resends) = (message.grant_sent, message.resends);
        let (from, to) = flow.receiver.gap(grant_sent);
        let (host, most) = (flow.to as usize, self.config.of(flow).congestion.scheduled());
        let t = self.config.of(flow);
        // Plus up to a quarter, by the time: in step with the sender's probes, retransmissions
        // would collide with them for ever.
        let wait = (t.min_rto << resends).min(t.max_rto);
        flow.receiver.due = net.now + wait + mix(net.now ^ u64::from(slot)) % (wait / 4 + 1);
        self.set_ack_timer(net, slot);
        let left = |slot: u32| {
            self.messages.all[slot as usize].size - self.messages.all[slot as usize].got
        };
        let before = self.messages.hosts[host]
            .coming
            .iter()
            .filter(|&&other| left(other) < left(slot))
            .count();
        if from < to && before < usize::from(most) {
            self.send_control(net, slot, if resends > 1 { from + 1 } else { to }, from);
        }
    }

    /// The sender has heard nothing for long: it sends a probe.
    pub(super) fn send_homa_probe(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let t = self.config.of(flow);
        flow.back_off(t, net.now);
        let (host, bytes) = (flow.from, t.ack_bytes);
        self.occupy(net.now, host, bytes);
        self.send_bare(net, slot, Kind::Probe, false);
        self.set_timer_event(net, slot);
    }
}
