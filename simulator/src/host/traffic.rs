// SPDX-License-Identifier: GPL-2.0-or-later
//! Sources of datagrams, and when and how large what they send is.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{Duration, In, Instant, Octets, Unit};
use crate::net::topology::Topology;

/// When a source's datagrams come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Spacing", into = "Spacing")]
pub enum Gap {
    /// At this distance; 0: all at once.
    Every(Ps),
    /// With exponential distances of this mean.
    Poisson(Ps),
}

/// As it is written.
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
    /// The distance between two on average.
    pub(crate) fn mean(self) -> Ps {
        let (Gap::Every(gap) | Gap::Poisson(gap)) = self;
        gap
    }

    /// The distance to the first one.
    pub(crate) fn first(self, rng: &mut Rng) -> Ps {
        match self {
            Gap::Every(_) => 0,
            Gap::Poisson(mean) => rng.exponential(mean as f64),
        }
    }

    /// The distance to the next one.
    pub(crate) fn next(self, rng: &mut Rng) -> Ps {
        match self {
            Gap::Every(gap) => gap,
            Gap::Poisson(mean) => rng.exponential(mean as f64),
        }
    }
}

/// How large they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Length", into = "Length")]
pub enum Bytes {
    /// So many bytes on the wire.
    Fixed(u16),
    /// Exponential with this mean, at least 1; 65,535 instead of more.
    Exponential(u16),
}

/// As it is written.
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

/// A source of datagrams, which nobody acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Number of the sending host.
    pub src: u32,
    /// Number of the receiving host.
    pub dst: u32,
    /// 0 is served first.
    pub level: u8,
    /// Time of the first one; a Poisson source counts its first distance from it.
    #[serde(with = "In::<Instant>")]
    pub first: Ps,
    /// Distances.
    #[serde(rename = "spacing")]
    pub gap: Gap,
    /// Sizes.
    #[serde(rename = "length")]
    pub bytes: Bytes,
    /// How many.
    pub count: u64,
}

/// Says of a source what cannot be.
pub(crate) fn check_source(source: &Source, topology: &Topology) -> Result<()> {
    let place = format!("source from {} to {}", source.src, source.dst);
    check_ends(&place, source.src, source.dst, topology)?;
    if source.level > 7 {
        return Err(Error::new(format!("{place}: its level {} is not 0 to 7", source.level)));
    }
    if matches!(source.bytes, Bytes::Fixed(0) | Bytes::Exponential(0)) {
        return Err(Error::new(format!("{place}: its datagrams have 0 bytes")));
    }
    let (gap, count, latest) = (source.gap.mean(), source.count, Instant::MOST);
    if u128::from(source.first) + u128::from(gap) * u128::from(count) > u128::from(latest) {
        return Err(Error::new(format!("{place}: {count} datagrams with {gap} ps between two would come after {latest} ps")));
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
