// SPDX-License-Identifier: GPL-2.0-or-later
//! A running source of datagrams: the size and time of each datagram.

use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::host::result::SourceResult;
use crate::host::traffic::{Bytes, Source};

#[derive(Debug)]
pub(crate) struct Emitter {
    source: Source,
    left: u64,
    rng: Rng,
    pub result: SourceResult,
}

impl Emitter {
    pub fn new(source: Source, rng: Rng) -> Self {
        Emitter { source, left: source.count, rng, result: SourceResult::default() }
    }

    /// Time of the first datagram.
    pub fn first(&mut self) -> Option<Ps> {
        let first = self.source.first + self.source.gap.first(&mut self.rng);
        (self.source.count > 0).then_some(first)
    }

    /// Bytes of the current datagram, and the gap to the next one.
    pub fn next(&mut self) -> (u16, Option<Ps>) {
        let bytes = match self.source.bytes {
            Bytes::Fixed(bytes) => bytes,
            Bytes::Exponential(mean) => {
                self.rng.exponential(f64::from(mean)).clamp(1, 65_535) as u16
            }
        };
        let gap = self.source.gap.next(&mut self.rng);
        self.left -= 1;
        (bytes, (self.left > 0).then_some(gap))
    }

    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The sending host.
    pub fn sender(&self) -> u32 {
        self.source.src
    }

    /// Records a delivered datagram.
    #[inline]
    pub fn took(&mut self, delay: Ps, bytes: u16) {
        let result = &mut self.result;
        result.delivered += 1;
        result.bytes += u64::from(bytes);
        result.delay_sum += u128::from(delay);
        result.delay_max = result.delay_max.max(delay);
    }
}
