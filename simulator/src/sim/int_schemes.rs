// SPDX-License-Identifier: GPL-2.0-or-later
//! Schemes of today whose parameters follow the topology's base round trip: HPCC, PowerTCP and BBR
//! version 3. What a scheme does not set is as in the published scripts of Figure 9.

use crate::core::error::Result;
use crate::core::time::{ps_per_byte, Ps, S};
use crate::host::congestion::{Congestion, Hpcc, PowerTcp};
use crate::host::transport::Transport;
use crate::net::routes::Routing;
use crate::net::topology::{Cable, Topology};
use crate::sim::scheme::Scheme;

/// Flows for which additive increases leave room: W_AI is B T (1 - eta) / N (HPCC, section 4.1), and
/// PowerTCP's beta is B T / N (section 3.3).
const FLOWS: u64 = 100;
/// The largest window that a transport may have.
const MOST: u64 = (1 << 15) - 1;

impl Scheme {
    /// HPCC with the paper's eta and `maxStage`. A flow takes one path, as it needs.
    ///
    /// # Errors
    /// A cable's rate that cannot be simulated.
    pub fn hpcc(topology: &Topology) -> Result<Self> {
        let (mut scheme, base, held) = Self::of_one_path(topology)?;
        let of = Hpcc { base, ..Hpcc::default() };
        let spare = held * u64::from(1_000_000 - of.utilisation) / 1_000_000;
        let increase = (spare / FLOWS).clamp(1, 1_000_000) as u32;
        scheme.transport.congestion = Congestion::Hpcc(Hpcc { increase, ..of });
        Ok(scheme)
    }

    /// PowerTCP with the paper's gamma. A flow takes one path, as it needs.
    ///
    /// # Errors
    /// A cable's rate that cannot be simulated.
    pub fn powertcp(topology: &Topology) -> Result<Self> {
        let (mut scheme, base, held) = Self::of_one_path(topology)?;
        let increase = (held / FLOWS).clamp(1, 1_000_000) as u32;
        scheme.transport.congestion =
            Congestion::PowerTcp(PowerTcp { base, gamma: 900_000, increase });
        Ok(scheme)
    }

    /// BBR, version 3, with windows that hold four times what the path does, and RACK-TLP, with
    /// which it comes in Linux. A flow takes one path.
    ///
    /// # Errors
    /// A cable's rate that cannot be simulated.
    pub fn bbr3(topology: &Topology) -> Result<Self> {
        let (mut scheme, _, _) = Self::of_one_path(topology)?;
        let transport = &mut scheme.transport;
        let held = std::mem::replace(&mut transport.initial_window, 12);
        transport.max_window = transport.max_window.max(4 * held).min(MOST as u32);
        transport.rack_tlp = true;
        transport.congestion = Congestion::Bbr3;
        Ok(scheme)
    }

    /// TCP whose flows take one path and begin with what a base round trip holds; that round trip,
    /// and what it holds in bytes. Three packets above a hole indicate a loss, and timeouts take at
    /// least three round trips.
    fn of_one_path(topology: &Topology) -> Result<(Self, Ps, u64)> {
        let mut scheme = Self::tcp();
        let (base, held) = base_round_trip(topology, &scheme.transport)?;
        let transport = &mut scheme.transport;
        transport.initial_window = packets(held, transport);
        transport.max_window = transport.max_window.max(2 * transport.initial_window);
        transport.dupacks = Some(3);
        transport.min_rto = transport.min_rto.max(3 * base);
        transport.max_rto = transport.max_rto.max(transport.min_rto);
        scheme.routing = Routing::PerFlow;
        Ok((scheme, base, held))
    }
}

/// Full packets of so many bytes, rounded up, that a window may have.
fn packets(bytes: u64, transport: &Transport) -> u32 {
    bytes.div_ceil(transport.data_bytes.into()).clamp(1, MOST / 4) as u32
}

/// The longest round trip without queues, of a full packet and its ACK; and the bytes that the
/// fastest host's link sends in it.
fn base_round_trip(topology: &Topology, transport: &Transport) -> Result<(Ps, u64)> {
    let bytes = u64::from(transport.data_bytes) + u64::from(transport.ack_bytes);
    let takes = |cable: &Cable| -> Result<Ps> {
        Ok(2 * cable.delay + bytes * u64::from(ps_per_byte(cable.rate)?))
    };
    let mut trunks = vec![Vec::new(); topology.switches as usize];
    for (a, b, cable) in &topology.trunks {
        trunks[*a as usize].push((*b, takes(cable)?));
        trunks[*b as usize].push((*a, takes(cable)?));
    }
    let mut edges = vec![None; topology.switches as usize];
    for (switch, cable) in &topology.hosts {
        let edge: &mut Option<Ps> = &mut edges[*switch as usize];
        *edge = Some(takes(cable)?.max(edge.unwrap_or(0)));
    }
    // Twice from the end that is farthest: exact in trees and regular fabrics.
    let (end, _) = farthest(topology.hosts[0].0, &trunks, &edges);
    let (_, way) = farthest(end, &trunks, &edges);
    let base = (way + edges[end as usize].unwrap_or(0)).clamp(1, S);
    let rate = topology.hosts.iter().map(|(_, cable)| cable.rate).max().unwrap_or(0);
    Ok((base, (u128::from(rate) * u128::from(base) / u128::from(8 * S)) as u64))
}

/// The switch with the farthest hosts by the fewest cables, and the round trip to them.
fn farthest(from: u32, trunks: &[Vec<(u32, Ps)>], edges: &[Option<Ps>]) -> (u32, Ps) {
    let mut ways = vec![Ps::MAX; trunks.len()];
    ways[from as usize] = 0;
    let (mut next, mut most) = (std::collections::VecDeque::from([from]), (from, 0));
    while let Some(at) = next.pop_front() {
        let way = ways[at as usize];
        if let Some(edge) = edges[at as usize].filter(|edge| way + edge > most.1) {
            most = (at, way + edge);
        }
        for &(other, more) in &trunks[at as usize] {
            if ways[other as usize] == Ps::MAX {
                ways[other as usize] = way + more;
                next.push_back(other);
            }
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::graph::Graph;
    use crate::net::topology::LeafSpine;

    /// Figure 9: 2.7 us on each of two edges and 0.2 us on each of two trunks, there and back, and
    /// the time to send 1,540 bytes at 0.8 and 0.2 ns a byte.
    #[test]
    fn the_base_round_trip_is_that_of_the_longest_path() {
        let fig9 = Topology::leaf_spine(&LeafSpine::FIG9).unwrap();
        let transport = Scheme::tcp().transport;
        let expected = 2 * (2 * 2_700_000 + 2 * 200_000) + 1_540 * (2 * 800 + 2 * 200);
        assert_eq!(base_round_trip(&fig9, &transport).unwrap(), (expected, expected / 800));
        let cable = Cable { rate: 10_000_000_000, delay: 1_000_000 };
        let fat = Graph::new(Graph::fat_tree(4, cable, cable).unwrap()).build().unwrap();
        let expected = 6 * (2_000_000 + 1_540 * 800);
        assert_eq!(base_round_trip(&fat, &transport).unwrap().0, expected);
    }
}
