// SPDX-License-Identifier: GPL-2.0-or-later
//! NDP (Handley et al., SIGCOMM 2017): the first window leaves at once, and then receivers pull one
//! packet for each that arrives, whole or trimmed, at the rate of their link.
//!
//! Control packets are ACKs whose `echo` says which they are. A trimmed packet is answered by a
//! NACK at once, and by a pull in its turn; a packet that a NACK names leaves before new ones. Left
//! out: an ACK for each whole packet, which only frees the sender's memory; the choice of paths,
//! which switches spray; and returned headers. A header that was dropped is asked for again when
//! the sender, which has heard nothing, probes.

use crate::core::event::{HOST, PULL, TIMER};
use crate::core::time::S;
use crate::host::flow_events::packet;
use crate::host::hosts::{Hosts, Notice};
use crate::host::ndp_pulls::{Pulled, Puller};
use crate::host::receiver::Reply;
use crate::host::transport::Rank;
use crate::net::network::Network;
use crate::packet::{Kind, Packet, AGAIN, NO_ECHO};

/// In `echo` of an ACK: all has arrived. `NO_ECHO` is a pull, whose `seq` counts all packets that
/// may have left; any other number is a NACK, or with a `seq` above it asks for the packets up to
/// that again.
const DONE: u32 = NO_ECHO - 1;

impl Hosts {
    /// Starts a flow.
    pub(super) fn begin_pulled(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let t = self.config.of(flow);
        flow.hear(t, net.now, true);
        let window = t.initial_window.min(flow.size());
        if self.pulls.hosts.is_empty() {
            self.pulls.hosts = vec![Puller::default(); self.lines.len()];
        }
        if self.pulls.flows.len() <= slot as usize {
            self.pulls.flows.resize_with(slot as usize + 1, Pulled::default);
        }
        self.pulls.flows[slot as usize] =
            Pulled { credit: window, granted: window, last_pull: window, ..Pulled::default() };
        self.send_credited(net, slot);
        self.set_timer_event(net, slot);
    }

    /// Sends what the sender has credit for.
    fn send_credited(&mut self, net: &mut Network, slot: u32) {
        loop {
            let size = self.flows[slot as usize].size();
            let of = &mut self.pulls.flows[slot as usize];
            if of.used >= of.credit + of.extra {
                return;
            }
            let again = of.again.pop_front();
            let number = match again {
                Some(number) => number,
                None if of.next < size => of.next,
                None => return,
            };
            of.next = of.next.max(number + 1);
            of.used += 1;
            self.send_pulled(net, slot, number, again.is_some());
        }
    }

    fn send_pulled(&mut self, net: &mut Network, slot: u32, number: u32, again: bool) {
        let flow = &mut self.flows[slot as usize];
        let t = self.config.of(flow);
        flow.sent(number);
        self.handled.sent[Kind::Data as usize] += 1;
        self.handled.retransmitted += u64::from(again);
        let bytes = flow.bytes(t, number);
        let packet = Packet {
            echo: if again { AGAIN } else { 0 },
            ..packet(slot, number, Kind::Data, bytes, flow, Rank::Level)
        };
        if again {
            self.note(slot, Notice::Again);
        }
        self.send_or_hold(net, packet);
    }

    /// Data has arrived, whole or trimmed. One too far ahead counts as trimmed.
    pub(super) fn on_pulled_data(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
        let slot = packet.flow;
        if self.is_over(net, handle, slot) {
            return;
        }
        let flow = &mut self.flows[slot as usize];
        let t = self.config.of(flow);
        let (host, size, had) = (flow.to, flow.size(), flow.receiver.got());
        let far = packet.seq >= flow.expected().saturating_add(t.max_window);
        let trimmed = far || packet.bytes < flow.bytes(t, packet.seq);
        if !trimmed {
            flow.receiver.receive(packet.seq);
        }
        let (got, complete) = (flow.receiver.got(), flow.expected() == size);
        if got == size && had < size {
            self.notify_received(net, slot);
        }
        if complete {
            self.pulls.hosts[host as usize].forget(slot);
            self.send_word(net, slot, size, DONE);
            return;
        }
        if trimmed {
            self.pulls.flows[slot as usize].trimmed += 1;
            self.send_word(net, slot, 0, packet.seq);
        }
        if self.ahead(slot).is_some() {
            self.want_credit(net, slot, trimmed);
            return;
        }
        let of = &mut self.pulls.flows[slot as usize];
        if of.granted < size + of.trimmed {
            of.granted += 1;
            self.pulls.hosts[host as usize].queue.push_back(slot);
            self.schedule_pull(net, host);
        }
    }

    pub(super) fn schedule_pull(&mut self, net: &mut Network, host: u32) {
        let of = &mut self.pulls.hosts[host as usize];
        if !of.waits && !(of.queue.is_empty() && of.first.is_empty()) {
            of.waits = true;
            net.wheel.push(of.free.max(net.now), TIMER | HOST | PULL | host);
        }
    }

    /// A host may pull a packet.
    pub(super) fn pull(&mut self, net: &mut Network, host: u32) {
        let packet = u64::from(self.data_bytes()) * 8 * S / self.lines[host as usize];
        self.pulls.hosts[host as usize].waits = false;
        let Some(slot) = self.next_credited(host) else { return };
        self.pulls.hosts[host as usize].free = net.now + packet;
        let flow = &mut self.pulls.flows[slot as usize];
        flow.last_pull += 1;
        let count = flow.last_pull;
        self.send_word(net, slot, count, NO_ECHO);
        self.schedule_pull(net, host);
    }

    /// Sends a control packet to the sender, as an ACK.
    fn send_word(&mut self, net: &mut Network, slot: u32, seq: u32, echo: u32) {
        self.send_ack(net, slot, Reply { cumulative: seq, echo, stamp: 0, marked: false });
    }

    /// A control packet has arrived at the sender.
    #[inline(never)]
    pub(super) fn on_pulled_control(&mut self, net: &mut Network, packet: &Packet) {
        let slot = packet.flow;
        let flow = &mut self.flows[slot as usize];
        if packet.echo == DONE {
            flow.complete();
            self.finish(net, slot);
            return;
        }
        let of = &mut self.pulls.flows[slot as usize];
        // An old count is the answer to a probe.
        flow.hear(self.config.of(flow), net.now, packet.echo != NO_ECHO || packet.seq > of.credit);
        if packet.echo == NO_ECHO {
            of.credit = of.credit.max(packet.seq);
        } else if packet.seq == 0 {
            of.again.push_back(packet.echo);
        } else {
            let asked = packet.echo..packet.seq.min(of.next);
            of.extra += asked.len() as u32;
            of.again.extend(asked);
        }
        self.send_credited(net, slot);
    }

    /// A sender's probe has arrived: what is missing and not to be pulled was lost.
    pub(super) fn on_pulled_probe(&mut self, net: &mut Network, handle: u32, slot: u32) {
        if self.is_over(net, handle, slot) {
            return;
        }
        let flow = &self.flows[slot as usize];
        let (size, window) = (flow.size(), self.config.of(flow).initial_window);
        let of = &self.pulls.flows[slot as usize];
        if flow.expected() == size {
            self.send_word(net, slot, size, DONE);
        } else if self.pulls.hosts[flow.to as usize].will_pull(slot) {
            let count = of.last_pull;
            self.send_word(net, slot, count, NO_ECHO);
        } else {
            let (from, to) = flow.receiver.gap(size.min(flow.expected() + window));
            self.send_word(net, slot, to, from);
        }
    }

    /// The sender has heard nothing for long.
    pub(super) fn send_pulled_probe(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        flow.back_off(self.config.of(flow), net.now);
        self.send_bare(net, slot, Kind::Probe, false);
        self.set_timer_event(net, slot);
    }
}
