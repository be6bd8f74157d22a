// SPDX-License-Identifier: GPL-2.0-or-later
//! Schemes: queues, transports and limiters.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::host::hosts::{HostConfig, TRANSPORTS};
use crate::host::limiter::Limiter;
use crate::host::transport::Transport;
use crate::net::link_config::LinkConfig;
use crate::net::pause::Pause;
use crate::net::routes::Routing;
use crate::net::shared_buffer::SharedBuffer;
use crate::queue::kinds::Queue;

/// Everything except network and traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    /// Choice among equal paths.
    pub routing: Routing,
    /// Queue of every link of a switch, and of hosts' links without a queue of their own.
    pub queue: Queue,
    /// Queue of the hosts' own links, before their cables; none: as at switches.
    pub host_queue: Option<Queue>,
    /// Queue of links between switches; none: as at links to hosts.
    pub trunk_queue: Option<Queue>,
    /// Flow control of all links, or of their levels; none: no pauses.
    pub pause: Option<Pause>,
    /// Buffers that each switch's ports share; none: every queue has its own limit only.
    pub shared_buffer: Option<SharedBuffer>,
    /// The hosts' transport.
    pub transport: Transport,
    /// Other transports, which single flows may use: numbers 1 to 3.
    #[serde(with = "others")]
    pub others: [Option<Transport>; TRANSPORTS - 1],
    /// Limiter between transport and the host's queue.
    pub limiter: Limiter,
    /// Largest flow of levels 0 to 6, in packets; larger flows have level 7.
    pub levels: [u32; 7],
}

/// Serializes other transports as a list of those that exist.
mod others {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{Transport, TRANSPORTS};

    const MAX: usize = TRANSPORTS - 1;

    pub fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<[Option<Transport>; MAX], D::Error> {
        let list = Vec::<Transport>::deserialize(from)?;
        if list.len() > MAX {
            return Err(D::Error::custom(format!(
                "it has {} transports, more than {MAX}",
                list.len()
            )));
        }
        let mut others = [None; MAX];
        for (other, transport) in others.iter_mut().zip(list) {
            *other = Some(transport);
        }
        Ok(others)
    }

    pub fn serialize<S: Serializer>(
        others: &[Option<Transport>; MAX],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(others.iter().flatten())
    }
}

/// Bytes on the wire of full data packets, and of ACKs by transport number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wire {
    /// A full data packet.
    pub data: u16,
    /// ACKs, by transport number.
    pub acks: [u16; TRANSPORTS],
}

impl Scheme {
    /// Level of a flow of this many packets, 0 to 7.
    pub fn level(&self, packets: u32) -> u8 {
        self.config().level(packets)
    }

    /// Whether some transport's receivers grant or pull.
    pub(crate) fn grants(&self) -> bool {
        self.config().transports.iter().any(|transport| transport.congestion.grants())
    }

    /// Whether some transport's law reads telemetry.
    pub(crate) fn reads_telemetry(&self) -> bool {
        self.config().transports.iter().any(|transport| transport.congestion.reads_telemetry())
    }

    /// Whether some transport's law is the user's own.
    pub(crate) fn has_own_law(&self) -> bool {
        self.config().transports.iter().any(|transport| transport.congestion.is_own())
    }

    /// Whether every transport's law runs in parts.
    pub(crate) fn runs_in_parts(&self) -> bool {
        self.config().transports.iter().all(|transport| transport.congestion.runs_in_parts())
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.link_config().check()?;
        self.transport.check()?;
        for (number, other) in
            (1..).zip(self.others).filter_map(|(number, other)| Some((number, other?)))
        {
            other.check().map_err(|error| Error::new(format!("transport {number}: {error}")))?;
            if other.data_bytes != self.transport.data_bytes {
                let (its, first) = (other.data_bytes, self.transport.data_bytes);
                return Err(Error::new(format!(
                    "transport {number}: its packets have {its} bytes, those of the first {first}"
                )));
            }
        }
        if self.levels.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(Error::new("levels: the largest flows of the levels must increase"));
        }
        if self.reads_telemetry() && self.routing == Routing::Spray {
            return Err(Error::new(
                "routing: a law that reads telemetry compares packets of one path: use per-flow",
            ));
        }
        if self.grants() && self.limiter.drops() {
            return Err(Error::new(
                "limiter: Homa and NDP would retransmit dropped packets without end: use mode \
                 delay without a limit",
            ));
        }
        self.limiter.check(self.ack_bytes())
    }

    /// The largest ACK of any transport.
    fn ack_bytes(&self) -> u16 {
        self.config().transports.iter().fold(0, |most, transport| most.max(transport.ack_bytes))
    }

    /// Sizes of its packets.
    pub fn wire(&self) -> Wire {
        let acks = self.config().transports.map(|transport| transport.ack_bytes);
        Wire { data: self.transport.data_bytes, acks }
    }

    pub(crate) fn link_config(&self) -> LinkConfig {
        LinkConfig {
            queue: self.queue,
            host_queue: self.host_queue,
            trunk_queue: self.trunk_queue,
            pause: self.pause,
            shared_buffer: self.shared_buffer,
            largest: self.transport.data_bytes.max(self.ack_bytes()),
            telemetry: self.reads_telemetry(),
        }
    }

    pub(crate) fn config(&self) -> HostConfig {
        let [a, b, c] = self.others.map(|other| other.unwrap_or(self.transport));
        HostConfig {
            transports: [self.transport, a, b, c],
            limiter: self.limiter,
            levels: self.levels,
        }
    }
}
