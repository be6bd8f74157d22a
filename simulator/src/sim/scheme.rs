// SPDX-License-Identifier: GPL-2.0-or-later
//! Schemes: what queues, hosts and limiters do, with those of QJump's Figure 9 as its published ns-2 scripts run them.

use crate::core::error::{Error, Result};
use crate::core::time::{Ps, MS, S, US};
use crate::host::limiter::{Limiter, PerHost};
use crate::net::routes::Routing;
use crate::net::topology::Topology;
use crate::queue::aqm::{CoDel, Pause, Red};

/// How long a queue may be, or is when something is done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// As long as it becomes.
    None,
    /// Bytes, of which those of the packet being sent that are still to go count.
    Bytes(u64),
    /// Packets with the one being sent.
    Packets(u32),
    /// As many bytes as the link sends in so long: other ones for links of other rates.
    Time(Ps),
}

/// A link's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// First come, first served; what does not fit is dropped.
    DropTail(Limit),
    /// Drop tail of `limit` bytes that marks data which finds more than `threshold` bytes, but not the first that does since the
    /// queue was shorter: what ns-2's RED does without averaging.
    Marking {
        /// Bytes.
        limit: u64,
        /// Bytes.
        threshold: u64,
    },
    /// First come, first served; marks every ECN-capable packet that finds `threshold` or more, as hardware and Linux do.
    Threshold {
        /// Of the queue.
        limit: Limit,
        /// From which on it marks.
        threshold: Limit,
    },
    /// Random early detection before a drop tail.
    Red(Red),
    /// Controlled delay behind a drop tail.
    CoDel(CoDel),
    /// Strict priority in eight levels, ACKs before them; pushes out the newest packet of the last level. `limit` bytes without
    /// the packet being sent.
    Priority {
        /// Bytes.
        limit: u64,
    },
    /// pFabric's: least remaining first, a flow in order, most remaining dropped. `limit` bytes without the packet being sent.
    /// Datagrams count as if one more than their level remained.
    PFabric {
        /// Bytes.
        limit: u64,
    },
}

/// What a sender does about marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Congestion {
    /// Marks say nothing: Reno's window (RFC 5681).
    Reno,
    /// A window with marks is halved (RFC 3168).
    Ecn,
    /// CUBIC (RFC 9438); marks say nothing.
    Cubic,
    /// DCTCP (RFC 8257) with g = 2^-`shift`; alpha begins at 0, as published.
    Dctcp {
        /// 4 for the published 1/16; at most 20.
        shift: u32,
    },
}

/// By what queues with priorities tell data apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// The flow's level.
    Level,
    /// Packets that are not acknowledged yet.
    Remaining,
}

/// Reliable transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transport {
    /// Bytes of a data packet on the wire.
    pub data_bytes: u16,
    /// Bytes of an ACK on the wire, and of a probe, SYN or SYN-ACK.
    pub ack_bytes: u16,
    /// Window of a new connection and after idleness, in packets.
    pub initial_window: u32,
    /// Largest window, in packets.
    pub max_window: u32,
    /// Smallest retransmission timeout.
    pub min_rto: Ps,
    /// The one before a round-trip time was measured, 1 s by RFC 6298 (section 2.1), or the smallest if that is larger; none: the
    /// smallest, as in the published scripts. A connection's setup measures one.
    pub initial_rto: Option<Ps>,
    /// Largest one.
    pub max_rto: Ps,
    /// The timeout is always `min_rto` and does not double; that of a SYN does not either.
    pub fixed_rto: bool,
    /// Packets above a hole that mean loss; none: only the timeout does.
    pub dupacks: Option<u32>,
    /// Selective acknowledgements; without them ACKs that tell of nothing new are counted (RFC 6582), and after a timeout all
    /// is sent again.
    pub sack: bool,
    /// How long a packet in order waits for a second, to be acknowledged with it (RFC 5681, section 4.2); none: each is
    /// acknowledged alone.
    pub delayed_ack: Option<Ps>,
    /// A new connection begins with a SYN, which is sent again after this time, then after twice it and so on (RFC 6298); none: it
    /// begins with data. The setup is part of the flow's time.
    pub handshake: Option<Ps>,
    /// Data sent again is ECN-capable too, as in ns-2; RFC 3168 (section 6.1.5) has it not be.
    pub ect_again: bool,
    /// Packets that DCTCP's window has at least after marks; Linux has 2, for the ACK of a single packet is delayed.
    pub least_window: u32,
    /// After so many timeouts in a row a sender sends probes only, until one comes through.
    pub probe_after: Option<u32>,
    /// What a sender does about marks.
    pub congestion: Congestion,
    /// By what queues with priorities tell its data apart.
    pub rank: Rank,
    /// How many connections of an ordered pair of hosts stay open between flows, with what they know of the path.
    pub connections: u32,
}

/// Everything but network and traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheme {
    /// Paths among equal ones.
    pub routing: Routing,
    /// At every link of a switch, and of a host, if there is no other for those.
    pub queue: Queue,
    /// At the hosts' own links, before their cables; none: as at switches.
    pub host_queue: Option<Queue>,
    /// At links between switches; none: as at those to hosts.
    pub trunk_queue: Option<Queue>,
    /// 802.3x flow control of all links; none: no pauses.
    pub pause: Option<Pause>,
    /// At the hosts.
    pub transport: Transport,
    /// Between transport and the host's queue.
    pub limiter: Limiter,
    /// Largest flow of levels 0 to 6, in packets; larger ones have level 7.
    pub levels: [u32; 7],
}

/// Data packet of all published schemes.
pub(crate) const DATA: u16 = 1500;
/// P of Figure 9's QJump, in bytes.
const QJUMP_PACKET: u64 = 9_000;
/// Steps of the web-search distribution, by which the published scripts give levels.
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

impl Scheme {
    /// TCP of Figure 9: 150 packets a queue, no fast retransmit, 200 us smallest timeout.
    pub fn tcp() -> Self {
        Scheme {
            routing: Routing::Spray,
            queue: Queue::DropTail(Limit::Bytes(packets(150))),
            host_queue: None,
            trunk_queue: None,
            pause: None,
            transport: Transport {
                data_bytes: DATA,
                ack_bytes: 40,
                initial_window: 12,
                max_window: 149,
                min_rto: 200 * US,
                initial_rto: None,
                max_rto: 2 * S,
                fixed_rto: false,
                dupacks: None,
                sack: true,
                delayed_ack: None,
                handshake: None,
                ect_again: false,
                least_window: 1,
                probe_after: None,
                congestion: Congestion::Reno,
                rank: Rank::Level,
                connections: 8,
            },
            limiter: Limiter::None,
            levels: LEVELS,
        }
    }

    /// DCTCP of Figure 9: marks above 15 packets of 1,460 bytes, g = 1/16.
    pub fn dctcp() -> Self {
        let mut scheme = Self::tcp();
        scheme.queue = Queue::Marking { limit: packets(150), threshold: 15 * 1460 };
        scheme.transport.congestion = Congestion::Dctcp { shift: 4 };
        scheme
    }

    /// pFabric of Figure 9: 24 packets a queue, fixed timeout of 45 us, probes after 5.
    pub fn pfabric() -> Self {
        let mut scheme = Self::tcp();
        scheme.queue = Queue::PFabric { limit: packets(24) };
        scheme.transport.max_window = 23;
        scheme.transport.min_rto = 45 * US;
        scheme.transport.fixed_rto = true;
        scheme.transport.probe_after = Some(5);
        scheme.transport.rank = Rank::Remaining;
        scheme.transport.connections = 1;
        scheme
    }

    /// QJump of Figure 9 as the published scripts have it: a bucket for each flow, by its size, every 1.05 ms (nP/R, once).
    pub fn qjump_script() -> Self {
        let budgets = [9_000, 19_500, 28_500, 49_500, 79_500, 199_500, 1_000_500, 1_312_500];
        let mut scheme = Self::tcp();
        scheme.queue = Queue::Priority { limit: packets(153) };
        scheme.transport.max_window = 152;
        scheme.transport.connections = 10;
        scheme.limiter = Limiter::PerFlow { epoch: 1_050 * US, budgets };
        scheme
    }

    /// QJump of Figure 9 as the paper's text has it: a limit for each host and level, every 2nP/R, with
    /// f = 1, 1.44, 7.2, 14.4, 28.8, 48, 72 and n (unlimited); levels by size as in the scripts.
    ///
    /// # Errors
    /// A rate of the hosts' cables that cannot be simulated.
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

    /// The scheme of this name: `tcp`, `dctcp`, `pfabric`, `qjump-script` or `qjump-paper`.
    ///
    /// # Errors
    /// Another name; what [`Scheme::qjump_paper`] may say.
    pub fn named(name: &str, topology: &Topology) -> Result<Self> {
        match name {
            "tcp" => Ok(Self::tcp()),
            "dctcp" => Ok(Self::dctcp()),
            "pfabric" => Ok(Self::pfabric()),
            "qjump-script" => Ok(Self::qjump_script()),
            "qjump-paper" => Self::qjump_paper(topology),
            _ => Err(Error::new(format!("there is no scheme {name}, only tcp, dctcp, pfabric, qjump-script and qjump-paper"))),
        }
    }

    /// Level of a flow of so many packets, 0 to 7.
    pub fn level(&self, packets: u32) -> u8 {
        self.levels.partition_point(|&largest| largest < packets) as u8
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.check_queue("queue", &self.queue)?;
        for (place, queue) in [("host_queue", &self.host_queue), ("trunk_queue", &self.trunk_queue)] {
            if let Some(queue) = queue {
                self.check_queue(place, queue)?;
            }
        }
        if let Some(pause) = &self.pause {
            pause.check(self.transport.data_bytes)?;
        }
        let t = &self.transport;
        let (data, ack) = (t.data_bytes, t.ack_bytes);
        let wrong = if data == 0 || ack == 0 {
            "transport: a packet has 0 bytes".to_owned()
        } else if t.initial_window == 0 || t.initial_window > t.max_window {
            format!(
                "transport: the initial window of {} packets is not between 1 and the largest, {}",
                t.initial_window, t.max_window
            )
        } else if t.max_window >= 1 << 15 {
            format!("transport: a window of {} packets is not below 32768", t.max_window)
        } else if t.min_rto == 0 || t.min_rto > t.max_rto || t.max_rto > 1000 * S {
            format!(
                "transport: the smallest timeout of {} ms is not between 0 and the largest, {} ms, or that is above 1000 s",
                t.min_rto / MS,
                t.max_rto / MS
            )
        } else if let Some(wrong) = t.wrong() {
            wrong
        } else if self.levels.windows(2).any(|pair| pair[0] >= pair[1]) {
            "levels: the largest flows of the levels do not increase".to_owned()
        } else {
            return self.limiter.check(t.data_bytes);
        };
        Err(Error::new(wrong))
    }

    fn check_queue(&self, place: &str, queue: &Queue) -> Result<()> {
        let limit = match queue {
            Queue::DropTail(limit) | Queue::Threshold { limit, .. } => *limit,
            Queue::Marking { limit, .. } | Queue::Priority { limit } | Queue::PFabric { limit } => Limit::Bytes(*limit),
            Queue::Red(red) => {
                red.check().map_err(|error| Error::new(format!("{place}: {error}")))?;
                red.limit
            }
            Queue::CoDel(codel) => {
                codel.check().map_err(|error| Error::new(format!("{place}: {error}")))?;
                codel.limit
            }
        };
        let data = u64::from(self.transport.data_bytes);
        let bytes = match limit {
            Limit::Bytes(bytes) => bytes,
            Limit::Packets(0) => 0,
            // What a time holds depends on the link.
            Limit::None | Limit::Packets(_) | Limit::Time(_) => u64::MAX,
        };
        if bytes < data {
            return Err(Error::new(format!("{place}: its limit of {bytes} bytes holds no packet of {data}")));
        }
        Ok(())
    }
}
