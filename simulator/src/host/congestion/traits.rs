// SPDX-License-Identifier: GPL-2.0-or-later
//! What a law of congestion control is: its settings with constants for its properties, and its
//! state, which reacts to ACKs, marks, losses and timeouts. A law is one file of this folder.

use crate::core::time::Ps;
use crate::net::telemetry::PortRecord;

/// One packet of window.
pub(crate) const ONE: u32 = 1 << 16;

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

/// Who decides when packets leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// The sender, by its window and pace.
    Window,
    /// The receiver, by grants.
    Grants,
    /// The receiver, by pulls of single packets.
    Pulls,
}

/// What a law learns from every ACK.
#[derive(Debug, Clone, Copy)]
pub struct AckInfo {
    /// The time.
    pub now: Ps,
    /// Packets newly acknowledged.
    pub packets: u32,
    /// The packet that it answers.
    pub number: Option<u32>,
    /// Time since that packet left.
    pub round_trip: Ps,
    /// It echoes a mark.
    pub marked: bool,
    /// Packets under way afterwards.
    pub under_way: u32,
    /// Bytes of a full packet.
    pub bytes: u16,
    /// For laws of the user's own. TCP's window may grow for it: it acknowledges the next packet in
    /// order, outside of a recovery.
    pub grows: bool,
    /// For the same. Everything that had been sent at the last such ACK is acknowledged: once a
    /// round trip.
    pub round: bool,
}

/// What a law learns from a packet that leaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentInfo {
    pub now: Ps,
    pub number: u32,
    /// The first unacknowledged packet.
    pub una: u32,
    pub bytes: u16,
    /// Packets under way, with it.
    pub under_way: u32,
    /// It is the flow's last.
    pub last: bool,
}

/// The windows that bound a law, in packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Windows {
    pub initial: u32,
    pub most: u32,
    /// DCTCP's least window after marks.
    pub least: u32,
}

/// A sender's window and pace, which its law sets.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    pub cwnd: u32,
    pub ssthresh: u32,
    pub bounds: Windows,
    /// In bit/s; 0: the window alone decides.
    pub pace: u64,
}

impl Window {
    pub fn new(bounds: Windows) -> Self {
        Window { cwnd: bounds.initial * ONE, ssthresh: bounds.most * ONE, bounds, pace: 0 }
    }

    /// Slow start: one packet for each ACK; then one for each window (RFC 5681, section 3.1).
    #[inline]
    pub fn open(&mut self) {
        let more = if self.cwnd < self.ssthresh {
            ONE
        } else {
            ((u64::from(ONE) * u64::from(ONE)) / u64::from(self.cwnd)) as u32
        };
        self.cwnd = (self.cwnd + more).min(self.bounds.most * ONE);
    }

    /// Half of it, at least two packets.
    pub fn half(&self) -> u32 {
        (self.cwnd / 2).max(2 * ONE)
    }

    /// Continues in congestion avoidance from this window.
    pub fn reduce_to(&mut self, cwnd: u32) {
        (self.cwnd, self.ssthresh) = (cwnd, cwnd);
    }
}

/// The settings of a law.
pub(crate) trait CongestionLaw: Copy {
    /// Its state for a connection, beside the window; in a box if it is large.
    type State;

    /// The name in scheme files.
    const NAME: &'static str;
    /// Who decides when packets leave.
    const PROTOCOL: Protocol = Protocol::Window;
    /// How its receivers echo marks.
    const ECHO: Echo = Echo::Never;
    /// It reacts in proportion to the share of marks.
    const IS_SCALABLE: bool = false;
    /// The next new packet carries CWR after a reduction (RFC 3168, section 6.1.2).
    const SENDS_CWR: bool = false;
    /// An ACK of its own for each packet, with that packet's mark and number, is all it needs.
    const ALLOWS_ACK_PER_PACKET: bool = true;
    /// It needs the network's delay: that of the last packet, without the receiver's ACK delay
    /// (Kumar et al., section 3.2).
    const SEES_DELAY: bool = false;
    /// Every ACK is passed to [`LawState::on_every_ack`], which replaces the reaction to marks and
    /// the window's growth.
    const SEES_EVERY_ACK: bool = false;
    /// Ports record in data what they do, for [`LawState::on_telemetry`]. Each packet needs an ACK
    /// of its own, and each flow one path.
    const READS_TELEMETRY: bool = false;

    /// What is wrong with its settings, if anything.
    fn problem(&self) -> Option<String> {
        None
    }

    /// Whether its data is ECN-capable (ECT).
    #[inline]
    fn ecn_capable(&self) -> bool {
        false
    }

    /// Levels of scheduled packets, if receivers grant.
    fn scheduled(&self) -> u8 {
        0
    }

    /// Packets that a receiver pulls beyond those that have come, if it pulls in turns; none: it
    /// pulls one for each that comes.
    fn ahead(&self) -> Option<u32> {
        None
    }

    /// The state of a new connection. `line`: rate of the host's link, in bit/s.
    fn start(self, window: &mut Window, line: u64) -> Self::State;
}

/// A law's state for a connection. What a law does not define is Reno's.
pub(crate) trait LawState {
    /// A packet leaves. Only for laws that see every ACK.
    fn on_send(&mut self, _window: &mut Window, _sent: &SentInfo) {}

    /// A packet is taken for lost. Only for laws that see every ACK.
    fn on_lost(&mut self, _window: &mut Window, _now: Ps, _number: u32) {}

    /// What the ports on its path recorded in the packet of the next ACK. Only for laws that read
    /// telemetry.
    fn on_telemetry(&mut self, _records: &[PortRecord]) {}

    /// Any ACK. Only for laws that see every ACK.
    fn on_every_ack(&mut self, _window: &mut Window, _ack: &AckInfo) {}

    /// An ACK of `acked` new packets, for which the window may grow. `round_trip`: the smoothed
    /// one.
    #[inline]
    fn on_ack(&mut self, window: &mut Window, _now: Ps, _acked: u32, _round_trip: Ps) {
        window.open();
    }

    /// A whole window has been acknowledged, `marked` of `acked` packets with a mark.
    fn on_window(&mut self, _marked: u32, _acked: u32) {}

    /// The first mark of a window.
    fn on_mark(&mut self, _window: &mut Window, _now: Ps) {}

    /// A loss found by later packets: half the window.
    fn on_loss(&mut self, window: &mut Window, _now: Ps) {
        window.reduce_to(window.half());
    }

    /// A timeout: a window of one packet.
    fn on_timeout(&mut self, window: &mut Window, _now: Ps) {
        window.ssthresh = window.half();
        window.cwnd = ONE;
    }

    /// The connection is set up; `bytes`: of its packets. The handshake took `round_trip`.
    fn on_connected(&mut self, _window: &mut Window, _now: Ps, _round_trip: Ps, _bytes: u16) {}

    /// After idle time, `long` if longer than a timeout. Then the window is the initial one again,
    /// even from a smaller one, as ns-2's slow-start restart sets it.
    fn on_idle(&mut self, window: &mut Window, _now: Ps, _idle: Ps, long: bool) {
        if long {
            window.cwnd = window.bounds.initial * ONE;
        }
    }
}
