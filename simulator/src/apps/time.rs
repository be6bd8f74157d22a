// SPDX-License-Identifier: GPL-2.0-or-later
//! Compute times and measured latencies of applications.

use serde::{Deserialize, Serialize};

use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::core::units::{Duration, In};

/// A time of computing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub enum Span {
    /// Always this.
    Fixed(Ps),
    /// Exponential with this mean.
    Exponential(Ps),
}

/// The serialized form.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Span", deny_unknown_fields)]
enum Written {
    Fixed(#[serde(with = "In::<Duration>")] Ps),
    Exponential {
        #[serde(with = "In::<Duration>")]
        mean: Ps,
    },
}

impl From<Written> for Span {
    fn from(written: Written) -> Self {
        match written {
            Written::Fixed(time) => Span::Fixed(time),
            Written::Exponential { mean } => Span::Exponential(mean),
        }
    }
}

impl From<Span> for Written {
    fn from(span: Span) -> Self {
        match span {
            Span::Fixed(time) => Written::Fixed(time),
            Span::Exponential(mean) => Written::Exponential { mean },
        }
    }
}

impl Span {
    pub(crate) fn mean(self) -> Ps {
        let (Span::Fixed(mean) | Span::Exponential(mean)) = self;
        mean
    }

    pub(crate) fn draw(self, rng: &mut Rng) -> Ps {
        match self {
            Span::Fixed(time) => time,
            Span::Exponential(mean) => rng.exponential(mean as f64),
        }
    }
}

/// How long things took, in the order of their start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Latencies {
    /// When each began.
    pub starts: Vec<Ps>,
    /// How long it took; none: it has not ended.
    pub times: Vec<Option<Ps>>,
    /// Of those that have not ended: lost for good, for a datagram was dropped. The others were
    /// under way.
    pub lost: u64,
}

impl Latencies {
    pub(crate) fn begun(&self) -> u32 {
        self.starts.len() as u32
    }

    /// Returns the number of the one that begins.
    pub(crate) fn begin(&mut self, now: Ps) -> u32 {
        self.starts.push(now);
        self.times.push(None);
        self.begun() - 1
    }

    pub(crate) fn end(&mut self, number: u32, now: Ps) {
        self.times[number as usize] = Some(now - self.starts[number as usize]);
    }
}
