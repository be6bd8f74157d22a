// SPDX-License-Identifier: GPL-2.0-or-later
//! Workloads: flows from a list or a size distribution, sources of datagrams, and applications.

use crate::apps::App;
use crate::core::error::{Error, Result};
use crate::core::memory::check_memory;
use crate::core::rng::Rng;
use crate::core::stop;
use crate::core::time::Ps;
use crate::core::units::{Instant, Unit};
use crate::host::result::FlowResult;
use crate::host::traffic::{check_ends, Gap, Source};
use crate::net::topology::Topology;
use crate::sim::ns2_arrivals;
use crate::sim::scheme::Scheme;

/// One flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowSpec {
    /// When its first byte is handed over.
    pub start: Ps,
    /// Number of the sending host.
    pub src: u32,
    /// Number of the receiving host.
    pub dst: u32,
    /// Data packets.
    pub packets: u32,
}

/// A flow's own settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wish {
    /// Level; none: that of its size.
    pub level: Option<u8>,
    /// Transport number: 0 is the scheme's, others are in [`Scheme::others`].
    pub transport: u8,
    /// Deadline, which queues see with [`Rank::Deadline`](crate::Rank::Deadline).
    pub deadline: Option<Ps>,
    /// Bytes on the wire; none: all packets are full.
    pub bytes: Option<u64>,
}

impl Wish {
    /// Refuses invalid settings.
    pub(crate) fn check(&self, flow: &FlowSpec, scheme: &Scheme) -> Result<()> {
        let told = |what: String| Err(Error::new(format!("flow at {} ps: {what}", flow.start)));
        if let Some(level) = self.level.filter(|&level| level > 7) {
            return told(format!("its level {level} must be 0 to 7"));
        }
        let number = usize::from(self.transport);
        if number > 0 && !scheme.others.get(number - 1).is_some_and(Option::is_some) {
            return told(format!("there is no transport {number} in the scheme"));
        }
        let data = scheme.transport.data_bytes;
        let most = u64::from(flow.packets) * u64::from(data);
        match self.bytes {
            Some(bytes) if bytes > most || bytes + u64::from(data) <= most => {
                told(format!("{bytes} bytes are not {} packets of at most {data}", flow.packets))
            }
            _ => Ok(()),
        }
    }
}

/// The flows of a run.
#[derive(Debug, Clone)]
pub enum Flows {
    /// Listed flows, in any order.
    List(Vec<FlowSpec>),
    /// Listed flows with their own settings.
    Own(Vec<(FlowSpec, Wish)>),
    /// `count` flows of a size distribution, between all hosts.
    Drawn {
        /// Arrival process.
        arrivals: Arrivals,
        /// Distribution of sizes.
        sizes: Sizes,
        /// Load: share of the slowest host cable's rate, in full packets without ACKs; by the mean
        /// of what is sent, or for published sizes by their published mean.
        load: f64,
        /// Number of flows.
        count: u32,
    },
}

/// Arrival processes of drawn flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// Each ordered pair of hosts is a Poisson process.
    Poisson,
    /// Likewise, but with the generators and seeds of the scripts published with the paper: flows
    /// to one host start nearly together, with nearly equal sizes.
    Published,
}

/// All traffic of a run.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Flows.
    pub flows: Flows,
    /// Datagrams.
    pub sources: Vec<Source>,
    /// Applications. Their order numbers their random streams.
    pub apps: Vec<App>,
}

impl Workload {
    /// Flows only.
    pub fn of_flows(flows: Flows) -> Self {
        Workload { flows, sources: Vec::new(), apps: Vec::new() }
    }

    /// Sources only.
    pub fn of_sources(sources: Vec<Source>) -> Self {
        Workload { flows: Flows::List(Vec::new()), sources, apps: Vec::new() }
    }

    /// Time of the last datagram of sources whose gaps are constant: the run does not end before.
    pub(crate) fn last_datagram(&self) -> Ps {
        let last = |source: &Source| match source.gap {
            Gap::Every(gap) => {
                source.first.saturating_add(gap.saturating_mul(source.count.saturating_sub(1)))
            }
            Gap::Poisson(_) => 0,
        };
        self.sources.iter().map(last).max().unwrap_or(0)
    }

    /// Applications only.
    pub fn of_apps(apps: Vec<App>) -> Self {
        Workload { flows: Flows::List(Vec::new()), sources: Vec::new(), apps }
    }
}

/// A distribution of flow sizes: packets, and the share of flows that are not larger; linear in
/// between, rounded up.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizes {
    pub(crate) points: Vec<(u32, f64)>,
    /// Mean size for arrival rates, in bytes of payload, [`PAYLOAD`] a packet.
    pub(crate) mean_bytes: f64,
}

/// Payload of a packet, in which the published scripts state their means.
const PAYLOAD: f64 = 1460.0;

impl Sizes {
    /// A distribution whose mean is that of what is sent, in whole packets.
    ///
    /// # Errors
    /// Fewer than two points; shares that do not rise from 0 to 1; sizes that fall or are 0.
    pub fn new(points: &[(u32, f64)]) -> Result<Self> {
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return Err(Error::new("the distribution needs points"));
        };
        if first.1.to_bits() != 0 || last.1.to_bits() != 1f64.to_bits() || first.0 == 0 {
            return Err(Error::new(
                "the distribution must go from share 0, at a packet or more, to share 1",
            ));
        }
        let falls =
            |pair: &&[(u32, f64)]| pair[1].0 < pair[0].0 || !(pair[0].1..=1.0).contains(&pair[1].1);
        if let Some(pair) = points.windows(2).find(falls) {
            return Err(Error::new(format!(
                "the point of {} packets and share {} must be above the one before it",
                pair[1].0, pair[1].1
            )));
        }
        // Since sizes are rounded up, all sizes above the first of a piece are equally likely.
        let begin = |pair: &[(u32, f64)]| f64::from(pair[1].0.min(pair[0].0.saturating_add(1)));
        let piece = |pair: &[(u32, f64)]| {
            (pair[1].1 - pair[0].1) * (begin(pair) + f64::from(pair[1].0)) / 2.0
        };
        let mean = points.windows(2).map(piece).sum::<f64>();
        Ok(Sizes { points: points.to_vec(), mean_bytes: mean * PAYLOAD })
    }

    /// The size that a share `u` of flows does not exceed, for u in [0, 1).
    fn at(&self, u: f64) -> u32 {
        let i = self.points.partition_point(|&(_, share)| share <= u).min(self.points.len() - 1);
        let ((x0, p0), (x1, p1)) = (self.points[i - 1], self.points[i]);
        let size = f64::from(x0) + f64::from(x1 - x0) * (u - p0) / (p1 - p0);
        // Not the library's `ceil`, which may be the machine's: the conversion is exact everywhere.
        let whole = size as u32;
        whole + u32::from(f64::from(whole) < size)
    }
}

/// Bytes of a flow until the end of a run: drawn and sorted, its record, a copy of that for the
/// outcome, and the outcome's columns in Python.
const FLOW_BYTES: u64 = 2 * size_of::<FlowResult>() as u64 + 9 * 8;
/// Flows between two looks at whether to stop.
const PIECE: usize = 1 << 16;

/// An empty list with room for an item a flow.
pub(crate) fn room<T>(flows: usize) -> Result<Vec<T>> {
    let each = FLOW_BYTES.max((size_of::<T>() + size_of::<FlowResult>()) as u64);
    check_memory("workload", flows as u64, "flows", each, "take fewer")?;
    let mut list = Vec::new();
    let told = |_| Error::new(format!("workload: no memory for {flows} flows: take fewer"));
    list.try_reserve_exact(flows).map_err(told)?;
    Ok(list)
}

/// Appends flows, unless the work is to stop.
fn fill(
    list: &mut Vec<(FlowSpec, Wish)>,
    mut flows: impl Iterator<Item = (FlowSpec, Wish)>,
) -> Result<()> {
    loop {
        stop::check()?;
        let before = list.len();
        list.extend(flows.by_ref().take(PIECE));
        if list.len() < before + PIECE {
            return Ok(());
        }
    }
}

impl Flows {
    fn count(&self) -> usize {
        match self {
            Flows::List(list) => list.len(),
            Flows::Own(list) => list.len(),
            Flows::Drawn { count, .. } => *count as usize,
        }
    }

    /// The flows in the order of their start. `data_bytes`: of a full packet on the wire.
    pub(crate) fn draw(
        &self,
        topology: &Topology,
        data_bytes: u16,
        seed: u64,
    ) -> Result<Vec<(FlowSpec, Wish)>> {
        let plain = |flow: FlowSpec| (flow, Wish::default());
        let mut flows = room(self.count())?;
        match self {
            Flows::List(list) => flows.extend(list.iter().copied().map(plain)),
            Flows::Own(list) => flows.extend_from_slice(list),
            Flows::Drawn { arrivals, sizes, load, count } => {
                let (gap, hosts) =
                    (host_gap(sizes, *load, data_bytes, topology)?, topology.hosts());
                match arrivals {
                    Arrivals::Poisson => {
                        fill(&mut flows, poisson(sizes, gap, *count, hosts, seed).map(plain))?;
                    }
                    Arrivals::Published => {
                        let flow = |drawn: ns2_arrivals::Drawn| FlowSpec {
                            start: drawn.start,
                            src: drawn.src,
                            dst: drawn.dst,
                            packets: sizes.at(drawn.share),
                        };
                        let drawn = ns2_arrivals::flows(gap, *count, hosts, seed);
                        fill(&mut flows, drawn.map(flow).map(plain))?;
                    }
                }
            }
        }
        flows.sort_unstable();
        stop::check()?;
        for (flow, _) in &flows {
            let place = || format!("flow at {} ps", flow.start);
            if flow.src == flow.dst || flow.src.max(flow.dst) >= topology.hosts() {
                check_ends(&place(), flow.src, flow.dst, topology)?;
            }
            if flow.start > Instant::MAX {
                let latest = Instant::MAX;
                return Err(Error::new(match self {
                    Flows::Drawn { load, .. } => {
                        format!(
                            "flows.load: {load} is so small that flows start after {latest} ps, \
                             beyond what can be simulated: raise it"
                        )
                    }
                    Flows::List(_) | Flows::Own(_) => {
                        format!("{}: it starts after {latest} ps: start it earlier", place())
                    }
                }));
            }
            if flow.packets == 0 || flow.packets >= 1 << 31 {
                return Err(Error::new(format!(
                    "{}: its size of {} packets must be between 1 and 2^31 - 1",
                    place(),
                    flow.packets
                )));
            }
        }
        Ok(flows)
    }
}

/// Mean gap between two flows of one host, in ps.
fn host_gap(sizes: &Sizes, load: f64, data_bytes: u16, topology: &Topology) -> Result<f64> {
    if !(load > 0.0 && load <= 1.0) {
        return Err(Error::new(format!("flows.load: {load} must be above 0 and at most 1")));
    }
    if topology.hosts() < 2 {
        return Err(Error::new("flows: they need a network of two hosts"));
    }
    let wire = sizes.mean_bytes / PAYLOAD * f64::from(data_bytes);
    Ok(wire * f64::from(topology.slowest_edge()?) / load)
}

/// Draws a Poisson process of all pairs: their sum is one process whose pairs are drawn evenly.
fn poisson(
    sizes: &Sizes,
    host_gap: f64,
    count: u32,
    hosts: u32,
    seed: u64,
) -> impl Iterator<Item = FlowSpec> + '_ {
    let hosts = u64::from(hosts);
    let gap = host_gap / hosts as f64;
    let mut rng = Rng::new(seed, 0);
    let mut start = 0;
    let flow = move |_| {
        start = rng.exponential(gap).saturating_add(start);
        let src = rng.below(hosts);
        let dst = rng.below(hosts - 1);
        FlowSpec {
            start,
            src: src as u32,
            dst: (dst + u64::from(dst >= src)) as u32,
            packets: sizes.at(rng.unit()),
        }
    };
    (0..count).map(flow)
}
