// SPDX-License-Identifier: GPL-2.0-or-later
//! Datagrams: one way, at set times, with the latency of each.

use serde::{Deserialize, Serialize};

use crate::apps::check::{count, level, pair, positive, schedule};
use crate::core::error::Result;
use crate::core::time::Ps;
use crate::core::units::{In, Instant, Octets};
use crate::host::traffic::Gap;
use crate::net::topology::Topology;

/// A host that sends datagrams without answers. A datagram's latency begins when it is handed over,
/// to a limiter if there is one. A [`Source`](crate::Source) costs less but only reports totals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Datagrams {
    /// Number of the sending host.
    pub src: u32,
    /// Number of the receiving host.
    pub dst: u32,
    /// 0 is served first.
    pub level: u8,
    /// Time of the first datagram; with Poisson gaps the first gap is counted from it.
    #[serde(with = "In::<Instant>")]
    pub first: Ps,
    /// Gap between two datagrams.
    #[serde(rename = "spacing")]
    pub gap: Gap,
    /// Bytes on the wire.
    #[serde(with = "In::<Octets>")]
    pub bytes: u16,
    /// Number of datagrams.
    pub count: u32,
}

impl Datagrams {
    pub(crate) fn check(&self, topology: &Topology) -> Result<()> {
        let place = format!("datagrams from {} to {}", self.src, self.dst);
        pair(&place, self.src, self.dst, topology)?;
        level(&place, self.level)?;
        count(&place, "datagrams", self.count)?;
        positive(&place, "bytes of each", self.bytes.into())?;
        schedule(&place, self.first, self.gap.mean(), self.count.into())
    }
}
