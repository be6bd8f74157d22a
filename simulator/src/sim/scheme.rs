// SPDX-License-Identifier: GPL-2.0-or-later
//! Schemes: what queues, hosts and limiters do, with those of QJump's Figure 9 as its published ns-2 scripts run them.

use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::host::hosts::{Manner, TRANSPORTS};
use crate::host::limiter::Limiter;
use crate::host::protocol::Protocol;
use crate::host::transport::Transport;
use crate::net::equipment::Equipment;
use crate::net::pause::Pause;
use crate::net::routes::Routing;
use crate::queue::setting::Queue;

/// Everything but network and traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// Other ones, which flows may have instead: numbers 1 to 3.
    #[serde(with = "others")]
    pub others: [Option<Transport>; TRANSPORTS - 1],
    /// Between transport and the host's queue.
    pub limiter: Limiter,
    /// Largest flow of levels 0 to 6, in packets; larger ones have level 7.
    pub levels: [u32; 7],
}

/// Other transports are written as a list of those that there are.
mod others {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{Transport, TRANSPORTS};

    const MOST: usize = TRANSPORTS - 1;

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[Option<Transport>; MOST], D::Error> {
        let list = Vec::<Transport>::deserialize(from)?;
        if list.len() > MOST {
            return Err(D::Error::custom(format!("it has {} transports, more than {MOST}", list.len())));
        }
        let mut others = [None; MOST];
        for (other, transport) in others.iter_mut().zip(list) {
            *other = Some(transport);
        }
        Ok(others)
    }

    pub fn serialize<S: Serializer>(others: &[Option<Transport>; MOST], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(others.iter().flatten())
    }
}

/// Bytes on the wire of full data packets, and of ACKs by the number of their transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wire {
    /// Of a data packet.
    pub data: u16,
    /// Of an ACK.
    pub acks: [u16; TRANSPORTS],
}

impl Scheme {
    /// Level of a flow of so many packets, 0 to 7.
    pub fn level(&self, packets: u32) -> u8 {
        self.manner().level(packets)
    }

    /// Whether receivers of some transport grant.
    pub(crate) fn grants(&self) -> bool {
        self.manner().transports.iter().any(|transport| transport.congestion.protocol() == Protocol::Grants)
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.equipment().check()?;
        self.transport.check()?;
        for (number, other) in (1..).zip(self.others).filter_map(|(number, other)| Some((number, other?))) {
            other.check().map_err(|error| Error::new(format!("transport {number}: {error}")))?;
            if other.data_bytes != self.transport.data_bytes {
                let (its, first) = (other.data_bytes, self.transport.data_bytes);
                return Err(Error::new(format!("transport {number}: its packets have {its} bytes, those of the first {first}")));
            }
        }
        if self.levels.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(Error::new("levels: the largest flows of the levels do not increase"));
        }
        if self.grants() && self.limiter.drops() {
            return Err(Error::new(
                "limiter: what it drops, Homa's receivers ask for again without end: let it delay, without a limit",
            ));
        }
        self.limiter.check(self.ack_bytes())
    }

    /// Those of the transport whose ACKs are the largest.
    fn ack_bytes(&self) -> u16 {
        self.manner().transports.iter().fold(0, |most, transport| most.max(transport.ack_bytes))
    }

    /// Bytes of its packets.
    pub fn wire(&self) -> Wire {
        let acks = self.manner().transports.map(|transport| transport.ack_bytes);
        Wire { data: self.transport.data_bytes, acks }
    }

    pub(crate) fn equipment(&self) -> Equipment {
        Equipment {
            queue: self.queue,
            host_queue: self.host_queue,
            trunk_queue: self.trunk_queue,
            pause: self.pause,
            largest: self.transport.data_bytes.max(self.ack_bytes()),
        }
    }

    pub(crate) fn manner(&self) -> Manner {
        let [a, b, c] = self.others.map(|other| other.unwrap_or(self.transport));
        Manner { transports: [self.transport, a, b, c], limiter: self.limiter, levels: self.levels }
    }
}
