// SPDX-License-Identifier: GPL-2.0-or-later
//! Transport settings: windows, timeouts, acknowledgements and congestion control.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::time::{human, Ps, MS, S};
use crate::core::units::{Duration, In, Octets, Unit};
pub use crate::host::congestion::Congestion;
use crate::host::congestion::Windows;
use crate::packet::Kind;

/// Bytes of a data packet in all published schemes.
pub(crate) const DATA: u16 = 1500;

/// What a data packet's rank is, by which priority queues order it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    /// The flow's level.
    Level,
    /// Unacknowledged packets.
    Remaining,
    /// The flow's deadline.
    Deadline,
}

/// What a receiver does above a gap, and what its sender sends again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// TCP's: by selective acknowledgements, duplicate ACKs, RACK-TLP or timeouts.
    Tcp,
    /// `RoCEv2`'s (InfiniBand Architecture Specification, volume 1, chapter 9; Guo et al., SIGCOMM
    /// 2016, section 4.1): the receiver drops what is above a gap, and tells the sender of it once,
    /// with a NAK; the sender sends everything from there on again.
    GoBackN,
    /// IRN's (Mittal et al., SIGCOMM 2018, section 3.1): only what is missing below a packet that
    /// has arrived is sent again, and after a timeout the first missing packet.
    Selective,
}

/// Settings of a reliable transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
// Each is a switch of its own.
#[allow(clippy::struct_excessive_bools)]
pub struct Transport {
    /// Bytes of a data packet on the wire.
    #[serde(with = "In::<Octets>")]
    pub data_bytes: u16,
    /// Bytes of an ACK on the wire, and of a probe, SYN or SYN-ACK.
    #[serde(with = "In::<Octets>")]
    pub ack_bytes: u16,
    /// Window of a new connection and after idleness, in packets.
    pub initial_window: u32,
    /// Largest window, in packets.
    pub max_window: u32,
    /// Smallest retransmission timeout.
    #[serde(with = "In::<Duration>")]
    pub min_rto: Ps,
    /// As in Linux, `min_rto` is the least margin above the smoothed round trip; otherwise the
    /// least timeout (RFC 6298).
    pub rto_above_rtt: bool,
    /// Timeout before a round trip has been measured: 1 s by RFC 6298 (section 2.1), or the
    /// smallest if that is larger; none: the smallest, as in the published scripts. A handshake
    /// measures one.
    #[serde(with = "In::<Duration>")]
    pub initial_rto: Option<Ps>,
    /// Largest retransmission timeout.
    #[serde(with = "In::<Duration>")]
    pub max_rto: Ps,
    /// The timeout is always `min_rto`, without back-off; also that of a SYN.
    pub fixed_rto: bool,
    /// Packets above a hole that indicate loss; none: only timeouts do.
    pub dupacks: Option<u32>,
    /// Selective acknowledgements; without them duplicate ACKs are counted (RFC 6582), and after a
    /// timeout everything is retransmitted.
    pub sack: bool,
    /// Selective acknowledgements also count after a timeout, and what they cover is not
    /// retransmitted. Otherwise everything from the first hole on is, as by ns-2's Sack1 outside of
    /// fast recovery.
    pub sack_after_rto: bool,
    /// RACK-TLP (RFC 8985): losses are found by the time since a packet left, and a lost tail by a
    /// probe after two round trips. It needs selective acknowledgements, also after a timeout.
    pub rack_tlp: bool,
    /// How losses are made good. `GoBackN` needs transports without `sack` and `dupacks`,
    /// `Selective` with both and `sack_after_rto`; the paper's `dupacks` is 1.
    pub recovery: Recovery,
    /// The smallest timeout while fewer than 3 packets are under way (IRN's `RTO_low`; `min_rto` is
    /// `RTO_high`); none: `min_rto`. Only with selective recovery.
    #[serde(with = "In::<Duration>")]
    pub low_rto: Option<Ps>,
    /// How long a packet in order waits for a second one, to be acknowledged with it (RFC 5681,
    /// section 4.2); none: each packet has its own ACK.
    #[serde(with = "In::<Duration>")]
    pub delayed_ack: Option<Ps>,
    /// A new connection starts with a SYN, which is retransmitted after this time, then twice that
    /// and so on (RFC 6298); none: it starts with data. The handshake is part of the flow's time.
    #[serde(with = "In::<Duration>")]
    pub handshake: Option<Ps>,
    /// Retransmissions are ECN-capable, as in ns-2; RFC 3168 (section 6.1.5) forbids it.
    pub ect_again: bool,
    /// ACKs and probes of ECN-capable flows are ECN-capable, as in Linux's DCTCP: queues that mark
    /// do not drop them early. Nobody reacts to their marks.
    pub ect_acks: bool,
    /// The same for SYNs and SYN-ACKs.
    pub ect_syn: bool,
    /// DCTCP's least window after marks, in packets; Linux has 2, because the ACK of a single
    /// packet is delayed.
    pub least_window: u32,
    /// After this many timeouts in a row a sender only sends probes, until one gets through.
    pub probe_after: Option<u32>,
    /// The law of congestion control.
    pub congestion: Congestion,
    /// The rank of its data in priority queues.
    pub rank: Rank,
    /// Connections of an ordered pair of hosts that stay open between flows, and keep their path
    /// state.
    pub connections: u32,
}

impl Transport {
    /// TCP as in Linux with default settings, and a new connection for each flow: an initial window
    /// of 10 packets (RFC 6928), selective acknowledgements, fast retransmit, ACKs delayed by at
    /// most 40 ms, timeouts from 200 ms to 120 s, 1 s for a SYN and before the first round trip is
    /// known. Windows of 6 MB.
    pub fn linux(congestion: Congestion) -> Self {
        Transport {
            data_bytes: DATA,
            ack_bytes: 40,
            initial_window: 10,
            max_window: 4_095,
            min_rto: 200 * MS,
            rto_above_rtt: true,
            initial_rto: Some(S),
            max_rto: 120 * S,
            fixed_rto: false,
            dupacks: Some(3),
            sack: true,
            sack_after_rto: true,
            rack_tlp: false,
            recovery: Recovery::Tcp,
            low_rto: None,
            delayed_ack: Some(40 * MS),
            handshake: Some(S),
            ect_again: false,
            ect_acks: false,
            ect_syn: false,
            least_window: 1,
            probe_after: None,
            congestion,
            rank: Rank::Level,
            connections: 0,
        }
    }

    /// The windows that bound congestion control.
    pub(crate) fn windows(&self) -> Windows {
        Windows { initial: self.initial_window, most: self.max_window, least: self.least_window }
    }

    /// Whether each data packet gets its own ACK with its own mark.
    #[inline]
    pub(crate) fn acks_every_packet(&self) -> bool {
        self.delayed_ack.is_none()
            && self.congestion.allows_ack_per_packet()
            && self.recovery != Recovery::GoBackN
    }

    /// Whether a packet without data is ECN-capable.
    #[inline]
    pub(crate) fn bare_ect(&self, kind: Kind) -> bool {
        let told =
            if matches!(kind, Kind::Syn | Kind::SynAck) { self.ect_syn } else { self.ect_acks };
        told && self.congestion.ecn_capable()
    }

    /// Refuses invalid settings.
    pub(crate) fn check(&self) -> Result<()> {
        let problem = self.window_problem().or_else(|| self.recovery_problem());
        match problem.or_else(|| self.timing_problem()) {
            Some(sentence) => Err(Error::new(sentence)),
            None => Ok(()),
        }
    }

    fn window_problem(&self) -> Option<String> {
        let wrong = if self.data_bytes == 0 || self.ack_bytes == 0 {
            "transport: packets must be above 0 bytes".to_owned()
        } else if self.initial_window == 0 || self.initial_window > self.max_window {
            format!(
                "transport: the initial window of {} packets must be between 1 and the largest, {}",
                self.initial_window, self.max_window
            )
        } else if self.max_window >= 1 << 15 {
            format!("transport: a window of {} packets must be below 32768", self.max_window)
        } else if self.min_rto == 0 || self.min_rto > self.max_rto || self.max_rto > Duration::MAX {
            format!(
                "transport: the smallest timeout of {} must be above 0 and at most the largest, \
                 {}, which must be at most 1000 s",
                human(self.min_rto),
                human(self.max_rto)
            )
        } else {
            return None;
        };
        Some(wrong)
    }

    /// What is wrong with how losses are made good, if anything.
    fn recovery_problem(&self) -> Option<String> {
        let (sack, dupacks) = (self.sack, self.dupacks.is_some());
        let own = self.recovery != Recovery::Tcp;
        let wrong = if own && self.congestion.grants() {
            "recovery is of senders with a window: receivers grant here, use tcp"
        } else if own && self.rack_tlp {
            "rack_tlp needs recovery tcp"
        } else if self.recovery == Recovery::GoBackN && (sack || dupacks) {
            "go-back-n needs sack false and dupacks left out: receivers keep nothing above a gap"
        } else if self.recovery == Recovery::Selective && !(sack && self.sack_after_rto && dupacks)
        {
            "selective recovery needs sack, sack_after_rto and dupacks"
        } else if self.recovery == Recovery::Selective && self.probe_after.is_some() {
            "probe_after is for recovery tcp or go-back-n"
        } else if self.low_rto.is_some() && self.recovery != Recovery::Selective {
            "low_rto needs selective recovery"
        } else if self.low_rto.is_some_and(|low| low == 0 || low > self.min_rto) {
            "low_rto must be above 0 and at most min_rto"
        } else {
            return None;
        };
        Some(format!("transport: {wrong}"))
    }

    /// What is wrong with timeouts, delays or windows, if anything.
    fn timing_problem(&self) -> Option<String> {
        let wrong = if self.delayed_ack == Some(0) {
            "transport: delayed_ack must be above 0 ps: leave it out for no delay".to_owned()
        } else if self.delayed_ack.is_some() && self.congestion.reads_telemetry() {
            "transport: a law that reads telemetry needs an ACK for each packet: leave delayed_ack \
             out"
            .to_owned()
        } else if self.delayed_ack.is_some_and(|delay| delay > Duration::MAX) {
            "transport: ACKs are delayed by more than 1000 s".to_owned()
        } else if self.rack_tlp && !(self.sack && self.sack_after_rto) {
            "transport: rack_tlp needs sack and sack_after_rto".to_owned()
        } else if self.rack_tlp && self.congestion.grants() {
            "transport: rack_tlp is for senders with a window: receivers grant here".to_owned()
        } else if self.least_window == 0 || self.least_window > self.max_window {
            format!(
                "transport: a least window of {} packets must be 1 to the largest one",
                self.least_window
            )
        } else if self.dupacks == Some(0) {
            "transport: dupacks must be above 0: leave it out for none".to_owned()
        } else if self.handshake.is_some_and(|first| first == 0 || first > self.max_rto) {
            format!(
                "transport: the timeout of a SYN must be between 0 and the largest, {}",
                human(self.max_rto)
            )
        } else if self.initial_rto.is_some_and(|first| first == 0 || first > self.max_rto) {
            format!(
                "transport: the first timeout must be between 0 and the largest, {}",
                human(self.max_rto)
            )
        } else {
            return self.congestion.problem().map(|what| format!("transport: {what}"));
        };
        Some(wrong)
    }
}
