// SPDX-License-Identifier: GPL-2.0-or-later
//! Sources of datagrams, and when and how large what they send is.

use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::net::topology::Topology;

/// When a source's datagrams come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gap {
    /// At this distance; 0: all at once.
    Every(Ps),
    /// With exponential distances of this mean.
    Poisson(Ps),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bytes {
    /// So many bytes on the wire.
    Fixed(u16),
    /// Exponential with this mean, at least 1; 65,535 instead of more.
    Exponential(u16),
}

/// A source of datagrams, which nobody acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Number of the sending host.
    pub src: u32,
    /// Number of the receiving host.
    pub dst: u32,
    /// 0 is served first.
    pub level: u8,
    /// Time of the first one; a Poisson source counts its first distance from it.
    pub first: Ps,
    /// Distances.
    pub gap: Gap,
    /// Sizes.
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
