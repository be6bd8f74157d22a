// SPDX-License-Identifier: GPL-2.0-or-later
//! What hosts do in a simulation: flows start, send, are acknowledged and end.

use std::collections::VecDeque;

use crate::engine::{Simulation, START, TIMER};
use crate::flow::{Ack, Expired, Flow, Task};
use crate::limiter::flow_may_send;
use crate::packet::{since, Kind, Packet};
use crate::path::Path;
use crate::scheme::{Congestion, Limiter, Rank, Transport};
use crate::time::Ps;

/// Of an ACK that answers a probe.
const NO_ECHO: u32 = u32::MAX;

fn data(slot: u32, number: u32, kind: Kind, bytes: u16, flow: &Flow, t: &Transport) -> Packet {
    let ect = kind == Kind::Data && t.congestion != Congestion::Reno;
    Packet {
        flow: slot,
        seq: number,
        echo: 0,
        stamp: 0,
        rank: match t.rank {
            Rank::Level => 1 + u32::from(flow.level),
            Rank::Remaining => flow.remaining(),
        },
        link: 0,
        bytes,
        to: flow.to,
        kind,
        marked: false,
        ect,
    }
}

impl Simulation {
    /// A data packet has arrived and becomes its own ACK.
    #[inline]
    pub(crate) fn answer(&mut self, handle: u32, packet: &Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        let (seq, echo) =
            if packet.kind == Kind::Data { (flow.receive(packet.seq), packet.seq) } else { (flow.expected(), NO_ECHO) };
        self.tally.marked += u64::from(packet.marked);
        self.tally.sent[Kind::Ack as usize] += 1;
        let host = u32::from(packet.to);
        let bytes = self.scheme.transport.ack_bytes;
        *self.pool.get_mut(handle) = Packet { seq, echo, rank: 0, bytes, to: flow.from, kind: Kind::Ack, ect: false, ..*packet };
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
                from: record.src,
                to: record.dst,
                packets: record.packets,
                level: self.scheme.level(record.packets),
                start: record.start,
            };
            self.started += 1;
            self.start_flow(task);
        }
    }

    fn start_flow(&mut self, task: Task) {
        let transport = &self.scheme.transport;
        let idle = self.paths.get_mut(&(task.from, task.to)).and_then(VecDeque::pop_front);
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
        self.send_window(slot);
    }

    fn finish(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        self.records[flow.record as usize].finish = Some(self.now);
        let idle = self.paths.entry((flow.from, flow.to)).or_default();
        if (idle.len() as u64) < u64::from(self.scheme.transport.connections) {
            flow.path.used = self.now;
            idle.push_back(flow.path);
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
    fn send_window(&mut self, slot: u32) {
        while let Some(number) = self.flows[slot as usize].next_to_send(&self.scheme.transport, self.now) {
            self.send_data(slot, number);
        }
        self.keep_timer(slot);
    }

    /// A timer event that comes too early looks again later; only one that would come too late is doubled.
    fn keep_timer(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if flow.deadline() < flow.timer_at {
            flow.timer_at = flow.deadline();
            flow.timers += 1;
            self.wheel.push(flow.timer_at, TIMER | slot);
        }
    }

    fn send_data(&mut self, slot: u32, number: u32) {
        let bytes = self.scheme.transport.data_bytes;
        let flow = &mut self.flows[slot as usize];
        self.tally.sent[Kind::Data as usize] += 1;
        self.tally.retransmitted += u64::from(flow.was_sent(number));
        flow.sent(number);
        if let Limiter::PerFlow { epoch, ref budgets } = self.scheme.limiter {
            if !flow_may_send(flow, self.now, u64::from(bytes), epoch, budgets) {
                self.tally.limited[Kind::Data as usize] += 1;
                return;
            }
        }
        let release = self.send(slot, number, Kind::Data, bytes);
        if release > self.now {
            self.flows[slot as usize].hold(&self.scheme.transport, self.now, release);
        }
    }

    fn send_probe(&mut self, slot: u32) {
        self.tally.sent[Kind::Probe as usize] += 1;
        self.send(slot, 0, Kind::Probe, self.scheme.transport.ack_bytes);
    }

    /// Hands a flow's packet to its host's limiter; returns when it is let go.
    #[inline]
    fn send(&mut self, slot: u32, number: u32, kind: Kind, bytes: u16) -> Ps {
        let flow = &mut self.flows[slot as usize];
        let (level, from) = (flow.level, flow.from);
        let packet = data(slot, number, kind, bytes, flow, &self.scheme.transport);
        flow.in_network += 1;
        let handle = self.pool.add(packet);
        self.admit(from, level, handle)
    }

    pub(crate) fn timer(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        flow.timers -= 1;
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
            Expired::Probe => {
                self.send_probe(slot);
                self.keep_timer(slot);
            }
        }
    }
}
