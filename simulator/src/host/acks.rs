// SPDX-License-Identifier: GPL-2.0-or-later
//! Delayed ACKs, probes and connection setup: everything but the ACK of its own that most data
//! packets get.
//!
//! Nothing here is inlined, so that the common path stays short: 2 % of all instructions.

use crate::core::event::TIMER;
use crate::core::time::Ps;
use crate::host::hosts::Hosts;
use crate::host::receiver::Reply;
use crate::net::network::Network;
use crate::packet::{since, Destination, Kind, Packet, NO_ECHO};

impl Hosts {
    /// A data packet has arrived whose ACK may be delayed.
    pub(crate) fn on_data_with_delayed_ack(
        &mut self,
        net: &mut Network,
        handle: u32,
        packet: &Packet,
    ) {
        let slot = packet.flow;
        let flow = &mut self.flows[slot as usize];
        let (size, had) = (flow.size(), flow.expected());
        let [before, at_once] = flow.receiver.arrive(self.config.of(flow), net.now, packet, size);
        let complete = had < size && flow.expected() == size;
        if let Some(reply) = before {
            self.send_ack(net, slot, reply);
        }
        if let Some(Reply { cumulative, echo, stamp, marked }) = at_once {
            self.send_back(
                net,
                handle,
                &Packet { seq: cumulative, echo, stamp, marked, kind: Kind::Ack, ..*packet },
            );
            // The last packet is always acknowledged at once.
            if complete {
                self.notify_received(net, slot);
            }
            return;
        }
        net.pool.remove(handle);
        let flow = &mut self.flows[slot as usize];
        flow.arrives();
        if flow.receiver.timer_at == Ps::MAX {
            self.set_ack_timer(net, slot);
        }
    }

    /// The receiver's timer event; one that is early is rescheduled.
    #[inline(never)]
    pub(crate) fn on_ack_timer(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let receiver = &mut flow.receiver;
        receiver.timer_at = Ps::MAX;
        if receiver.due > net.now {
            self.set_ack_timer(net, slot);
        } else {
            self.on_receiver_timer(net, slot);
        }
    }

    /// Acknowledges pending packets, if any.
    pub(super) fn send_pending_ack(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if let Some(reply) = flow.receiver.expire(self.config.of(flow), net.now) {
            self.send_ack(net, slot, reply);
        }
    }

    pub(super) fn set_ack_timer(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if flow.receiver.due < Ps::MAX {
            flow.receiver.timer_at = flow.receiver.due;
            flow.timers += 1;
            net.wheel.push(flow.receiver.due, TIMER | slot);
        }
    }

    /// Sends an ACK that is not made of an arrived packet.
    pub(super) fn send_ack(
        &mut self,
        net: &mut Network,
        slot: u32,
        Reply { cumulative, echo, stamp, marked }: Reply,
    ) {
        let flow = &mut self.flows[slot as usize];
        flow.leaves();
        let (host, to) = (flow.to, Destination::new(flow.from));
        let (seq, kind, t) = (cumulative, Kind::Ack, self.config.of(flow));
        let (bytes, ect) = (t.ack_bytes, t.bare_ect(kind));
        self.handled.sent[kind as usize] += 1;
        let ack = Packet {
            flow: slot,
            seq,
            echo,
            stamp,
            rank: 0,
            link: host,
            bytes,
            to,
            kind,
            marked,
            ect,
        };
        let handle = net.pool.add(ack);
        self.offer(net, host, handle);
    }

    /// A probe has arrived; it returns as an ACK of everything received.
    pub(crate) fn answer_probe(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        let seq = flow.receiver.probed();
        self.send_back(net, handle, &Packet { seq, echo: NO_ECHO, kind: Kind::Ack, ..*packet });
    }

    /// Opens a connection with a SYN. The first data is the last ACK of the handshake.
    #[inline(never)]
    pub(crate) fn connect(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        flow.connect(self.config.of(flow), net.now);
        self.send_syn(net, slot);
    }

    #[inline(never)]
    pub(crate) fn send_syn(&mut self, net: &mut Network, slot: u32) {
        let capable = self.config.of(&self.flows[slot as usize]).congestion.ecn_capable();
        let release = self.send_bare(net, slot, Kind::Syn, capable);
        if release > net.now {
            let flow = &mut self.flows[slot as usize];
            flow.hold(self.config.of(flow), net.now, release);
        }
        self.set_timer_event(net, slot);
    }

    /// A SYN has arrived, possibly again; it returns as a SYN-ACK.
    #[inline(never)]
    pub(crate) fn accept(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
        self.send_back(net, handle, &Packet { kind: Kind::SynAck, ..*packet });
    }

    #[inline(never)]
    pub(crate) fn connected(&mut self, net: &mut Network, packet: &Packet) {
        let slot = packet.flow;
        let flow = &mut self.flows[slot as usize];
        flow.arrives();
        if flow.connected(self.config.of(flow), net.now, since(packet.stamp, net.now)) {
            self.send_window(net, slot);
        } else {
            self.free_if_done(slot);
        }
    }
}
