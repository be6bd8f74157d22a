// SPDX-License-Identifier: GPL-2.0-or-later
//! What a scheme says of a queue.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::units::{In, Size};
use crate::queue::aqm::{CoDel, Red};
use crate::queue::dual::DualPi2;
use crate::queue::level_red::LevelRed;
use crate::queue::limit::Limit;
use crate::queue::pie::Pie;
use crate::queue::timed::TimeAware;
use crate::queue::wfq::Wfq;

/// A link's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Queue {
    /// First come, first served; what does not fit is dropped.
    DropTail(Limit),
    /// Drop tail of `limit` bytes that marks ECN-capable data which finds more than `threshold` bytes, but not the first that does since the
    /// queue was shorter: what ns-2's RED does without averaging.
    Marking {
        /// Bytes.
        #[serde(with = "In::<Size>")]
        limit: u64,
        /// Bytes.
        #[serde(with = "In::<Size>")]
        threshold: u64,
    },
    /// First come, first served; marks every ECN-capable packet that finds `threshold` or more, as hardware and Linux do.
    Threshold {
        /// Of the queue.
        limit: Limit,
        /// From which on it marks.
        threshold: Limit,
    },
    /// Random early detection before a drop tail.
    Red(Red),
    /// Controlled delay behind a drop tail.
    CoDel(CoDel),
    /// Strict priority in eight levels, ACKs before them; pushes out the newest packet of the last level. `limit` bytes without
    /// the packet being sent.
    Priority {
        /// Bytes.
        #[serde(with = "In::<Size>")]
        limit: u64,
    },
    /// pFabric's: least remaining first, a flow in order, most remaining dropped. `limit` bytes without the packet being sent.
    /// Datagrams count as if one more than their level remained.
    PFabric {
        /// Bytes.
        #[serde(with = "In::<Size>")]
        limit: u64,
    },
    /// Deficit round robin: flows that wait have turns, of `quantum` bytes each; where packets do not fit, the longest flow gives up
    /// its newest. A source or a channel of datagrams is a flow. `limit` bytes without the packet being sent.
    RoundRobin {
        /// Bytes.
        #[serde(with = "In::<Size>")]
        limit: u64,
        /// Bytes.
        #[serde(with = "In::<Size>")]
        quantum: u32,
    },
    /// Levels by weight.
    Wfq(Wfq),
    /// Levels that mark.
    LevelRed(LevelRed),
    /// Levels with gates that open by the clock (802.1Qbv).
    TimeAware(TimeAware),
    /// PIE before a drop tail (RFC 8033).
    Pie(Pie),
    /// Two coupled queues (RFC 9332).
    DualPi2(DualPi2),
}

impl Queue {
    /// Says what cannot be; `packet`: bytes of the largest one.
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
            Queue::RoundRobin { quantum: 0, .. } => Err(Error::new("a quantum of 0 bytes lets no flow send")),
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
            // What a time holds depends on the link.
            Limit::None | Limit::Packets(_) | Limit::Time(_) => u64::MAX,
        };
        if bytes < packet {
            return Err(Error::new(format!("{place}: its limit of {bytes} bytes holds no packet of {packet}")));
        }
        Ok(())
    }

    /// Whether packets are sent in the order in which they come, and none that was taken is dropped: then a link knows at once when
    /// each will have been sent.
    pub(crate) fn is_known_at_arrival(&self) -> bool {
        matches!(self, Queue::DropTail(_) | Queue::Marking { .. } | Queue::Threshold { .. } | Queue::Red(_) | Queue::Pie(_))
    }

    /// Whether a link has to ask it for every packet: it may wait though the link is free, drop what it took, count what is sent, or mark by
    /// level.
    pub(crate) fn is_asked_always(&self) -> bool {
        matches!(self, Queue::CoDel(_) | Queue::Wfq(_) | Queue::LevelRed(_) | Queue::TimeAware(_) | Queue::DualPi2(_))
    }

    /// Why a link with it cannot be paused, if it cannot.
    pub(crate) fn wrong_with_pauses(&self) -> Option<&'static str> {
        matches!(self, Queue::Pie(_)).then_some("PIE knows the delay only of a link that is never paused")
    }

    /// Whether it serves by level, so that some may be stopped and others not.
    pub(crate) fn has_levels(&self) -> bool {
        matches!(self, Queue::Priority { .. } | Queue::Wfq(_) | Queue::LevelRed(_) | Queue::TimeAware(_))
    }
}
