// SPDX-License-Identifier: GPL-2.0-or-later
//! A flow's two ends: what has been sent, acknowledged and received, and the window. Time is passed in; nothing is sent here.
//!
//! Windows are fixed-point numbers of packets with 16 fractional bits; DCTCP's alpha has 20: no floating point decides anything.

use crate::scheme::{Congestion, Transport};
use crate::time::Ps;
use crate::window::Window;

/// One packet of window.
const ONE: u32 = 1 << 16;
/// alpha = 1.
const ALPHA: u32 = 1 << 20;
/// Timeouts double this often at most; the largest timeout is the limit in practice.
const DOUBLINGS: u32 = 16;

/// What a connection knows of its path, and keeps between flows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    pub cwnd: u32,
    pub ssthresh: u32,
    pub alpha: u32,
    /// 0: no round trip was measured.
    pub srtt: Ps,
    pub rttvar: Ps,
    pub used: Ps,
}

impl Path {
    pub fn new(t: &Transport) -> Self {
        Path { cwnd: t.initial_window * ONE, ssthresh: t.max_window * ONE, alpha: 0, srtt: 0, rttvar: 0, used: 0 }
    }

    /// After idleness of more than a timeout the window is the initial one again, as ns-2's slow-start restart sets it: from a
    /// larger window and from a smaller.
    pub fn restart(&mut self, t: &Transport, now: Ps) {
        if now - self.used > self.rto(t) {
            self.cwnd = t.initial_window * ONE;
        }
    }

    /// Timeout without back-off (RFC 6298, with the smallest one of the transport, without clock granularity).
    fn rto(&self, t: &Transport) -> Ps {
        if t.fixed_rto || self.srtt == 0 {
            t.min_rto
        } else {
            (self.srtt + 4 * self.rttvar).clamp(t.min_rto, t.max_rto)
        }
    }

    fn round_trip(&mut self, took: Ps) {
        let took = took.max(1);
        if self.srtt == 0 {
            self.srtt = took;
            self.rttvar = took / 2;
        } else {
            self.rttvar = (3 * self.rttvar + self.srtt.abs_diff(took)) / 4;
            self.srtt = (7 * self.srtt + took) / 8;
        }
    }
}

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
    pub from: u16,
    pub to: u16,
    pub level: u8,
}

/// Who sends how much to whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub record: u32,
    pub from: u16,
    pub to: u16,
    pub packets: u32,
    pub level: u8,
    pub start: Ps,
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
            from: task.from,
            to: task.to,
            level: task.level,
        }
    }

    pub fn finished(&self) -> bool {
        self.una == self.size
    }

    /// Packets that are not acknowledged.
    pub fn remaining(&self) -> u32 {
        self.size - self.una
    }

    /// Whether this packet was sent before.
    pub fn was_sent(&self, number: u32) -> bool {
        number < self.high
    }

    fn window(&self) -> u32 {
        self.path.cwnd / ONE
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
        (self.path.rto(t) << doublings).min(t.max_rto)
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
        if self.next >= self.size || self.next - self.una >= t.max_window {
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
            self.open(t);
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

    /// One more packet for each ACK in slow start, one for each window after it.
    fn open(&mut self, t: &Transport) {
        let grown = if self.path.cwnd < self.path.ssthresh {
            self.path.cwnd + ONE
        } else {
            self.path.cwnd + ((u64::from(ONE) * u64::from(ONE)) / u64::from(self.path.cwnd)) as u32
        };
        self.path.cwnd = grown.min(t.max_window * ONE);
    }

    /// DCTCP (RFC 8257, section 3.3): alpha follows the share of marked packets once a window, and a window with marks is cut by
    /// half of it.
    fn observe(&mut self, shift: u32, marked: bool) {
        self.acked += 1;
        self.marked += u32::from(marked);
        if self.una >= self.observed {
            let share = (u64::from(self.marked) * u64::from(ALPHA) / u64::from(self.acked)) as u32;
            self.path.alpha = self.path.alpha - (self.path.alpha >> shift) + (share >> shift);
            (self.acked, self.marked) = (0, 0);
            self.observed = self.high.max(self.una + 1);
        }
        if marked && self.una > self.cut && !self.recovering {
            let cut = u64::from(self.path.cwnd) * u64::from(self.path.alpha) / u64::from(2 * ALPHA);
            self.path.cwnd = (self.path.cwnd - cut as u32).max(ONE);
            self.path.ssthresh = self.path.cwnd.max(2 * ONE);
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
            self.path.ssthresh = (self.path.cwnd / 2).max(2 * ONE);
            self.path.cwnd = self.path.ssthresh;
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
        self.path.ssthresh = (self.path.cwnd / 2).max(2 * ONE);
        self.path.cwnd = ONE;
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

    /// What a probe's answer says.
    pub fn expected(&self) -> u32 {
        self.expected
    }
}
