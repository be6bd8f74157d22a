// SPDX-License-Identifier: GPL-2.0-or-later
//! What a scheme says of a queue.

use crate::core::error::{Error, Result};
use crate::queue::aqm::{CoDel, Red};
use crate::queue::limit::Limit;

/// A link's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// First come, first served; what does not fit is dropped.
    DropTail(Limit),
    /// Drop tail of `limit` bytes that marks data which finds more than `threshold` bytes, but not the first that does since the
    /// queue was shorter: what ns-2's RED does without averaging.
    Marking {
        /// Bytes.
        limit: u64,
        /// Bytes.
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
        limit: u64,
    },
    /// pFabric's: least remaining first, a flow in order, most remaining dropped. `limit` bytes without the packet being sent.
    /// Datagrams count as if one more than their level remained.
    PFabric {
        /// Bytes.
        limit: u64,
    },
    /// Deficit round robin: flows that wait have turns, of `quantum` bytes each; where packets do not fit, the longest flow gives up
    /// its newest. A source or a channel of datagrams is a flow. `limit` bytes without the packet being sent.
    RoundRobin {
        /// Bytes.
        limit: u64,
        /// Bytes.
        quantum: u32,
    },
}

impl Queue {
    /// Says what cannot be; `data`: bytes of a full packet.
    pub(crate) fn check(&self, place: &str, data: u16) -> Result<()> {
        let limit = match self {
            Queue::DropTail(limit) | Queue::Threshold { limit, .. } => *limit,
            Queue::RoundRobin { quantum: 0, .. } => {
                return Err(Error::new(format!("{place}: a quantum of 0 bytes lets no flow send")));
            }
            Queue::Marking { limit, .. }
            | Queue::Priority { limit }
            | Queue::PFabric { limit }
            | Queue::RoundRobin { limit, .. } => Limit::Bytes(*limit),
            Queue::Red(red) => {
                red.check().map_err(|error| Error::new(format!("{place}: {error}")))?;
                red.limit
            }
            Queue::CoDel(codel) => {
                codel.check().map_err(|error| Error::new(format!("{place}: {error}")))?;
                codel.limit
            }
        };
        let data = u64::from(data);
        let bytes = match limit {
            Limit::Bytes(bytes) => bytes,
            Limit::Packets(0) => 0,
            // What a time holds depends on the link.
            Limit::None | Limit::Packets(_) | Limit::Time(_) => u64::MAX,
        };
        if bytes < data {
            return Err(Error::new(format!("{place}: its limit of {bytes} bytes holds no packet of {data}")));
        }
        Ok(())
    }

    /// Whether packets are sent in the order in which they come, and none that was taken is dropped: then a link knows at once when
    /// each will have been sent.
    pub(crate) fn is_known_at_arrival(&self) -> bool {
        matches!(self, Queue::DropTail(_) | Queue::Marking { .. } | Queue::Threshold { .. } | Queue::Red(_))
    }
}
