// SPDX-License-Identifier: GPL-2.0-or-later
//! What hosts take beyond the wire for what comes in: drawn for each packet from quantiles, uniformly in the share and in a straight
//! line between two of them, as `sch_wire` draws it.
//!
//! Packets of one flow stay in order, as in a host whose network card chooses the receive queue by flow; a packet may overtake those
//! of other flows. TCP's flows are told apart by ports, everything else by the pair of hosts alone, as cards do by default.

use std::collections::HashMap;

use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::net::topology::Topology;
use crate::packet::Kind;
use crate::sim::engine::{Simulation, HAND_OVER};

/// A distribution of times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantiles {
    /// Share of the draws, of `u32::MAX`, that does not exceed a time.
    points: Vec<(u32, Ps)>,
}

impl Quantiles {
    /// Of points (per cent, ps), such as (50, 85,000,000): half of the draws do not exceed 85 us.
    ///
    /// # Errors
    /// They do not begin at 0 and end at 100 %, or do not ascend: shares have to grow, times must not fall.
    pub fn new(points: &[(f64, Ps)]) -> Result<Self> {
        let share = |percent: f64| (percent / 100.0 * f64::from(u32::MAX)).round() as u32;
        match points {
            [(0.0, _), .., (100.0, _)] => {}
            _ => return Err(Error::new("quantiles do not go from 0 to 100 %")),
        }
        let points: Vec<(u32, Ps)> = points.iter().map(|&(percent, time)| (share(percent), time)).collect();
        if points.windows(2).any(|pair| pair[0].0 >= pair[1].0 || pair[0].1 > pair[1].1) {
            return Err(Error::new("quantiles do not ascend"));
        }
        Ok(Quantiles { points })
    }

    /// What a share of the draws does not exceed.
    fn at(&self, share: u32) -> Ps {
        // The last point's share is the largest there is.
        let above = self.points.partition_point(|&(of, _)| of < share).max(1);
        let ((below, least), (above, most)) = (self.points[above - 1], self.points[above]);
        let part = u128::from(share - below) * u128::from(most - least) / u128::from(above - below);
        least + part as Ps
    }
}

/// What keeps its order on the way into a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Stream {
    /// Data or ACKs of what takes the paths of this key.
    Tcp(u32),
    /// Datagrams from this host.
    Datagrams(u32),
}

/// A host that draws.
#[derive(Debug)]
struct Host {
    quantiles: Quantiles,
    rng: Rng,
    /// When the last packet of each is handed over.
    last: HashMap<Stream, Ps>,
    /// So many are remembered before those that hold nothing up any more are forgotten.
    most: usize,
}

impl Host {
    fn new(quantiles: Quantiles, rng: Rng) -> Self {
        Host { quantiles, rng, last: HashMap::new(), most: FEW }
    }

    /// When a packet is handed over that has arrived now.
    fn hand_over(&mut self, stream: Stream, now: Ps) -> Ps {
        if self.last.len() >= self.most {
            self.last.retain(|_, last| *last > now);
            self.most = FEW.max(2 * self.last.len());
        }
        let drawn = self.quantiles.at((self.rng.bits() >> 32) as u32);
        let last = self.last.entry(stream).or_default();
        *last = (now + drawn).max(*last);
        *last
    }
}

/// So many flows are remembered in any case.
const FEW: usize = 64;

/// Random numbers of hosts are streams from here on, those of links before.
const STREAMS: u64 = 1 << 49;

/// All hosts of a network of which some draw.
#[derive(Debug)]
pub(crate) struct Jitter {
    hosts: Vec<Option<Host>>,
}

impl Jitter {
    /// Nothing if no host draws.
    pub fn new(topology: &Topology, seed: u64) -> Option<Self> {
        let host = |number| {
            let quantiles = topology.jitter.get(&number)?.clone();
            Some(Host::new(quantiles, Rng::new(seed, STREAMS + u64::from(number))))
        };
        (!topology.jitter.is_empty()).then(|| Jitter { hosts: (0..topology.hosts()).map(host).collect() })
    }
}

impl Simulation {
    /// A packet has arrived at a host of a network of which some draw; returns whether this one has it at once. Not inlined, for networks
    /// of which none does.
    #[inline(never)]
    pub(crate) fn take_in(&mut self, host: u32, handle: u32) -> bool {
        let packet = self.pool.get(handle);
        let stream = match packet.kind {
            Kind::Datagram => Stream::Datagrams(self.sender(packet)),
            _ => Stream::Tcp(self.flows[packet.flow as usize].key),
        };
        match self.jitter.as_mut().and_then(|jitter| jitter.hosts[host as usize].as_mut()) {
            Some(host) => {
                let at = host.hand_over(stream, self.now);
                self.wheel.push(at, HAND_OVER | handle);
                false
            }
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::core::rng::Rng;
    use crate::core::time::US;

    const POINTS: [(f64, Ps); 4] = [(0.0, 10 * US), (50.0, 85 * US), (99.9, 90 * US), (100.0, 126 * US)];

    #[test]
    fn between_two_quantiles_a_share_has_its_part() {
        let quantiles = Quantiles::new(&POINTS).unwrap();
        let half = quantiles.points[1].0;
        assert_eq!((half, quantiles.points[2].0), (1 << 31, 4_290_672_328));
        assert_eq!([0, half, u32::MAX].map(|share| quantiles.at(share)), [10 * US, 85 * US, 126 * US]);
        assert_eq!(quantiles.at(1 << 30), 10 * US + 75 * US / 2);
        // One of the 2^32 - 1 above the median, in whole picoseconds.
        assert_eq!(quantiles.at(half + (1 << 20)), 85 * US + ((5 * US) << 20) / Ps::from(quantiles.points[2].0 - half));
        let flat = Quantiles::new(&[(0.0, US), (30.0, US), (100.0, US)]).unwrap();
        assert_eq!([0, 1, half, u32::MAX].map(|share| flat.at(share)), [US; 4]);
    }

    #[test]
    fn quantiles_that_cannot_be_are_told() {
        let said = |points: &[(f64, Ps)]| Quantiles::new(points).unwrap_err().to_string();
        let ends: [&[(f64, Ps)]; 6] =
            [&[], &[(0.0, 1)], &[(100.0, 1)], &[(0.0, 1), (99.0, 2)], &[(1.0, 1), (100.0, 2)], &[(0.0, 1), (f64::NAN, 2)]];
        assert!(ends.iter().all(|points| said(points) == "quantiles do not go from 0 to 100 %"));
        let falls: [&[(f64, Ps)]; 4] = [
            &[(0.0, 2), (100.0, 1)],
            &[(0.0, 1), (60.0, 2), (50.0, 3), (100.0, 4)],
            &[(0.0, 1), (f64::NAN, 2), (100.0, 3)],
            &[(0.0, 1), (101.0, 2), (100.0, 3)],
        ];
        assert!(falls.iter().all(|points| said(points) == "quantiles do not ascend"));
    }

    /// The share of 100,000 draws below a time differs from its own by more than 0.01 with a probability of 2 exp(-20) (Dvoretzky,
    /// Kiefer, Wolfowitz), 4e-9.
    #[test]
    fn draws_have_their_quantiles() {
        let mut host = Host::new(Quantiles::new(&POINTS).unwrap(), Rng::new(1, STREAMS));
        let mut draws: Vec<Ps> = (0..100_000u32).map(|flow| host.hand_over(Stream::Tcp(flow), 0)).collect();
        draws.sort_unstable();
        let cut = |share: f64| draws[(share * 1e5) as usize];
        let known = |share: f64| host.quantiles.at((share * f64::from(u32::MAX)) as u32);
        for share in (1..99).map(|percent| f64::from(percent) / 100.0) {
            assert!((known(share - 0.01)..=known(share + 0.01)).contains(&cut(share)), "{share}");
        }
        assert!(draws[0] >= 10 * US && draws[99_999] <= 126 * US);
        let different: HashSet<&Ps> = draws.iter().collect();
        assert!(different.len() > 99_000, "times are drawn to the picosecond");
    }

    fn arrivals() -> impl Strategy<Value = Vec<(u64, u32, bool)>> {
        // Microseconds since the one before, of few flows or of many.
        let flow = prop_oneof![0u32..4, 0u32..200];
        prop::collection::vec((0u64..30, flow, any::<bool>()), 1..600)
    }

    fn quantiles() -> impl Strategy<Value = Quantiles> {
        prop::collection::vec((1u32..100, 0u64..50), 0..5).prop_map(|mut inner| {
            inner.sort_unstable();
            inner.dedup_by_key(|&mut (percent, _)| percent);
            let mut points = vec![(0.0, 0)];
            for (percent, more) in inner.into_iter().chain([(100, 40)]) {
                points.push((f64::from(percent), points[points.len() - 1].1 + more * US));
            }
            Quantiles::new(&points).unwrap()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        /// A packet is handed over when what was drawn for it has passed, or with the last one of its flow, whichever is later; what
        /// is forgotten on the way would have made no difference.
        #[test]
        fn flows_stay_in_order(arrivals in arrivals(), quantiles in quantiles(), seed: u64) {
            let mut host = Host::new(quantiles.clone(), Rng::new(seed, 0));
            let mut rng = Rng::new(seed, 0);
            let (mut now, mut all) = (0, HashMap::new());
            for (gap, flow, tcp) in arrivals {
                now += gap * US;
                let stream = if tcp { Stream::Tcp(flow) } else { Stream::Datagrams(flow) };
                let drawn = now + quantiles.at((rng.bits() >> 32) as u32);
                let last = all.entry(stream).or_insert(0);
                *last = drawn.max(*last);
                prop_assert_eq!(host.hand_over(stream, now), *last);
                let waiting = all.values().filter(|&&last| last > now).count();
                prop_assert!(host.last.len() <= 2 * FEW.max(2 * waiting), "{} of {}", host.last.len(), waiting);
            }
        }
    }
}
