// SPDX-License-Identifier: GPL-2.0-or-later
//! Sources of datagrams at work.

use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::packet::{Kind, Packet};
use crate::sim::engine::{Simulation, EMIT};
use crate::sim::outcome::SourceResult;
use crate::sim::workload::{Bytes, Source};

#[derive(Debug)]
pub(crate) struct Emitter {
    source: Source,
    left: u64,
    rng: Rng,
    pub result: SourceResult,
}

impl Emitter {
    /// The host that sends.
    pub fn sender(&self) -> u32 {
        self.source.src
    }

    /// One of its datagrams was delivered.
    #[inline]
    pub fn took(&mut self, delay: Ps, bytes: u16) {
        let result = &mut self.result;
        result.delivered += 1;
        result.bytes += u64::from(bytes);
        result.delay_sum += u128::from(delay);
        result.delay_max = result.delay_max.max(delay);
    }
}

impl Simulation {
    pub(crate) fn add_source(&mut self, number: u32, source: Source, mut rng: Rng) {
        let first = source.first + source.gap.first(&mut rng);
        if source.count > 0 {
            self.wheel.push(first, EMIT | number);
        }
        self.sources.push(Emitter { source, left: source.count, rng, result: SourceResult::default() });
    }

    /// A source's next datagram.
    pub(crate) fn emit(&mut self, number: u32) {
        let emitter = &mut self.sources[number as usize];
        let source = emitter.source;
        let bytes = match source.bytes {
            Bytes::Fixed(bytes) => bytes,
            Bytes::Exponential(mean) => emitter.rng.exponential(f64::from(mean)).clamp(1, 65_535) as u16,
        };
        let gap = source.gap.next(&mut emitter.rng);
        emitter.left -= 1;
        if emitter.left > 0 {
            self.wheel.push(self.now + gap, EMIT | number);
        }
        self.tally.sent[Kind::Datagram as usize] += 1;
        let handle = self.pool.add(Packet {
            flow: number,
            seq: 0,
            echo: 0,
            stamp: 0,
            rank: 1 + u32::from(source.level),
            link: 0,
            bytes,
            to: source.dst as u16,
            kind: Kind::Datagram,
            marked: false,
            ect: false,
        });
        self.admit(source.src as u16, source.level, handle);
    }
}
