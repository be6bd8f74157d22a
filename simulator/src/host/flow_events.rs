// SPDX-License-Identifier: GPL-2.0-or-later
//! The life of flows on their hosts: start, send, acknowledge, time out and finish.

use std::collections::VecDeque;

use crate::core::event::{HOST, PULL, START, TIMER};
use crate::core::time::Ps;
use crate::host::flow::{Ack, Expired, Flow, Task};
use crate::host::hosts::{Hosts, Notice};
use crate::host::limiter::{flow_may_send, Limiter};
use crate::host::path::Path;
use crate::host::result::FlowResult;
use crate::host::transport::Rank;
use crate::net::network::Network;
use crate::packet::{since, Destination, Kind, Packet, AGAIN, CWR, NO_ECHO, SCALABLE};

/// A packet that a flow's sender sends.
pub(super) fn packet(
    slot: u32,
    number: u32,
    kind: Kind,
    bytes: u16,
    flow: &Flow,
    rank: Rank,
) -> Packet {
    Packet {
        flow: slot,
        seq: number,
        echo: 0,
        stamp: 0,
        rank: match rank {
            Rank::Level => 1 + u32::from(flow.level),
            Rank::Remaining => flow.remaining(),
            Rank::Deadline => flow.due,
        },
        link: 0,
        bytes,
        to: Destination::new(flow.to),
        kind,
        marked: false,
        ect: false,
    }
}

/// The task of a listed flow.
pub(super) fn listed_task(number: u32, record: &FlowResult) -> Task {
    Task {
        record: number,
        key: number,
        from: record.src,
        to: record.dst,
        packets: record.packets,
        level: record.level,
        transport: record.transport,
        deadline: record.deadline.unwrap_or(Ps::MAX),
        start: record.start,
        last: record.last,
        cap: u16::MAX,
    }
}

impl Hosts {
    /// A data packet has arrived; if each packet is acknowledged alone, it becomes its own ACK.
    #[inline]
    pub(crate) fn answer(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
        self.handled.marked += u64::from(packet.marked);
        let flow = &mut self.flows[packet.flow as usize];
        let t = self.config.of(flow);
        if !t.acks_every_packet() {
            self.on_data(net, handle, packet);
            return;
        }
        let before = flow.expected();
        let (seq, echo) = (flow.receiver.receive(packet.seq), packet.seq);
        let complete = flow.is_all(seq) && seq != before;
        self.handled.sent[Kind::Ack as usize] += 1;
        let (to, kind, ect) = (Destination::new(flow.from), Kind::Ack, t.bare_ect(Kind::Ack));
        *net.pool.get_mut(handle) =
            Packet { seq, echo, rank: 0, bytes: t.ack_bytes, to, kind, ect, ..*packet };
        self.offer(net, packet.to.host(), handle);
        if complete {
            self.notify_received(net, packet.flow);
        }
    }

    /// Returns an arrived packet as its own answer.
    pub(crate) fn send_back(&mut self, net: &mut Network, handle: u32, answer: &Packet) {
        self.handled.sent[answer.kind as usize] += 1;
        let flow = &self.flows[answer.flow as usize];
        let (host, to, t) = (answer.to.host(), Destination::new(flow.from), self.config.of(flow));
        let (bytes, ect) = (t.ack_bytes, t.bare_ect(answer.kind));
        *net.pool.get_mut(handle) = Packet { rank: 0, bytes, to, ect, ..*answer };
        self.offer(net, host, handle);
    }

    #[inline]
    pub(crate) fn acknowledge(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
        let slot = packet.flow;
        let flow = &mut self.flows[slot as usize];
        flow.arrives();
        if flow.finished() {
            self.free_if_done(slot);
            return;
        }
        self.on_ack(net, handle, packet);
    }

    /// Processes an ACK and sends what it allows.
    #[inline]
    pub(super) fn open_window(&mut self, net: &mut Network, handle: u32, packet: &Packet) {
        let slot = packet.flow;
        let flow = &mut self.flows[slot as usize];
        if let Some(telemetry) = &net.links.telemetry {
            flow.path.control.on_telemetry(telemetry.records(handle));
        }
        let ack = Ack {
            cumulative: packet.seq,
            echo: (packet.echo != NO_ECHO).then_some(packet.echo),
            marked: packet.marked,
            round_trip: since(packet.stamp, net.now),
        };
        flow.on_packet(self.config.of(flow), net.now, ack);
        if flow.finished() {
            self.finish(net, slot);
        } else {
            self.send_window(net, slot);
        }
    }

    /// Starts the flows that are due; returns how many.
    pub(crate) fn start_flows(&mut self, net: &mut Network) -> u32 {
        let mut begun = 0;
        while let Some(record) = self.records.get(self.started) {
            if record.start > net.now {
                net.wheel.push(record.start, START);
                break;
            }
            let task = listed_task(self.started as u32, record);
            self.started += 1;
            self.skip_remote_flows();
            self.start_flow(net, task);
            begun += 1;
        }
        begun
    }

    /// Starts a flow; returns its slot.
    pub(crate) fn start_flow(&mut self, net: &mut Network, mut task: Task) -> u32 {
        if let Some(admission) = &mut self.admission {
            task.level = admission.admit(task.from, task.to, task.level);
            if let Some(record) = self.records.get_mut(task.record as usize) {
                record.level = task.level;
            }
        }
        let transport = &self.config.transports[usize::from(task.transport)];
        let idle =
            self.paths.get_mut(&(task.from, task.to, task.transport)).and_then(VecDeque::pop_front);
        let new = idle.is_none();
        let path = match idle {
            Some(mut path) => {
                path.restart(transport, net.now);
                path
            }
            None => Path::new(transport, self.lines[task.from as usize]),
        };
        let connects = new && transport.handshake.is_some();
        let flow = Flow::new(transport, task, path);
        let slot = self.allocate(flow);
        self.begin_flow(net, slot, connects);
        slot
    }

    /// Stores a flow; returns its slot.
    pub(super) fn allocate(&mut self, flow: Flow) -> u32 {
        let key = flow.key;
        let slot = if let Some(slot) = self.free_slots.pop() {
            self.flows[slot as usize] = flow;
            slot
        } else {
            self.flows.push(flow);
            self.flows.len() as u32 - 1
        };
        if let Some(remote) = &mut self.remote {
            remote.know(key, slot);
        }
        slot
    }

    pub(crate) fn finish(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let (record, packets) = (flow.record, flow.expected());
        let idle = self.paths.entry((flow.from, flow.to, flow.transport)).or_default();
        if (idle.len() as u64) < u64::from(self.config.of(flow).connections) {
            flow.path.used = net.now;
            idle.push_back(flow.path.clone());
        }
        if let Some(admission) = &mut self.admission {
            admission.judge(
                net.now,
                (flow.from, flow.to, flow.level),
                net.now - flow.start,
                packets,
            );
        }
        match self.records.get_mut(record as usize) {
            Some(result) => result.finish = Some(net.now),
            None => self.sockets.acknowledged(net, record - self.records.len() as u32, packets),
        }
        self.free_if_done(slot);
    }

    /// Ends a flow: it sends nothing new.
    pub(crate) fn cut_short(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if flow.cut_short() {
            self.finish(net, slot);
        } else {
            self.messages.cut_short(slot, flow.size());
        }
    }

    /// Frees a finished flow's slot, unless packets or timers still name it.
    pub(crate) fn free_if_done(&mut self, slot: u32) {
        let flow = &self.flows[slot as usize];
        // In a parallel run its packets may be in other parts, and no part knows all of them.
        if flow.finished() && flow.is_alone() && flow.timers == 0 && self.remote.is_none() {
            self.free_slots.push(slot);
        }
    }

    /// Sends what the flow's window allows, and keeps its timers.
    pub(crate) fn send_window(&mut self, net: &mut Network, slot: u32) {
        loop {
            let flow = &mut self.flows[slot as usize];
            let Some(number) = flow.next(self.config.of(flow), net.now) else { break };
            self.send_data(net, slot, number);
        }
        self.set_pace_event(net, slot);
        self.set_timer_event(net, slot);
    }

    /// Schedules the event for a packet that pacing holds back, unless an earlier one is pending.
    #[inline]
    fn set_pace_event(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if let Some(at) = flow.take_wait().filter(|&at| at < flow.wake_at) {
            flow.wake_at = at;
            flow.timers += 1;
            net.wheel.push(at, TIMER | slot);
        }
    }

    /// Schedules a timer event, unless one is pending that is not later: an early one is
    /// rescheduled when it fires.
    pub(crate) fn set_timer_event(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if flow.deadline() < flow.timer_at {
            flow.timer_at = flow.deadline();
            flow.timers += 1;
            net.wheel.push(flow.timer_at, TIMER | slot);
        }
    }

    fn send_data(&mut self, net: &mut Network, slot: u32, number: u32) {
        let flow = &mut self.flows[slot as usize];
        let t = self.config.of(flow);
        let bytes = flow.bytes(t, number);
        let again = flow.was_sent(number);
        self.handled.sent[Kind::Data as usize] += 1;
        self.handled.retransmitted += u64::from(again);
        flow.sent(number);
        if again {
            self.note(slot, Notice::Again);
        }
        let flow = &mut self.flows[slot as usize];
        let t = self.config.of(flow);
        let echo = match again {
            true => AGAIN,
            false if flow.take_reduced() => CWR,
            false => 0,
        };
        let ect = t.congestion.ecn_capable() && (!again || t.ect_again);
        let mut data = packet(slot, number, Kind::Data, bytes, flow, t.rank);
        let scalable = ect && t.congestion.is_scalable();
        (data.echo, data.ect) = (if scalable { echo | SCALABLE } else { echo }, ect);
        if let Limiter::PerFlow { epoch, ref budgets } = self.config.limiter {
            if !flow_may_send(flow, net.now, u64::from(bytes), epoch, budgets) {
                self.limit(slot, data);
                return;
            }
        }
        self.send_or_hold(net, data);
    }

    /// Sends data; if the limiter holds it, the flow's timer waits for it.
    #[inline]
    pub(super) fn send_or_hold(&mut self, net: &mut Network, data: Packet) {
        let (slot, release) = (data.flow, self.send(net, data));
        if release > net.now {
            let flow = &mut self.flows[slot as usize];
            flow.hold(self.config.of(flow), net.now, release);
            self.note(slot, Notice::Held(release - net.now));
        }
    }

    /// The per-flow limiter drops a data packet, before its host's own link.
    #[cold]
    #[inline(never)]
    fn limit(&mut self, slot: u32, data: Packet) {
        self.handled.limited[Kind::Data as usize] += 1;
        let link = self.flows[slot as usize].from;
        self.note(slot, Notice::Dropped(Packet { link, ..data }));
    }

    /// Sends a packet without data.
    pub(crate) fn send_bare(
        &mut self,
        net: &mut Network,
        slot: u32,
        kind: Kind,
        marked: bool,
    ) -> Ps {
        self.handled.sent[kind as usize] += 1;
        let flow = &self.flows[slot as usize];
        let t = self.config.of(flow);
        let (bare, ect) = (packet(slot, 0, kind, t.ack_bytes, flow, t.rank), t.bare_ect(kind));
        self.send(net, Packet { marked, ect, ..bare })
    }

    /// Passes a flow's packet to its host's limiter; returns when it is released.
    #[inline]
    pub(super) fn send(&mut self, net: &mut Network, packet: Packet) -> Ps {
        let flow = &mut self.flows[packet.flow as usize];
        let (level, from) = (flow.level, flow.from);
        flow.leaves();
        let handle = net.pool.add(packet);
        self.admit(net, from, level, handle)
    }

    pub(crate) fn timer(&mut self, net: &mut Network, slot: u32) {
        if slot & HOST != 0 {
            if slot & PULL == 0 {
                self.wake(net, slot & !HOST);
            } else {
                self.pull(net, slot & !(HOST | PULL));
            }
            return;
        }
        let flow = &mut self.flows[slot as usize];
        flow.timers -= 1;
        if flow.receiver.timer_at == net.now {
            self.on_ack_timer(net, slot);
        }
        let flow = &mut self.flows[slot as usize];
        if flow.wake_at == net.now && !flow.finished() {
            flow.wake_at = Ps::MAX;
            self.send_window(net, slot);
        }
        let flow = &mut self.flows[slot as usize];
        if flow.timer_at != net.now || flow.finished() {
            self.free_if_done(slot);
            return;
        }
        flow.timer_at = Ps::MAX;
        if flow.deadline() > net.now {
            self.set_timer_event(net, slot);
            return;
        }
        let t = self.config.of(flow);
        if flow.on_rack_timer(t, net.now) || flow.extend_timer() {
            self.send_window(net, slot);
            return;
        }
        self.handled.timeouts += 1;
        self.note(slot, Notice::TimedOut);
        self.on_timer(net, slot);
    }

    /// The retransmission timer has expired.
    pub(super) fn time_out(&mut self, net: &mut Network, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        match flow.on_timer(self.config.of(flow), net.now) {
            Expired::Resend => self.send_window(net, slot),
            Expired::Connect => self.send_syn(net, slot),
            Expired::Probe => {
                self.send_bare(net, slot, Kind::Probe, false);
                self.set_timer_event(net, slot);
            }
        }
    }
}
