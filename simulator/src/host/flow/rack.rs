// SPDX-License-Identifier: GPL-2.0-or-later
//! RACK-TLP (RFC 8985): losses by the time since a packet left, and a probe for a lost tail.
//!
//! Receivers report no duplicates here (no DSACK), so that the reordering window stays a quarter of
//! the least round trip. After a timeout everything is retransmitted, as without RACK. One timer
//! serves timeouts, probes and the reordering window, as in the RFC.

#[cfg(test)]
mod tests;

use super::{Ack, Flow, Phase};
use crate::core::time::Ps;
use crate::host::transport::Transport;

/// Time stamps may be this much apart from the time that a packet left.
const STAMPS_APART: Ps = 2 << 13;

/// What the flow's timer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timer {
    Timeout,
    Probe,
    Reordering,
}

/// A packet of the window.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    /// `Segment.xmit_ts`: when it last left.
    at: Ps,
    /// `Segment.retransmitted`.
    again: bool,
    /// `Segment.lost`, and not retransmitted since.
    lost: bool,
}

#[derive(Debug)]
pub(super) struct Rack {
    /// By packet number, one window of them.
    sent: Box<[Sent]>,
    /// `RACK.xmit_ts`, the packet of `RACK.end_seq`, and `RACK.rtt`: of the packet that left last
    /// among those that have arrived.
    at: Ps,
    number: u32,
    round_trip: Ps,
    /// `RACK.min_RTT`.
    least: Ps,
    /// `RACK.fack`, and `RACK.reordering_seen`.
    fack: u32,
    reordered: bool,
    /// Lost packets that are not retransmitted yet.
    lost: u32,
    /// A probe to send now, whatever the window.
    probe: Option<u32>,
    /// `TLP.end_seq` and `TLP.is_retrans`.
    probed: Option<(u32, bool)>,
    timer: Timer,
    /// When the timeout is due.
    timeout_at: Ps,
}

impl Rack {
    /// For a flow of so many packets.
    pub fn new(t: &Transport, packets: u32) -> Self {
        let room = (t.max_window.min(packets) as usize + 1).next_power_of_two();
        Rack {
            sent: vec![Sent::default(); room].into(),
            at: 0,
            number: 0,
            round_trip: 0,
            least: Ps::MAX,
            fack: 0,
            reordered: false,
            lost: 0,
            probe: None,
            probed: None,
            timer: Timer::Timeout,
            timeout_at: Ps::MAX,
        }
    }

    fn slot(&mut self, number: u32) -> &mut Sent {
        let mask = self.sent.len() - 1;
        &mut self.sent[number as usize & mask]
    }

    /// `RACK_sent_after`: the last packet that has arrived left after this one.
    fn left_after(&self, at: Ps, number: u32) -> bool {
        (self.at, self.number) > (at, number)
    }

    /// The probe to send now, if any.
    pub fn take_probe(&mut self) -> Option<u32> {
        self.probe.take()
    }

    /// The timeout is due at this time, and the timer waits for it.
    pub fn set_timeout(&mut self, at: Ps) {
        (self.timer, self.timeout_at) = (Timer::Timeout, at);
    }

    /// A timeout: everything is retransmitted.
    pub fn clear(&mut self) {
        self.sent.iter_mut().for_each(|sent| sent.lost = false);
        (self.lost, self.probe, self.probed) = (0, None, None);
    }

    /// A packet has arrived that was not acknowledged before (`RACK_update`,
    /// `RACK_detect_reordering`). `round_trip`: by the time stamp of its ACK. Returns whether it
    /// was taken for lost.
    fn arrived(&mut self, now: Ps, number: u32, round_trip: Ps) -> bool {
        let sent = self.slot(number);
        let lost = std::mem::take(&mut sent.lost);
        let Sent { at, again, .. } = *sent;
        self.lost -= u32::from(lost);
        self.reordered |= number + 1 < self.fack && !again;
        self.fack = self.fack.max(number + 1);
        let took = now - at;
        // The ACK of an earlier copy.
        if again && (took < self.least || round_trip > took + STAMPS_APART) {
            return lost;
        }
        if !again {
            self.least = self.least.min(took);
        }
        if (at, number) > (self.at, self.number) {
            (self.at, self.number, self.round_trip) = (at, number, took);
        }
        lost
    }
}

impl Flow {
    /// A packet leaves, possibly again. The timeout counts from when the first unacknowledged one
    /// last left, as in Linux (`tcp_rearm_rto`): otherwise it expires while the retransmission is
    /// under way, if a round trip is as long as half of it.
    pub(super) fn rack_sent(&mut self, t: &Transport, now: Ps, number: u32) {
        let again = self.was_sent(number);
        let (first, timeout_at) = (number == self.una, now.max(self.held) + self.rto(t));
        let Some(rack) = &mut self.rack else { return };
        if again && first {
            rack.timeout_at = timeout_at;
        }
        let sent = std::mem::replace(rack.slot(number), Sent { at: now, again, lost: false });
        rack.lost -= u32::from(again && sent.lost);
        if rack.timer != Timer::Reordering {
            self.rack_arm(t, now, 0);
        }
    }

    /// An ACK has come that is not accounted for yet.
    #[inline(never)]
    pub(super) fn rack_on_ack(&mut self, t: &Transport, now: Ps, ack: Ack) {
        let Some(mut rack) = self.rack.take() else { return };
        let selective = ack.echo.filter(|&echo| echo >= ack.cumulative.max(self.una));
        for number in (self.una..ack.cumulative).chain(selective) {
            if !self.sacked.contains(number) && rack.arrived(now, number, ack.round_trip) {
                // It had been taken out, and accounting takes it out again.
                self.pipe += 1;
            }
        }
        // `TLP_process_ack` (section 7.4.2), without DSACK.
        if let Some((end, again)) = rack.probed.filter(|&(end, _)| ack.cumulative >= end) {
            let repaired = again && ack.cumulative > end;
            if repaired && self.phase != Phase::Recovery {
                self.path.control.on_loss(now);
                self.reduced = t.congestion.sends_cwr();
            }
            // Otherwise an ACK of both copies may follow.
            if !again || repaired || ack.cumulative == self.una {
                rack.probed = None;
            }
        }
        self.rack = Some(rack);
    }

    /// An ACK is accounted for: looks for losses and sets the timer.
    #[inline(never)]
    pub(super) fn rack_after_ack(&mut self, t: &Transport, now: Ps, advanced: bool) {
        let wait = self.rack_detect(t, now);
        let probing = self.rack.as_ref().is_some_and(|rack| rack.timer == Timer::Probe);
        if wait > 0 || advanced || !probing || !self.may_probe() {
            self.rack_arm(t, now, wait);
        }
    }

    /// `RACK_detect_loss` (section 6.2, step 5): packets that left before one that has arrived are
    /// lost when they have taken longer than its round trip and the reordering window. Returns when
    /// the next may be; 0: none.
    fn rack_detect(&mut self, t: &Transport, now: Ps) -> Ps {
        if self.resends_all() {
            return 0;
        }
        let window = self.reordering_window(t);
        let Some(mut rack) = self.rack.take() else { return 0 };
        // Without retransmissions those above have left later.
        let resent = self.phase == Phase::Recovery || rack.probed.is_some_and(|(_, again)| again);
        let top = if resent { self.high } else { self.high_sacked.max(rack.number + 1) };
        let mut wait = 0;
        for number in self.una..top.min(self.high) {
            let Sent { at, lost, .. } = *rack.slot(number);
            if lost || self.sacked.contains(number) || !rack.left_after(at, number) {
                continue;
            }
            let due = at + rack.round_trip + window;
            if due > now {
                wait = wait.max(due - now);
                continue;
            }
            rack.slot(number).lost = true;
            rack.lost += 1;
            self.lose(t, now, number);
        }
        let lost = rack.lost > 0;
        self.rack = Some(rack);
        if lost && self.phase != Phase::Recovery {
            self.begin_recovery(now, t);
        }
        wait
    }

    /// `RACK_update_reo_wnd`, with `RACK.reo_wnd_mult` 1: none while nothing was reordered and
    /// losses are likely.
    fn reordering_window(&self, t: &Transport) -> Ps {
        let Some(rack) = &self.rack else { return 0 };
        let many = t.dupacks.is_some_and(|dupacks| self.sacked.len() >= dupacks);
        if !rack.reordered && (many || self.phase == Phase::Recovery) {
            return 0;
        }
        (rack.least / 4).min(self.path.smoothed())
    }

    /// Whether a probe may be scheduled (section 7.2).
    fn may_probe(&self) -> bool {
        self.phase == Phase::Open
            && !self.resends_all()
            && self.sacked.is_empty()
            && self.una < self.next
            && self.path.smoothed() > 0
            && self.rack.as_ref().is_some_and(|rack| rack.probed.is_none())
    }

    /// Sets the timer: for the reordering window, if there is something to `wait` for; or for a
    /// probe, after two round trips and, with one packet under way, what its ACK may be delayed; or
    /// for the timeout.
    pub(super) fn rack_arm(&mut self, t: &Transport, now: Ps, wait: Ps) {
        let delay = if self.next - self.una == 1 { t.delayed_ack.unwrap_or(0) } else { 0 };
        let (may_probe, from) = (self.may_probe(), now.max(self.held));
        let Some(rack) = self.rack.as_mut().filter(|_| self.deadline < Ps::MAX) else { return };
        let (timer, at) = if wait > 0 && now + wait < rack.timeout_at {
            (Timer::Reordering, now + wait)
        } else if may_probe {
            (Timer::Probe, from + 2 * self.path.smoothed() + delay)
        } else {
            (Timer::Timeout, rack.timeout_at)
        };
        rack.timer = timer;
        self.deadline = at.min(rack.timeout_at);
    }

    /// The timer expires. False: it is the timeout. Otherwise a probe is due, new data if there is
    /// any or else the last packet again (section 7.3), or packets are lost.
    pub fn on_rack_timer(&mut self, t: &Transport, now: Ps) -> bool {
        match self.rack.as_ref().map_or(Timer::Timeout, |rack| rack.timer) {
            Timer::Timeout => return false,
            Timer::Reordering => {
                let wait = self.rack_detect(t, now);
                self.rack_arm(t, now, wait);
            }
            Timer::Probe => {
                let most = t.max_window.min(u32::from(self.cap));
                self.next += u32::from(self.next < self.size && self.next - self.una < most);
                let (number, high) = (self.next - 1, self.high);
                if let Some(rack) = &mut self.rack {
                    rack.probe = Some(number);
                    rack.probed = Some((high.max(number + 1), number < high));
                }
                self.set_timer(t, now);
            }
        }
        true
    }

    /// The next packet of a recovery: lost ones first, then new ones.
    pub(super) fn next_by_rack(&mut self, t: &Transport) -> Option<u32> {
        if !std::mem::take(&mut self.urgent) && self.pipe >= self.window() {
            return None;
        }
        let rack = self.rack.as_mut()?;
        if rack.lost > 0 {
            return (self.una..self.high).find(|&number| rack.slot(number).lost);
        }
        let most = t.max_window.min(u32::from(self.cap));
        if self.next >= self.size || self.next - self.una >= most {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }
}
