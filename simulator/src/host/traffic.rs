// SPDX-License-Identifier: GPL-2.0-or-later
//! Settings of datagram sources: gaps and sizes.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{Duration, In, Instant, Octets, Unit};
use crate::net::topology::Topology;

/// Gaps between a source's datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Spacing", into = "Spacing")]
pub enum Gap {
    /// A constant gap; 0: all at once.
    Every(Ps),
    /// Exponential gaps with this mean.
    Poisson(Ps),
}

/// The serialized form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spacing {
    #[serde(with = "In::<Duration>")]
    gap: Ps,
    poisson: bool,
}

impl From<Spacing> for Gap {
    fn from(Spacing { gap, poisson }: Spacing) -> Self {
        if poisson {
            Gap::Poisson(gap)
        } else {
            Gap::Every(gap)
        }
    }
}

impl From<Gap> for Spacing {
    fn from(of: Gap) -> Self {
        Spacing { gap: of.mean(), poisson: matches!(of, Gap::Poisson(_)) }
    }
}

impl Gap {
    /// The mean gap.
    pub(crate) fn mean(self) -> Ps {
        let (Gap::Every(gap) | Gap::Poisson(gap)) = self;
        gap
    }

    /// The gap before the first datagram.
    pub(crate) fn first(self, rng: &mut Rng) -> Ps {
        match self {
            Gap::Every(_) => 0,
            Gap::Poisson(mean) => rng.exponential(mean as f64),
        }
    }

    /// The next gap.
    pub(crate) fn next(self, rng: &mut Rng) -> Ps {
        match self {
            Gap::Every(gap) => gap,
            Gap::Poisson(mean) => rng.exponential(mean as f64),
        }
    }
}

/// Sizes of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Length", into = "Length")]
pub enum Bytes {
    /// This many bytes on the wire.
    Fixed(u16),
    /// Exponential with this mean, from 1 to 65,535.
    Exponential(u16),
}

/// The serialized form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Length {
    #[serde(with = "In::<Octets>")]
    bytes: u16,
    exponential: bool,
}

impl From<Length> for Bytes {
    fn from(Length { bytes, exponential }: Length) -> Self {
        if exponential {
            Bytes::Exponential(bytes)
        } else {
            Bytes::Fixed(bytes)
        }
    }
}

impl From<Bytes> for Length {
    fn from(of: Bytes) -> Self {
        let (Bytes::Fixed(bytes) | Bytes::Exponential(bytes)) = of;
        Length { bytes, exponential: matches!(of, Bytes::Exponential(_)) }
    }
}

/// A source of datagrams without acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Number of the sending host.
    pub src: u32,
    /// Number of the receiving host.
    pub dst: u32,
    /// 0 is served first.
    pub level: u8,
    /// Time of the first datagram; a Poisson source counts its first gap from it.
    #[serde(with = "In::<Instant>")]
    pub first: Ps,
    /// Gaps.
    #[serde(rename = "spacing")]
    pub gap: Gap,
    /// Sizes.
    #[serde(rename = "length")]
    pub bytes: Bytes,
    /// Number of datagrams.
    pub count: u64,
}

/// Refuses invalid sources.
pub(crate) fn check_source(source: &Source, topology: &Topology) -> Result<()> {
    let place = format!("source from {} to {}", source.src, source.dst);
    check_ends(&place, source.src, source.dst, topology)?;
    if source.level > 7 {
        return Err(Error::new(format!("{place}: its level {} must be 0 to 7", source.level)));
    }
    if matches!(source.bytes, Bytes::Fixed(0) | Bytes::Exponential(0)) {
        return Err(Error::new(format!("{place}: its datagrams must be above 0 bytes")));
    }
    let (gap, count, latest) = (source.gap.mean(), source.count, Instant::MAX);
    if u128::from(source.first) + u128::from(gap) * u128::from(count) > u128::from(latest) {
        return Err(Error::new(format!(
            "{place}: {count} datagrams with {gap} ps between two would come after {latest} ps"
        )));
    }
    Ok(())
}

pub(crate) fn check_ends(place: &str, src: u32, dst: u32, topology: &Topology) -> Result<()> {
    let hosts = topology.hosts();
    if let Some(end) = [src, dst].into_iter().find(|&end| end >= hosts) {
        return Err(Error::new(format!("{place}: there is no host {end} among {hosts}")));
    }
    if src == dst {
        return Err(Error::new(format!("{place}: host {src} sends to itself")));
    }
    Ok(())
}
