// SPDX-License-Identifier: GPL-2.0-or-later
//! Transports as hosts of today have them, beside those of Figure 9.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::time::{shown, Ps, MS, S};
use crate::core::units::{Duration, In, Octets, Unit};
pub use crate::host::congestion::Congestion;
use crate::host::congestion::Windows;
use crate::packet::Kind;

/// Data packet of all published schemes.
pub(crate) const DATA: u16 = 1500;

/// By what queues with priorities tell data apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    /// The flow's level.
    Level,
    /// Packets that are not acknowledged yet.
    Remaining,
    /// When the flow should end.
    Deadline,
}

/// Reliable transport.
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
    /// The smallest timeout is of what is added to the smoothed round trip, as Linux has it; without it of the whole (RFC 6298).
    pub rto_above_rtt: bool,
    /// The one before a round-trip time was measured, 1 s by RFC 6298 (section 2.1), or the smallest if that is larger; none: the
    /// smallest, as in the published scripts. A connection's setup measures one.
    #[serde(with = "In::<Duration>")]
    pub initial_rto: Option<Ps>,
    /// Largest one.
    #[serde(with = "In::<Duration>")]
    pub max_rto: Ps,
    /// The timeout is always `min_rto` and does not double; that of a SYN does not either.
    pub fixed_rto: bool,
    /// Packets above a hole that mean loss; none: only the timeout does.
    pub dupacks: Option<u32>,
    /// Selective acknowledgements; without them ACKs that tell of nothing new are counted (RFC 6582), and after a timeout all
    /// is sent again.
    pub sack: bool,
    /// Selective acknowledgements are heeded after a timeout too, and what they told of is not sent again. Without it what was sent
    /// before the timeout is sent again from the first hole on, as ns-2's Sack1 does outside of fast recovery.
    pub sack_after_rto: bool,
    /// How long a packet in order waits for a second, to be acknowledged with it (RFC 5681, section 4.2); none: each is
    /// acknowledged alone.
    #[serde(with = "In::<Duration>")]
    pub delayed_ack: Option<Ps>,
    /// A new connection begins with a SYN, which is sent again after this time, then after twice it and so on (RFC 6298); none: it
    /// begins with data. The setup is part of the flow's time.
    #[serde(with = "In::<Duration>")]
    pub handshake: Option<Ps>,
    /// Data sent again is ECN-capable too, as in ns-2; RFC 3168 (section 6.1.5) has it not be.
    pub ect_again: bool,
    /// ACKs and probes of ECN-capable flows are ECN-capable too, as those of Linux's DCTCP: queues that mark do not drop them early.
    /// That they were marked says nothing to anybody.
    pub ect_acks: bool,
    /// The same of SYNs and SYN-ACKs.
    pub ect_syn: bool,
    /// Packets that DCTCP's window has at least after marks; Linux has 2, for the ACK of a single packet is delayed.
    pub least_window: u32,
    /// After so many timeouts in a row a sender sends probes only, until one comes through.
    pub probe_after: Option<u32>,
    /// What a sender does about marks.
    pub congestion: Congestion,
    /// By what queues with priorities tell its data apart.
    pub rank: Rank,
    /// How many connections of an ordered pair of hosts stay open between flows, with what they know of the path.
    pub connections: u32,
}

impl Transport {
    /// TCP as Linux has it unless it is told otherwise, with a new connection for each flow: a first window of 10 packets
    /// (RFC 6928), selective acknowledgements, fast retransmit, ACKs delayed by 40 ms at most, timeouts from 200 ms to
    /// 120 s, 1 s for a SYN and before there is a round-trip time. Windows of 6 MB.
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

    /// Those that congestion control keeps to.
    pub(crate) fn windows(&self) -> Windows {
        Windows { initial: self.initial_window, most: self.max_window, least: self.least_window }
    }

    /// Whether each data packet has an ACK of its own with its own mark.
    #[inline]
    pub(crate) fn answers_each(&self) -> bool {
        self.delayed_ack.is_none() && self.congestion.suits_each()
    }

    /// Whether a packet without data may be marked instead of dropped.
    #[inline]
    pub(crate) fn bare_ect(&self, kind: Kind) -> bool {
        let told = if matches!(kind, Kind::Syn | Kind::SynAck) { self.ect_syn } else { self.ect_acks };
        told && self.congestion.ecn_capable()
    }

    /// Says what cannot be.
    pub(crate) fn check(&self) -> Result<()> {
        match self.wrong_window().or_else(|| self.wrong_wait()) {
            Some(sentence) => Err(Error::new(sentence)),
            None => Ok(()),
        }
    }

    fn wrong_window(&self) -> Option<String> {
        let wrong = if self.data_bytes == 0 || self.ack_bytes == 0 {
            "transport: a packet has 0 bytes".to_owned()
        } else if self.initial_window == 0 || self.initial_window > self.max_window {
            format!(
                "transport: the initial window of {} packets is not between 1 and the largest, {}",
                self.initial_window, self.max_window
            )
        } else if self.max_window >= 1 << 15 {
            format!("transport: a window of {} packets is not below 32768", self.max_window)
        } else if self.min_rto == 0 || self.min_rto > self.max_rto || self.max_rto > Duration::MOST {
            format!(
                "transport: the smallest timeout of {} is not above 0 and at most the largest, {}, or that is above 1000 s",
                shown(self.min_rto),
                shown(self.max_rto)
            )
        } else {
            return None;
        };
        Some(wrong)
    }

    /// What of timeouts, delays and weights cannot be simulated.
    fn wrong_wait(&self) -> Option<String> {
        let wrong = if self.delayed_ack == Some(0) {
            "transport: an ACK delayed by 0 ps is none: leave the delay out".to_owned()
        } else if self.delayed_ack.is_some_and(|delay| delay > Duration::MOST) {
            "transport: ACKs are delayed by more than 1000 s".to_owned()
        } else if self.least_window == 0 || self.least_window > self.max_window {
            format!("transport: a least window of {} packets is not 1 to the largest one", self.least_window)
        } else if self.dupacks == Some(0) {
            "transport: 0 packets above a hole mean no loss: leave dupacks out".to_owned()
        } else if self.handshake.is_some_and(|first| first == 0 || first > self.max_rto) {
            format!("transport: the timeout of a SYN is not between 0 and the largest, {}", shown(self.max_rto))
        } else if self.initial_rto.is_some_and(|first| first == 0 || first > self.max_rto) {
            format!("transport: the first timeout is not between 0 and the largest, {}", shown(self.max_rto))
        } else {
            return self.congestion.wrong().map(|what| format!("transport: {what}"));
        };
        Some(wrong)
    }
}
