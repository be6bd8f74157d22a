// SPDX-License-Identifier: GPL-2.0-or-later
//! Host jitter: extra time for each incoming packet, drawn from quantiles with linear
//! interpolation, as `sch_wire` draws it.
//!
//! Packets of one flow stay in order, as in a host whose network card chooses the receive queue by
//! flow; a packet may overtake those of other flows. TCP flows are told apart by ports, everything
//! else by the pair of hosts, as cards do by default.

use std::collections::HashMap;

use crate::core::quantiles::Quantiles;
use crate::core::rng::Rng;
use crate::core::time::Ps;
use crate::net::topology::Topology;

/// A stream of packets that stay in order on the way into a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Stream {
    /// Data or ACKs with this path key.
    Tcp(u32),
    /// Datagrams from this host.
    Datagrams(u32),
}

/// A host with jitter.
#[derive(Debug)]
struct Host {
    quantiles: Quantiles,
    rng: Rng,
    /// When the last packet of each stream is handed over.
    last: HashMap<Stream, Ps>,
    /// Streams remembered before those that delay nothing any more are forgotten.
    most: usize,
}

impl Host {
    fn new(quantiles: Quantiles, rng: Rng) -> Self {
        Host { quantiles, rng, last: HashMap::new(), most: FEW }
    }

    /// When a packet that arrives now is handed over.
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

/// Streams that are always remembered.
const FEW: usize = 64;

/// First random stream of hosts; streams of links are below.
const STREAMS: u64 = 1 << 49;

/// The jitter of a network's hosts.
#[derive(Debug)]
pub(crate) struct Jitter {
    hosts: Vec<Option<Host>>,
}

impl Jitter {
    /// None if no host has jitter.
    pub fn new(topology: &Topology, seed: u64) -> Option<Self> {
        let host = |number| {
            let quantiles = topology.jitter.get(&number)?.clone();
            Some(Host::new(quantiles, Rng::new(seed, STREAMS + u64::from(number))))
        };
        (!topology.jitter.is_empty())
            .then(|| Jitter { hosts: (0..topology.hosts()).map(host).collect() })
    }

    /// Whether this host has jitter.
    pub fn draws(&self, host: u32) -> bool {
        self.hosts[host as usize].is_some()
    }

    /// When a packet that arrives now at this host is handed over; none: at once, because the host
    /// has no jitter.
    pub fn hand_over(&mut self, host: u32, stream: Stream, now: Ps) -> Option<Ps> {
        self.hosts[host as usize].as_mut().map(|host| host.hand_over(stream, now))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::core::rng::Rng;
    use crate::core::time::US;

    const POINTS: [(f64, Ps); 4] =
        [(0.0, 10 * US), (50.0, 85 * US), (99.9, 90 * US), (100.0, 126 * US)];

    /// The share of 100,000 draws below a time differs from its own by more than 0.01 with a
    /// probability of 2 exp(-20) (Dvoretzky, Kiefer, Wolfowitz), 4e-9.
    #[test]
    fn draws_have_their_quantiles() {
        let mut host = Host::new(Quantiles::new(&POINTS).unwrap(), Rng::new(1, STREAMS));
        let mut draws: Vec<Ps> =
            (0..100_000u32).map(|flow| host.hand_over(Stream::Tcp(flow), 0)).collect();
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
        #![proptest_config(ProptestConfig {
            cases: 300, failure_persistence: None, ..ProptestConfig::default()
        })]

        /// A packet is handed over when what was drawn for it has passed, or with the last one of
        /// its flow, whichever is later; what is forgotten on the way would have made no
        /// difference.
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
                let kept = host.last.len();
                prop_assert!(kept <= 2 * FEW.max(2 * waiting), "{kept} of {waiting}");
            }
        }
    }
}
