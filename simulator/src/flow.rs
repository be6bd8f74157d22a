// SPDX-License-Identifier: GPL-2.0-or-later
//! A flow's two ends: what has been sent, acknowledged and received. Time is passed in; nothing is sent here.

use crate::path::Path;
use crate::scheme::{Congestion, Transport};
use crate::time::Ps;
use crate::window::Window;

/// Timeouts double this often at most; the largest timeout is the limit in practice.
const DOUBLINGS: u32 = 16;

/// What an ACK says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ack {
    /// So many packets from the first on have arrived.
    pub cumulative: u32,
    /// The packet that it answers; none: a probe.
    pub echo: Option<u32>,
    pub marked: bool,
    pub round_trip: Ps,
}

/// What a sender does when its timer has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expired {
    Resend,
    Probe,
}

#[derive(Debug)]
pub(crate) struct Flow {
    pub path: Path,
    /// When the retransmission timer expires; `Ps::MAX`: not set.
    deadline: Ps,
    /// When the host's limiter lets the last packet go. What waits in the host is not lost: as in Linux, it is not sent again
    /// before it has left.
    held: Ps,
    /// First packet that is not acknowledged.
    una: u32,
    next: u32,
    size: u32,
    /// One above the last packet ever sent.
    high: u32,
    /// Packets acknowledged and marked since alpha changed, until `observed` is acknowledged.
    acked: u32,
    marked: u32,
    observed: u32,
    /// No further cut for what was sent before this packet.
    cut: u32,
    timeouts: u32,
    probing: bool,
    recovering: bool,
    /// Loss recovery ends when this is acknowledged.
    recover: u32,
    /// Holes below `lost` are lost; those from `resend` on have not been sent again.
    resend: u32,
    lost: u32,
    high_sacked: u32,
    pipe: u32,
    sacked: Window,
    /// The receiver: first packet missing, and those above it that are not.
    expected: u32,
    early: Window,
    pub in_network: u32,
    pub timers: u32,
    /// When the timer event that counts is due.
    pub timer_at: Ps,
    pub start: Ps,
    /// The limiter's bucket: bytes left, and since which epoch.
    pub tokens: u64,
    pub epoch: u64,
    pub record: u32,
    pub key: u32,
    pub from: u16,
    pub to: u16,
    pub level: u8,
    last: u16,
    cap: u16,
}

/// Who sends how much to whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    /// The place of its result; from the number of listed flows on, an application's.
    pub record: u32,
    /// What its path is chosen by.
    pub key: u32,
    pub from: u16,
    pub to: u16,
    pub packets: u32,
    pub level: u8,
    pub start: Ps,
    /// Bytes of the last packet.
    pub last: u16,
    /// Largest window, in packets.
    pub cap: u16,
}

impl Flow {
    pub fn new(t: &Transport, task: Task, path: Path) -> Self {
        Flow {
            path,
            deadline: Ps::MAX,
            held: 0,
            una: 0,
            next: 0,
            size: task.packets,
            high: 0,
            acked: 0,
            marked: 0,
            observed: 0,
            cut: 0,
            timeouts: 0,
            probing: false,
            recovering: false,
            recover: 0,
            resend: 0,
            lost: 0,
            high_sacked: 0,
            pipe: 0,
            sacked: Window::new(t.max_window),
            expected: 0,
            early: Window::new(t.max_window),
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
            last: task.last,
            cap: task.cap,
        }
    }

    pub fn finished(&self) -> bool {
        self.una == self.size
    }

    /// Packets that are not acknowledged.
    pub fn remaining(&self) -> u32 {
        self.size - self.una
    }

    /// Packets that may be under way.
    fn window(&self) -> u32 {
        self.path.window().min(u32::from(self.cap))
    }

    /// Bytes of this packet.
    pub fn bytes(&self, t: &Transport, number: u32) -> u16 {
        if number + 1 == self.size {
            self.last
        } else {
            t.data_bytes
        }
    }

    /// Nothing is sent that was not sent already; returns whether that has all been acknowledged.
    pub fn cut_short(&mut self) -> bool {
        self.size = self.high.max(1);
        self.finished()
    }

    /// Whether this packet was sent before.
    pub fn was_sent(&self, number: u32) -> bool {
        number < self.high
    }

    /// When the retransmission timer expires; `Ps::MAX`: it is not set.
    pub fn deadline(&self) -> Ps {
        self.deadline
    }

    fn set_timer(&mut self, t: &Transport, now: Ps) {
        self.deadline = now.max(self.held) + self.rto(t);
    }

    /// A packet waits in the host's limiter until `release`.
    pub fn hold(&mut self, t: &Transport, now: Ps, release: Ps) {
        self.held = release;
        self.set_timer(t, now);
    }

    /// The timeout as it is now.
    fn rto(&self, t: &Transport) -> Ps {
        let doublings = if t.fixed_rto { 0 } else { self.timeouts.min(DOUBLINGS) };
        self.path.rto(t).saturating_mul(1 << doublings).min(t.max_rto)
    }

    /// The next packet that the window lets go, if any.
    pub fn next_to_send(&mut self, t: &Transport, now: Ps) -> Option<u32> {
        if self.probing {
            return None;
        }
        let number = if self.recovering {
            self.next_in_recovery(t)?
        } else {
            while !self.sacked.is_empty() && self.next < self.high && self.sacked.contains(self.next) {
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
        Some(number)
    }

    /// Records that it was handed over.
    pub fn sent(&mut self, number: u32) {
        self.high = self.high.max(number + 1);
    }

    /// RFC 6675: holes first, then new packets, as many as have left the network.
    fn next_in_recovery(&mut self, t: &Transport) -> Option<u32> {
        if self.pipe >= self.window() {
            return None;
        }
        self.resend = self.resend.max(self.una);
        while self.resend < self.lost && self.sacked.contains(self.resend) {
            self.resend += 1;
        }
        if self.resend < self.lost {
            self.resend += 1;
            return Some(self.resend - 1);
        }
        if self.next >= self.size || self.next - self.una >= t.max_window.min(u32::from(self.cap)) {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }

    /// The sender's side of an ACK.
    pub fn acknowledge(&mut self, t: &Transport, now: Ps, ack: Ack) {
        self.path.round_trip(ack.round_trip);
        let probed = std::mem::take(&mut self.probing);
        let advanced = ack.cumulative > self.una;
        let newly = self.account(ack);
        self.pipe = self.pipe.saturating_sub(newly);
        if advanced || probed {
            self.timeouts = 0;
            self.set_timer(t, now);
        }
        if let Congestion::Dctcp { shift } = t.congestion {
            self.observe(shift, ack.marked);
        }
        if self.recovering && self.una >= self.recover {
            self.recovering = false;
        }
        if advanced && !ack.marked && !self.recovering {
            self.path.open(t);
        }
        if let Some(dupacks) = t.dupacks {
            self.look_for_loss(dupacks);
        }
    }

    /// Takes over what has arrived; how many packets that nobody knew of.
    fn account(&mut self, ack: Ack) -> u32 {
        let mut newly = 0;
        if ack.cumulative > self.una {
            newly = ack.cumulative - self.una;
            if !self.sacked.is_empty() {
                for number in self.una..ack.cumulative {
                    newly -= u32::from(self.sacked.remove(number));
                }
            }
            self.una = ack.cumulative;
            self.next = self.next.max(self.una);
        }
        if let Some(echo) = ack.echo.filter(|&echo| echo >= self.una) {
            newly += u32::from(self.sacked.insert(echo));
            self.high_sacked = self.high_sacked.max(echo + 1);
        }
        newly
    }

    /// DCTCP (RFC 8257, section 3.3): alpha follows the share of marked packets once a window, and a window with marks is cut by
    /// half of it.
    fn observe(&mut self, shift: u32, marked: bool) {
        self.acked += 1;
        self.marked += u32::from(marked);
        if self.una >= self.observed {
            self.path.observe(shift, self.marked, self.acked);
            (self.acked, self.marked) = (0, 0);
            self.observed = self.high.max(self.una + 1);
        }
        if marked && self.una > self.cut && !self.recovering {
            self.path.cut();
            self.cut = self.high;
        }
    }

    fn look_for_loss(&mut self, dupacks: u32) {
        if self.sacked.len() < dupacks {
            return;
        }
        if !self.recovering {
            // After a timeout everything up to `recover` is sent again anyway.
            if self.una < self.recover {
                return;
            }
            self.recovering = true;
            self.recover = self.high;
            self.path.halve();
        } else if self.una < self.lost {
            return;
        }
        self.resend = self.una;
        self.lost = self.high_sacked;
        let holes = (self.una..self.lost).filter(|&n| !self.sacked.contains(n));
        self.pipe = self.pipe.saturating_sub(holes.count() as u32);
    }

    /// The timer has expired: everything that is not known to have arrived is sent again from a window of one packet. What was
    /// acknowledged selectively is not (RFC 6675, section 5.1 allows it).
    pub fn expire(&mut self, t: &Transport, now: Ps) -> Expired {
        self.timeouts += 1;
        self.path.collapse();
        self.next = self.una;
        self.recovering = false;
        self.recover = self.high;
        self.pipe = 0;
        self.set_timer(t, now);
        if t.probe_after.is_some_and(|after| self.timeouts >= after) {
            self.probing = true;
            return Expired::Probe;
        }
        Expired::Resend
    }

    /// The receiver's side of a data packet; what its ACK says: how many packets from the first on have arrived.
    #[inline]
    pub fn receive(&mut self, number: u32) -> u32 {
        if number == self.expected {
            self.expected += 1;
            while !self.early.is_empty() && self.early.remove(self.expected) {
                self.expected += 1;
            }
        } else if number > self.expected {
            self.early.insert(number);
        }
        self.expected
    }

    /// Whether the receiver has this many and no more are to come.
    #[inline]
    pub fn is_all(&self, packets: u32) -> bool {
        packets == self.size
    }

    /// How many packets from the first on have arrived: what a probe's answer says.
    pub fn expected(&self) -> u32 {
        self.expected
    }
}
