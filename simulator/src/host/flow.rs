// SPDX-License-Identifier: GPL-2.0-or-later
//! A flow's two ends: what was sent, acknowledged and received. Pure state: the caller passes the
//! time and sends the packets.

mod go_back_n;
mod irn;
mod marks;
mod rack;
mod recovery;
#[cfg(test)]
mod tests;
mod timer;

use self::rack::Rack;
use self::recovery::News;
pub(crate) use self::timer::Expired;
use crate::core::time::{Ps, US};
use crate::host::congestion::SentInfo;
use crate::host::path::Path;
use crate::host::receiver::Receiver;
use crate::host::sequence_set::SequenceSet;
use crate::host::transport::{Recovery, Transport};

/// The content of an ACK.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ack {
    /// Cumulative acknowledgement, in packets.
    pub cumulative: u32,
    /// The packet that it answers; none: the answer to a probe, or a delayed ACK.
    pub echo: Option<u32>,
    pub marked: bool,
    pub round_trip: Ps,
}

/// The state of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The SYN is not answered yet.
    Connecting,
    /// Only probes are sent.
    Probing,
    /// Loss recovery.
    Recovery,
}

#[derive(Debug)]
pub(crate) struct Flow {
    pub path: Path,
    /// When the retransmission timer expires; `Ps::MAX`: not set.
    deadline: Ps,
    /// IRN: how much later it expires if more packets are under way by then.
    extension: Ps,
    /// When the host's limiter releases the last packet. What waits in the host is not lost: as in
    /// Linux, it is not retransmitted before it has left.
    held: Ps,
    /// When pacing allows the next packet, and the time that a waiting packet was told; 0: none
    /// waits.
    paced: Ps,
    waits: Ps,
    /// When the pacing event is due; `Ps::MAX`: none is pending.
    pub wake_at: Ps,
    /// `SND.UNA`: the first unacknowledged packet.
    una: u32,
    next: u32,
    size: u32,
    /// One above the last packet ever sent.
    high: u32,
    /// Packets acknowledged and marked since alpha was updated; the next update is when `observed`
    /// is acknowledged.
    acked: u32,
    marked: u32,
    observed: u32,
    /// No further reduction for marks on packets before this one.
    cut: u32,
    timeouts: u32,
    phase: Phase,
    /// CWR is due: the next new packet tells the receiver of the reduction (RFC 3168).
    reduced: bool,
    /// The first hole of a recovery is retransmitted at once, whatever is under way.
    urgent: bool,
    /// NewReno: this recovery had a partial ACK.
    partial: bool,
    /// NewReno: duplicate ACKs in a row.
    repeated: u32,
    /// Recovery ends when this packet is acknowledged.
    recover: u32,
    /// Holes below `lost` are lost; those from `resend` on have not been retransmitted.
    resend: u32,
    lost: u32,
    high_sacked: u32,
    pipe: u32,
    sacked: SequenceSet,
    /// RACK-TLP, if the transport has it.
    rack: Option<Box<Rack>>,
    pub receiver: Receiver,
    /// Packets of this flow in the network. In a parallel run no part knows all of them, so that
    /// the number may wrap.
    in_network: u32,
    pub timers: u32,
    /// When the timer event that counts is due.
    pub timer_at: Ps,
    pub start: Ps,
    /// The limiter's bucket: bytes left, and its epoch.
    pub tokens: u64,
    pub epoch: u64,
    pub record: u32,
    pub key: u32,
    pub from: u32,
    pub to: u32,
    pub level: u8,
    /// Which of the run's transports.
    pub transport: u8,
    /// Deadline, in microseconds.
    pub due: u32,
    last: u16,
    cap: u16,
}

/// A flow to start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    /// Place of its result; from the number of listed flows on, an application's.
    pub record: u32,
    /// The key by which its path is chosen.
    pub key: u32,
    pub from: u32,
    pub to: u32,
    pub packets: u32,
    pub level: u8,
    /// Which of the run's transports.
    pub transport: u8,
    /// Deadline; `Ps::MAX`: none.
    pub deadline: Ps,
    pub start: Ps,
    /// Bytes of the last packet.
    pub last: u16,
    /// Largest window, in packets.
    pub cap: u16,
}

impl Flow {
    pub fn new(t: &Transport, task: Task, mut path: Path) -> Self {
        path.control.serve(task.start, task.key, task.transport);
        Flow {
            path,
            deadline: Ps::MAX,
            extension: 0,
            held: 0,
            paced: 0,
            waits: 0,
            wake_at: Ps::MAX,
            una: 0,
            next: 0,
            size: task.packets,
            high: 0,
            acked: 0,
            marked: 0,
            observed: 0,
            cut: 0,
            timeouts: 0,
            phase: Phase::Open,
            reduced: false,
            urgent: false,
            partial: false,
            repeated: 0,
            recover: 0,
            resend: 0,
            lost: 0,
            high_sacked: 0,
            pipe: 0,
            sacked: SequenceSet::new(t.max_window),
            rack: t.rack_tlp.then(|| Box::new(Rack::new(t, task.packets))),
            receiver: Receiver::new(t),
            in_network: 0,
            timers: 0,
            timer_at: Ps::MAX,
            start: task.start,
            tokens: 0,
            epoch: u64::MAX,
            record: task.record,
            key: task.key,
            from: task.from,
            to: task.to,
            level: task.level,
            transport: task.transport,
            due: u32::try_from(task.deadline / US).unwrap_or(u32::MAX).max(1),
            last: task.last,
            cap: task.cap,
        }
    }

    /// A packet enters the network.
    #[inline]
    pub fn leaves(&mut self) {
        self.in_network = self.in_network.wrapping_add(1);
    }

    /// A packet has left the network.
    #[inline]
    pub fn arrives(&mut self) {
        self.in_network = self.in_network.wrapping_sub(1);
    }

    /// Whether none of its packets is in the network.
    pub fn is_alone(&self) -> bool {
        self.in_network == 0
    }

    pub fn size(&self) -> u32 {
        self.size
    }

    pub fn finished(&self) -> bool {
        self.una == self.size
    }

    /// Unacknowledged packets.
    pub fn remaining(&self) -> u32 {
        self.size - self.una
    }

    /// Packets acknowledged cumulatively.
    pub fn acknowledged(&self) -> u32 {
        self.una
    }

    /// Packets that may be under way.
    pub fn window(&self) -> u32 {
        self.path.control.window().min(u32::from(self.cap))
    }

    /// Bytes of a packet.
    pub fn bytes(&self, t: &Transport, number: u32) -> u16 {
        if number + 1 == self.size {
            self.last
        } else {
            t.data_bytes
        }
    }

    /// Ends the flow with the packets sent so far; returns whether all of them are acknowledged.
    pub fn cut_short(&mut self) -> bool {
        self.size = self.high.max(1);
        self.finished()
    }

    /// Whether a packet was sent before.
    pub fn was_sent(&self, number: u32) -> bool {
        number < self.high
    }

    /// The next packet that the window allows, if any.
    pub fn next(&mut self, t: &Transport, now: Ps) -> Option<u32> {
        if self.phase == Phase::Probing {
            return None;
        }
        if now < self.paced {
            self.waits = self.paced;
            return None;
        }
        let number = if let Some(probe) = self.rack.as_mut().and_then(|rack| rack.take_probe()) {
            probe
        } else if self.phase == Phase::Recovery {
            self.next_in_recovery(t)?
        } else {
            while !self.sacked.is_empty()
                && self.next < self.high
                && self.sacked.contains(self.next)
            {
                self.next += 1;
            }
            if self.next >= self.size || self.next - self.una >= self.window() {
                return None;
            }
            self.next += 1;
            self.next - 1
        };
        if self.deadline == Ps::MAX {
            self.set_timer(t, now);
        }
        self.pipe += 1;
        if self.rack.is_some() {
            self.rack_sent(t, now, number);
        }
        if t.congestion.sees_every_ack() {
            let (una, under_way) = (self.una, self.pipe);
            let (bytes, last) = (self.bytes(t, number), number + 1 == self.size);
            let sent = SentInfo { now, number, una, bytes, under_way, last };
            self.paced = now + self.path.control.on_send(&sent);
        }
        Some(number)
    }

    /// When pacing allows the waiting packet, if one waits.
    #[inline]
    pub fn take_wait(&mut self) -> Option<Ps> {
        Some(std::mem::take(&mut self.waits)).filter(|&at| at > 0)
    }

    /// Records that a packet was sent.
    pub fn sent(&mut self, number: u32) {
        self.high = self.high.max(number + 1);
    }

    /// Takes the pending CWR for a new packet.
    pub fn take_reduced(&mut self) -> bool {
        std::mem::take(&mut self.reduced)
    }

    /// Processes an ACK at the sender.
    pub fn on_packet(&mut self, t: &Transport, now: Ps, ack: Ack) {
        self.path.round_trip(ack.round_trip);
        let probed = self.phase == Phase::Probing;
        if probed {
            self.phase = Phase::Open;
        }
        let advanced = ack.cumulative > self.una;
        let repeats = ack.cumulative == self.una && ack.echo.is_some();
        if self.rack.is_some() {
            self.rack_on_ack(t, now, ack);
        }
        let newly = self.account(ack, t);
        if advanced || probed {
            self.timeouts = 0;
            // RFC 6582, section 4: only the first partial ACK of a recovery, so that many losses
            // end in a timeout.
            if !self.partial || self.una >= self.recover {
                self.set_timer(t, now);
            }
        }
        let heeded = if t.congestion.sees_every_ack() {
            self.see(t, now, ack, (advanced, newly))
        } else {
            t.congestion.ecn_capable() && self.on_mark(t, now, ack.marked, newly)
        };
        if !t.sack && t.dupacks.is_some() {
            self.count_repeats(t, now, News { advanced, packets: newly, grows: !heeded, repeats });
            return;
        }
        self.pipe = self.pipe.saturating_sub(newly);
        if self.phase == Phase::Recovery && self.una >= self.recover {
            self.phase = Phase::Open;
        }
        if advanced && !heeded && self.phase != Phase::Recovery {
            self.path.grow(now, newly);
        }
        if self.rack.is_some() {
            self.rack_after_ack(t, now, advanced);
        } else if let Some(dupacks) = t.dupacks {
            self.look_for_loss(now, t, dupacks);
        } else if t.recovery == Recovery::GoBackN {
            self.look_for_nak(now, t, ack);
        }
    }

    /// Whether this is the whole flow.
    #[inline]
    pub fn is_all(&self, packets: u32) -> bool {
        packets == self.size
    }

    /// Packets received in order.
    pub fn expected(&self) -> u32 {
        self.receiver.expected()
    }
}
