// SPDX-License-Identifier: GPL-2.0-or-later
//! What hosts do where not every data packet is acknowledged alone, and to set up a connection. Nothing here is inlined, so that
//! the way of a packet with an ACK of its own, most of what is simulated, stays short: 2 % of all instructions.

use crate::core::event::TIMER;
use crate::core::time::Ps;
use crate::host::hosts::Hosts;
use crate::host::receiver::Reply;
use crate::net::network::Network;
use crate::packet::{since, Destination, Kind, Packet, NO_ECHO};

impl Hosts {
    /// A data packet has arrived that may wait for its ACK.
    pub(crate) fn answer_some(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
        let slot = packet.flow;
        let flow = &mut self.flows[slot as usize];
        let (size, had) = (flow.size(), flow.expected());
        let [before, at_once] = flow.receiver.arrive(self.manner.of(flow), net.now, packet, size);
        let complete = had < size && flow.expected() == size;
        if let Some(reply) = before {
            self.send_ack(net, slot, reply);
        }
        if let Some(Reply { cumulative, echo, stamp, marked }) = at_once {
            self.turn(net, handle, &Packet { seq: cumulative, echo, stamp, marked, kind: Kind::Ack, ..*packet });
            // The last packet is always acknowledged at once.
            if complete {
                self.tell_received(net, slot);
            }
            return;
        }
        net.pool.remove(handle);
        let flow = &mut self.flows[slot as usize];
        flow.arrives();
        if flow.receiver.timer_at == Ps::MAX {
            self.keep_ack_timer(net, slot);
        }
    }

    /// The receiver's timer event; one that comes too early looks again later.
    #[inline(never)]
    pub(crate) fn acknowledge_late(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let receiver = &mut flow.receiver;
        receiver.timer_at = Ps::MAX;
        if receiver.due > net.now {
            self.keep_ack_timer(net, slot);
        } else {
            self.on_receiver_timer(net, slot);
        }
    }

    /// Acknowledges what is pending, if anything is.
    pub(super) fn send_pending(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if let Some(reply) = flow.receiver.expire(self.manner.of(flow), net.now) {
            self.send_ack(net, slot, reply);
        }
    }

    pub(super) fn keep_ack_timer(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if flow.receiver.due < Ps::MAX {
            flow.receiver.timer_at = flow.receiver.due;
            flow.timers += 1;
            net.wheel.push(flow.receiver.due, TIMER | slot);
        }
    }

    /// An ACK of its own, for packets that have waited for it.
    fn send_ack(&mut self, net: &mut Network, slot: u32, Reply { cumulative, echo, stamp, marked }: Reply) {
        let flow = &mut self.flows[slot as usize];
        flow.leaves();
        let (host, to) = (flow.to, Destination::new(flow.from));
        let (seq, kind, t) = (cumulative, Kind::Ack, self.manner.of(flow));
        let (bytes, ect) = (t.ack_bytes, t.bare_ect(kind));
        self.handled.sent[kind as usize] += 1;
        let ack = Packet { flow: slot, seq, echo, stamp, rank: 0, link: host, bytes, to, kind, marked, ect };
        let handle = net.pool.add(ack);
        self.offer(net, host, handle);
    }

    /// A probe has arrived and goes back as an ACK of all that has.
    pub(crate) fn answer_probe(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        let seq = flow.receiver.probed();
        self.turn(net, handle, &Packet { seq, echo: NO_ECHO, kind: Kind::Ack, ..*packet });
    }

    /// A new connection begins with a SYN. The last ACK of the handshake is the first data.
    #[inline(never)]
    pub(crate) fn connect(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        flow.connect(self.manner.of(flow), net.now);
        self.send_syn(net, slot);
    }

    #[inline(never)]
    pub(crate) fn send_syn(&mut self, net: &mut Network, slot: u32) {
        let capable = self.manner.of(&self.flows[slot as usize]).congestion.ecn_capable();
        let release = self.send_bare(net, slot, Kind::Syn, capable);
        if release > net.now {
            let flow = &mut self.flows[slot as usize];
            flow.hold(self.manner.of(flow), net.now, release);
        }
        self.keep_timer(net, slot);
    }

    /// A SYN has arrived, for the first time or again, and goes back as a SYN-ACK.
    #[inline(never)]
    pub(crate) fn accept(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
        self.turn(net, handle, &Packet { kind: Kind::SynAck, ..*packet });
    }

    #[inline(never)]
    pub(crate) fn connected(&mut self, net: &mut Network, packet: &Packet) {
        let slot = packet.flow;
        let flow = &mut self.flows[slot as usize];
        flow.arrives();
        if flow.connected(self.manner.of(flow), net.now, since(packet.stamp, net.now)) {
            self.send_window(net, slot);
        } else {
            self.free_if_done(slot);
        }
    }
}
