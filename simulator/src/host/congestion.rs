// SPDX-License-Identifier: GPL-2.0-or-later
//! The seam between flows and congestion control: a window, a pace, and what ACKs, marks, losses and timeouts do to them.
//!
//! A law is a file of this folder with its settings; it is known here by one arm of each `match`, which costs nothing where it is not
//! used. Windows are fixed-point numbers of packets with 16 fractional bits; alpha has 20: no floating point decides anything.

mod bbr;
mod cubic;
mod dcqcn;
mod swift;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use self::bbr::Bbr;
use self::cubic::Cubic;
pub use self::dcqcn::Dcqcn;
use self::dcqcn::Rates;
use self::swift::Delay;
pub use self::swift::Swift;
use crate::core::time::{Ps, S};

/// One packet of window.
pub(crate) const ONE: u32 = 1 << 16;
/// alpha = 1.
const ALPHA: u32 = 1 << 20;

/// What a sender does about marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Congestion {
    /// Marks say nothing: Reno's window (RFC 5681).
    Reno,
    /// A window with marks is halved (RFC 3168).
    Ecn,
    /// CUBIC (RFC 9438); marks say nothing.
    Cubic,
    /// DCTCP (RFC 8257) with g = 2^-`shift`; alpha begins at 0, as published.
    Dctcp {
        /// 4 for the published 1/16; at most 20.
        shift: u32,
    },
    /// Swift: a target of delay.
    Swift(Swift),
    /// BBR, the first version: a model of the path.
    Bbr,
    /// DCQCN: a rate, by marks.
    Dcqcn(Dcqcn),
    /// Homa: receivers grant. A round trip holds the transport's initial window.
    Homa {
        /// Levels of packets that are granted, the lowest of 8, and so many messages at a time; 1 to 7.
        scheduled: u8,
    },
}

/// When a receiver tells of marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Echo {
    /// Nobody listens.
    Never,
    /// From a mark on until the sender has heard (RFC 3168, section 6.1.3).
    UntilHeard,
    /// Each ACK tells what all packets were that it acknowledges: a change is told at once (RFC 8257, section 3.2).
    Exactly,
    /// As soon as a mark comes (Zhu et al., section 3.1).
    AtOnce,
}

impl Congestion {
    /// When its receivers tell of marks.
    #[inline]
    pub(crate) fn echo(self) -> Echo {
        match self {
            Congestion::Ecn => Echo::UntilHeard,
            Congestion::Dctcp { .. } => Echo::Exactly,
            Congestion::Dcqcn(_) => Echo::AtOnce,
            Congestion::Reno | Congestion::Cubic | Congestion::Swift(_) | Congestion::Bbr | Congestion::Homa { .. } => {
                Echo::Never
            }
        }
    }

    /// Whether ACKs tell it what the network delays: that of the last packet, without what the receiver waits (Kumar et al., section 3.2).
    pub(crate) fn sees_delay(self) -> bool {
        matches!(self, Congestion::Swift(_))
    }

    /// Whether an ACK for each packet tells it all that there is, mark and number of that packet.
    #[inline]
    pub(crate) fn suits_each(self) -> bool {
        !matches!(self, Congestion::Ecn | Congestion::Homa { .. })
    }

    /// Whether it is told of every ACK, by [`Control::on_each`], instead of marks and growth.
    #[inline]
    pub(crate) fn sees_each(self) -> bool {
        matches!(self, Congestion::Swift(_) | Congestion::Bbr | Congestion::Dcqcn(_))
    }

    /// Levels of what is granted, if anything is.
    pub(crate) fn scheduled(self) -> u8 {
        match self {
            Congestion::Homa { scheduled } => scheduled,
            _ => 0,
        }
    }

    /// Whether data may be marked: it is ECN-capable (ECT).
    #[inline]
    pub(crate) fn ecn_capable(self) -> bool {
        matches!(self, Congestion::Ecn | Congestion::Dctcp { .. } | Congestion::Dcqcn(_))
    }

    /// Whether it answers marks in proportion to their share.
    pub(crate) fn is_scalable(self) -> bool {
        matches!(self, Congestion::Dctcp { .. })
    }

    /// Whether the next new packet says that the window was reduced (RFC 3168, section 6.1.2).
    #[inline]
    pub(crate) fn tells_cuts(self) -> bool {
        self == Congestion::Ecn
    }

    /// What of its settings cannot be.
    pub(crate) fn wrong(self) -> Option<String> {
        match self {
            Congestion::Dctcp { shift } if shift > 20 => Some("DCTCP's g is below 2^-20, with which alpha stays 0".to_owned()),
            Congestion::Swift(of) => of.wrong(),
            Congestion::Dcqcn(of) => of.wrong(),
            Congestion::Homa { scheduled } if !(1..8).contains(&scheduled) => {
                Some(format!("Homa has {scheduled} scheduled levels, not 1 to 7"))
            }
            _ => None,
        }
    }
}

/// What an ACK tells a law that is told of each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub now: Ps,
    /// Packets that nobody knew of.
    pub packets: u32,
    /// The packet that it answers.
    pub number: Option<u32>,
    /// Since that packet left.
    pub round_trip: Ps,
    pub marked: bool,
    /// Packets under way after it.
    pub under_way: u32,
    /// Of a full packet.
    pub bytes: u16,
}

/// Windows that a law begins with and keeps to, in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Windows {
    pub initial: u32,
    pub most: u32,
    /// Of DCTCP after marks.
    pub least: u32,
}

/// What a law of congestion control remembers beside the window.
#[derive(Debug, Clone)]
enum Law {
    Reno,
    Ecn,
    Cubic(Box<Cubic>),
    Dctcp { shift: u32, alpha: u32 },
    Swift(Box<Delay>),
    Bbr(Box<Bbr>),
    Dcqcn(Box<Rates>),
}

#[derive(Debug, Clone)]
pub(crate) struct Control {
    cwnd: u32,
    ssthresh: u32,
    windows: Windows,
    /// In bit/s; 0: packets leave as the window lets them.
    pace: u64,
    law: Law,
}

impl Control {
    /// `line`: rate of the host's link, in bit/s.
    pub fn new(congestion: Congestion, windows: Windows, line: u64) -> Self {
        let (mut cwnd, mut pace) = (windows.initial * ONE, 0);
        let law = match congestion {
            Congestion::Reno | Congestion::Homa { .. } => Law::Reno,
            Congestion::Ecn => Law::Ecn,
            Congestion::Cubic => Law::Cubic(Box::default()),
            Congestion::Dctcp { shift } => Law::Dctcp { shift, alpha: 0 },
            Congestion::Swift(of) => Law::Swift(Box::new(Delay::new(of))),
            Congestion::Bbr => Law::Bbr(Box::new(Bbr::new(windows.most))),
            // It has a rate and no window, nor slow start (section 3.1).
            Congestion::Dcqcn(of) => {
                (cwnd, pace) = (windows.most * ONE, line);
                Law::Dcqcn(Box::new(Rates::new(of, line)))
            }
        };
        Control { cwnd, ssthresh: windows.most * ONE, windows, pace, law }
    }

    /// Whole packets that may be under way.
    #[inline]
    pub fn window(&self) -> u32 {
        (self.cwnd / ONE).max(1)
    }

    /// In bit/s; none: packets leave as the window lets them.
    #[inline]
    pub fn pacing_rate(&self) -> Option<u64> {
        (self.pace > 0).then_some(self.pace)
    }

    /// A packet of a law that is told of each leaves, after which `under_way` are; `last`: it is the flow's. Returns how long the
    /// next has to wait.
    #[inline(never)]
    pub fn on_send(&mut self, now: Ps, number: u32, bytes: u16, under_way: u32, last: bool) -> Ps {
        match &mut self.law {
            Law::Bbr(bbr) => bbr.on_send(now, number, under_way, last),
            Law::Dcqcn(rates) => self.pace = rates.on_send(now, bytes),
            _ => {}
        }
        self.pacing_rate().map_or(0, |rate| (u128::from(bytes) * 8 * u128::from(S) / u128::from(rate)) as Ps)
    }

    /// An ACK, whatever it tells, for a law that is told of each.
    #[inline(never)]
    pub fn on_each(&mut self, seen: &Seen) {
        (self.cwnd, self.pace) = match &mut self.law {
            Law::Swift(delay) => delay.on_ack(self.cwnd, self.windows.most, seen),
            Law::Bbr(bbr) => bbr.on_ack(self.cwnd, self.windows, seen),
            Law::Dcqcn(rates) => (self.windows.most * ONE, rates.on_ack(seen)),
            _ => return,
        };
    }

    /// An ACK tells of `acked` packets, for which the window may grow. `round_trip`: the smoothed one.
    #[inline]
    pub fn on_ack(&mut self, now: Ps, acked: u32, round_trip: Ps) {
        if matches!(self.law, Law::Cubic(_)) && self.cwnd >= self.ssthresh {
            self.open_cubic(now, acked, round_trip);
        } else {
            self.open();
        }
    }

    // Not inlined, so that the way of other laws stays short.
    #[inline(never)]
    fn open_cubic(&mut self, now: Ps, acked: u32, round_trip: Ps) {
        if let Law::Cubic(cubic) = &mut self.law {
            self.cwnd = cubic.grow(self.cwnd, acked, now, round_trip).min(self.windows.most * ONE);
        }
    }

    /// One more packet for each ACK in slow start, one for each window after it (RFC 5681, section 3.1).
    #[inline]
    fn open(&mut self) {
        let more =
            if self.cwnd < self.ssthresh { ONE } else { ((u64::from(ONE) * u64::from(ONE)) / u64::from(self.cwnd)) as u32 };
        self.cwnd = (self.cwnd + more).min(self.windows.most * ONE);
    }

    /// All of a window has been acknowledged, `marked` of `acked` packets with a mark: DCTCP's alpha follows that share with weight
    /// 2^-`shift` (RFC 8257, section 3.3).
    pub fn on_window(&mut self, marked: u32, acked: u32) {
        if let Law::Dctcp { shift, alpha } = &mut self.law {
            let share = (u64::from(marked) * u64::from(ALPHA) / u64::from(acked)) as u32;
            *alpha = *alpha - (*alpha >> *shift) + (share >> *shift);
        }
    }

    /// The first mark since the window was last reduced for one: half of it (RFC 3168, section 6.1.2), or less by half of alpha, but
    /// not to less than the transport's least window.
    pub fn on_mark(&mut self) {
        match self.law {
            Law::Reno | Law::Cubic(_) | Law::Swift(_) | Law::Bbr(_) | Law::Dcqcn(_) => {}
            Law::Ecn => {
                self.ssthresh = self.half();
                self.cwnd = self.cwnd.min(self.ssthresh);
            }
            Law::Dctcp { alpha, .. } => {
                let less = u64::from(self.cwnd) * u64::from(alpha) / u64::from(2 * ALPHA);
                self.cwnd = (self.cwnd - less as u32).max(self.cwnd.min(self.windows.least * ONE));
                self.ssthresh = self.cwnd.max(2 * ONE);
            }
        }
    }

    /// A loss was found by later packets: half the window, or CUBIC's or Swift's cut.
    pub fn on_loss(&mut self, now: Ps) {
        self.ssthresh = match &mut self.law {
            Law::Cubic(cubic) => cubic.reduce(self.cwnd),
            Law::Swift(delay) => delay.on_loss(self.cwnd, now),
            Law::Bbr(_) | Law::Dcqcn(_) => self.cwnd,
            _ => self.half(),
        };
        self.cwnd = self.ssthresh;
    }

    /// A timer expired: a window of one packet.
    pub fn on_timeout(&mut self, now: Ps) {
        match &mut self.law {
            Law::Swift(delay) => {
                self.cwnd = delay.on_timeout(self.cwnd, now);
                return;
            }
            Law::Bbr(bbr) => bbr.on_timeout(),
            Law::Dcqcn(_) => return,
            _ => {}
        }
        self.ssthresh = match &mut self.law {
            Law::Cubic(cubic) => cubic.time_out(self.cwnd),
            _ => self.half(),
        };
        self.cwnd = ONE;
    }

    /// The connection is set up, with packets of so many bytes; its setup took a round trip.
    pub fn on_connected(&mut self, now: Ps, round_trip: Ps, bytes: u16) {
        if let Law::Bbr(bbr) = &mut self.law {
            self.pace = bbr.on_connected(now, round_trip, self.windows, bytes);
        }
    }

    /// There was nothing to send for so long, `long` if longer than a timeout: then the window is the initial one again, as ns-2's
    /// slow-start restart sets it, from a larger window and from a smaller.
    pub fn on_idle(&mut self, now: Ps, idle: Ps, long: bool) {
        match &mut self.law {
            Law::Swift(_) | Law::Dcqcn(_) => return,
            Law::Bbr(bbr) => {
                self.cwnd = self.cwnd.max(bbr.on_idle(now) * ONE);
                return;
            }
            Law::Cubic(cubic) if long => cubic.restart(),
            Law::Cubic(cubic) => cubic.idle(idle),
            Law::Reno | Law::Ecn | Law::Dctcp { .. } => {}
        }
        if long {
            self.cwnd = self.windows.initial * ONE;
        }
    }

    /// A window of `most` packets at most, and of one after a SYN was lost (RFC 5681, section 3.1).
    pub fn limit(&mut self, most: u32) {
        self.cwnd = self.cwnd.min(most * ONE);
    }

    fn half(&self) -> u32 {
        (self.cwnd / 2).max(2 * ONE)
    }

    #[cfg(test)]
    pub fn alpha(&self) -> u32 {
        match self.law {
            Law::Dctcp { alpha, .. } => alpha,
            _ => 0,
        }
    }
}
