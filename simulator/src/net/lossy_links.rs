// SPDX-License-Identifier: GPL-2.0-or-later
//! Links that lose packets at random, each packet alone (Bernoulli), as bit errors do.

use crate::core::error::{Error, Result};
use crate::core::rng::Rng;
use crate::net::loss::Loss;
use crate::net::pause::reverse;
use crate::net::topology::{Cable, Topology, Tree};

const MILLION: u32 = 1_000_000;
/// First random stream of lossy links.
const STREAMS: u64 = 1 << 50;

impl Tree {
    /// Adds the losses of its cables to a network of its nodes.
    pub(crate) fn add_losses(&self, topology: &mut Topology) -> Result<()> {
        for Loss { one, other, share } in &self.losses {
            let place = format!("loss {one}--{other}");
            if *share >= MILLION {
                return Err(Error::new(format!("{place}: its share must be below 1")));
            }
            let links = self.links(topology, one, other)?;
            if links.is_empty() {
                return Err(Error::new(format!("{place}: there is no such cable")));
            }
            let hosts = topology.hosts();
            for link in links.into_iter().flat_map(|link| [link, reverse(link, hosts)]) {
                if topology.losses.insert(link, *share).is_some() {
                    return Err(Error::new(format!("{place}: the cable has a loss already")));
                }
            }
        }
        Ok(())
    }

    /// One link of each cable between two nodes.
    pub(crate) fn links(&self, topology: &Topology, one: &str, other: &str) -> Result<Vec<u32>> {
        for (host, switch) in [(one, other), (other, one)] {
            if let Some(number) = topology.host(host) {
                let joined = self.switch_number(switch)? == Some(topology.hosts[number as usize].0);
                return Ok(joined.then_some(number).into_iter().collect());
            }
        }
        let (Some(a), Some(b)) = (self.switch_number(one)?, self.switch_number(other)?) else {
            return Ok(Vec::new());
        };
        let between = |trunk: &(u32, u32, Cable)| (trunk.0, trunk.1) == (a.min(b), a.max(b));
        let links = topology.trunks.iter().zip((2 * topology.hosts()..).step_by(2));
        Ok(links.filter(|(trunk, _)| between(trunk)).map(|(_, link)| link).collect())
    }
}

/// The links that lose packets.
#[derive(Debug)]
pub(crate) struct LossyLinks {
    /// By link: its share in millionths, and its random numbers.
    links: Vec<Option<(u32, Rng)>>,
}

impl LossyLinks {
    /// None, if no cable loses packets.
    pub fn new(topology: &Topology, seed: u64) -> Option<Box<Self>> {
        let link = |link| {
            let share = topology.losses.get(&link)?;
            Some((*share, Rng::new(seed, STREAMS + u64::from(link))))
        };
        (!topology.losses.is_empty())
            .then(|| Box::new(LossyLinks { links: (0..topology.links()).map(link).collect() }))
    }

    /// Whether the next packet of a link is lost.
    pub fn loses(&mut self, link: u32) -> bool {
        match self.links.get_mut(link as usize) {
            Some(Some((share, rng))) => rng.below(MILLION.into()) < u64::from(*share),
            _ => false,
        }
    }
}
