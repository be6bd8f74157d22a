// SPDX-License-Identifier: GPL-2.0-or-later
//! QJump's Figure 9: its fabric, flow sizes and schemes, as the published ns-2 scripts run them.

use crate::core::error::{Error, Result};
use crate::core::time::{Ps, S, US};
use crate::host::congestion::{Congestion, Dctcp};
use crate::host::limiter::{Limiter, PerHost};
use crate::host::transport::{Rank, Recovery, Transport, DATA};
use crate::net::routes::Routing;
use crate::net::topology::{Cable, LeafSpine, Topology};
use crate::queue::kinds::{Marking, PFabric, Priority, Queue};
use crate::queue::limit::Limit;
use crate::sim::fit::Fit;
use crate::sim::rivals::RIVALS;
use crate::sim::scheme::Scheme;
use crate::sim::workload::Sizes;

/// Smallest timeout of TCP, DCTCP and QJump.
pub(crate) const MIN_RTO: Ps = 200 * US;
/// P of Figure 9's QJump, in bytes.
const QJUMP_PACKET: u64 = 9_000;
/// The largest flow of levels 0 to 6, in packets, as the published scripts assign levels: steps of
/// the web-search distribution.
const LEVELS: [u32; 7] = [6, 13, 19, 33, 53, 133, 667];

const fn packets(n: u64) -> u64 {
    n * DATA as u64
}

/// QJump's network epoch, 2nP/R (equation 2 without the switches' own delay).
///
/// `packet` is P in bytes, `per_byte` picoseconds per byte at rate R.
pub fn network_epoch(hosts: u32, packet: u64, per_byte: u32) -> Ps {
    2 * u64::from(hosts) * packet * u64::from(per_byte)
}

impl LeafSpine {
    /// The fabric of QJump's Figure 9: 9 racks of 16 hosts at 10 Gb/s and 4 spines at 40 Gb/s,
    /// without over-subscription; 2.5 us in a host and 0.2 us on a cable.
    pub const FIG9: LeafSpine = LeafSpine {
        racks: 9,
        hosts_per_rack: 16,
        spines: 4,
        edge: Cable { rate: 10_000_000_000, delay: 2_700_000 },
        uplink: Cable { rate: 40_000_000_000, delay: 200_000 },
    };
}

impl Sizes {
    /// Web search as in pFabric and QJump, with the published mean of 1,138 packets.
    pub fn web_search() -> Self {
        let points = [
            (6, 0.0),
            (6, 0.15),
            (13, 0.2),
            (19, 0.3),
            (33, 0.4),
            (53, 0.53),
            (133, 0.6),
            (667, 0.7),
            (1333, 0.8),
            (3333, 0.9),
            (6667, 0.97),
            (20000, 1.0),
        ];
        Sizes { points: points.to_vec(), mean_bytes: 1_661_480.0 }
    }

    /// Data mining as in pFabric and QJump, with the published mean of 5,117 packets.
    pub fn data_mining() -> Self {
        let points = [
            (1, 0.0),
            (1, 0.5),
            (2, 0.6),
            (3, 0.7),
            (7, 0.8),
            (267, 0.9),
            (2107, 0.95),
            (66667, 0.99),
            (666_667, 1.0),
        ];
        Sizes { points: points.to_vec(), mean_bytes: 7_470_820.0 }
    }
}

impl Transport {
    /// The transport of the published scripts, with connections that stay open.
    pub(crate) fn published(congestion: Congestion) -> Self {
        Transport {
            data_bytes: DATA,
            ack_bytes: 40,
            initial_window: 12,
            max_window: 149,
            min_rto: MIN_RTO,
            rto_above_rtt: false,
            initial_rto: None,
            max_rto: 2 * S,
            fixed_rto: false,
            dupacks: None,
            sack: true,
            sack_after_rto: true,
            rack_tlp: false,
            recovery: Recovery::Tcp,
            low_rto: None,
            delayed_ack: None,
            handshake: None,
            ect_again: false,
            ect_acks: false,
            ect_syn: false,
            least_window: 1,
            probe_after: None,
            congestion,
            rank: Rank::Level,
            connections: 8,
        }
    }
}

impl Scheme {
    /// TCP of Figure 9: 150 packets a queue, no fast retransmit, 200 us smallest timeout.
    pub fn tcp() -> Self {
        Scheme {
            routing: Routing::Spray,
            queue: Queue::DropTail(Limit::Bytes(packets(150))),
            host_queue: None,
            trunk_queue: None,
            pause: None,
            shared_buffer: None,
            transport: Transport::published(Congestion::Reno),
            others: [None; 3],
            limiter: Limiter::None,
            levels: LEVELS,
        }
    }

    /// DCTCP of Figure 9: marks above 15 packets of 1,460 bytes, g = 1/16.
    pub fn dctcp() -> Self {
        let mut scheme = Self::tcp();
        scheme.queue = Queue::Marking(Marking { limit: packets(150), threshold: 15 * 1460 });
        scheme.transport.congestion = Congestion::Dctcp(Dctcp { shift: 4 });
        scheme.transport.ect_again = true;
        scheme
    }

    /// pFabric of Figure 9: 24 packets a queue, fixed timeout of 45 us, probes after 5.
    pub fn pfabric() -> Self {
        let mut scheme = Self::tcp();
        scheme.queue = Queue::PFabric(PFabric { limit: packets(24) });
        scheme.transport.max_window = 23;
        scheme.transport.min_rto = 45 * US;
        scheme.transport.fixed_rto = true;
        scheme.transport.probe_after = Some(5);
        scheme.transport.rank = Rank::Remaining;
        scheme.transport.connections = 1;
        scheme
    }

    /// QJump of Figure 9 as in the published scripts: a bucket for each flow, by its size, refilled
    /// every 1.05 ms (nP/R, once).
    pub fn qjump_script() -> Self {
        let budgets = [9_000, 19_500, 28_500, 49_500, 79_500, 199_500, 1_000_500, 1_312_500];
        let mut scheme = Self::tcp();
        scheme.queue = Queue::Priority(Priority { limit: packets(153) });
        scheme.transport.max_window = 152;
        scheme.transport.connections = 10;
        scheme.limiter = Limiter::PerFlow { epoch: 1_050 * US, budgets };
        scheme
    }

    /// QJump of Figure 9 as in the paper's text: a budget for each host and level, every 2nP/R,
    /// with f = 1, 1.44, 7.2, 14.4, 28.8, 48, 72 and n (unlimited); levels by size as in the
    /// scripts.
    ///
    /// # Errors
    /// A host cable's rate that cannot be simulated.
    pub fn qjump_paper(topology: &Topology) -> Result<Self> {
        let hundredths = [100, 144, 720, 1_440, 2_880, 4_800, 7_200];
        let mut budgets = [u64::MAX; 8];
        for (budget, f) in budgets.iter_mut().zip(hundredths) {
            *budget = QJUMP_PACKET * f / 100;
        }
        let mut scheme = Self::qjump_script();
        let epoch = network_epoch(topology.hosts(), QJUMP_PACKET, topology.slowest_edge()?);
        scheme.limiter = Limiter::PerHost(PerHost::new(epoch, budgets));
        Ok(scheme)
    }

    /// The scheme with this name: `tcp`, `dctcp`, `pfabric`, `qjump-script` or `qjump-paper`; or a
    /// later one, `swift`, `bbr`, `dcqcn`, `dcqcn-pfc`, `homa`, `aequitas`, `ndp`, `roce`, `irn`,
    /// `eqds`, `nscc`, `hpcc`, `powertcp` or `bbr3`.
    ///
    /// Its settings are those for Figure 9's fabric, fitted to the base path of this network:
    /// windows, targets, thresholds, buffers and timeouts.
    ///
    /// # Errors
    /// Any other name; a host cable's rate that cannot be simulated.
    pub fn named(name: &str, topology: &Topology) -> Result<Self> {
        let scheme = match name {
            "tcp" => Self::tcp(),
            "dctcp" => Self::dctcp(),
            "pfabric" => Self::pfabric(),
            "qjump-script" => Self::qjump_script(),
            "qjump-paper" => Self::qjump_paper(topology)?,
            "hpcc" | "powertcp" | "bbr3" => Self::of_one_path(),
            _ => Self::rival(name).ok_or_else(|| {
                let known = RIVALS.map(|(known, _)| known).join(", ");
                Error::new(format!(
                    "there is no scheme {name}, only tcp, dctcp, pfabric, qjump-script, \
                     qjump-paper, {known}, hpcc, powertcp, bbr3"
                ))
            })?,
        };
        Fit::new(topology)?.fit(name, scheme)
    }
}
