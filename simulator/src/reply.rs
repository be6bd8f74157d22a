// SPDX-License-Identifier: GPL-2.0-or-later
//! What hosts do where not every data packet is acknowledged alone, and to set up a connection.

use crate::engine::{Simulation, TIMER};
use crate::packet::{since, Kind, Packet, NO_ECHO};
use crate::receiver::Reply;
use crate::time::Ps;

impl Simulation {
    /// A data packet has arrived that may wait for its ACK.
    #[inline(never)]
    pub(crate) fn answer_some(&mut self, handle: u32, packet: &Packet) {
        let slot = packet.flow;
        let flow = &mut self.flows[slot as usize];
        let size = flow.size();
        let [before, at_once] = flow.receiver.arrive(&self.scheme.transport, self.now, packet, size);
        if let Some(reply) = before {
            self.send_ack(slot, reply);
        }
        if let Some(Reply { cumulative, echo, stamp, marked }) = at_once {
            self.turn(handle, &Packet { seq: cumulative, echo, stamp, marked, kind: Kind::Ack, ..*packet });
            return;
        }
        self.pool.remove(handle);
        let flow = &mut self.flows[slot as usize];
        flow.in_network -= 1;
        if flow.receiver.timer_at == Ps::MAX {
            self.keep_ack_timer(slot);
        }
    }

    /// The receiver's timer event; one that comes too early looks again later.
    #[inline(never)]
    pub(crate) fn acknowledge_late(&mut self, slot: u32) {
        let receiver = &mut self.flows[slot as usize].receiver;
        receiver.timer_at = Ps::MAX;
        if receiver.due > self.now {
            self.keep_ack_timer(slot);
        } else if let Some(reply) = receiver.expire() {
            self.send_ack(slot, reply);
        }
    }

    fn keep_ack_timer(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if flow.receiver.due < Ps::MAX {
            flow.receiver.timer_at = flow.receiver.due;
            flow.timers += 1;
            self.wheel.push(flow.receiver.due, TIMER | slot);
        }
    }

    /// An ACK of its own, for packets that have waited for it.
    fn send_ack(&mut self, slot: u32, Reply { cumulative, echo, stamp, marked }: Reply) {
        let flow = &mut self.flows[slot as usize];
        flow.in_network += 1;
        let (host, to) = (u32::from(flow.to), flow.from);
        let bytes = self.scheme.transport.ack_bytes;
        let (seq, kind) = (cumulative, Kind::Ack);
        self.tally.sent[kind as usize] += 1;
        let ack = Packet { flow: slot, seq, echo, stamp, rank: 0, link: 0, bytes, to, kind, marked, ect: false };
        let handle = self.pool.add(ack);
        self.offer(host, handle);
    }

    /// A probe has arrived and goes back as an ACK of all that has.
    #[inline(never)]
    pub(crate) fn answer_probe(&mut self, handle: u32, packet: &Packet) {
        let seq = self.flows[packet.flow as usize].receiver.probed();
        self.turn(handle, &Packet { seq, echo: NO_ECHO, kind: Kind::Ack, ..*packet });
    }

    /// A new connection begins with a SYN. The last ACK of the handshake is the first data.
    #[inline(never)]
    pub(crate) fn connect(&mut self, slot: u32) {
        self.flows[slot as usize].connect(&self.scheme.transport, self.now);
        self.send_syn(slot);
    }

    #[inline(never)]
    pub(crate) fn send_syn(&mut self, slot: u32) {
        let capable = self.scheme.transport.congestion.ecn_capable();
        let release = self.send_bare(slot, Kind::Syn, capable);
        if release > self.now {
            self.flows[slot as usize].hold(&self.scheme.transport, self.now, release);
        }
        self.keep_timer(slot);
    }

    /// A SYN has arrived, for the first time or again, and goes back as a SYN-ACK.
    #[inline(never)]
    pub(crate) fn accept(&mut self, handle: u32, packet: &Packet) {
        self.turn(handle, &Packet { kind: Kind::SynAck, ..*packet });
    }

    #[inline(never)]
    pub(crate) fn connected(&mut self, packet: &Packet) {
        let slot = packet.flow;
        let flow = &mut self.flows[slot as usize];
        flow.in_network -= 1;
        if flow.connected(since(packet.stamp, self.now)) {
            self.send_window(slot);
        } else {
            self.free_if_done(slot);
        }
    }
}
