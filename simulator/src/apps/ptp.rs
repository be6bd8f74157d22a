// SPDX-License-Identifier: GPL-2.0-or-later
//! PTP: clock synchronisation by IEEE 1588's delay request-response mechanism, end to end, in two
//! steps.

use serde::{Deserialize, Serialize};

use crate::apps::check::{count, hosts, level, positive, schedule};
use crate::apps::context::Context;
use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::core::units::{Duration, In, Instant, Octets};
use crate::host::sockets::Event;
use crate::net::topology::Topology;

/// A master and slaves with perfect clocks: the offset that a slave measures is caused by queues.
///
/// In each interval a slave receives a Sync and the `Follow_Up` with its departure time; then it
/// sends a `Delay_Req`, and the `Delay_Resp` carries its arrival time. Messages are stamped when
/// the host's limiter releases them, as in the driver, and when they arrive. Slave i starts i/n of
/// an interval later, so that slaves do not queue behind each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ptp {
    /// Number of the master's host.
    pub master: u32,
    /// Numbers of the slaves' hosts.
    pub slaves: Vec<u32>,
    /// Level of all messages; 0 is served first.
    pub level: u8,
    /// Bytes on the wire of each message.
    #[serde(with = "In::<Octets>")]
    pub bytes: u16,
    /// Time of the first Sync.
    #[serde(with = "In::<Instant>")]
    pub first: Ps,
    /// Interval of a slave's Syncs.
    #[serde(with = "In::<Duration>")]
    pub interval: Ps,
    /// Syncs of each slave.
    pub count: u32,
}

/// Tokens are an exchange's number and two bits.
const MAX_EXCHANGES: u64 = 1 << 29;

impl Ptp {
    pub(crate) fn check(&self, topology: &Topology) -> Result<()> {
        let place = format!("PTP from {}", self.master);
        let mut ends = self.slaves.clone();
        ends.push(self.master);
        hosts(&place, &ends, 2, topology)?;
        level(&place, self.level)?;
        positive(&place, "bytes of its messages", self.bytes.into())?;
        count(&place, "Syncs", self.count)?;
        let exchanges = u64::from(self.count) * self.slaves.len() as u64;
        if exchanges > MAX_EXCHANGES {
            return Err(Error::new(format!("{place}: {exchanges} exchanges are more than 2^29")));
        }
        schedule(&place, self.first, self.interval, self.count.into())
    }
}

/// What slaves computed, one value an exchange, in the order in which the Syncs were sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PtpResult {
    /// When the Sync was handed over.
    pub starts: Vec<Ps>,
    /// The slave's place in the list.
    pub slaves: Vec<u32>,
    /// Offset from the master, ((t2 − t1) − (t4 − t3)) / 2, and mean path delay, ((t2 − t1) + (t4 −
    /// t3)) / 2, in ps, both rounded towards 0; none: the exchange was not completed.
    pub computed: Vec<Option<(i64, Ps)>>,
    /// Exchanges of which a message was dropped.
    pub lost: u64,
}

/// An exchange under way.
#[derive(Debug, Clone, Copy, Default)]
struct Stamps {
    t1: Ps,
    t2: Ps,
    t3: Ps,
    t4: Ps,
    /// How many of Sync and `Follow_Up` have arrived.
    arrived: u8,
    lost: bool,
}

#[derive(Debug)]
pub(crate) struct PtpRun {
    spec: Ptp,
    /// The first channel: two a slave, to it and from it.
    channel: u32,
    left: Vec<u32>,
    stamps: Vec<Stamps>,
    results: PtpResult,
}

const SYNC: u32 = 0;
const FOLLOW_UP: u32 = 1;
const DELAY_REQ: u32 = 2;
const DELAY_RESP: u32 = 3;

impl PtpRun {
    pub fn begin(spec: Ptp, ctx: &mut Context) -> Self {
        let slaves = spec.slaves.len() as u32;
        for slave in 0..slaves {
            let phase = u128::from(spec.interval) * u128::from(slave) / u128::from(slaves);
            ctx.wake(spec.first + phase as Ps, slave);
        }
        let left = vec![spec.count; spec.slaves.len()];
        let channel = ctx.channels(spec.slaves.iter().flat_map(|&slave| [spec.master, slave]));
        PtpRun { spec, channel, left, stamps: Vec::new(), results: PtpResult::default() }
    }

    pub fn act(&mut self, event: Event, ctx: &mut Context) {
        match event {
            Event::Timer(slave) => self.sync(slave, ctx),
            Event::Arrived { token, .. } => self.arrived(token >> 2, token & 3, ctx),
            Event::Dropped(token) => {
                let stamps = &mut self.stamps[token as usize >> 2];
                self.results.lost += u64::from(!stamps.lost);
                stamps.lost = true;
            }
            Event::Received(_) | Event::Acknowledged { .. } => {}
        }
    }

    fn sync(&mut self, slave: u32, ctx: &mut Context) {
        let exchange = self.stamps.len() as u32;
        self.stamps.push(Stamps::default());
        self.results.starts.push(ctx.now());
        self.results.slaves.push(slave);
        self.results.computed.push(None);
        self.stamps[exchange as usize].t1 = self.to_slave(exchange, SYNC, ctx);
        self.to_slave(exchange, FOLLOW_UP, ctx);
        self.left[slave as usize] -= 1;
        if self.left[slave as usize] > 0 {
            ctx.wake(ctx.now() + self.spec.interval, slave);
        }
    }

    fn to_slave(&self, exchange: u32, what: u32, ctx: &mut Context) -> Ps {
        let Ptp { ref slaves, level, bytes, .. } = self.spec;
        let slave = self.results.slaves[exchange as usize];
        ctx.datagram(
            self.channel + 2 * slave,
            slaves[slave as usize],
            level,
            bytes,
            exchange << 2 | what,
        )
    }

    fn to_master(&self, exchange: u32, what: u32, ctx: &mut Context) -> Ps {
        let Ptp { master, level, bytes, .. } = self.spec;
        let slave = self.results.slaves[exchange as usize];
        ctx.datagram(self.channel + 2 * slave + 1, master, level, bytes, exchange << 2 | what)
    }

    fn arrived(&mut self, exchange: u32, what: u32, ctx: &mut Context) {
        let stamps = &mut self.stamps[exchange as usize];
        match what {
            SYNC | FOLLOW_UP => {
                if what == SYNC {
                    stamps.t2 = ctx.now();
                }
                stamps.arrived += 1;
                if stamps.arrived == 2 {
                    self.stamps[exchange as usize].t3 = self.to_master(exchange, DELAY_REQ, ctx);
                }
            }
            DELAY_REQ => {
                stamps.t4 = ctx.now();
                self.to_slave(exchange, DELAY_RESP, ctx);
            }
            _ => {
                let there = stamps.t2 - stamps.t1;
                let back = stamps.t4 - stamps.t3;
                let half = i64::try_from(there.abs_diff(back) / 2).unwrap_or(i64::MAX);
                let offset = if there < back { -half } else { half };
                self.results.computed[exchange as usize] = Some((offset, there.midpoint(back)));
            }
        }
    }

    pub fn results(&self) -> PtpResult {
        self.results.clone()
    }
}
