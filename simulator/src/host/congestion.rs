// SPDX-License-Identifier: GPL-2.0-or-later
//! Congestion control: a window, a pace, and what ACKs, marks, losses and timeouts do to them.
//!
//! A law is a file of this folder with its settings. It is known here by one arm of each `match`,
//! which costs nothing where it is not used. Windows are fixed-point numbers of packets with 16
//! fractional bits, alpha has 20: no floating point decides anything.

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
use self::dcqcn::DcqcnState;
pub use self::swift::Swift;
use self::swift::SwiftState;
use crate::core::time::{Ps, S};

/// One packet of window.
pub(crate) const ONE: u32 = 1 << 16;
/// alpha = 1.
const ALPHA: u32 = 1 << 20;

/// The law of congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Congestion {
    /// Reno (RFC 5681); ignores marks.
    Reno,
    /// Reno with ECN: a mark halves the window (RFC 3168).
    Ecn,
    /// CUBIC (RFC 9438); ignores marks.
    Cubic,
    /// DCTCP (RFC 8257) with g = 2^-`shift`; alpha begins at 0, as published.
    Dctcp {
        /// 4 for the published 1/16; at most 20.
        shift: u32,
    },
    /// Swift: a target delay.
    Swift(Swift),
    /// BBR, version 1: a model of the path.
    Bbr,
    /// DCQCN: a rate, controlled by marks.
    Dcqcn(Dcqcn),
    /// Homa: receivers grant. The transport's initial window is what a round trip holds.
    Homa {
        /// Levels of scheduled packets, the lowest of 8, and messages granted at a time; 1 to 7.
        scheduled: u8,
    },
}

/// How a receiver echoes marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Echo {
    /// Never.
    Never,
    /// From a mark until the sender has reduced its window (RFC 3168, section 6.1.3).
    UntilHeard,
    /// Exactly: an ACK covers only packets with the same mark; a change is acknowledged at once
    /// (RFC 8257, section 3.2).
    Exactly,
    /// A mark is acknowledged at once (Zhu et al., section 3.1).
    AtOnce,
}

impl Congestion {
    /// How its receivers echo marks.
    #[inline]
    pub(crate) fn echo(self) -> Echo {
        match self {
            Congestion::Ecn => Echo::UntilHeard,
            Congestion::Dctcp { .. } => Echo::Exactly,
            Congestion::Dcqcn(_) => Echo::AtOnce,
            Congestion::Reno
            | Congestion::Cubic
            | Congestion::Swift(_)
            | Congestion::Bbr
            | Congestion::Homa { .. } => Echo::Never,
        }
    }

    /// Whether it needs the network's delay: that of the last packet, without the receiver's ACK
    /// delay (Kumar et al., section 3.2).
    pub(crate) fn sees_delay(self) -> bool {
        matches!(self, Congestion::Swift(_))
    }

    /// Whether an ACK of its own for each packet, with that packet's mark and number, is all it
    /// needs.
    #[inline]
    pub(crate) fn allows_ack_per_packet(self) -> bool {
        !matches!(self, Congestion::Ecn | Congestion::Homa { .. })
    }

    /// Whether every ACK is passed to [`Control::on_every_ack`], which replaces the reaction to
    /// marks and the window's growth.
    #[inline]
    pub(crate) fn sees_every_ack(self) -> bool {
        matches!(self, Congestion::Swift(_) | Congestion::Bbr | Congestion::Dcqcn(_))
    }

    /// Levels of scheduled packets; 0 without grants.
    pub(crate) fn scheduled(self) -> u8 {
        match self {
            Congestion::Homa { scheduled } => scheduled,
            _ => 0,
        }
    }

    /// Whether its data is ECN-capable (ECT).
    #[inline]
    pub(crate) fn ecn_capable(self) -> bool {
        matches!(self, Congestion::Ecn | Congestion::Dctcp { .. } | Congestion::Dcqcn(_))
    }

    /// Whether it reacts in proportion to the share of marks.
    pub(crate) fn is_scalable(self) -> bool {
        matches!(self, Congestion::Dctcp { .. })
    }

    /// Whether the next new packet carries CWR after a reduction (RFC 3168, section 6.1.2).
    #[inline]
    pub(crate) fn sends_cwr(self) -> bool {
        self == Congestion::Ecn
    }

    /// What is wrong with its settings, if anything.
    pub(crate) fn problem(self) -> Option<String> {
        match self {
            Congestion::Dctcp { shift } if shift > 20 => {
                Some("DCTCP's g is below 2^-20, with which alpha stays 0".to_owned())
            }
            Congestion::Swift(of) => of.problem(),
            Congestion::Dcqcn(of) => of.problem(),
            Congestion::Homa { scheduled } if !(1..8).contains(&scheduled) => {
                Some(format!("Homa has {scheduled} scheduled levels, not 1 to 7"))
            }
            _ => None,
        }
    }
}

/// What a law learns from every ACK.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AckInfo {
    pub now: Ps,
    /// Packets newly acknowledged.
    pub packets: u32,
    /// The packet that it answers.
    pub number: Option<u32>,
    /// Time since that packet left.
    pub round_trip: Ps,
    pub marked: bool,
    /// Packets under way afterwards.
    pub under_way: u32,
    /// Bytes of a full packet.
    pub bytes: u16,
}

/// The windows that bound a law, in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Windows {
    pub initial: u32,
    pub most: u32,
    /// DCTCP's least window after marks.
    pub least: u32,
}

/// A law's own state beside the window.
#[derive(Debug, Clone)]
enum Law {
    Reno,
    Ecn,
    Cubic(Box<Cubic>),
    Dctcp { shift: u32, alpha: u32 },
    Swift(Box<SwiftState>),
    Bbr(Box<Bbr>),
    Dcqcn(Box<DcqcnState>),
}

#[derive(Debug, Clone)]
pub(crate) struct Control {
    cwnd: u32,
    ssthresh: u32,
    windows: Windows,
    /// In bit/s; 0: the window alone decides.
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
            Congestion::Swift(of) => Law::Swift(Box::new(SwiftState::new(of))),
            Congestion::Bbr => Law::Bbr(Box::new(Bbr::new(windows.most))),
            // DCQCN has a rate, no window and no slow start (section 3.1).
            Congestion::Dcqcn(of) => {
                (cwnd, pace) = (windows.most * ONE, line);
                Law::Dcqcn(Box::new(DcqcnState::new(of, line)))
            }
        };
        Control { cwnd, ssthresh: windows.most * ONE, windows, pace, law }
    }

    /// Whole packets that may be under way.
    #[inline]
    pub fn window(&self) -> u32 {
        (self.cwnd / ONE).max(1)
    }

    /// In bit/s; none: the window alone decides.
    #[inline]
    pub fn pacing_rate(&self) -> Option<u64> {
        (self.pace > 0).then_some(self.pace)
    }

    /// A packet leaves, after which `under_way` are; `last`: it is the flow's last. Returns how
    /// long the next packet must wait. For laws that see every ACK.
    #[inline(never)]
    pub fn on_send(&mut self, now: Ps, number: u32, bytes: u16, under_way: u32, last: bool) -> Ps {
        match &mut self.law {
            Law::Bbr(bbr) => bbr.on_send(now, number, under_way, last),
            Law::Dcqcn(dcqcn) => self.pace = dcqcn.on_send(now, bytes),
            _ => {}
        }
        self.pacing_rate()
            .map_or(0, |rate| (u128::from(bytes) * 8 * u128::from(S) / u128::from(rate)) as Ps)
    }

    /// Any ACK, for laws that see every ACK.
    #[inline(never)]
    pub fn on_every_ack(&mut self, ack: &AckInfo) {
        (self.cwnd, self.pace) = match &mut self.law {
            Law::Swift(swift) => swift.on_ack(self.cwnd, self.windows.most, ack),
            Law::Bbr(bbr) => bbr.on_ack(self.cwnd, self.windows, ack),
            Law::Dcqcn(dcqcn) => (self.windows.most * ONE, dcqcn.on_ack(ack)),
            _ => return,
        };
    }

    /// An ACK of `acked` new packets, for which the window may grow. `round_trip`: the smoothed
    /// one.
    #[inline]
    pub fn on_ack(&mut self, now: Ps, acked: u32, round_trip: Ps) {
        if matches!(self.law, Law::Cubic(_)) && self.cwnd >= self.ssthresh {
            self.open_cubic(now, acked, round_trip);
        } else {
            self.open();
        }
    }

    // Not inlined, so that the path of other laws stays short.
    #[inline(never)]
    fn open_cubic(&mut self, now: Ps, acked: u32, round_trip: Ps) {
        if let Law::Cubic(cubic) = &mut self.law {
            self.cwnd = cubic.grow(self.cwnd, acked, now, round_trip).min(self.windows.most * ONE);
        }
    }

    /// Slow start: one packet for each ACK; then one for each window (RFC 5681, section 3.1).
    #[inline]
    fn open(&mut self) {
        let more = if self.cwnd < self.ssthresh {
            ONE
        } else {
            ((u64::from(ONE) * u64::from(ONE)) / u64::from(self.cwnd)) as u32
        };
        self.cwnd = (self.cwnd + more).min(self.windows.most * ONE);
    }

    /// A whole window has been acknowledged, `marked` of `acked` packets with a mark: DCTCP's alpha
    /// moves towards that share with weight 2^-`shift` (RFC 8257, section 3.3).
    pub fn on_window(&mut self, marked: u32, acked: u32) {
        if let Law::Dctcp { shift, alpha } = &mut self.law {
            let share = (u64::from(marked) * u64::from(ALPHA) / u64::from(acked)) as u32;
            *alpha = *alpha - (*alpha >> *shift) + (share >> *shift);
        }
    }

    /// The first mark of a window: ECN halves the window (RFC 3168, section 6.1.2), DCTCP reduces
    /// it by alpha / 2, but not below the transport's least window.
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

    /// A loss found by later packets: half the window, or the reduction of CUBIC or Swift.
    pub fn on_loss(&mut self, now: Ps) {
        self.ssthresh = match &mut self.law {
            Law::Cubic(cubic) => cubic.reduce(self.cwnd),
            Law::Swift(swift) => swift.on_loss(self.cwnd, now),
            Law::Bbr(_) | Law::Dcqcn(_) => self.cwnd,
            _ => self.half(),
        };
        self.cwnd = self.ssthresh;
    }

    /// A timeout: a window of one packet.
    pub fn on_timeout(&mut self, now: Ps) {
        match &mut self.law {
            Law::Swift(swift) => {
                self.cwnd = swift.on_timeout(self.cwnd, now);
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

    /// The connection is set up; `bytes`: of its packets. The handshake took `round_trip`.
    pub fn on_connected(&mut self, now: Ps, round_trip: Ps, bytes: u16) {
        if let Law::Bbr(bbr) = &mut self.law {
            self.pace = bbr.on_connected(now, round_trip, self.windows, bytes);
        }
    }

    /// After idle time, `long` if longer than a timeout. Then the window is the initial one again,
    /// even from a smaller one, as ns-2's slow-start restart sets it.
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

    /// Limits the window; to one packet after a lost SYN (RFC 5681, section 3.1).
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
