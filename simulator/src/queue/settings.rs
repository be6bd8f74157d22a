// SPDX-License-Identifier: GPL-2.0-or-later
//! The queue setting of a scheme: one variant a kind of queue, with the properties that links ask
//! about.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::units::{In, Size};
use crate::queue::aqm::{CoDel, Red};
use crate::queue::dualpi2::DualPi2;
use crate::queue::level_red::LevelRed;
use crate::queue::limit::Limit;
use crate::queue::pie::Pie;
use crate::queue::time_aware::TimeAware;
use crate::queue::wfq::Wfq;

/// The queue setting of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Queue {
    /// FIFO; packets that do not fit are dropped.
    DropTail(Limit),
    /// FIFO of `limit` bytes that marks ECN-capable data which finds more than `threshold` bytes,
    /// except the first packet since the queue was shorter: ns-2's RED without averaging.
    Marking {
        /// Bytes.
        #[serde(with = "In::<Size>")]
        limit: u64,
        /// Bytes.
        #[serde(with = "In::<Size>")]
        threshold: u64,
    },
    /// FIFO that marks every ECN-capable packet which finds `threshold` or more, as hardware and
    /// Linux do.
    Threshold {
        /// Limit of the queue.
        limit: Limit,
        /// Threshold of marks.
        threshold: Limit,
    },
    /// Random early detection in front of a FIFO.
    Red(Red),
    /// Controlled delay on a FIFO.
    CoDel(CoDel),
    /// Strict priority in eight levels, with ACKs above; evicts the newest packet of the least
    /// urgent level. `limit` in bytes without the packet being sent.
    Priority {
        /// Bytes.
        #[serde(with = "In::<Size>")]
        limit: u64,
    },
    /// pFabric's: least remaining first, flows in order, most remaining dropped. `limit` in bytes
    /// without the packet being sent. Datagrams count as one more remaining packet than their
    /// level.
    PFabric {
        /// Bytes.
        #[serde(with = "In::<Size>")]
        limit: u64,
    },
    /// Deficit round robin: waiting flows take turns of `quantum` bytes; if a packet does not fit,
    /// the longest flow drops its newest. A source or channel of datagrams is a flow. `limit` in
    /// bytes without the packet being sent.
    RoundRobin {
        /// Bytes.
        #[serde(with = "In::<Size>")]
        limit: u64,
        /// Bytes.
        #[serde(with = "In::<Size>")]
        quantum: u32,
    },
    /// Eight levels that share the link by weight.
    Wfq(Wfq),
    /// Eight levels, each of which marks by its own queue.
    LevelRed(LevelRed),
    /// Eight levels with gates that open by the clock (802.1Qbv).
    TimeAware(TimeAware),
    /// PIE in front of a FIFO (RFC 8033).
    Pie(Pie),
    /// Two coupled queues (RFC 9332).
    DualPi2(DualPi2),
}

impl Queue {
    /// Refuses invalid settings. `packet`: bytes of the largest packet.
    pub(crate) fn check(&self, place: &str, packet: u16) -> Result<()> {
        let limit = match self {
            Queue::DropTail(limit)
            | Queue::Threshold { limit, .. }
            | Queue::Red(Red { limit, .. })
            | Queue::CoDel(CoDel { limit, .. })
            | Queue::Pie(Pie { limit, .. }) => *limit,
            Queue::TimeAware(gates) => Limit::Bytes(gates.limit()),
            Queue::Marking { limit, .. }
            | Queue::Priority { limit }
            | Queue::PFabric { limit }
            | Queue::RoundRobin { limit, .. }
            | Queue::Wfq(Wfq { limit, .. })
            | Queue::LevelRed(LevelRed { limit, .. })
            | Queue::DualPi2(DualPi2 { limit, .. }) => Limit::Bytes(*limit),
        };
        let checked = match self {
            Queue::RoundRobin { quantum: 0, .. } => Err(Error::new("the quantum must be above 0 bytes")),
            Queue::Red(red) => red.check(),
            Queue::CoDel(codel) => codel.check(),
            Queue::Wfq(wfq) => wfq.check(),
            Queue::LevelRed(red) => red.check(),
            Queue::Pie(pie) => pie.check(),
            Queue::DualPi2(dual) => dual.check(),
            _ => Ok(()),
        };
        checked.map_err(|error| Error::new(format!("{place}: {error}")))?;
        let packet = u64::from(packet);
        let bytes = match limit {
            Limit::Bytes(bytes) => bytes,
            Limit::Packets(0) => 0,
            // The bytes of a time depend on the link.
            Limit::None | Limit::Packets(_) | Limit::Time(_) => u64::MAX,
        };
        if bytes < packet {
            return Err(Error::new(format!("{place}: its limit of {bytes} bytes is less than a packet of {packet}")));
        }
        Ok(())
    }

    /// Whether packets leave in the order of arrival and no admitted packet is dropped: then a link
    /// knows at arrival when each will have been sent.
    pub(crate) fn departs_in_order(&self) -> bool {
        matches!(self, Queue::DropTail(_) | Queue::Marking { .. } | Queue::Threshold { .. } | Queue::Red(_) | Queue::Pie(_))
    }

    /// Whether a link must ask it for every packet: it may wait though the link is free, drop
    /// admitted packets, count what is sent, or mark by level.
    pub(crate) fn needs_port(&self) -> bool {
        matches!(self, Queue::CoDel(_) | Queue::Wfq(_) | Queue::LevelRed(_) | Queue::TimeAware(_) | Queue::DualPi2(_))
    }

    /// Why a link with this queue cannot be paused, if it cannot.
    pub(crate) fn pause_conflict(&self) -> Option<&'static str> {
        matches!(self, Queue::Pie(_)).then_some("PIE knows the delay only of a link that is never paused")
    }

    /// Whether it serves by level, so that single levels can be stopped.
    pub(crate) fn has_levels(&self) -> bool {
        matches!(self, Queue::Priority { .. } | Queue::Wfq(_) | Queue::LevelRed(_) | Queue::TimeAware(_))
    }
}
