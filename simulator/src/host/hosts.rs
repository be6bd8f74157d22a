// SPDX-License-Identifier: GPL-2.0-or-later
//! What hosts do in a simulation: flows start, send, are acknowledged and end.

use std::collections::VecDeque;

use crate::core::time::Ps;
use crate::host::flow::{Ack, Expired, Flow, Task};
use crate::host::limiter::{flow_may_send, Limiter};
use crate::host::path::Path;
use crate::packet::{since, Kind, Packet, AGAIN, CWR, NO_ECHO};
use crate::sim::engine::{Simulation, START, TIMER};
use crate::sim::scheme::{Rank, Transport};

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

impl Simulation {
    /// A data packet has arrived; where each is acknowledged alone, it becomes its own ACK.
    #[inline]
    pub(crate) fn answer(&mut self, handle: u32, packet: &Packet) {
        self.tally.marked += u64::from(packet.marked);
        let t = &self.scheme.transport;
        if !t.answers_each() {
            self.answer_some(handle, packet);
            return;
        }
        let flow = &mut self.flows[packet.flow as usize];
        let before = flow.expected();
        let (seq, echo) = (flow.receiver.receive(packet.seq), packet.seq);
        let complete = flow.is_all(seq) && seq != before;
        self.tally.sent[Kind::Ack as usize] += 1;
        let (to, kind) = (flow.from, Kind::Ack);
        *self.pool.get_mut(handle) = Packet { seq, echo, rank: 0, bytes: t.ack_bytes, to, kind, ect: false, ..*packet };
        self.offer(u32::from(packet.to), handle);
        if complete {
            self.received(packet.flow);
        }
    }

    /// A packet that has arrived goes back as the answer to it.
    pub(crate) fn turn(&mut self, handle: u32, answer: &Packet) {
        self.tally.sent[answer.kind as usize] += 1;
        let (host, to) = (u32::from(answer.to), self.flows[answer.flow as usize].from);
        *self.pool.get_mut(handle) = Packet { rank: 0, bytes: self.scheme.transport.ack_bytes, to, ect: false, ..*answer };
        self.offer(host, handle);
    }

    #[inline]
    pub(crate) fn acknowledge(&mut self, packet: &Packet) {
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
            round_trip: since(packet.stamp, self.now),
        };
        flow.acknowledge(&self.scheme.transport, self.now, ack);
        if flow.finished() {
            self.finish(slot);
        } else {
            self.send_window(slot);
        }
    }

    pub(crate) fn start_flows(&mut self) {
        while let Some(record) = self.records.get(self.started) {
            if record.start > self.now {
                self.wheel.push(record.start, START);
                return;
            }
            let task = Task {
                record: self.started as u32,
                key: self.started as u32,
                from: record.src,
                to: record.dst,
                packets: record.packets,
                level: self.scheme.level(record.packets),
                start: record.start,
                last: self.scheme.transport.data_bytes,
                cap: u16::MAX,
            };
            self.started += 1;
            self.start_flow(task);
        }
    }

    /// Returns its slot.
    pub(crate) fn start_flow(&mut self, task: Task) -> u32 {
        let transport = &self.scheme.transport;
        let idle = self.paths.get_mut(&(task.from, task.to)).and_then(VecDeque::pop_front);
        let new = idle.is_none();
        let path = match idle {
            Some(mut path) => {
                path.restart(transport, self.now);
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
        if new && self.scheme.transport.handshake.is_some() {
            self.connect(slot);
        } else {
            self.send_window(slot);
        }
        slot
    }

    pub(crate) fn finish(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let (record, packets) = (flow.record, flow.expected());
        let idle = self.paths.entry((flow.from, flow.to)).or_default();
        if (idle.len() as u64) < u64::from(self.scheme.transport.connections) {
            flow.path.used = self.now;
            idle.push_back(flow.path.clone());
        }
        match self.records.get_mut(record as usize) {
            Some(result) => result.finish = Some(self.now),
            None => self.acknowledged(record, packets),
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
    pub(crate) fn send_window(&mut self, slot: u32) {
        while let Some(number) = self.flows[slot as usize].next_to_send(&self.scheme.transport, self.now) {
            self.send_data(slot, number);
        }
        self.keep_timer(slot);
    }

    /// A timer event that comes too early looks again later; only one that would come too late is doubled.
    pub(crate) fn keep_timer(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if flow.deadline() < flow.timer_at {
            flow.timer_at = flow.deadline();
            flow.timers += 1;
            self.wheel.push(flow.timer_at, TIMER | slot);
        }
    }

    fn send_data(&mut self, slot: u32, number: u32) {
        let flow = &mut self.flows[slot as usize];
        let bytes = flow.bytes(&self.scheme.transport, number);
        let again = flow.was_sent(number);
        self.tally.sent[Kind::Data as usize] += 1;
        self.tally.retransmitted += u64::from(again);
        flow.sent(number);
        let echo = match again {
            true => AGAIN,
            false if flow.take_reduced() => CWR,
            false => 0,
        };
        if let Limiter::PerFlow { epoch, ref budgets } = self.scheme.limiter {
            if !flow_may_send(flow, self.now, u64::from(bytes), epoch, budgets) {
                self.tally.limited[Kind::Data as usize] += 1;
                return;
            }
        }
        let ect = self.scheme.transport.congestion.ecn_capable() && (!again || self.scheme.transport.ect_again);
        let mut data = packet(slot, number, Kind::Data, bytes, flow, self.scheme.transport.rank);
        (data.echo, data.ect) = (echo, ect);
        let release = self.send(data);
        if release > self.now {
            self.flows[slot as usize].hold(&self.scheme.transport, self.now, release);
        }
    }

    /// Sends a packet without data.
    pub(crate) fn send_bare(&mut self, slot: u32, kind: Kind, marked: bool) -> Ps {
        self.tally.sent[kind as usize] += 1;
        let Transport { ack_bytes, rank, .. } = self.scheme.transport;
        let bare = packet(slot, 0, kind, ack_bytes, &self.flows[slot as usize], rank);
        self.send(Packet { marked, ..bare })
    }

    /// Hands a flow's packet to its host's limiter; returns when it is let go.
    #[inline]
    fn send(&mut self, packet: Packet) -> Ps {
        let flow = &mut self.flows[packet.flow as usize];
        let (level, from) = (flow.level, flow.from);
        flow.in_network += 1;
        let handle = self.pool.add(packet);
        self.admit(from, level, handle)
    }

    pub(crate) fn timer(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        flow.timers -= 1;
        if flow.receiver.timer_at == self.now {
            self.acknowledge_late(slot);
        }
        let flow = &mut self.flows[slot as usize];
        if flow.timer_at != self.now || flow.finished() {
            self.free_if_done(slot);
            return;
        }
        flow.timer_at = Ps::MAX;
        if flow.deadline() > self.now {
            self.keep_timer(slot);
            return;
        }
        self.tally.timeouts += 1;
        match flow.expire(&self.scheme.transport, self.now) {
            Expired::Resend => self.send_window(slot),
            Expired::Connect => self.send_syn(slot),
            Expired::Probe => {
                self.send_bare(slot, Kind::Probe, false);
                self.keep_timer(slot);
            }
        }
    }
}
