// SPDX-License-Identifier: GPL-2.0-or-later
//! A flow without end, as iperf sends it.

use serde::{Deserialize, Serialize};

use crate::apps::check::{level, pair, schedule};
use crate::apps::net::Net;
use crate::core::error::{Error, Result};
use crate::core::time::Ps;
use crate::core::units::{Duration, In, Instant};
use crate::host::flow::Flow;
use crate::host::sockets::Event;
use crate::net::topology::Topology;

/// A host that always has something to send, over the hosts' reliable transport.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    /// Number of the sending host.
    pub src: u32,
    /// Number of the receiving host.
    pub dst: u32,
    /// 0 is served first.
    pub level: u8,
    /// When it begins.
    #[serde(with = "In::<Instant>")]
    pub start: Ps,
    /// When it hands over nothing new any more. What is under way then still arrives.
    #[serde(with = "In::<Instant>")]
    pub until: Ps,
    /// Largest window in packets, as small buffers of a socket make it; none: the transport's.
    pub window: Option<u16>,
    /// What has been delivered is noted this often, from the start on.
    #[serde(with = "In::<Duration>")]
    pub interval: Ps,
}

impl Bulk {
    pub(crate) fn check(&self, topology: &Topology) -> Result<()> {
        let place = format!("bulk from {} to {}", self.src, self.dst);
        pair(&place, self.src, self.dst, topology)?;
        level(&place, self.level)?;
        schedule(&place, self.until, 0, 0)?;
        if self.until <= self.start {
            return Err(Error::new(format!("{place}: its end at {} ps is not after its start at {} ps", self.until, self.start)));
        }
        if self.interval == 0 {
            return Err(Error::new(format!("{place}: its interval is 0")));
        }
        if self.window == Some(0) {
            return Err(Error::new(format!("{place}: its window is 0 packets")));
        }
        Ok(())
    }
}

/// What an endless flow has delivered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BulkResult {
    /// Bytes on the wire of the packets that had arrived in order by the end of each interval.
    pub delivered: Vec<u64>,
    /// Of all packets that have.
    pub bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Sending {
    spec: Bulk,
    key: u32,
    /// While it sends.
    slot: Option<u32>,
    data_bytes: u64,
    /// Bytes of flows that have ended.
    before: u64,
    delivered: Vec<u64>,
}

/// The timers.
const START: u32 = 0;
const STOP: u32 = 1;
const NOTE: u32 = 2;

impl Sending {
    pub fn begin(spec: Bulk, net: &mut Net) -> Self {
        net.wake(spec.start, START);
        Sending { key: net.keys(1), slot: None, data_bytes: net.data_bytes().into(), before: 0, delivered: Vec::new(), spec }
    }

    pub fn act(&mut self, event: Event, net: &mut Net) {
        match event {
            Event::Timer(START) => {
                self.send(net);
                net.wake(self.spec.until, STOP);
                self.next_note(net);
            }
            Event::Timer(STOP) => {
                if let Some(slot) = self.slot {
                    net.cut_short(slot, self.key);
                }
            }
            Event::Timer(_) => self.note(net),
            Event::Acknowledged { packets, .. } => {
                self.before += u64::from(packets) * self.data_bytes;
                self.slot = None;
                if net.now() < self.spec.until {
                    self.send(net);
                }
            }
            Event::Received(_) | Event::Arrived { .. } | Event::Dropped(_) => {}
        }
    }

    fn send(&mut self, net: &mut Net) {
        let Bulk { src, dst, level, window, .. } = self.spec;
        self.slot = Some(net.send_endless(src, dst, level, self.key, window.unwrap_or(u16::MAX)));
    }

    fn note(&mut self, net: &mut Net) {
        match self.slot.map(|slot| net.flow(slot, self.key)) {
            // It has just ended: its end is told next.
            Some(None) => net.wake(net.now(), NOTE),
            Some(Some(flow)) => {
                self.delivered.push(self.bytes(flow));
                self.next_note(net);
            }
            None => {
                self.delivered.push(self.before);
                self.next_note(net);
            }
        }
    }

    fn bytes(&self, flow: &Flow) -> u64 {
        self.before + u64::from(flow.expected()) * self.data_bytes
    }

    fn next_note(&self, net: &mut Net) {
        let at = net.now() + self.spec.interval;
        if at <= self.spec.until {
            net.wake(at, NOTE);
        }
    }

    pub fn results(&self, flows: &[Flow]) -> BulkResult {
        let flow = self.slot.map(|slot| &flows[slot as usize]).filter(|flow| flow.key == self.key);
        BulkResult { delivered: self.delivered.clone(), bytes: flow.map_or(self.before, |flow| self.bytes(flow)) }
    }
}
