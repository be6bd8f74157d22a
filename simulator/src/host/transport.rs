// SPDX-License-Identifier: GPL-2.0-or-later
//! Transports as hosts of today have them, beside those of Figure 9.

use crate::core::time::{MS, S};
use crate::sim::scheme::{Congestion, Rank, Transport, DATA};

impl Congestion {
    /// Whether data may be marked: it is ECN-capable (ECT).
    #[inline]
    pub(crate) fn ecn_capable(self) -> bool {
        matches!(self, Congestion::Ecn | Congestion::Dctcp { .. })
    }
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
            initial_rto: Some(S),
            max_rto: 120 * S,
            fixed_rto: false,
            dupacks: Some(3),
            sack: true,
            delayed_ack: Some(40 * MS),
            handshake: Some(S),
            ect_again: false,
            least_window: 1,
            probe_after: None,
            congestion,
            rank: Rank::Level,
            connections: 0,
        }
    }

    /// The transports of the study of ECN under Hadoop (1 Gb/s, 1,500 bytes of data, ACKs of 150, delayed): TCP-ECN with
    /// [`Congestion::Ecn`], DCTCP with [`Congestion::Dctcp`]. What it does not say is as in [`Transport::linux`].
    pub fn hadoop(congestion: Congestion) -> Self {
        Transport { ack_bytes: 150, ..Transport::linux(congestion) }
    }

    /// Whether each data packet has an ACK of its own with its own mark.
    #[inline]
    pub(crate) fn answers_each(&self) -> bool {
        self.delayed_ack.is_none() && self.congestion != Congestion::Ecn
    }

    /// What of timeouts, delays and weights cannot be simulated.
    pub(crate) fn wrong(&self) -> Option<String> {
        if self.delayed_ack == Some(0) {
            Some("transport: an ACK delayed by 0 ps is none: leave the delay out".to_owned())
        } else if self.delayed_ack.is_some_and(|delay| delay > 1000 * S) {
            Some("transport: ACKs are delayed by more than 1000 s".to_owned())
        } else if self.least_window == 0 || self.least_window > self.max_window {
            Some(format!("transport: a least window of {} packets is not 1 to the largest one", self.least_window))
        } else if self.dupacks == Some(0) {
            Some("transport: 0 packets above a hole mean no loss: leave dupacks out".to_owned())
        } else if self.handshake.is_some_and(|first| first == 0 || first > self.max_rto) {
            Some(format!("transport: the timeout of a SYN is not between 0 and the largest, {} ms", self.max_rto / MS))
        } else if self.initial_rto.is_some_and(|first| first == 0 || first > self.max_rto) {
            Some(format!("transport: the first timeout is not between 0 and the largest, {} ms", self.max_rto / MS))
        } else if matches!(self.congestion, Congestion::Dctcp { shift } if shift > 20) {
            Some("transport: DCTCP's g is below 2^-20, with which alpha stays 0".to_owned())
        } else {
            None
        }
    }
}
