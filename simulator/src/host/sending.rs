// SPDX-License-Identifier: GPL-2.0-or-later
//! What hosts do in a simulation: flows start, send, are acknowledged and end.

use std::collections::VecDeque;

use crate::core::event::{START, TIMER};
use crate::core::time::Ps;
use crate::host::flow::{Ack, Expired, Flow, Task};
use crate::host::hosts::{Hosts, Notice};
use crate::host::limiter::{flow_may_send, Limiter};
use crate::host::path::Path;
use crate::host::transport::{Rank, Transport};
use crate::net::network::Network;
use crate::packet::{since, Kind, Packet, AGAIN, CWR, NO_ECHO};

fn packet(slot: u32, number: u32, kind: Kind, bytes: u16, flow: &Flow, rank: Rank) -> Packet {
    Packet {
        flow: slot,
        seq: number,
        echo: 0,
        stamp: 0,
        rank: match rank {
            Rank::Level => 1 + u32::from(flow.level),
            Rank::Remaining => flow.remaining(),
        },
        link: 0,
        bytes,
        to: flow.to,
        kind,
        marked: false,
        ect: false,
    }
}

impl Hosts {
    /// A data packet has arrived; where each is acknowledged alone, it becomes its own ACK.
    #[inline]
    pub(crate) fn answer(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
        self.handled.marked += u64::from(packet.marked);
        let t = &self.manner.transport;
        if !t.answers_each() {
            self.answer_some(net, handle, packet);
            return;
        }
        let flow = &mut self.flows[packet.flow as usize];
        let before = flow.expected();
        let (seq, echo) = (flow.receiver.receive(packet.seq), packet.seq);
        let complete = flow.is_all(seq) && seq != before;
        self.handled.sent[Kind::Ack as usize] += 1;
        let (to, kind, ect) = (flow.from, Kind::Ack, t.bare_ect(Kind::Ack));
        *net.pool.get_mut(handle) = Packet { seq, echo, rank: 0, bytes: t.ack_bytes, to, kind, ect, ..*packet };
        self.offer(net, u32::from(packet.to), handle);
        if complete {
            self.tell_received(net, packet.flow);
        }
    }

    /// A packet that has arrived goes back as the answer to it.
    pub(crate) fn turn(&mut self, net: &mut Network, handle: u32, answer: &Packet) {
        self.handled.sent[answer.kind as usize] += 1;
        let (host, to) = (u32::from(answer.to), self.flows[answer.flow as usize].from);
        let (t, rank) = (&self.manner.transport, 0);
        *net.pool.get_mut(handle) = Packet { rank, bytes: t.ack_bytes, to, ect: t.bare_ect(answer.kind), ..*answer };
        self.offer(net, host, handle);
    }

    #[inline]
    pub(crate) fn acknowledge(&mut self, net: &mut Network, packet: &Packet) {
        let slot = packet.flow;
        let flow = &mut self.flows[slot as usize];
        flow.in_network -= 1;
        if flow.finished() {
            self.free_if_done(slot);
            return;
        }
        let ack = Ack {
            cumulative: packet.seq,
            echo: (packet.echo != NO_ECHO).then_some(packet.echo),
            marked: packet.marked,
            round_trip: since(packet.stamp, net.now),
        };
        flow.on_packet(&self.manner.transport, net.now, ack);
        if flow.finished() {
            self.finish(net, slot);
        } else {
            self.send_window(net, slot);
        }
    }

    pub(crate) fn start_flows(&mut self, net: &mut Network) {
        while let Some(record) = self.records.get(self.started) {
            if record.start > net.now {
                net.wheel.push(record.start, START);
                return;
            }
            let task = Task {
                record: self.started as u32,
                key: self.started as u32,
                from: record.src,
                to: record.dst,
                packets: record.packets,
                level: self.manner.level(record.packets),
                start: record.start,
                last: self.manner.transport.data_bytes,
                cap: u16::MAX,
            };
            self.started += 1;
            self.start_flow(net, task);
        }
    }

    /// Returns its slot.
    pub(crate) fn start_flow(&mut self, net: &mut Network, task: Task) -> u32 {
        let transport = &self.manner.transport;
        let idle = self.paths.get_mut(&(task.from, task.to)).and_then(VecDeque::pop_front);
        let new = idle.is_none();
        let path = match idle {
            Some(mut path) => {
                path.restart(transport, net.now);
                path
            }
            None => Path::new(transport),
        };
        let flow = Flow::new(transport, task, path);
        let slot = if let Some(slot) = self.free_slots.pop() {
            self.flows[slot as usize] = flow;
            slot
        } else {
            self.flows.push(flow);
            self.flows.len() as u32 - 1
        };
        if new && self.manner.transport.handshake.is_some() {
            self.connect(net, slot);
        } else {
            self.send_window(net, slot);
        }
        slot
    }

    pub(crate) fn finish(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let (record, packets) = (flow.record, flow.expected());
        let idle = self.paths.entry((flow.from, flow.to)).or_default();
        if (idle.len() as u64) < u64::from(self.manner.transport.connections) {
            flow.path.used = net.now;
            idle.push_back(flow.path.clone());
        }
        match self.records.get_mut(record as usize) {
            Some(result) => result.finish = Some(net.now),
            None => self.sockets.acknowledged(net, record - self.records.len() as u32, packets),
        }
        self.free_if_done(slot);
    }

    /// Stray packets and timers of a flow that has ended still name its slot.
    pub(crate) fn free_if_done(&mut self, slot: u32) {
        let flow = &self.flows[slot as usize];
        if flow.finished() && flow.in_network == 0 && flow.timers == 0 {
            self.free_slots.push(slot);
        }
    }

    /// Sends what the flow's window lets go, and keeps its timer.
    pub(crate) fn send_window(&mut self, net: &mut Network, slot: u32) {
        while let Some(number) = self.flows[slot as usize].next(&self.manner.transport, net.now) {
            self.send_data(net, slot, number);
        }
        self.keep_timer(net, slot);
    }

    /// A timer event that comes too early looks again later; only one that would come too late is doubled.
    pub(crate) fn keep_timer(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if flow.deadline() < flow.timer_at {
            flow.timer_at = flow.deadline();
            flow.timers += 1;
            net.wheel.push(flow.timer_at, TIMER | slot);
        }
    }

    fn send_data(&mut self, net: &mut Network, slot: u32, number: u32) {
        let flow = &mut self.flows[slot as usize];
        let bytes = flow.bytes(&self.manner.transport, number);
        let again = flow.was_sent(number);
        self.handled.sent[Kind::Data as usize] += 1;
        self.handled.retransmitted += u64::from(again);
        flow.sent(number);
        if again {
            self.tell(slot, Notice::Again);
        }
        let flow = &mut self.flows[slot as usize];
        let echo = match again {
            true => AGAIN,
            false if flow.take_reduced() => CWR,
            false => 0,
        };
        if let Limiter::PerFlow { epoch, ref budgets } = self.manner.limiter {
            if !flow_may_send(flow, net.now, u64::from(bytes), epoch, budgets) {
                self.handled.limited[Kind::Data as usize] += 1;
                self.tell(slot, Notice::Limited);
                return;
            }
        }
        let ect = self.manner.transport.congestion.ecn_capable() && (!again || self.manner.transport.ect_again);
        let mut data = packet(slot, number, Kind::Data, bytes, flow, self.manner.transport.rank);
        (data.echo, data.ect) = (echo, ect);
        let release = self.send(net, data);
        if release > net.now {
            self.flows[slot as usize].hold(&self.manner.transport, net.now, release);
            self.tell(slot, Notice::Held(release - net.now));
        }
    }

    /// Sends a packet without data.
    pub(crate) fn send_bare(&mut self, net: &mut Network, slot: u32, kind: Kind, marked: bool) -> Ps {
        self.handled.sent[kind as usize] += 1;
        let Transport { ack_bytes, rank, .. } = self.manner.transport;
        let bare = packet(slot, 0, kind, ack_bytes, &self.flows[slot as usize], rank);
        let ect = self.manner.transport.bare_ect(kind);
        self.send(net, Packet { marked, ect, ..bare })
    }

    /// Hands a flow's packet to its host's limiter; returns when it is let go.
    #[inline]
    fn send(&mut self, net: &mut Network, packet: Packet) -> Ps {
        let flow = &mut self.flows[packet.flow as usize];
        let (level, from) = (flow.level, flow.from);
        flow.in_network += 1;
        let handle = net.pool.add(packet);
        self.admit(net, from, level, handle)
    }

    pub(crate) fn timer(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        flow.timers -= 1;
        if flow.receiver.timer_at == net.now {
            self.acknowledge_late(net, slot);
        }
        let flow = &mut self.flows[slot as usize];
        if flow.timer_at != net.now || flow.finished() {
            self.free_if_done(slot);
            return;
        }
        flow.timer_at = Ps::MAX;
        if flow.deadline() > net.now {
            self.keep_timer(net, slot);
            return;
        }
        self.handled.timeouts += 1;
        self.tell(slot, Notice::TimedOut);
        match self.flows[slot as usize].on_timer(&self.manner.transport, net.now) {
            Expired::Resend => self.send_window(net, slot),
            Expired::Connect => self.send_syn(net, slot),
            Expired::Probe => {
                self.send_bare(net, slot, Kind::Probe, false);
                self.keep_timer(net, slot);
            }
        }
    }
}
