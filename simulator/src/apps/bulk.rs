// SPDX-License-Identifier: GPL-2.0-or-later
//! Bulk: an endless flow, as iperf sends it.

use serde::{Deserialize, Serialize};

use crate::apps::check::{level, pair, schedule};
use crate::apps::context::Context;
use crate::core::error::{Error, Result};
use crate::core::memory::check_memory;
use crate::core::time::Ps;
use crate::core::units::{Duration, In, Instant};
use crate::host::flow::Flow;
use crate::host::sockets::Event;
use crate::net::topology::Topology;

/// A host that always has data to send, over the reliable transport.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    /// Number of the sending host.
    pub src: u32,
    /// Number of the receiving host.
    pub dst: u32,
    /// 0 is served first.
    pub level: u8,
    /// Start.
    #[serde(with = "In::<Instant>")]
    pub start: Ps,
    /// End: nothing new is sent. Packets under way still arrive.
    #[serde(with = "In::<Instant>")]
    pub until: Ps,
    /// Largest window in packets, as a small socket buffer causes; none: the transport's.
    pub window: Option<u16>,
    /// Interval of samples of delivered bytes, from the start on.
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
            return Err(Error::new(format!(
                "{place}: its end at {} ps must be after its start at {} ps",
                self.until, self.start
            )));
        }
        if self.interval == 0 {
            return Err(Error::new(format!("{place}: its interval must be above 0")));
        }
        let samples = (self.until - self.start) / self.interval;
        check_memory(&place, samples, "samples", SAMPLE_BYTES, "sample at a longer interval")?;
        if self.window == Some(0) {
            return Err(Error::new(format!("{place}: its window must be above 0 packets")));
        }
        Ok(())
    }
}

/// Bytes delivered by an endless flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BulkResult {
    /// Bytes on the wire of packets that had arrived in order, at the end of each interval.
    pub delivered: Vec<u64>,
    /// The same at the end of the run.
    pub bytes: u64,
}

#[derive(Debug)]
pub(crate) struct BulkRun {
    spec: Bulk,
    key: u32,
    /// Slot of the current flow.
    slot: Option<u32>,
    data_bytes: u64,
    /// Bytes of finished flows.
    before: u64,
    delivered: Vec<u64>,
}

/// Bytes of a sample: here with as much again reserved, in the result and in its column in Python.
const SAMPLE_BYTES: u64 = 4 * 8;

/// The timers.
const START: u32 = 0;
const STOP: u32 = 1;
const NOTE: u32 = 2;

impl BulkRun {
    pub fn begin(spec: Bulk, ctx: &mut Context) -> Self {
        ctx.wake(spec.start, START);
        BulkRun {
            key: ctx.keys(1),
            slot: None,
            data_bytes: ctx.data_bytes().into(),
            before: 0,
            delivered: Vec::new(),
            spec,
        }
    }

    pub fn act(&mut self, event: Event, ctx: &mut Context) {
        match event {
            Event::Timer(START) => {
                self.send(ctx);
                ctx.wake(self.spec.until, STOP);
                self.next_note(ctx);
            }
            Event::Timer(STOP) => {
                if let Some(slot) = self.slot {
                    ctx.cut_short(slot, self.key);
                }
            }
            Event::Timer(_) => self.note(ctx),
            Event::Acknowledged { packets, .. } => {
                self.before += u64::from(packets) * self.data_bytes;
                self.slot = None;
                if ctx.now() < self.spec.until {
                    self.send(ctx);
                }
            }
            Event::Received(_) | Event::Arrived { .. } | Event::Dropped(_) => {}
        }
    }

    fn send(&mut self, ctx: &mut Context) {
        let Bulk { src, dst, level, window, .. } = self.spec;
        self.slot = Some(ctx.send_endless(src, dst, level, self.key, window.unwrap_or(u16::MAX)));
    }

    fn note(&mut self, ctx: &mut Context) {
        match self.slot.map(|slot| ctx.flow(slot, self.key)) {
            // It has just finished: the notice comes next.
            Some(None) => ctx.wake(ctx.now(), NOTE),
            Some(Some(flow)) => {
                self.delivered.push(self.bytes(flow));
                self.next_note(ctx);
            }
            None => {
                self.delivered.push(self.before);
                self.next_note(ctx);
            }
        }
    }

    fn bytes(&self, flow: &Flow) -> u64 {
        self.before + u64::from(flow.expected()) * self.data_bytes
    }

    fn next_note(&self, ctx: &mut Context) {
        let at = ctx.now() + self.spec.interval;
        if at <= self.spec.until {
            ctx.wake(at, NOTE);
        }
    }

    pub fn results(&self, flows: &[Flow]) -> BulkResult {
        let flow = self.slot.map(|slot| &flows[slot as usize]).filter(|flow| flow.key == self.key);
        BulkResult {
            delivered: self.delivered.clone(),
            bytes: flow.map_or(self.before, |flow| self.bytes(flow)),
        }
    }
}
