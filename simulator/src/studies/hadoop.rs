// SPDX-License-Identifier: GPL-2.0-or-later
//! The study of ECN under Hadoop.

use crate::host::transport::{Congestion, Transport};

impl Transport {
    /// The transports of the study of ECN under Hadoop (1 Gb/s, 1,500 bytes of data, ACKs of 150, delayed): TCP-ECN with
    /// [`Congestion::Ecn`], DCTCP with [`Congestion::Dctcp`]. What it does not say is as in [`Transport::linux`], but for the timeout,
    /// which is RFC 6298's, as in its simulator, ns-2.
    pub fn hadoop(congestion: Congestion) -> Self {
        Transport { ack_bytes: 150, rto_above_rtt: false, ..Transport::linux(congestion) }
    }
}
